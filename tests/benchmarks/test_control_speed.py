"""Speed of the rover on one core, and of the lunar lander on two against one."""

from __future__ import annotations

import os
import time
from importlib.util import find_spec

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import cbo_suite as cbo

BATCH = 1000
ROVER_RATE = 1000.0
SPEED_UP = 1.7
ROUNDS = 3
# This process counts for one; with others at work two workers do not get two cores.
MAX_LOAD = 1.5
LOAD = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


# The clock of the process counts one core, whatever else the machine does.
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("problem_id", ["rover-60d-v1", "rover-60d-alt-v1"])
def test_rover_evaluations_per_second(benchmark: BenchmarkFixture, problem_id: str) -> None:
    """At least 1000 evaluations a second on one core, in batches of 1000."""
    problem = cbo.make_problem(problem_id)
    x = np.random.default_rng(0).random((BATCH, 60))
    evaluation = benchmark(problem.evaluate, x)
    assert evaluation.objective.shape == (BATCH,)
    if benchmark.stats is not None:  # None with --benchmark-disable
        assert BATCH / benchmark.stats.stats.median >= ROVER_RATE


@pytest.mark.slow
@pytest.mark.benchmark(min_rounds=ROUNDS, max_time=1.0)
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
@pytest.mark.skipif(LOAD > MAX_LOAD, reason=f"needs two idle cores, the load is {LOAD:.1f}")
@pytest.mark.skipif(find_spec("Box2D") is None, reason="needs the extra lunar")
def test_two_workers_against_one(benchmark: BenchmarkFixture) -> None:
    """A batch of 50 points on 50 terrains, with workers that have started."""
    one = cbo.make_problem("lunar-lander-m50-v1", workers=1)
    two = cbo.make_problem("lunar-lander-m50-v1", workers=2)
    x = np.random.default_rng(0).uniform(0.0, 2.0, (50, 12))
    two.evaluate(x[:2])
    alone = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        expected = one.evaluate(x)
        alone.append(time.perf_counter() - begin)
    evaluation = benchmark(two.evaluate, x)
    np.testing.assert_array_equal(evaluation.constraints, expected.constraints)
    if benchmark.stats is not None:
        assert min(alone) / benchmark.stats.stats.min >= SPEED_UP
