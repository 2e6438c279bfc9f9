"""What one processor records another one replays: values agree within what problems declare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.errors import MissingExtra
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Evaluation
from tests.problems.other_processors import (
    PROCESSORS,
    ROOT,
    SUPPORTED,
    difference,
    environment,
    evaluate_as,
)
from tests.problems.test_golden_values import GOLDEN
from tests.submissions.honest import put, run_records

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="the variables are those of Linux on x86-64")


@pytest.fixture(scope="module")
def problems() -> dict[str, Problem]:
    """All problems that can be made here; the terrains of the other landers begin with these."""
    found = {}
    for id_ in GOLDEN.keys() - {"lunar-lander-m30-v1", "lunar-lander-m50-v1"}:
        try:
            found[id_] = cbo.make_problem(id_)
        except MissingExtra:
            continue
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("processor", PROCESSORS)
def test_golden_points_agree(processor: str, problems: dict[str, Problem], tmp_path: Path) -> None:
    """Within the rounding of the problem; the lander flies the same to the bit."""
    points = {id_: np.array([point["x"] for point in GOLDEN[id_]]) for id_ in problems}
    there = evaluate_as(processor, points, tmp_path)
    for id_, problem in problems.items():
        here: Evaluation = problem.evaluate(points[id_])
        exact = id_.startswith(("lunar", "vehicle"))
        assert difference(problem, here, there[id_]) <= (0.0 if exact else problem.rounding), id_
        assert (here.feasible == there[id_].feasible).all(), id_


def test_kernels_are_really_other_ones(problems: dict[str, Problem], tmp_path: Path) -> None:
    """Otherwise the test above could not fail."""
    id_ = "rover-60d-v1"
    x = np.random.default_rng(0).random((50, 60))
    found = [evaluate_as(processor, {id_: x}, tmp_path)[id_] for processor in PROCESSORS]
    assert len({values.constraints.tobytes() for values in found}) == len(PROCESSORS)


@pytest.mark.slow
def test_a_row_of_the_rover_is_verified_elsewhere(tmp_path: Path) -> None:
    """Ten runs that were made here, replayed as processors of today with other kernels do."""
    runs = run_records(tmp_path, "rover-60d-v1", "random-search", range(10))
    path = put(tmp_path / "runs", runs)
    for processor in PROCESSORS.keys() - {"with SSE"}:
        done = subprocess.run(
            [sys.executable, "-m", "cbo_suite", "verify", str(path)],
            capture_output=True,
            text=True,
            env=environment(processor),
            cwd=ROOT,
        )
        assert done.returncode == 0, done.stdout
        assert "1 verified, 0 unverified, 0 refused" in done.stdout
