"""The engine of Slurm, through submitit: an array of jobs, one run each, on a shared disk.

The jobs that a campaign starts between two waits become one array. Every run writes its journal
itself, to the folder of the campaign, which the nodes must share; nothing else is moved but the
outcome. submitit keeps scripts, logs and its own files in `.slurm` in that folder; what belongs to
a run that is complete is removed.
"""

from __future__ import annotations

import math
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from cbo_suite.engines import EngineOptions, Event, Job, Outcome, Status
from cbo_suite.engines.slurm_job import Carrier
from cbo_suite.errors import CboError, InvalidTask, MissingExtra, one_line
from cbo_suite.system import cores
from cbo_suite.tasks import Task

# An array has at most 1001 jobs unless a cluster allows more.
ARRAY_SIZE = 1000
POLL_SECONDS = 0.5
# How long jobs have to say that they were stopped before it is said for them.
STOP_SECONDS = 2.5
# How long the result of a job that is over may take to appear on the shared disk.
RESULT_SECONDS = 10.0
# How long the processes of the local executor may take to end; Slurm ends its jobs by itself.
CLOSE_SECONDS = 5.0
DEFAULT_MINUTES = 24 * 60
# Beyond the limits of the run: for its start, its end, and the interpreter.
EXTRA_MINUTES = 5
EXTRA_GIGABYTES = 1.0
# States of Slurm that say more than that a job is over.
STATES: dict[str, Status] = {
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "OUT_OF_MEMORY": "memory",
    "CANCELLED": "killed",
    "NODE_FAIL": "killed",
    "BOOT_FAIL": "killed",
    "PREEMPTED": "killed",
    "REVOKED": "killed",
    "INTERRUPTED": "killed",  # the word of submitit's local executor
}


class _Submitted(msgspec.Struct):
    """A job of an array.

    Attributes:
        job: What it carries out.
        handle: The job of submitit.
        begin: When it was submitted.
        stopped: When it was cancelled, None if it was not.
        missing: Since when it is over without a result, None if it is not.
    """

    job: Job
    handle: Any
    begin: float
    stopped: float | None = None
    missing: float | None = None


class SlurmEngine:
    """Carries out jobs through Slurm."""

    def __init__(self, folder: Path, jobs: int | None, settings: Mapping[str, str]) -> None:
        """Look whether jobs can be submitted with these settings.

        Args:
            folder: Where submitit keeps its files; nodes must reach it under the same name.
            jobs: Number of jobs in the queue, None for as many as an array may have.
            settings: Settings of Slurm by name, such as partition; and cluster=local to run the
                jobs as processes of this machine instead.

        Raises:
            CboError: There is no Slurm here.
            InvalidTask: A setting does not exist or cannot have its value.
        """
        self._folder = folder
        self._cluster = settings.get("cluster", "slurm")
        most = cores() if self._cluster == "local" else ARRAY_SIZE
        self._capacity = most if jobs is None else min(jobs, ARRAY_SIZE)
        self._parameters = {
            f"slurm_{name}": _value(name, text)
            for name, text in settings.items()
            if name != "cluster"
        }
        self._waiting: list[Job] = []
        self._submitted: list[_Submitted] = []
        self._events: list[Event] = []
        self._executor(Job(Task("any-v1", "any", 1, 1, 0, 0), ""))

    def room(self) -> int:
        """Return how many more jobs may be submitted.

        There is none until half of the jobs are done, so that jobs come in arrays and not singly.
        """
        busy = len(self._waiting) + len(self._submitted)
        if not self._waiting and 2 * busy > self._capacity:
            return 0
        return self._capacity - busy

    def start(self, job: Job) -> None:
        """Put a job into the next array."""
        path = str(Path(job.journal).absolute())
        self._waiting.append(msgspec.structs.replace(job, journal=path))

    def wait(self, seconds: float) -> list[Event]:
        """Submit what has been started, and return what has ended, after `seconds` at most.

        Raises:
            CboError: Slurm takes no jobs.
        """
        if self._waiting:
            self._submit()
        deadline = time.monotonic() + seconds
        while not self._events:
            for submitted in list(self._submitted):
                outcome = self._outcome(submitted)
                if outcome is not None:
                    self._submitted.remove(submitted)
                    self._events.append(outcome)
            left = deadline - time.monotonic()
            if self._events or left <= 0.0:
                break
            time.sleep(min(left, POLL_SECONDS))
        events, self._events = self._events, []
        return events

    def stop(self, task: Task | None = None) -> None:
        """Cancel jobs; what is not yet submitted never will be."""
        for job in [job for job in self._waiting if task in (None, job.task)]:
            self._waiting.remove(job)
            self._events.append(Outcome(job.task, "stopped", "withdrawn before it began"))
        chosen = [s for s in self._submitted if task in (None, s.job.task) and s.stopped is None]
        for submitted in chosen:
            submitted.stopped = time.monotonic()
        self._cancel(chosen)

    def close(self) -> None:
        """Cancel everything."""
        self._waiting.clear()
        self._cancel(self._submitted)
        deadline = time.monotonic() + CLOSE_SECONDS
        while self._cluster == "local" and time.monotonic() < deadline:
            if all(submitted.handle.done() for submitted in self._submitted):
                break
            time.sleep(0.05)
        self._submitted.clear()

    def _executor(self, job: Job) -> Any:
        """Make the executor of submitit for jobs with the limits of this one."""
        from submitit import AutoExecutor

        seconds, memory = job.limits.seconds, job.limits.memory
        minutes = DEFAULT_MINUTES if seconds is None else math.ceil(seconds / 60) + EXTRA_MINUTES
        gigabytes = None if memory is None else math.ceil(memory / 2**30) + EXTRA_GIGABYTES
        try:
            executor = AutoExecutor(self._folder / "%j", cluster=self._cluster)
        except (RuntimeError, ValueError) as error:
            raise CboError(
                f"jobs cannot be submitted here: {error}; use this engine where `sbatch` works"
            ) from error
        try:
            executor.update_parameters(
                name="cbo-suite",
                timeout_min=minutes,
                mem_gb=gigabytes,
                cpus_per_task=int(job.settings.get("processes", 1)),
                slurm_array_parallelism=self._capacity,
                **self._parameters,
            )
        except (NameError, ValueError, TypeError, AssertionError) as error:
            text = str(error).splitlines()[0]
            raise InvalidTask(f"Slurm does not take these settings: {text}") from error
        return executor

    def _submit(self) -> None:
        """Submit what waits as one array."""
        jobs, self._waiting = self._waiting, []
        executor = self._executor(jobs[0])
        try:
            with _interruptible(), executor.batch():
                handles = [executor.submit(Carrier(msgspec.json.encode(job))) for job in jobs]
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            raise CboError(f"Slurm takes no jobs: {error}") from error
        now = time.monotonic()
        self._submitted += [_Submitted(*pair, now) for pair in zip(jobs, handles, strict=True)]

    def _outcome(self, submitted: _Submitted) -> Outcome | None:
        """Return how a job ended, None while that is not known."""
        job, handle, now = submitted.job, submitted.handle, time.monotonic()
        seconds = now - submitted.begin
        # Looked for here, because submitit would wait for a file that is not there.
        if handle.done() and handle.paths.result_pickle.exists():
            return self._answer(submitted, seconds)
        if submitted.stopped is not None:
            # Slurm may take long to say that a job is gone.
            late = now - submitted.stopped > STOP_SECONDS
            gone = handle.done() if self._cluster == "local" else late
            return Outcome(job.task, "stopped", "cancelled", seconds=seconds) if gone else None
        if not handle.done():
            submitted.missing = None
            return None
        if submitted.missing is None:
            submitted.missing = now
        if now - submitted.missing < RESULT_SECONDS:
            return None
        state = str(handle.state).partition(" ")[0]
        text = f"job {handle.job_id} ended as {state} without a result: see {handle.paths.stderr}"
        return Outcome(job.task, STATES.get(state, "crashed"), one_line(text), seconds=seconds)

    @staticmethod
    def _answer(submitted: _Submitted, seconds: float) -> Outcome:
        """Read what a job answered."""
        job, handle = submitted.job, submitted.handle
        try:
            outcome = msgspec.json.decode(handle.result(), type=Outcome)
            if outcome.task != job.task:
                raise ValueError(f"it answered for another run, {outcome.task.name}")
        except Exception as error:  # submitit raises what the job raised, or errors of its own
            lines = str(error).strip().splitlines() or [type(error).__name__]
            text = f"job {handle.job_id}: {lines[-1]}"
            return Outcome(job.task, "crashed", one_line(text), seconds=seconds)
        if outcome.status == "complete":
            shutil.rmtree(handle.paths.folder, ignore_errors=True)
        return outcome

    def _cancel(self, submitted: Iterable[_Submitted]) -> None:
        """Cancel jobs, all with one command."""
        handles = [s.handle for s in submitted if not s.handle.done()]
        command = shutil.which("scancel")
        if self._cluster == "local":
            for handle in handles:
                handle.cancel()
        elif handles and command is not None:
            numbers = [str(handle.job_id) for handle in handles]
            subprocess.run([command, *numbers], check=False, capture_output=True)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Start processes that heed SIGINT, by which submitit's local executor cancels its jobs.

    A campaign in a script's background ignores it, and what it starts would do so too.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if not ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _value(name: str, text: str) -> object:
    """Turn the text of a setting into what submitit wants."""
    if name == "time" and not text.isdecimal():
        raise InvalidTask(f"time must be a whole number of minutes, got {text!r}")
    if name in ("setup", "teardown", "srun_args"):
        return [text]
    return int(text) if text.isdecimal() else text


def make(options: EngineOptions) -> SlurmEngine:
    """Make the engine.

    Raises:
        MissingExtra: submitit is not installed.
    """
    try:
        import submitit  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra.of("the slurm engine", error.name, "slurm") from error
    return SlurmEngine(Path(options.folder, ".slurm").absolute(), options.jobs, options.settings)
