"""A run that hangs, crashes, eats memory or floods ends alone, in time, and leaves nothing."""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from cbo_suite.campaign import Campaign
from cbo_suite.engines import Limits, Outcome
from cbo_suite.engines.local import LocalEngine
from cbo_suite.store import Store
from cbo_suite.tasks import Task
from tests.faults.helpers import FULL, parent_of, survivors

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="only Linux finds what escaped and limits memory",
)
LIMITS = Limits(seconds=4.0, memory=300 * 2**20)
# What each does, the status it gets and a part of the reason.
FAULTS = {
    "hang": ("timeout", "longer than 4 s"),
    "deaf": ("timeout", "longer than 4 s"),
    "parent": ("timeout", "longer than 4 s"),
    "storm": ("timeout", "longer than 4 s"),
    "segfault": ("crashed", "SIGSEGV"),
    "exit": ("crashed", "exit status 0 in the middle of the run"),
    "exit-seven": ("crashed", "exit status 7"),
    "suicide": ("killed", "SIGKILL, by a person or by a system short of memory"),
    "bomb": ("memory", "MemoryError"),
    "flood": ("failed", "flood failed in ask: RuntimeError: enough"),
    "leaver": ("complete", ""),
    "silent": ("complete", ""),
}
SHORT = ("deaf", "parent", "segfault", "exit", "bomb", "flood", "leaver")


def carry_out(tasks: list[Task], folder: Path, jobs: int) -> dict[str, Outcome]:
    """Run tasks on the local engine; return the outcome of each optimizer."""
    campaign = Campaign(tasks, Store(folder), limits=LIMITS)
    events = campaign.run(LocalEngine(jobs))
    return {event.task.optimizer: event for event in events if isinstance(event, Outcome)}


def test_every_fault_ends_alone(misbehaviour: Path, tmp_path: Path) -> None:
    """Each fault gets its status within its limit and 2 s, the good runs between them complete."""
    names = list(FAULTS) if FULL else list(SHORT)
    mixed = ["random-search", *names, "sobol-search"]
    tasks = [Task("toy-2d-v1", name, 12, 1, 5, 0) for name in mixed]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = carry_out(tasks, tmp_path / "runs", jobs=3)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert set(outcomes) == set(mixed)
    for name in names:
        status, reason = FAULTS[name]
        assert outcomes[name].status == status, outcomes[name]
        assert reason in outcomes[name].error
        assert outcomes[name].seconds <= LIMITS.seconds + 2.0
        assert len(outcomes[name].output) <= 4096
    assert outcomes["flood"].output.endswith("the last words")
    assert outcomes["random-search"].status == outcomes["sobol-search"].status == "complete"
    left_behind = [int(word) for word in misbehaviour.read_text().split()]
    assert len(left_behind) >= 4
    assert survivors(left_behind) == []
    assert grown < 50 * 1024  # kilobytes, in the process of the campaign


def test_faults_are_on_record_and_retried_when_asked(misbehaviour: Path, tmp_path: Path) -> None:
    """A second campaign leaves failures alone, resumes what was killed; a third tries again."""
    folder = tmp_path / "runs"
    tasks = [Task("toy-2d-v1", name, 12, 1, 5, 0) for name in ("segfault", "suicide")]
    carry_out(tasks, folder, jobs=2)
    store = Store(folder)
    assert store.state(tasks[0]).word == "failed"
    assert "crashed: its process crashed with SIGSEGV" in store.state(tasks[0]).error
    # Killed from outside is no fault of the run.
    assert store.state(tasks[1]).word == "interrupted"
    again = Campaign(tasks, store)
    assert list(again.waiting) == [tasks[1]]
    assert list(again.failed) == [tasks[0]]
    assert set(Campaign(tasks, store, retry_failed=True).waiting) == set(tasks)


def test_a_killed_nursery_costs_its_runs_only(misbehaviour: Path, tmp_path: Path) -> None:
    """When the process that starts runs is killed, the next runs have a new one."""
    tasks = [Task("toy-2d-v1", name, 12, 1, 5, 0) for name in ("hang", "random-search")]
    engine = LocalEngine(1)
    campaign = Campaign(tasks, Store(tmp_path / "runs"), limits=Limits(seconds=60.0))
    outcomes = {}
    for event in campaign.run(engine):
        if isinstance(event, Outcome):
            outcomes[event.task.optimizer] = event.status
        elif event.task.optimizer == "hang":
            [nursery] = engine._nurseries.values()
            nursery._process.kill()
    assert outcomes == {"hang": "killed", "random-search": "complete"}
    assert survivors(int(word) for word in misbehaviour.read_text().split()) == []


def test_a_killed_guard_costs_its_run_only(misbehaviour: Path, tmp_path: Path) -> None:
    """When the process that watches over a run is killed, nothing of the run is left."""
    tasks = [Task("toy-2d-v1", name, 12, 1, 5, 0) for name in ("parent", "random-search")]
    killed = []

    def kill_guard() -> None:
        # The children of the run have told their ids; its own parent is the guard.
        words = misbehaviour.read_text().split()
        if len(words) == 2 and not killed:
            killed.append(parent_of(parent_of(int(words[0]))))
            os.kill(killed[0], signal.SIGKILL)

    campaign = Campaign(tasks, Store(tmp_path / "runs"), limits=Limits(seconds=60.0))
    events = campaign.run(LocalEngine(1), on_tick=kill_guard)
    outcomes = {event.task.optimizer: event for event in events if isinstance(event, Outcome)}
    assert killed
    assert outcomes["parent"].status == "killed"
    assert outcomes["random-search"].status == "complete"
    assert survivors(int(word) for word in misbehaviour.read_text().split()) == []
