"""Campaigns on one machine: plan, run, skip, resume, sum up."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

import cbo_suite as cbo
from cbo_suite.campaign import Campaign, run_tasks
from cbo_suite.campaign.condense import write_campaign_records
from cbo_suite.campaign.leases import Lease, machine_name
from cbo_suite.campaign.store import Store
from cbo_suite.engines import (
    Engine,
    EngineOptions,
    Event,
    Job,
    Limits,
    Outcome,
    Progress,
    Status,
    make_engine,
)
from cbo_suite.errors import InvalidTask, UnknownId
from cbo_suite.leaderboard import read_folder
from cbo_suite.tasks import Task

pytestmark = pytest.mark.skipif(os.name != "posix", reason="campaigns run on Linux and macOS")


def small_tasks() -> list[Task]:
    """Four short runs."""
    return [
        Task("toy-2d-v1", name, 15, 1, 5, seed)
        for name in ("random-search", "sobol-search")
        for seed in range(2)
    ]


class Scripted:
    """An engine that runs nothing: it gives every job the outcome that a test wants."""

    def __init__(self, *statuses: Status, size: int = 1) -> None:
        """Give these statuses, one per job, then none."""
        self.statuses, self.size = list(statuses), size
        self.jobs: list[Job] = []
        self.seen: list[Job] = []
        self.stopped: list[Task | None] = []
        self.closed = False

    def room(self) -> int:
        """Return how many jobs fit."""
        return self.size - len(self.jobs)

    def start(self, job: Job) -> None:
        """Keep a job."""
        self.jobs.append(job)
        self.seen.append(job)

    def wait(self, seconds: float) -> list[Event]:
        """End the first job as scripted."""
        if not self.jobs or not self.statuses:
            time.sleep(min(seconds, 0.01))
            return []
        status = self.statuses.pop(0)
        return [Outcome(self.jobs.pop(0).task, status, f"scripted {status}", seconds=2.0)]

    def stop(self, task: Task | None = None) -> None:
        """End all jobs with "stopped"."""
        self.stopped.append(task)
        self.statuses = ["stopped"] * len(self.jobs)

    def close(self) -> None:
        """Remember it."""
        self.closed = True


def test_a_campaign_runs_resumes_and_condenses(tmp_path: Path) -> None:
    """All tasks end; a second call runs nothing again; the records are those of the journals."""
    tasks = small_tasks()
    outcomes = [event for event in run_tasks(tasks, tmp_path, jobs=2) if isinstance(event, Outcome)]
    assert {outcome.task for outcome in outcomes} == set(tasks)
    assert Counter(outcome.status for outcome in outcomes) == {"complete": 4}
    assert [record.task for record in read_folder(tmp_path)] == tasks
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json*")}
    assert list(run_tasks(tasks, tmp_path, jobs=2)) == []
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json*")} == stamps
    assert not list(tmp_path.rglob("*.claim"))


def test_a_run_of_a_campaign_is_the_run_of_the_library(tmp_path: Path) -> None:
    """Same points, same values, same versions on record as in this process."""
    [task] = small_tasks()[:1]
    [outcome] = [event for event in run_tasks([task], tmp_path / "runs") if event.task == task][-1:]
    path = tmp_path / "direct.jsonl"
    direct = cbo.run("toy-2d-v1", "random-search", budget=15, n_init=5, seed=0, journal=path)
    assert isinstance(outcome, Outcome)
    assert outcome.best_objective == direct.best_objective
    assert outcome.best_violation == 0.0
    assert outcome.evaluations == 15
    [record] = read_folder(tmp_path / "runs")
    assert record.digest == direct.digest
    direct_versions = json.loads(path.read_text().splitlines()[0])["versions"]
    # This process may have loaded more than the run needs, for other tests.
    assert record.versions.items() <= direct_versions.items()


def test_a_damaged_journal_holds_up_its_task_only(tmp_path: Path) -> None:
    """It is left as it is and named; its pair gets no record, until it is run anew."""
    tasks, store = small_tasks(), Store(tmp_path)
    damaged = store.journal(tasks[0])
    damaged.parent.mkdir(parents=True)
    damaged.write_text("not a journal\n")
    campaign = Campaign(tasks, store)
    for _ in campaign.run(make_engine("local", EngineOptions(jobs=1))):
        pass
    assert list(campaign.damaged) == [tasks[0]]
    assert "line 1: no header of a journal" in campaign.damaged[tasks[0]]
    assert not campaign.failed
    assert campaign.done == set(tasks[1:])
    assert write_campaign_records(tasks, store) == [store.records("toy-2d-v1", "sobol-search")]
    assert damaged.read_text() == "not a journal\n"
    events = run_tasks(tasks, tmp_path, retry_damaged=True)
    assert [event.status for event in events if isinstance(event, Outcome)] == ["complete"]
    assert damaged.with_name("0.jsonl.damaged-1").read_text() == "not a journal\n"
    assert len(list(read_folder(tmp_path))) == 4


def test_what_an_optimizer_cannot_handle_is_skipped_with_the_reason(tmp_path: Path) -> None:
    """A declared limit is no failure, and is not asked again unless that is wanted."""
    pytest.importorskip("torch")
    task = Task("keane-30d-v1", "pesc", 120, 1, 100, 0)
    campaign = Campaign([task], Store(tmp_path))
    [outcome] = campaign.run(make_engine("local", EngineOptions(jobs=1)))
    assert isinstance(outcome, Outcome)
    assert outcome.status == "skipped"
    assert "at most 15 dimensions, the problem has 30" in campaign.skipped[task]
    assert Campaign([task], Store(tmp_path)).skipped == campaign.skipped
    assert list(Campaign([task], Store(tmp_path), retry_failed=True).waiting) == [task]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("failed", "failed"),
        ("timeout", "failed"),
        ("memory", "failed"),
        ("crashed", "failed"),
        ("skipped", "skipped"),
        ("killed", "missing"),
        ("stopped", "missing"),
    ],
)
def test_the_status_decides_about_the_next_call(status: Status, word: str, tmp_path: Path) -> None:
    """Faults of the run wait for --retry-failed, interruptions do not."""
    [task] = small_tasks()[:1]
    engine: Engine = Scripted(status)
    campaign = Campaign([task], Store(tmp_path))
    assert [event.task for event in campaign.run(engine)] == [task]
    assert campaign.done == set()
    assert len(campaign.failed) == (status != "skipped")
    assert Store(tmp_path).state(task).word == word
    assert list(Campaign([task], Store(tmp_path)).waiting) == ([task] if word == "missing" else [])


def test_an_engine_that_lies_is_not_believed(tmp_path: Path) -> None:
    """A run is complete when its journal is."""
    [task] = small_tasks()[:1]
    campaign = Campaign([task], Store(tmp_path))
    [outcome] = campaign.run(Scripted("complete"))
    assert isinstance(outcome, Outcome)
    assert outcome.status == "failed"
    assert "its journal is not" in campaign.failed[task]


def test_a_run_killed_after_its_end_is_complete(tmp_path: Path) -> None:
    """Between the last line of its journal and its last word, nothing can be lost any more."""
    [task] = small_tasks()[:1]
    store = Store(tmp_path)
    campaign = Campaign([task], store)
    cbo.run("toy-2d-v1", "random-search", budget=15, n_init=5, journal=tmp_path / "run.jsonl")
    engine = Scripted("killed")
    finish = engine.wait

    def end_then_die(seconds: float) -> list[Event]:
        (tmp_path / "run.jsonl").replace(store.journal(task))
        return finish(seconds)

    engine.wait = end_then_die  # type: ignore[method-assign]
    [outcome] = campaign.run(engine)
    assert isinstance(outcome, Outcome)
    assert (outcome.status, outcome.error) == ("complete", "")
    assert campaign.done == {task}
    assert not campaign.failed


def test_stopping_leaves_no_lease_and_nothing_failed(tmp_path: Path) -> None:
    """What was under way is to be run again; the engine is closed."""
    tasks = small_tasks()
    engine = Scripted(size=2)
    campaign = Campaign(tasks, Store(tmp_path))
    ticks = []

    def stop_soon() -> None:
        ticks.append(len(list(tmp_path.rglob("*.claim"))))
        if len(ticks) == 3:
            campaign.stop()

    outcomes = list(campaign.run(engine, on_tick=stop_soon))
    assert ticks[:3] == [2, 2, 2]
    assert [event.status for event in outcomes if isinstance(event, Outcome)] == ["stopped"] * 2
    assert set(campaign.waiting) == set(tasks)
    assert not campaign.failed
    assert engine.closed
    assert not list(tmp_path.rglob("*.claim"))
    assert not list(tmp_path.rglob("*.json"))


def test_a_campaign_waits_for_others_and_counts_what_they_did(tmp_path: Path) -> None:
    """A task that another holds is left alone; once it is done, it is done."""
    tasks = small_tasks()[:2]
    other = Store(tmp_path)
    assert other.leases.take(other.lease_path(tasks[0]))
    campaign = Campaign(tasks, Store(tmp_path))
    ticks = []

    def finish_other() -> None:
        ticks.append(campaign.elsewhere)
        if len(ticks) == 3:
            task = tasks[0]
            cbo.run("toy-2d-v1", task.optimizer, budget=15, n_init=5, journal=other.journal(task))
            other.leases.release(other.lease_path(task))

    engine = Scripted("failed")
    outcomes = list(campaign.run(engine, on_tick=finish_other))
    assert [event.task for event in outcomes] == [tasks[1]]
    assert ticks[0] == 1
    assert campaign.done == {tasks[0]}
    assert not campaign.waiting


def test_leases_of_the_dead_on_done_tasks_are_removed(tmp_path: Path) -> None:
    """Killed between the end of a run and its release, a campaign leaves no trace for long."""
    tasks = small_tasks()[:2]
    store = Store(tmp_path)
    cbo.run("toy-2d-v1", "random-search", budget=15, n_init=5, journal=store.journal(tasks[0]))
    dead = Lease("someone", machine_name(), 2**22 + 1, "1")
    store.lease_path(tasks[0]).write_bytes(msgspec.json.encode(dead))
    list(Campaign(tasks, store).run(Scripted("failed")))
    assert not list(tmp_path.rglob("*.claim"))


def test_what_others_took_over_is_let_go(tmp_path: Path) -> None:
    """A campaign that stood still stops its run, and takes it back when the other dies."""
    [task] = small_tasks()[:1]
    store = Store(tmp_path, patience=0.5)
    campaign, engine = Campaign([task], store), Scripted()
    other = msgspec.json.encode(Lease("someone", "another machine", 1, "1"))
    given_up = []

    def intervene() -> None:
        if not engine.stopped and store.lease_path(task).read_bytes() != other:
            store.lease_path(task).write_bytes(other)
        if engine.stopped and not campaign.running:
            given_up.append(task in campaign.waiting)
        if engine.stopped and campaign.running:
            engine.statuses = ["failed"]

    outcomes = list(campaign.run(engine, on_tick=intervene))
    assert engine.stopped == [task]
    assert given_up[0]
    assert [event.status for event in outcomes if isinstance(event, Outcome)] == ["failed"]
    assert not list(tmp_path.rglob("*.claim"))


def test_a_failure_elsewhere_is_not_repeated(tmp_path: Path) -> None:
    """With --retry-failed, what another campaign has just tried in vain is not tried again."""
    [task] = small_tasks()[:1]
    store = Store(tmp_path)
    store.write_outcome(Outcome(task, "crashed", "first"))
    campaign = Campaign([task], Store(tmp_path), retry_failed=True)
    assert list(campaign.waiting) == [task]
    store.write_outcome(Outcome(task, "crashed", "second"))
    assert list(campaign.run(Scripted("complete"))) == []
    assert campaign.failed == {task: "crashed: second"}


def test_a_folder_of_other_tasks_is_refused(tmp_path: Path) -> None:
    """Another budget in the same place is named before anything runs."""
    [task] = small_tasks()[:1]
    list(run_tasks([task], tmp_path))
    other = Task("toy-2d-v1", "random-search", 20, 1, 5, 0)
    with pytest.raises(InvalidTask, match="with budget 15 instead of 20: choose another folder"):
        Campaign([other], Store(tmp_path))


@pytest.mark.parametrize("held", [False, True])
def test_what_another_process_has_is_waited_for(held: bool, tmp_path: Path) -> None:
    """A journal that is locked or was taken over is nobody's failure, with or without a lease."""
    [task] = small_tasks()[:1]
    store = Store(tmp_path)

    class Meanwhile(Scripted):
        """While a run is under way, somebody else gets through with it."""

        def start(self, job: Job) -> None:
            super().start(job)
            if not held:
                store.lease_path(task).unlink()

    engine, seen = Meanwhile("taken" if held else "stopped"), []
    campaign = Campaign([task], store)
    for event in campaign.run(engine):
        seen.append(event)
        cbo.run("toy-2d-v1", task.optimizer, budget=15, n_init=5, journal=store.journal(task))
    assert [type(event) for event in seen] == [Progress]
    assert campaign.done == {task}
    assert store.last(task) is None


def test_limits_and_settings_reach_the_engine(tmp_path: Path) -> None:
    """A job has what the caller asked for, and the path of its journal."""
    [task] = small_tasks()[:1]
    engine = Scripted("failed")
    store = Store(tmp_path)
    limits = Limits(5.0, 2**30)
    list(Campaign([task], store, limits=limits, settings={"processes": 2}).run(engine))
    assert engine.seen == [Job(task, str(store.journal(task)), limits, {"processes": 2})]


def test_an_unknown_engine_is_named() -> None:
    """The message lists the engines."""
    with pytest.raises(UnknownId, match="unknown engine 'cloud': choose one of local, dask, slurm"):
        make_engine("cloud", EngineOptions())
