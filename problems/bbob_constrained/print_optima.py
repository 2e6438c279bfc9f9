"""Print the optima of functions of COCO: a script for a process and a folder of its own.

COCO writes an optimum into a file in the working folder, and nowhere else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cocoex

FILE = Path("._bbob_problem_best_parameter.txt")


def main() -> None:
    """Read a list of [function, dimension, instance], write the list of optima."""
    optima = []
    for function, dim, instance in json.load(sys.stdin):
        suite = cocoex.Suite(
            "bbob-constrained",
            f"instances: {instance}",
            f"dimensions: {dim} function_indices: {function}",
        )
        suite[0]._best_parameter("print")
        optima.append([float(word) for word in FILE.read_text().split()])
    json.dump(optima, sys.stdout)


if __name__ == "__main__":
    main()
