"""Suites, tasks and campaigns on one machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbo_suite.campaign import (
    journal_path,
    record_path,
    run_task,
    run_tasks,
    write_campaign_records,
)
from cbo_suite.errors import UnknownId
from cbo_suite.leaderboard import read_folder
from cbo_suite.problems import PROBLEMS
from cbo_suite.tasks import PAPER, SUITES, Task, get_suite, make_tasks


def test_every_suite_names_what_exists():
    """The protocols are of registered problems, and every suite gives tasks."""
    assert PAPER.keys() <= PROBLEMS.keys()
    for suite in SUITES.values():
        tasks = suite.tasks()
        assert len({task.name for task in tasks}) == len(tasks) > 0


def test_the_paper_protocol():
    """The numbers of the paper's text."""
    assert PAPER["ackley-10d-v1"] == (200, 1, 10)
    assert PAPER["mopta08-124d-v1"] == (2000, 10, 130)
    assert PAPER["rover-60d-v1"] == (5000, 100, 100)
    [task] = make_tasks(["toy-2d-v1"], ["random-search"], [3])
    assert task == Task("toy-2d-v1", "random-search", 100, 1, 10, 3)
    with pytest.raises(UnknownId, match="unknown suite 'qick': choose one of quick"):
        get_suite("qick")


def small_tasks() -> list[Task]:
    """Four short runs."""
    return [
        Task("toy-2d-v1", name, 15, 1, 5, seed)
        for name in ("random-search", "sobol-search")
        for seed in range(2)
    ]


def test_a_campaign_runs_resumes_and_condenses(tmp_path):
    """All tasks end; a second call runs nothing again; the records are those of the journals."""
    tasks = small_tasks()
    outcomes = list(run_tasks(tasks, tmp_path, jobs=2))
    assert {outcome.task for outcome in outcomes} == set(tasks)
    assert all(outcome.error == "" for outcome in outcomes)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")}
    list(run_tasks(tasks, tmp_path, jobs=2))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")} == stamps
    written = write_campaign_records(tasks, tmp_path)
    assert written == sorted({record_path(tmp_path, task) for task in tasks})
    assert [record.task for record in read_folder(tmp_path)] == tasks


def test_an_error_ends_its_task_only(tmp_path):
    """A journal that cannot be resumed is one failed outcome; its pair gets no record."""
    tasks = small_tasks()
    damaged = journal_path(tmp_path, tasks[0])
    damaged.parent.mkdir(parents=True)
    damaged.write_text("not a journal\n")
    outcomes = {outcome.task: outcome for outcome in run_tasks(tasks, tmp_path, jobs=1)}
    assert "line 1: JSON is malformed" in outcomes[tasks[0]].error
    assert all(outcomes[task].error == "" for task in tasks[1:])
    assert write_campaign_records(tasks, tmp_path) == [record_path(tmp_path, tasks[2])]


def test_no_folder_of_a_task_leaves_the_campaign():
    """Journals and records lie below the folder."""
    [task] = make_tasks(["toy-2d-v1"], ["random-search"], [0])
    for place in (journal_path(Path("runs"), task), record_path(Path("runs"), task)):
        assert place.is_relative_to("runs")
    assert run_task(Task("nothing-1d-v1", "random-search", 5, 1, 1, 0), Path("x")).error


def test_what_an_optimizer_cannot_handle_is_skipped_with_the_reason(tmp_path, monkeypatch):
    """A declared limit is no failure."""
    from cbo_suite.optimizers.random_search import RandomSearch

    monkeypatch.setattr(RandomSearch, "max_dim", 1, raising=False)
    [task] = make_tasks(["toy-2d-v1"], ["random-search"], [0])
    outcome = run_task(task, tmp_path)
    assert outcome.error == ""
    assert "at most 1 dimensions, the problem has 2" in outcome.skipped
    assert list(tmp_path.iterdir()) == []
