"""Speed of the analytic problems: at least 1e5 evaluations a second, in batches of 1000."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import cbo_suite as cbo

BATCH = 1000
RATE = 1e5
ANALYTIC = (
    "tension-string-3d-v1",
    "pressure-vessel-4d-v1",
    "welded-beam-4d-v1",
    "speed-reducer-7d-v1",
    "ackley-10d-v1",
    "keane-30d-v1",
    "toy-2d-v1",
    "rosenbrock-5d-v1",
)


@pytest.mark.parametrize("problem_id", ANALYTIC)
def test_evaluations_per_second(benchmark: BenchmarkFixture, problem_id: str) -> None:
    """The median batch, validation of the points included."""
    problem = cbo.make_problem(problem_id)
    unit = np.random.default_rng(0).random((BATCH, problem.space.dim))
    evaluation = benchmark(problem.evaluate, problem.space.from_unit(unit))
    assert evaluation.objective.shape == (BATCH,)
    if benchmark.stats is not None:  # None with --benchmark-disable
        assert BATCH / benchmark.stats.stats.median >= RATE
