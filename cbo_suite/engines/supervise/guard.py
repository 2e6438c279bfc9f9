"""The guard of a run: from its start until nothing of it is left.

A guard is a process that the fork server forks for one run. It forks the run into a session of its
own, watches its time, keeps the end of what it prints, kills whatever is left of it (on Linux also
what left the session) and says how it ended.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import select
import signal
import time
from typing import Annotated, Any, Literal

import msgspec

from cbo_suite.engines.supervise.child import perform
from cbo_suite.engines.supervise.processes import (
    GRACE_SECONDS,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    SWEEP_SECONDS,
    TICK_SECONDS,
    descendants,
    kill_all,
    prctl,
    read_available,
    reap,
    send,
    wake_up_pipe,
)
from cbo_suite.system import signal_name

OUTPUT_BYTES = 4096  # what is kept of a run's output
REPORT_BYTES = 2**16  # more than this in one line is no report
LINE_BYTES = 4000  # less is written to a pipe in one piece
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGSYS", "SIGTRAP")


class Report(msgspec.Struct, forbid_unknown_fields=True):
    """What a run may tell its guard; anything else is malformed.

    Attributes:
        status: How it ended, None before that.
        error: What went wrong.
        note: What keeps it from going on for a while.
        evaluations: Number of evaluations so far.
        best_objective: Objective value of the best point.
        best_violation: Its total violation.
    """

    status: Literal["complete", "skipped", "failed", "memory", "stopped", "taken"] | None = None
    error: str = ""
    note: str = ""
    evaluations: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0
    best_objective: float | None = None
    best_violation: float | None = None


_report_decoder = msgspec.json.Decoder(Report)


def encode(fields: dict[str, Any]) -> bytes:
    """Write an event as one line, its texts shortened until the line is short enough."""
    while len(line := json.dumps(fields).encode() + b"\n") > LINE_BYTES:
        # An output is told by its end, an error by its beginning.
        if output := fields.get("output", ""):
            fields["output"] = output[(len(output) + 1) // 2 :]
        else:
            name = "note" if fields.get("note") else "error"
            fields[name] = fields[name][: len(fields[name]) // 2]
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
        self.server = os.getppid()
        self.adopts = prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.asked_to_stop = self.asked_to_die = False
        self.wake = wake_up_pipe()
        # Should the fork server be killed, its guards end their runs at once.
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
        self.malformed = False
        self.code: int | None = None
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
            if self.asked_to_die or os.getppid() != self.server:
                return "dead"
            if self.asked_to_stop:
                return "stopped"
            remaining = deadline - time.monotonic()
            if remaining <= 0.0:
                return "timeout"
            self._listen(min(remaining, TICK_SECONDS))

    def _listen(self, seconds: float) -> None:
        """Read what the run prints and reports, waiting `seconds` for it at most."""
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
        """Keep the last report of the run and pass on its progress; a malformed one is the last."""
        *lines, self.reported = (self.reported + part).split(b"\n")
        self.reported = self.reported[-REPORT_BYTES:]
        for line in lines:
            if self.malformed:
                return
            try:
                _report_decoder.decode(line)
                self.last = self.last | json.loads(line)
            except (ValueError, RecursionError):  # msgspec's errors are ValueErrors too
                self.malformed = True
                text = "what its process reported is no report"
                self.last = {**self.last, "status": "failed", "error": text}
        if lines and "status" not in self.last:
            self._write(encode({"number": self.number, **self.last}), patient=False)

    def _write(self, line: bytes, *, patient: bool) -> None:
        """Write an event; without patience it is dropped when nobody reads."""
        while True:
            try:
                os.write(self.events, line)
                return
            except BlockingIOError:
                if not patient or os.getppid() != self.server:
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
            kill_all(left)
            time.sleep(0.002)

    def _verdict(self, reason: str) -> dict[str, Any]:
        """Say how the run ended, in the fields of `Outcome`."""
        self.last.pop("note", None)
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
