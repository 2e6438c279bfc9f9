"""Many tasks on an engine, resumable: what is done is skipped, the rest goes on.

A campaign takes tasks from its plan one by one, takes a lease on each, has the engine carry it out
and writes down how it ended. Several campaigns may share a folder and a plan: a task belongs to
whoever holds its lease, and a campaign waits for what others hold, or takes it over when they die.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cbo_suite.campaign.condense import refuse_foreign_records, write_campaign_records
from cbo_suite.campaign.durations import Estimator
from cbo_suite.campaign.store import Store
from cbo_suite.engines import (
    Engine,
    EngineOptions,
    Event,
    Job,
    Limits,
    Outcome,
    Progress,
    make_engine,
)
from cbo_suite.errors import StoreNotWritten
from cbo_suite.tasks import Task

# How often the campaign looks up from waiting, and for tasks that others have let go.
TICK_SECONDS = 0.2
SCAN_SECONDS = 1.0
# How long runs may take to stop before they are killed.
STOP_SECONDS = 2.0


class Campaign:
    """The tasks of a plan, their states and what is under way.

    Attributes:
        tasks: All tasks, those that are done among them.
        done: Tasks that are complete.
        skipped: Tasks that their optimizer cannot handle, and why.
        failed: Tasks that failed, now or earlier, and why.
        damaged: Tasks whose journal is not as it was written, and what is wrong.
        running: What this campaign has under way.
        waiting: Tasks that are neither done nor under way here, in the order of the plan.
        elsewhere: Number of those that others have under way, as far as known.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        store: Store,
        *,
        limits: Limits | None = None,
        settings: Mapping[str, Any] | None = None,
        retry_failed: bool = False,
        retry_damaged: bool = False,
    ) -> None:
        """Look at what is done; nothing is written.

        Args:
            tasks: What to run, in this order.
            store: The folder.
            limits: What a run may use.
            settings: Fields of `cbo_suite.harness.Settings` beside journal and callback.
            retry_failed: Whether tasks that failed or were skipped earlier are tried again.
            retry_damaged: Whether damaged journals are set aside and their tasks run anew.

        Raises:
            InvalidTask: The folder holds a run of another task in the place of one of these, or
                records of other runs in the place of theirs.
        """
        refuse_foreign_records(tasks, store)
        self.tasks, self.store = list(tasks), store
        self.limits, self.settings = limits or Limits(), dict(settings or {})
        self.estimator = Estimator()
        self.done: set[Task] = set()
        self.skipped: dict[Task, str] = {}
        self.failed: dict[Task, str] = {}
        self.damaged: dict[Task, str] = {}
        self.running: dict[Task, float] = {}
        self.waiting: dict[Task, None] = {}
        self.elsewhere = 0
        # What earlier attempts came to; those of other campaigns meanwhile are not tried again.
        self._forgiven: dict[Task, Outcome | None] = {}
        self._retry_damaged = retry_damaged
        for task in self.tasks:
            self._look(task, retry_failed)
        self._stopping = False
        self._next_scan = 0.0

    def _look(self, task: Task, retry_failed: bool) -> None:
        """Find out from the store whether a task is to be run."""
        word, last, error = self.store.state(task)
        if word == "done":
            self.done.add(task)
            if last is not None and last.status == "complete":
                self.estimator.learn(task, last.seconds)
        elif word == "damaged" and not self._retry_damaged:
            self.damaged[task] = error
        elif word in ("failed", "skipped") and not retry_failed:
            (self.failed if word == "failed" else self.skipped)[task] = error
        else:
            self._forgiven[task] = last
            self.waiting[task] = None
            # Who else works on it is watched from now on.
            self.store.is_running(task)

    def seconds_left(self, jobs: int) -> float:
        """Guess how long the rest will take on `jobs` processes side by side."""
        now = time.monotonic()
        rest = sum(self.estimator.seconds(task) for task in self.waiting)
        for task, begin in self.running.items():
            rest += max(0.0, self.estimator.seconds(task) - (now - begin))
        return rest / max(1, jobs)

    def stop(self) -> None:
        """Begin nothing more and end what is under way; may be called from a signal handler."""
        self._stopping = True

    def run(self, engine: Engine, on_tick: Callable[[], object] | None = None) -> Iterator[Event]:
        """Carry out what is to be run; give progress and outcomes as they come.

        When it is over, or the caller goes away, the engine is closed and no lease is left.

        Args:
            engine: What carries out the runs.
            on_tick: Called several times a second, whether or not something happened.

        Raises:
            StoreNotWritten: The folder cannot be written; what it held is intact.
            CboError: The engine does not work.
        """
        told_at = float("inf")
        try:
            while True:
                if self._stopping and told_at == float("inf"):
                    told_at = time.monotonic()
                    engine.stop()
                if not self._stopping:
                    self._fill(engine)
                if not self.running and (self._stopping or not self.waiting):
                    return
                if time.monotonic() - told_at > STOP_SECONDS:
                    return
                for event in engine.wait(TICK_SECONDS):
                    yield from self._take_event(event)
                self._give_up_lost(engine)
                if on_tick is not None:
                    on_tick()
        finally:
            engine.close()
            self.tidy()
            self.store.leases.close()

    def tidy(self) -> None:
        """Remove leases that campaigns left on done tasks when they were killed."""
        for task in self.done:
            path = self.store.lease_path(task)
            with contextlib.suppress(StoreNotWritten):
                if path.exists() and self.store.leases.take(path):
                    self.store.leases.release(path)

    def _fill(self, engine: Engine) -> None:
        """Begin tasks while there is room."""
        now = time.monotonic()
        if not self.waiting or engine.room() <= 0 or now < self._next_scan:
            return
        for task in list(self.waiting):
            if engine.room() <= 0:
                return
            if self._take(task):
                path = str(self.store.journal(task))
                self.running[task] = time.monotonic()
                engine.start(Job(task, path, self.limits, self.settings))
        # Everything that is left is with others: no need to ask again at once.
        self.elsewhere = len(self.waiting)
        self._next_scan = now + SCAN_SECONDS

    def _take(self, task: Task) -> bool:
        """Take the lease on a task; tell whether it is ours to run."""
        lease = self.store.lease_path(task)
        if not self.store.leases.take(lease):
            return False
        del self.waiting[task]
        # Since the plan was made, others may have run it.
        word, last, error = self.store.state(task)
        if word in ("missing", "interrupted"):
            return True
        if word == "damaged" and self._retry_damaged:
            self.store.set_aside(task)
            return True
        if word == "done":
            self.done.add(task)
        elif word == "damaged":
            self.damaged[task] = error
        elif last == self._forgiven.get(task):
            return True
        else:
            (self.failed if word == "failed" else self.skipped)[task] = error
        self.store.leases.release(lease)
        return False

    def _take_event(self, event: Event) -> Iterator[Event]:
        """Write down an outcome, pass on what happened."""
        if event.task not in self.running:
            return
        if isinstance(event, Outcome):
            event = self._verified(event)
            del self.running[event.task]
            if event.status != "complete" and not self._is_ours(event):
                # Somebody else goes on with it: what came of it is told by them.
                self.store.leases.release(self.store.lease_path(event.task))
                self.waiting[event.task] = None
                yield Progress(event.task, event.evaluations, note=event.error)
                return
            # Whoever was asked to stop has nothing to say that its journal does not.
            if not (self._stopping and event.status == "stopped"):
                self.store.write_outcome(event)
            self.store.leases.release(self.store.lease_path(event.task))
            if event.status == "complete":
                self.done.add(event.task)
                self.estimator.learn(event.task, event.seconds)
            elif event.status == "skipped":
                self.skipped[event.task] = event.error
            elif self._stopping and event.status == "stopped":
                self.waiting[event.task] = None
            elif (state := self.store.state(event.task)).word == "damaged":
                self.damaged[event.task] = state.error
            else:
                self.failed[event.task] = f"{event.status}: {event.error}"
        yield event

    def _is_ours(self, outcome: Outcome) -> bool:
        """Tell whether nobody else has the task of an outcome, or its journal."""
        held = self.store.leases.holds(self.store.lease_path(outcome.task))
        return held and outcome.status != "taken"

    def _verified(self, outcome: Outcome) -> Outcome:
        """Let the journal decide whether a run is complete, whatever its processes came to."""
        done = self.store.state(outcome.task).word == "done"
        if done == (outcome.status == "complete"):
            return outcome
        if done:
            return msgspec.structs.replace(outcome, status="complete", error="")
        text = "it said that it was complete, but its journal is not"
        return msgspec.structs.replace(outcome, status="failed", error=text)

    def _give_up_lost(self, engine: Engine) -> None:
        """Stop what others have taken over because this process stood still."""
        lost = self.store.leases.lost()
        for task in [task for task in self.running if self.store.lease_path(task) in lost]:
            engine.stop(task)
            del self.running[task]
            self.store.leases.release(self.store.lease_path(task))
            self.waiting[task] = None


def run_tasks(
    tasks: Sequence[Task],
    folder: str | Path,
    *,
    jobs: int | None = None,
    engine: str = "local",
    limits: Limits | None = None,
    retry_failed: bool = False,
    retry_damaged: bool = False,
) -> Iterator[Event]:
    """Run tasks in a folder, side by side, and write their records; what is done is skipped.

    Args:
        tasks: What to run.
        folder: Where journals, outcomes and records go.
        jobs: Number of runs side by side, one per core by default.
        engine: Name of the engine.
        limits: What a run may use.
        retry_failed: Whether tasks that failed earlier are tried again.
        retry_damaged: Whether damaged journals are set aside and their tasks run anew.

    Yields:
        `Progress` and `Outcome` as they come; an error ends its task only.
    """
    store = Store(folder)
    campaign = Campaign(
        tasks, store, limits=limits, retry_failed=retry_failed, retry_damaged=retry_damaged
    )
    store.write_plan(tasks)
    yield from campaign.run(make_engine(engine, EngineOptions(jobs=jobs, folder=str(folder))))
    write_campaign_records(tasks, store)
