"""Compute the golden values of the analytic problems and write them into problems.json.

Run from the root of the repository, a second:

    python -m tests.golden.derive_problem_values

Points are drawn with a fixed seed, evaluated in `tests.golden.high_precision` or
`tests.golden.g_formulas` and rounded to double precision. Entries of problems that are not
analytic stay as they are.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from mpmath import mpf

from tests.golden.g_formulas import G_REFERENCES
from tests.golden.high_precision import REFERENCES, Reference

TARGET = Path(__file__).with_name("problems.json")
POINTS = 8


FAILING = "failing-g19-15d-v1"


def draw(reference: Reference, seed: int, count: int = POINTS) -> list[list[float]]:
    """Draw points in the box with eight digits, which any reader can copy without loss."""
    lower, upper = np.array(reference.lower), np.array(reference.upper)
    unit = np.random.default_rng(seed).random((count, lower.size))
    points = np.round(lower + unit * (upper - lower), 8)
    drawn: list[list[float]] = np.clip(points, lower, upper).tolist()
    return drawn


def evaluate(reference: Reference, x: list[float]) -> dict[str, object]:
    """Evaluate one point."""
    objective, constraints = reference.evaluate([mpf(value) for value in x])
    return {
        "x": x,
        "objective": float(objective),
        "constraints": [float(value) for value in constraints],
    }


def main() -> None:
    """Replace the entries of the analytic problems."""
    golden = json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else {}
    for seed, (problem_id, reference) in enumerate((REFERENCES | G_REFERENCES).items()):
        golden[problem_id] = [evaluate(reference, x) for x in draw(reference, seed)]
    # Points that do not fail have the values of g19.
    reference = G_REFERENCES["g19-15d-v1"]
    drawn = [x for x in draw(reference, 100, 4 * POINTS) if math.hypot(x[2] - 7, x[5] - 7) >= 4]
    golden[FAILING] = [evaluate(reference, x) for x in drawn[:POINTS]]
    TARGET.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
