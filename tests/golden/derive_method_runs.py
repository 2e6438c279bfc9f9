"""Run each method of the paper for a few evaluations and write its points into methods.json.

Run from the root of the repository on linux-x86_64, ten seconds:

    OMP_NUM_THREADS=1 python -m tests.golden.derive_method_runs

Do so when a change of results is meant, and say in the commit why they change. The runs are short
on purpose. Processors and their libraries round differently, and a method carries that on: measured
with kernels from SSE2 to AVX-512 for OpenBLAS, MKL, PyTorch and NumPy, the points of these runs
differ by at most 2e-7 of the box, while those of `cobyla` are other ones after 20 evaluations and
those of `slack` after 13.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import cbo_suite as cbo

TARGET = Path(__file__).with_name("methods.json")
PROBLEM = "toy-2d-v1"
N_INIT = 8


class Length(NamedTuple):
    """How long a run is.

    Attributes:
        budget: Number of evaluations.
        batch_size: Number of points asked for at once.
    """

    budget: int
    batch_size: int


METHODS = {
    "scbo": Length(36, 2),
    "cei": Length(12, 1),
    "pesc": Length(12, 1),
    "slack": Length(12, 1),
    "cobyla": Length(18, 1),
    "cma-es": Length(60, 4),
    "random-search": Length(60, 4),
}


def run_method(optimizer: str) -> list[list[float]]:
    """Run a method and return its points, those of the initial design first, shape `(n, d)`."""
    budget, batch_size = METHODS[optimizer]
    run = cbo.run(PROBLEM, optimizer, budget=budget, batch_size=batch_size, n_init=N_INIT, seed=0)
    points: list[list[float]] = run.x.tolist()
    return points


def main() -> None:
    """Write the points of all methods."""
    points = {optimizer: run_method(optimizer) for optimizer in METHODS}
    lines = [
        f"  {json.dumps(optimizer)}: [\n    "
        + ",\n    ".join(json.dumps(x) for x in rows)
        + "\n  ]"
        for optimizer, rows in points.items()
    ]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
