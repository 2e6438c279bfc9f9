"""Golden values of a problem: points with the values that it must give for ever.

{id: [{"x": [...], "objective": f, "constraints": [c1, ...]}, ...]}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cbo_suite.errors import InvalidTask
from cbo_suite.files import write_whole
from cbo_suite.protocols import Array, ConstrainedProblem, Evaluation

POINTS = 8
TOLERANCE = 1e-9

# One point to its objective value and its constraint values: the formula, typed a second time.
Formula = Callable[[Sequence[float]], tuple[float, Sequence[float]]]


def golden_values(
    problem: ConstrainedProblem, formula: Formula | None = None
) -> list[dict[str, Any]]:
    """Compute the golden values of a problem at points drawn with a fixed seed.

    Args:
        problem: The problem.
        formula: An independent implementation, whose values are taken; None takes those of the
            problem itself, which shows later changes of it but no mistake.

    Raises:
        InvalidTask: Problem and formula do not agree to nine digits.
    """
    space = problem.space
    # Eight digits, which any reader can copy without loss; whole numbers stay whole.
    rounded = np.round(space.sample(POINTS, np.random.default_rng(0)), 8)
    x = space.project(np.clip(rounded, space.lower, space.upper))
    values = problem.evaluate(x)
    if formula is not None:
        values = _compared(problem, x, values, formula)
    return [
        {"x": point.tolist(), "objective": float(objective), "constraints": constraints.tolist()}
        for point, objective, constraints in zip(x, *values, strict=True)
    ]


def _compared(
    problem: ConstrainedProblem, x: Array, values: Evaluation, formula: Formula
) -> Evaluation:
    """Return the values of an independent formula, or refuse them if the problem's are others."""
    rows = [formula(point) for point in x.tolist()]
    wanted = Evaluation(
        np.array([float(objective) for objective, _ in rows]),
        np.array([[float(c) for c in constraints] for _, constraints in rows]).reshape(len(x), -1),
    )
    for name in Evaluation._fields:
        own, other = getattr(values, name), getattr(wanted, name)
        if own.shape != other.shape or not np.allclose(own, other, rtol=TOLERANCE, atol=0.0):
            raise InvalidTask(
                f"{problem.id} and the formula differ in {name}, at the points\n{x.tolist()}\n"
                f"the problem gives\n{own.tolist()}\nand the formula\n{other.tolist()}"
            )
    return wanted


def write_golden(problem_id: str, path: Path, points: list[dict[str, Any]]) -> None:
    """Add golden values of a problem to a file.

    Raises:
        InvalidTask: The file has other values of this problem, or is no such file.
    """
    try:
        known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    except ValueError as error:
        raise InvalidTask(f"{path} is no file of golden values: {error}") from error
    if not isinstance(known, dict):
        raise InvalidTask(f"{path} is no file of golden values: it holds a {type(known).__name__}")
    if known.get(problem_id, points) != points:
        raise InvalidTask(
            f"{path} has other golden values of {problem_id}: what changes them is a new version "
            "of the id. If it is not published yet, remove its entry"
        )
    text = json.dumps(known | {problem_id: points}, indent=1)
    write_whole(path, f"{text}\n".encode())
