"""A process that starts runs quickly and lets nothing of them survive.

`cbo_suite.engines.supervise` starts this file as a process of its own. It imports the libraries
once; a run is then a fork of it, which takes milliseconds where a fresh interpreter takes a second.
Three kinds of processes make a run:

    nursery   reads commands, forks one guard per run; has no threads, so that forks are safe
    guard     forks the run into a session of its own, watches its time, keeps the end of what it
              prints, kills whatever is left of it (on Linux also what left the session) and says
              how it ended
    run       limits its memory and runs the task (`cbo_suite.engines.perform`)

The first line on standard input is `{"path": [...], "preload": [...]}`: where to look for modules
and which to import. Then come commands, one a line: `{"start": NUMBER, "job": {...}}` and
`{"stop": NUMBER}`. On standard output come `{"ready": true}` and events, one a line and short
enough that lines of several guards never mix: `{"number": NUMBER, ...}` with the fields of
`Progress`, or those of `Outcome` if it has a status. When standard input closes, because its owner
is done or dead, all runs are killed and the nursery ends.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import select
import signal
import sys
import time
from collections.abc import Collection, Iterator
from importlib import import_module
from typing import Any, NoReturn

GRACE_SECONDS = 1.0  # between asking a run to end and killing it
SWEEP_SECONDS = 1.5  # how long killed processes may take to disappear
TICK_SECONDS = 0.5  # how often a guard looks whether the nursery still lives
OUTPUT_BYTES = 4096  # what is kept of a run's output
REPORT_BYTES = 2**16  # more than this in one line is no report
LINE_BYTES = 4000  # POSIX writes so much to a pipe in one piece
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGSYS", "SIGTRAP")
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>


def prctl(option: int, value: int) -> bool:
    """Set a property of this process; tell whether the platform has it."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, AttributeError, OSError):
        return False


def process_table() -> Iterator[tuple[int, int]]:
    """Give every living process of the machine and its parent; nothing where there is no /proc."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib would make a path of each
    except OSError:
        return
    for name in filter(str.isdigit, names):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state not in (b"Z", b"X"):
            yield int(name), int(parent)


def descendants(spared: Collection[int] = ()) -> list[int]:
    """Return every living process that descends from this one, but for the spared and theirs."""
    parents = {child: parent for child, parent in process_table() if child not in spared}
    found = {os.getpid()}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return sorted(found - {os.getpid()})


def reap() -> Iterator[tuple[int, int]]:
    """Collect every child that ended; give process ids and exit codes, minus the signal number."""
    with contextlib.suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            yield process, os.waitstatus_to_exitcode(status)


def send(process: int, number: int) -> None:
    """Send a signal to a child that was not collected yet, and to the group that it leads."""
    try:
        os.killpg(process, number)
    except OSError:
        with contextlib.suppress(OSError):
            os.kill(process, number)  # it leads no group yet


def wake_up_pipe() -> int:
    """Make signals wake a select; return the end to read."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    return reader


def read_available(handle: int) -> bytes | None:
    """Read what is there without waiting; None at the end of the stream."""
    try:
        return os.read(handle, 2**16) or None
    except BlockingIOError:
        return b""


def encode(fields: dict[str, Any]) -> bytes:
    """Write an event as one line, its texts shortened until the line is short enough."""
    while len(line := json.dumps(fields).encode() + b"\n") > LINE_BYTES:
        # An output is told by its end, an error by its beginning.
        if output := fields.get("output", ""):
            fields["output"] = output[(len(output) + 1) // 2 :]
        else:
            fields["error"] = fields["error"][: len(fields["error"]) // 2]
    return line


class Guard:
    """Watches one run, from its start until nothing of it is left."""

    def __init__(self, number: int, job: dict[str, Any], events: int) -> None:
        """Start the run.

        Args:
            number: What the owner calls the run.
            job: The job as plain JSON.
            events: Where to write events.
        """
        self.number, self.events = number, events
        self.nursery = os.getppid()
        self.adopts = prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.asked_to_stop = self.asked_to_die = False
        self.wake = wake_up_pipe()
        # Should the nursery be killed, its guards end their runs at once.
        prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
        signal.signal(signal.SIGTERM, self._ask_to_stop)
        signal.signal(signal.SIGQUIT, self._ask_to_die)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self.report, tell = os.pipe()
        self.output, write = os.pipe()
        os.set_blocking(self.report, False)
        os.set_blocking(self.output, False)
        self.begin = time.monotonic()
        limit = job["limits"]["seconds"]
        self.deadline = float("inf") if limit is None else self.begin + limit
        self.limit = limit
        self.printed = self.reported = b""
        self.last: dict[str, Any] = {}
        self.code: int | None = None
        perform = import_module("cbo_suite.engines.perform").perform
        unwanted = (events, self.wake, self.report, self.output)
        # By multiprocessing, so that libraries see that they are in a worker of somebody's.
        child = multiprocessing.get_context("fork").Process(
            target=perform, args=(job, tell, write, unwanted)
        )
        child.start()
        self.process = int(child.pid or 0)
        os.close(tell)
        os.close(write)

    def _ask_to_stop(self, *_: object) -> None:
        """Remember that the run is to end early."""
        self.asked_to_stop = True

    def _ask_to_die(self, *_: object) -> None:
        """Remember that the run is to end at once."""
        self.asked_to_die = True

    def watch(self) -> None:
        """Watch the run to its end, end it when it is time, and say how it ended."""
        reason = self._wait(self.deadline)
        if reason in ("timeout", "stopped"):
            # Not collected yet: otherwise the reason would be that it ended.
            send(self.process, signal.SIGTERM)
            self.asked_to_stop = False
            self._wait(time.monotonic() + GRACE_SECONDS)
        self._sweep()
        self._listen(0.0)
        self._write(encode({"number": self.number, **self._verdict(reason)}), patient=True)

    def _wait(self, deadline: float) -> str:
        """Listen to the run until it ends or is to end; return "ended" or why it is to end."""
        while True:
            for process, code in reap():
                if process == self.process:
                    self.code = code
            if self.code is not None:
                return "ended"
            if self.asked_to_die or os.getppid() != self.nursery:
                return "dead"
            if self.asked_to_stop:
                return "stopped"
            remaining = deadline - time.monotonic()
            if remaining <= 0.0:
                return "timeout"
            self._listen(min(remaining, TICK_SECONDS))

    def _listen(self, seconds: float) -> None:
        """Read what the run prints and reports, waiting so long for it at most."""
        streams = [handle for handle in (self.wake, self.output, self.report) if handle >= 0]
        ready, _, _ = select.select(streams, [], [], seconds)
        if self.wake in ready:
            read_available(self.wake)
        if self.output in ready:
            part = read_available(self.output)
            self.printed = (self.printed + (part or b""))[-OUTPUT_BYTES:]
            self.output = self.output if part is not None else -1
        if self.report in ready:
            part = read_available(self.report)
            self._take_reports(part or b"")
            self.report = self.report if part is not None else -1

    def _take_reports(self, part: bytes) -> None:
        """Keep the last report of the run and pass on its progress; nonsense is dropped."""
        *lines, self.reported = (self.reported + part).split(b"\n")
        self.reported = self.reported[-REPORT_BYTES:]
        for line in lines:
            with contextlib.suppress(ValueError):
                report = json.loads(line)
                if isinstance(report, dict):
                    self.last = self.last | report
        if lines and "status" not in self.last:
            self._write(encode({"number": self.number, **self.last}), patient=False)

    def _write(self, line: bytes, *, patient: bool) -> None:
        """Write an event; without patience it is dropped when nobody reads."""
        while True:
            try:
                os.write(self.events, line)
                return
            except BlockingIOError:
                if not patient or os.getppid() != self.nursery:
                    return
                select.select([], [self.events], [], TICK_SECONDS)
            except OSError:
                return

    def _sweep(self) -> None:
        """Kill all that is left of the run, until nothing is."""
        deadline = time.monotonic() + SWEEP_SECONDS
        if self.code is None:
            send(self.process, signal.SIGKILL)
        elif not self.adopts:
            # What is left of the group is out of sight here, but not out of reach.
            with contextlib.suppress(OSError):
                os.killpg(self.process, signal.SIGKILL)
        while time.monotonic() < deadline:
            for process, code in reap():
                if process == self.process:
                    self.code = code
            left = descendants()
            if not left and self.code is not None:
                return
            for process in left:
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.002)

    def _verdict(self, reason: str) -> dict[str, Any]:
        """Say how the run ended, in the fields of `Outcome`."""
        fields = {
            "status": "killed",
            "error": "",
            "output": self.printed.decode(errors="replace"),
            "seconds": time.monotonic() - self.begin,
            **self.last,
        }
        if "status" in self.last:
            return fields
        if reason == "timeout":
            text = f"it took longer than {self.limit:g} s and was ended"
            return fields | {"status": "timeout", "error": text}
        if reason == "stopped":
            return fields | {"status": "stopped", "error": "it was stopped before its end"}
        if reason == "dead":
            return fields | {"error": "it was killed because the process that started it ended"}
        code = self.code or 0
        if code >= 0:
            text = f"its process ended with exit status {code} in the middle of the run"
            return fields | {"status": "crashed", "error": text}
        name = signal_name(-code)
        if name in CRASHES:
            return fields | {"status": "crashed", "error": f"its process crashed with {name}"}
        hint = ", by a person or by a system short of memory" if name == "SIGKILL" else ""
        return fields | {"error": f"its process was killed with {name}{hint}"}


def signal_name(number: int) -> str:
    """Name a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Nursery:
    """Reads commands and forks guards, until its owner is gone."""

    def __init__(self, commands: int, events: int) -> None:
        """Start with no run.

        Args:
            commands: Where commands come from.
            events: Where guards write events.
        """
        self.commands, self.events = commands, events
        self.wake = wake_up_pipe()
        self.guards: dict[int, int] = {}
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def serve(self, pending: bytes) -> None:
        """Carry out commands until there are no more, then end all runs."""
        while True:
            *lines, pending = pending.split(b"\n")
            for line in lines:
                self._command(json.loads(line))
            ready, _, _ = select.select([self.commands, self.wake], [], [])
            if self.wake in ready:
                read_available(self.wake)
                self._bury()
            if self.commands in ready:
                part = os.read(self.commands, 2**16)
                if not part:
                    break
                pending += part
        deadline = time.monotonic() + SWEEP_SECONDS
        for guard in self.guards:
            os.kill(guard, signal.SIGQUIT)
        while self.guards and time.monotonic() < deadline:
            self._bury()
            time.sleep(0.005)

    def _command(self, command: dict[str, Any]) -> None:
        """Start a run, or have one stopped."""
        if "start" in command:
            self._start(command["start"], command["job"])
            return
        for guard, number in self.guards.items():
            if number == command["stop"]:
                os.kill(guard, signal.SIGTERM)

    def _start(self, number: int, job: dict[str, Any]) -> None:
        """Fork the guard of a run."""
        # A guard takes signals once it knows what to do with them.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGQUIT))
        guard = os.fork()
        if guard == 0:
            self._guard(number, job)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self.guards[guard] = number

    def _guard(self, number: int, job: dict[str, Any]) -> NoReturn:
        """Be the guard of a run."""
        try:
            os.close(self.commands)
            os.close(self.wake)
            Guard(number, job, self.events).watch()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)

    def _bury(self) -> None:
        """Forget guards that ended; one that did not end well leaves its run to us."""
        for process, code in reap():
            number = self.guards.pop(process, None)
            if number is None or code == 0:
                continue
            for orphan in descendants(spared=self.guards):
                with contextlib.suppress(OSError):
                    os.kill(orphan, signal.SIGKILL)
            text = f"the process that watched over it ended with status {code}"
            event = {"number": number, "status": "killed", "error": text}
            select.select([], [self.events], [], SWEEP_SECONDS)
            with contextlib.suppress(OSError):
                os.write(self.events, encode(event))


def main() -> None:
    """Import what runs need, then serve."""
    # The channel is kept from whatever else writes to standard output.
    commands, events = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - no import before the path is known
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    pending = b""
    while b"\n" not in pending:
        part = os.read(commands, 2**16)
        if not part:
            return
        pending += part
    line, _, pending = pending.partition(b"\n")
    setup = json.loads(line)
    sys.path[:] = setup["path"]
    import_module("cbo_suite.engines.perform").prepare()
    for module in setup["preload"]:
        # A library that is missing is the run's to report.
        with contextlib.suppress(ImportError):
            import_module(module)
    os.set_blocking(events, False)
    os.write(events, b'{"ready": true}\n')
    Nursery(commands, events).serve(pending)
    # At once: taking down the libraries would take longer than all else.
    os._exit(0)


if __name__ == "__main__":
    main()
