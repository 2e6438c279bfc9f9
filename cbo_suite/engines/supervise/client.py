"""Carry out jobs in processes of their own: what every engine is made of.

`supervise` carries out one job and waits for it. `ForkServerClient` is for many: it holds a process
that has the libraries loaded and starts runs in milliseconds.

However a run behaves, it ends alone, within its time, and nothing of it is left: see
`cbo_suite.engines.supervise.server` for how. It works on Linux and macOS; only Linux limits memory
and finds processes that left the session of their run.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Protocol, cast

import msgspec

from cbo_suite.engines import Event, Job, Outcome, Progress
from cbo_suite.engines.supervise.processes import (
    LATE_SECONDS,
    descendants,
    kill_all,
    session_members,
)
from cbo_suite.errors import CboError
from cbo_suite.system import ONE_THREAD
from cbo_suite.tasks import Task

START = Path(__file__).with_name("start.py")
# How long a fork server may take to end after it was told to.
CLOSE_SECONDS = 2.0
POLL_SECONDS = 0.25


def supervise(
    job: Job,
    *,
    on_progress: Callable[[Progress], object] | None = None,
    stop: threading.Event | None = None,
    preload: Sequence[str] = (),
) -> Outcome:
    """Carry out one job in processes of its own and wait for it.

    May be called from any thread of any process, such as a worker of a cluster. The run has its own
    session, one thread for linear algebra, and the limits of the job. When the calling process
    dies, however that happens, the run is killed too.

    To carry out a job where the journal of the campaign is out of reach: make a temporary folder,
    put the journal there if there is one, call this with `msgspec.structs.replace(job,
    journal=...)`, and send the file and the outcome back. The file is there afterwards whatever
    the status, unless the run never got to make it; send it back for every status, because the
    next attempt goes on from it.

    Args:
        job: What to do; plain data, so it may come as JSON from elsewhere.
        on_progress: Called in this thread every half second or so with how far the run is.
        stop: When set from another thread, the run is ended within 2 seconds.
        preload: Further modules, such as torch, to import before the time of the run begins.

    Returns:
        How it ended; never an exception for what the run does.

    Raises:
        CboError: No process could be started here.
    """
    server = ForkServerClient(preload)
    try:
        return follow(server, job, on_progress=on_progress, stop=stop)
    finally:
        server.close()


class Starter(Protocol):
    """What starts runs: a fork server, or an engine that has nothing else to do."""

    def start(self, job: Job) -> None:
        """Begin a run."""

    def stop(self, task: Task | None = None) -> None:
        """Ask the run of a task, or all runs, to end."""

    def wait(self, seconds: float) -> Sequence[Event]:
        """Return what happened, after `seconds` at most."""


def follow(
    starter: Starter,
    job: Job,
    *,
    on_progress: Callable[[Progress], object] | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Start one job and follow it to its end; the arguments are those of `supervise`.

    Raises:
        CboError: No process could be started here.
    """
    starter.start(job)
    asked = False
    while True:
        if stop is not None and stop.is_set() and not asked:
            asked = True
            starter.stop(job.task)
        for event in starter.wait(POLL_SECONDS):
            if isinstance(event, Outcome):
                return event
            if on_progress is not None:
                on_progress(event)


class ForkServerClient:
    """A process that has the libraries loaded and starts runs quickly, any number side by side."""

    def __init__(self, preload: Sequence[str] = ()) -> None:
        """Start the process; it imports the modules while the caller goes on.

        Args:
            preload: Further modules, such as torch, to import once instead of in every run.

        Raises:
            CboError: The process cannot be started.
        """
        if os.name != "posix":
            raise CboError(
                "runs are supervised on Linux and macOS only: on Windows, use the Windows "
                "Subsystem for Linux, or cbo_suite.run for single runs"
            )
        self._running: dict[int, tuple[Job, float]] = {}
        self._count = 0
        self._pending = b""
        self._ready = 0.0  # when it was, by the monotonic clock
        self._woken = 0.0
        self._errors = tempfile.TemporaryFile()
        environment = os.environ | ONE_THREAD
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(START)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise CboError(f"cannot start a process for runs: {error}") from error
        os.set_blocking(self._stdout.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._command({"path": [str(entry) for entry in sys.path], "preload": list(preload)})

    @property
    def _stdin(self) -> IO[bytes]:
        """Where commands go to."""
        return cast(IO[bytes], self._process.stdin)

    @property
    def _stdout(self) -> IO[bytes]:
        """Where events come from."""
        return cast(IO[bytes], self._process.stdout)

    @property
    def running(self) -> int:
        """Number of runs that were started and have not given an outcome."""
        return len(self._running)

    def fileno(self) -> int:
        """Return the handle that is readable when `wait` has something to say."""
        return self._stdout.fileno()

    def start(self, job: Job) -> None:
        """Begin a run; its outcome comes from `wait`, also when the process is gone by then."""
        self._count += 1
        self._running[self._count] = job, time.monotonic()
        self._command({"start": self._count, "job": msgspec.to_builtins(job)})

    def stop(self, task: Task | None = None) -> None:
        """Ask the run of a task, or all runs, to end; within 2 seconds they have."""
        for number, (job, _) in self._running.items():
            if task is None or job.task == task:
                self._command({"stop": number})

    def wait(self, seconds: float) -> list[Event]:
        """Return what happened, after `seconds` at most.

        When the process itself has died, all its runs were killed with it; they are among the
        outcomes, and the fork server is of no further use: see `alive`.

        Raises:
            CboError: The process died before it could start runs; the message says of what.
        """
        events: list[Event] = []
        if self._selector.select(seconds):
            events = self._read()
        if not events and not self.alive:
            events = [*self._read(), *self._losses()]
        return [*events, *self._overdue()]

    @property
    def alive(self) -> bool:
        """Whether the process lives and can start runs."""
        return self._process.poll() is None

    def abandon(self) -> None:
        """Begin to close: kill all runs at once, without waiting for their end."""
        with contextlib.suppress(OSError):
            self._stdin.close()

    def close(self) -> None:
        """Kill all runs at once and end the process; may be called twice."""
        self.abandon()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._process.returncode != 0:
            self._sweep()
        self._process.wait()
        self._selector.close()
        self._stdout.close()
        self._errors.close()
        self._running.clear()

    def _command(self, command: dict[str, Any]) -> None:
        """Send a command; a fork server that is gone is found out by `wait`."""
        with contextlib.suppress(OSError):
            self._stdin.write(json.dumps(command).encode() + b"\n")
            self._stdin.flush()

    def _read(self) -> list[Event]:
        """Read the events that are there."""
        while part := self._stdout.read():
            self._pending += part
        *lines, self._pending = self._pending.split(b"\n")
        found = [self._event(line) for line in lines]
        return [event for event in found if event is not None]

    def _event(self, line: bytes) -> Event | None:
        """Make an event of a line; None if it is of no run that is waited for.

        A run can write anything here, by the files of other processes: what is malformed ends the
        run that it names, or nothing.
        """
        try:
            fields = json.loads(line)
            number = fields.pop("number", 0)
            running = isinstance(number, int) and number in self._running
        except (ValueError, AttributeError, RecursionError):
            return None
        if not self._ready:
            self._ready = time.monotonic()
        if not running:
            return None
        job, begin = self._running[number]
        try:
            kind: type[Outcome | Progress] = Outcome if "status" in fields else Progress
            event = msgspec.convert({**fields, "task": job.task}, kind)
        except (msgspec.ValidationError, RecursionError):
            self._command({"stop": number})
            text = "what its process reported is no report"
            event = Outcome(job.task, "failed", text, seconds=time.monotonic() - begin)
        if isinstance(event, Outcome):
            del self._running[number]
        return event

    def _overdue(self) -> list[Event]:
        """End runs whose time is over though nobody ended them: their processes were stopped.

        The fork server ends what its guards do not. It is woken up first, in case a run stopped
        it, and killed with all its runs when that does not help.
        """
        now = time.monotonic()
        late = [
            number
            for number, (job, begin) in self._running.items()
            if self._ready
            and job.limits.seconds is not None
            and now > max(begin, self._ready) + job.limits.seconds + 2 * LATE_SECONDS
        ]
        if not late:
            self._woken = 0.0
            return []
        if not self._woken:
            self._woken = now
            self._signal_session(signal.SIGCONT)
        if now - self._woken < LATE_SECONDS:
            return []
        events: list[Event] = []
        for number in late:
            job, begin = self._running.pop(number)
            text = (
                f"it took longer than {job.limits.seconds:g} s and was ended; the processes that "
                "watched over it were kept from that"
            )
            events.append(Outcome(job.task, "timeout", text, seconds=now - begin))
        self._process.kill()
        self._sweep()
        self._process.wait()
        return [*events, *self._losses()]

    def _sweep(self) -> None:
        """See to it that nothing is left of a fork server that was killed.

        Its guards end their runs, if they were not stopped, and are killed if they do not.
        """
        self._signal_session(signal.SIGCONT)
        deadline = time.monotonic() + CLOSE_SECONDS
        while (left := session_members(self._process.pid)) and time.monotonic() < deadline:
            time.sleep(0.02)
        kill_all(process for guard in left for process in (*descendants(guard), guard))

    def _signal_session(self, number: int) -> None:
        """Send a signal to the fork server and its guards, which are one group."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, number)

    def _losses(self) -> list[Event]:
        """Give up the runs of a fork server that died."""
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()[-500:]
        text = f"the process that starts runs ended with status {self._process.returncode}"
        if not self._ready:
            reason = said.splitlines()[-1] if said else "it said nothing"
            raise CboError(f"{text} before it could start any: {reason}")
        now = time.monotonic()
        lost = [
            Outcome(job.task, "killed", text, said, now - begin)
            for job, begin in self._running.values()
        ]
        self._running.clear()
        return [*lost]
