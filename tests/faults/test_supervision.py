"""A run that hangs, crashes, eats memory or floods ends alone, in time, and leaves nothing."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cbo_suite.campaign import Campaign
from cbo_suite.campaign.store import Store
from cbo_suite.engines import Event, Job, Limits, Outcome, Progress
from cbo_suite.engines.local import LocalEngine
from cbo_suite.engines.supervise.processes import LATE_SECONDS
from cbo_suite.tasks import Task
from tests.faults.helpers import FULL, parent_of, survivors
from tests.faults.misbehaviour import REPORTS

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="only Linux finds what escaped and limits memory",
)
SECONDS = 3.0
MEMORY = 300 * 2**20
# What hangs; then what each of the others does, the status it gets and a part of the reason.
HANGS = ("hang", "deaf", "parent", "storm") if FULL else ("deaf", "parent")
FAULTS = {
    "segfault": ("crashed", "SIGSEGV"),
    "exit": ("crashed", "exit status 0 in the middle of the run"),
    "exit-seven": ("crashed", "exit status 7"),
    "suicide": ("killed", "SIGKILL, by a person or by a system short of memory"),
    "bomb": ("memory", "MemoryError"),
    "flood": ("failed", "flood failed in ask: RuntimeError: enough"),
    "leaver": ("complete", ""),
    "silent": ("complete", ""),
}


def carry_out(names: list[str], folder: Path, seconds: float) -> dict[str, Outcome]:
    """Run optimizers on the local engine, three side by side; return the outcome of each."""
    tasks = [Task("toy-2d-v1", name, 12, 1, 5, 0) for name in names]
    campaign = Campaign(tasks, Store(folder), limits=Limits(seconds, MEMORY))
    events = campaign.run(LocalEngine(3))
    return {event.task.optimizer: event for event in events if isinstance(event, Outcome)}


def left_behind(words: Path) -> list[int]:
    """Return the ids that processes of runs wrote down."""
    return [int(word) for word in words.read_text().split()]


def test_what_hangs_is_ended_in_time(misbehaviour: Path, tmp_path: Path) -> None:
    """Also what ignores SIGTERM or forks: within its limit and 2 s, with all its processes."""
    outcomes = carry_out([*HANGS], tmp_path / "runs", SECONDS)
    assert {name: outcome.status for name, outcome in outcomes.items()} == dict.fromkeys(
        HANGS, "timeout"
    )
    for outcome in outcomes.values():
        assert outcome.error == "it took longer than 3 s and was ended"
        assert SECONDS <= outcome.seconds <= SECONDS + 2.0
    assert len(left_behind(misbehaviour)) >= 2
    assert survivors(left_behind(misbehaviour)) == []


def test_every_fault_ends_alone(misbehaviour: Path, tmp_path: Path) -> None:
    """Each fault gets its status; the good runs between them complete."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    names = ["random-search", *FAULTS, "sobol-search"]
    outcomes = carry_out(names, tmp_path / "runs", seconds=60.0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert set(outcomes) == set(names)
    for name, (status, reason) in FAULTS.items():
        assert outcomes[name].status == status, outcomes[name]
        assert reason in outcomes[name].error
        assert len(outcomes[name].output) <= 4096
    assert outcomes["flood"].output.endswith("the last words")
    assert outcomes["random-search"].status == outcomes["sobol-search"].status == "complete"
    assert len(left_behind(misbehaviour)) == 1
    assert survivors(left_behind(misbehaviour)) == []
    assert grown < 50 * 1024  # kilobytes, in the process of the campaign


def test_faults_are_on_record_and_retried_when_asked(misbehaviour: Path, tmp_path: Path) -> None:
    """A second campaign leaves failures alone, resumes what was killed; a third tries again."""
    folder = tmp_path / "runs"
    tasks = [Task("toy-2d-v1", name, 12, 1, 5, 0) for name in ("segfault", "suicide")]
    carry_out([task.optimizer for task in tasks], folder, seconds=60.0)
    store = Store(folder)
    assert store.state(tasks[0]).word == "failed"
    assert "crashed: its process crashed with SIGSEGV" in store.state(tasks[0]).error
    # Killed from outside is no fault of the run.
    assert store.state(tasks[1]).word == "interrupted"
    again = Campaign(tasks, store)
    assert list(again.waiting) == [tasks[1]]
    assert list(again.failed) == [tasks[0]]
    assert set(Campaign(tasks, store, retry_failed=True).waiting) == set(tasks)


def test_what_a_run_waits_for_is_told(misbehaviour: Path, tmp_path: Path) -> None:
    """At once, in one harmless line, and no longer when it goes on; its output has it too."""
    task = Task("toy-2d-v1", "builder", 100, 1, 5, 0)
    *events, outcome = Campaign([task], Store(tmp_path)).run(LocalEngine(1))
    notes = [event.note for event in events if isinstance(event, Progress)]
    said = r"it builds \x1b[31msomething once"
    assert said in notes
    assert notes[-1] == ""
    assert isinstance(outcome, Outcome)
    assert outcome.status == "complete", outcome
    assert said in outcome.output


def test_a_campaign_shows_what_a_run_waits_for(
    misbehaviour: Path, start_cbo: Callable[..., subprocess.Popen[str]]
) -> None:
    """Once, by the name of the run."""
    words = ["run", "--problems", "toy-2d", "--optimizers", "builder", "--seeds", "0-1"]
    process = start_cbo(*words, "--budget", "20", "--out", "runs")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    lines = [line for line in said.splitlines() if r"it builds \x1b[31msomething once" in line]
    assert len(lines) == 2
    assert all("builder" in line for line in lines), lines


def test_a_killed_fork_server_costs_its_runs_only(misbehaviour: Path, tmp_path: Path) -> None:
    """When the process that starts runs is killed, the next runs have a new one."""
    tasks = [Task("toy-2d-v1", name, 12, 1, 5, 0) for name in ("hang", "random-search")]
    engine = LocalEngine(1)
    campaign = Campaign(tasks, Store(tmp_path / "runs"), limits=Limits(seconds=60.0))
    outcomes = {}
    for event in campaign.run(engine):
        if isinstance(event, Outcome):
            outcomes[event.task.optimizer] = event.status
        elif event.task.optimizer == "hang":
            [fork_server] = engine._servers.values()
            fork_server._process.kill()
    assert outcomes == {"hang": "killed", "random-search": "complete"}
    assert survivors(left_behind(misbehaviour)) == []


@pytest.mark.parametrize("name", ["stopper", "great-stopper", "orphan"] if FULL else ["stopper"])
def test_a_run_that_stops_its_guards_ends_in_time(
    name: str, misbehaviour: Path, tmp_path: Path
) -> None:
    """The limit holds whatever a run does to those who watch over it, and nothing is left."""
    seconds = 1.0
    tasks = [Task("toy-2d-v1", each, 12, 1, 5, 0) for each in (name, "random-search")]
    campaign = Campaign(tasks, Store(tmp_path / "runs"), limits=Limits(seconds, MEMORY))
    events = campaign.run(LocalEngine(1))
    outcomes = {event.task.optimizer: event for event in events if isinstance(event, Outcome)}
    assert outcomes[name].status == ("killed" if name == "orphan" else "timeout")
    assert outcomes[name].seconds < seconds + 6 * LATE_SECONDS
    assert outcomes["random-search"].status == "complete"
    assert left_behind(misbehaviour)
    assert survivors(left_behind(misbehaviour)) == []


def test_a_stopped_guard_does_not_hold_up_the_end(misbehaviour: Path, tmp_path: Path) -> None:
    """Who closes an engine, or stops a run, waits for no guard that was stopped."""
    for way in ("stop", "close"):
        engine = LocalEngine(1)
        engine.start(Job(Task("toy-2d-v1", "stopper", 12, 1, 5, 0), str(tmp_path / f"{way}.jsonl")))
        deadline = time.monotonic() + 60
        misbehaviour.write_text("")
        while not left_behind(misbehaviour) and time.monotonic() < deadline:
            engine.wait(0.05)
        events: list[Event] = []
        if way == "stop":
            engine.stop()
            while not events and time.monotonic() < deadline:
                events = [event for event in engine.wait(0.1) if isinstance(event, Outcome)]
            assert [event.status for event in events if isinstance(event, Outcome)] == ["stopped"]
        engine.close()
        assert survivors(left_behind(misbehaviour)) == []


def test_malformed_reports_fail_their_run_alone(misbehaviour: Path, tmp_path: Path) -> None:
    """Whatever a run reports, and wherever it writes, the campaign and other runs go on."""
    chosen = range(len(REPORTS)) if FULL else (1, 5, 6, 8)
    tasks = [
        *(Task("toy-2d-v1", "liar", 12, 1, 5, seed) for seed in chosen),
        Task("toy-2d-v1", "great-liar", 12, 1, 5, 0),
        Task("toy-2d-v1", "random-search", 12, 1, 5, 0),
    ]
    campaign = Campaign(tasks, Store(tmp_path / "runs"), limits=Limits(60.0, MEMORY))
    outcomes = [event for event in campaign.run(LocalEngine(2)) if isinstance(event, Outcome)]
    assert sorted(outcome.task.name for outcome in outcomes) == sorted(task.name for task in tasks)
    for outcome in outcomes:
        if outcome.task.optimizer == "liar":
            assert outcome.status == "failed"
            assert "is no report" in outcome.error
        if outcome.task.optimizer == "random-search":
            assert outcome.status == "complete"


def test_a_killed_guard_costs_its_run_only(misbehaviour: Path, tmp_path: Path) -> None:
    """When the process that watches over a run is killed, nothing of the run is left."""
    tasks = [Task("toy-2d-v1", name, 12, 1, 5, 0) for name in ("parent", "random-search")]
    killed: list[int] = []

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
    assert survivors(left_behind(misbehaviour)) == []
