"""What `minimize` itself costs beside the optimizer and the function."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

import cbo_suite as cbo
from cbo_suite.protocols import Array

EVALUATIONS = 1000


def beam(x: Array) -> dict[str, Any]:
    """One point at a time, told by name: the dearest style."""
    return {"objective": float(x.sum()), "constraints": {"stress": 1.0 - x[0], "mass": x[1] - 2.0}}


def test_overhead_per_evaluation(benchmark: BenchmarkFixture) -> None:
    """Data, names, stopping and progress on, no journal: at most 1 ms per evaluation.

    The time in the optimizer and in the function is what the run itself has measured.
    """
    data = np.ones((100, 2)), np.ones(100), np.ones((100, 2))
    spent: list[float] = []

    def run() -> None:
        start = time.perf_counter()
        result = cbo.minimize(
            beam,
            [0, 0],
            [2, 2],
            budget=EVALUATIONS,
            optimizer="random-search",
            names=["width", "height"],
            constraint_names=["stress", "mass"],
            vectorized=False,
            data=data,
            x0=[1.5, 1.5],
            stop_at=-1.0,
            stop_after=3600.0,
            callback=lambda progress: False,
            progress=True,
        )
        beside = time.perf_counter() - start
        spent.append(beside - result.seconds_optimizer - result.seconds_evaluation)

    benchmark.pedantic(run, rounds=10, warmup_rounds=1)
    per_evaluation = sorted(spent)[len(spent) // 2] / EVALUATIONS
    benchmark.extra_info["milliseconds per evaluation"] = 1000 * per_evaluation
    assert per_evaluation < 0.001, f"{1000 * per_evaluation:.3f} ms per evaluation"
