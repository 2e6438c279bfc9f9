"""What supervision costs a run, and what a second core brings."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import cbo_suite as cbo
from cbo_suite.campaign import Campaign
from cbo_suite.campaign.durations import Estimator
from cbo_suite.campaign.store import Store
from cbo_suite.engines import EngineOptions, Outcome, make_engine
from cbo_suite.system import cores
from cbo_suite.tasks import Task, change_task, get_suite

pytestmark = pytest.mark.skipif(os.name != "posix", reason="campaigns run on Linux and macOS")
OVERHEAD_SECONDS = 0.5
SPEED_UP = 1.8
RUNS = 20


def carry_out(tasks: list[Task], folder: Path, jobs: int) -> float:
    """Run tasks on the local engine; return the seconds from the first start to the last end."""
    engine = make_engine("local", EngineOptions(jobs=jobs))
    campaign = Campaign(tasks, Store(folder))
    start = time.perf_counter()
    outcomes = [event for event in campaign.run(engine) if isinstance(event, Outcome)]
    seconds = time.perf_counter() - start
    assert {outcome.status for outcome in outcomes} == {"complete"}
    return seconds


def test_overhead_per_run(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Twenty short runs, supervised one after the other and in this process: at most 0.5 s more.

    The start of the engine is in it, shared by the runs, as it is in a campaign.
    """
    tasks = [Task("toy-2d-v1", "random-search", 30, 1, 10, seed) for seed in range(RUNS)]
    folders = (tmp_path / str(number) for number in itertools.count())
    direct = []

    def in_this_process() -> None:
        folder = next(folders)
        start = time.perf_counter()
        for task in tasks:
            path = folder / f"{task.seed}.jsonl"
            cbo.run("toy-2d-v1", "random-search", budget=30, seed=task.seed, journal=path)
        direct.append(time.perf_counter() - start)

    in_this_process()
    benchmark.pedantic(
        lambda: carry_out(tasks, next(folders), jobs=1), setup=in_this_process, rounds=3
    )
    overhead = (benchmark.stats.stats.median - sorted(direct)[len(direct) // 2]) / RUNS
    benchmark.extra_info["seconds of overhead per run"] = overhead
    assert overhead < OVERHEAD_SECONDS, f"{overhead:.3f} s per run"


@pytest.mark.skipif(cores() < 2, reason="needs two cores")
def test_two_cores_are_nearly_twice_as_fast(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """The random-search tasks of paper-small on one core and on two, one after the other."""
    pytest.importorskip("Box2D", reason="the lunar lander needs its extra")
    if os.getloadavg()[0] > 0.5:
        pytest.skip(f"the machine is busy: load {os.getloadavg()[0]:.1f}")
    # A tenth of the lunar landers' budget and two of their seeds: minutes, not an hour.
    tasks = [
        change_task(task, budget=100) if task.problem.startswith("lunar") else task
        for task in get_suite("paper-small").tasks()
        if task.optimizer == "random-search"
        and (task.seed < 2 or not task.problem.startswith("lunar"))
    ]
    # The longest first, so that no core is idle at the end.
    tasks.sort(key=Estimator().seconds, reverse=True)
    alone = carry_out(tasks, tmp_path / "one", jobs=1)
    benchmark.pedantic(lambda: carry_out(tasks, tmp_path / "two", jobs=2), rounds=1)
    speed_up = alone / benchmark.stats.stats.median
    benchmark.extra_info["times one core"] = speed_up
    assert speed_up >= SPEED_UP, f"{speed_up:.2f} times one core"
