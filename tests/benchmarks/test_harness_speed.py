"""What the harness itself costs, beside waiting for the disk."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import cbo_suite as cbo

EVALUATIONS = 1000


def test_overhead_per_evaluation(
    benchmark: BenchmarkFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random search on the toy, batches of ten, journal on: at most 0.2 ms per evaluation.

    The time spent in fsync is measured in the same run and taken out.
    """
    waited: list[float] = []
    fsync = os.fsync

    def timed(handle: int) -> None:
        start = time.perf_counter()
        fsync(handle)
        waited[-1] += time.perf_counter() - start

    monkeypatch.setattr(os, "fsync", timed)
    paths = (tmp_path / f"{number}.jsonl" for number in range(10**6))
    spent: list[float] = []

    def run() -> None:
        waited.append(0.0)
        start = time.perf_counter()
        cbo.run(
            "toy-2d-v1", "random-search", budget=EVALUATIONS, batch_size=10, journal=next(paths)
        )
        spent.append(time.perf_counter() - start - waited[-1])

    benchmark.pedantic(run, rounds=10, warmup_rounds=1)
    per_evaluation = sorted(spent)[len(spent) // 2] / EVALUATIONS
    benchmark.extra_info["milliseconds per evaluation without fsync"] = 1000 * per_evaluation
    assert per_evaluation < 0.0002, f"{1000 * per_evaluation:.3f} ms per evaluation"
