"""Evaluations in other processes go side by side, and cost little beside the evaluation itself."""

from __future__ import annotations

import time

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from cbo_suite.harness.pool import EvaluationPool
from tests.doubles import Disc

PAUSE = 0.05
POINTS = 60


def seconds_for(processes: int) -> float:
    """Evaluate points that take a while on `processes` processes that are ready."""
    pool = EvaluationPool(Disc(pause=PAUSE), 1, processes, timeout=60.0)
    try:
        pool.start(0, np.zeros((processes, 2)))
        pool.result(0)
        begin = time.perf_counter()
        pool.start(1, np.zeros((POINTS, 2)))
        pool.result(1)
        return time.perf_counter() - begin
    finally:
        pool.close()


def test_four_processes_are_three_times_as_fast_as_one(benchmark: BenchmarkFixture) -> None:
    """The evaluations wait instead of computing, so that the number of cores is no matter."""
    alone = seconds_for(1)
    together = benchmark.pedantic(seconds_for, args=(4,), rounds=1)
    assert alone / together > 3.0
    assert alone < 2 * POINTS * PAUSE
