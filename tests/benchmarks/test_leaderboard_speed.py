"""A large leaderboard is built in time: 60 optimizers on 40 problems with 30 seeds each."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from cbo_suite import site
from cbo_suite.leaderboard import iterate_folder, tables
from cbo_suite.records import Record, write_records
from cbo_suite.scoring.overall import make_board
from cbo_suite.scoring.tracks import Track
from cbo_suite.tasks import Task
from tests.make_records import make, make_reference

OPTIMIZERS = [f"optimizer-{i:02d}" for i in range(60)]
# As in the paper most problems have 100 evaluations, some 200 and some 1000.
BUDGETS = {
    f"problem{i:02d}-{2 + i}d-v1": budget
    for i, budget in enumerate([100] * 28 + [200] * 4 + [1000] * 8)
}
SEEDS = 30
REFERENCE = make_reference(budget=100, n_init=10)


def patterns(budget: int, random: np.random.Generator) -> list[Record]:
    """Make 100 different courses of a run; some of them never find a feasible point."""
    courses = []
    for _ in range(100):
        values = 10 * random.random(budget) ** 2
        feasible = random.random(budget) < random.choice([0.0, 0.02, 0.3])
        courses.append(
            make([v if ok else None for v, ok in zip(values.tolist(), feasible, strict=True)])
        )
    return courses


def write_runs(folder: Path) -> None:
    """Write 72 000 records."""
    random = np.random.default_rng(0)
    for problem, budget in BUDGETS.items():
        courses = patterns(budget, random)
        for optimizer in OPTIMIZERS:
            chosen = random.choice(len(courses), SEEDS, replace=False)
            records = [
                msgspec.structs.replace(
                    courses[i], task=Task(problem, optimizer, budget, 1, 10, seed)
                )
                for seed, i in enumerate(chosen)
            ]
            write_records(folder / problem / f"{optimizer}.jsonl", records)


@pytest.mark.benchmark(timer=time.process_time)
def test_a_large_leaderboard_builds_in_minutes(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Reading, scoring, tables and site, on one core; other work on the machine does not count."""
    runs = tmp_path / "runs"
    write_runs(runs)
    references = dict.fromkeys(BUDGETS, REFERENCE)
    track = Track("all-v1", "all problems", tuple((problem,) for problem in BUDGETS))

    def build() -> dict[str, bytes]:
        board = make_board(iterate_folder(runs), references, tracks=[track])
        pages = site.build(board)
        site.write(pages, tmp_path / "site")
        return tables(board) | pages

    files = benchmark.pedantic(build, rounds=1)
    benchmark.extra_info["megabytes"] = round(sum(map(len, files.values())) / 2**20, 1)
    assert len(files["index.html"]) <= 1.5 * 2**20
    assert benchmark.stats.stats.max < 150
