"""How long it takes to verify a hundred thousand evaluations."""

from __future__ import annotations

from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from cbo_suite.verify import verify_file
from tests.submissions.honest import invented_runs, put, run_records

EVALUATIONS = 100_000


def test_a_large_file_is_verified_in_seconds(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """A hundred runs on a 30-dimensional problem: read, replayed and compared, one digest."""
    (like,) = run_records(tmp_path, "toy-2d-v1", "random-search", [0])
    path = put(tmp_path, invented_runs("keane-30d-v1", "my-search", range(100), like))
    verdict = benchmark.pedantic(verify_file, (path,), rounds=3)
    assert f"{EVALUATIONS:,} of {EVALUATIONS:,} evaluations" in verdict.findings[3].detail
    rate = EVALUATIONS / benchmark.stats.stats.min
    benchmark.extra_info["evaluations per second"] = round(rate)
    # An idle machine does it in about a second.
    assert rate > 10_000
