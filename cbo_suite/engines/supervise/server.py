"""A process that starts runs quickly and lets nothing of them survive.

`cbo_suite.engines.supervise.client` starts it, by `start.py`. It imports the libraries once; a run
is then a fork of it, which takes milliseconds where a fresh interpreter takes a second. Three kinds
of processes make a run:

    server    reads commands, forks one guard per run; has no threads, so that forks are safe
    guard     forks the run, watches over it and ends it (`cbo_suite.engines.supervise.guard`)
    run       limits its memory and runs the task (`cbo_suite.engines.supervise.child`)

Commands come on standard input, one a line: `{"start": NUMBER, "job": {...}}` and
`{"stop": NUMBER}`. On standard output come `{"ready": true}` and events, one a line and short
enough that lines of several guards never mix: `{"number": NUMBER, ...}` with the fields of
`Progress`, or those of `Outcome` if it has a status. When standard input closes, because its owner
is done or dead, all runs are killed and the server ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from cbo_suite.engines.supervise.child import prepare
from cbo_suite.engines.supervise.guard import Guard, encode
from cbo_suite.engines.supervise.processes import (
    LATE_SECONDS,
    PR_SET_CHILD_SUBREAPER,
    SWEEP_SECONDS,
    TICK_SECONDS,
    descendants,
    kill_all,
    prctl,
    read_available,
    reap,
    wake_up_pipe,
)


def serve(commands: int, events: int, pending: bytes, preload: Iterable[str]) -> None:
    """Import what runs need, then carry out commands until there are no more.

    Args:
        commands: Where commands come from.
        events: Where guards write events.
        pending: What was read of the commands already.
        preload: Further modules to import.
    """
    prepare()
    for module in preload:
        # A library that is missing is the run's to report.
        with contextlib.suppress(ImportError):
            import_module(module)
    os.set_blocking(events, False)
    os.write(events, b'{"ready": true}\n')
    ForkServer(commands, events).serve(pending)


@dataclass
class _Watch:
    """What the server knows of a guard.

    Attributes:
        number: What the owner calls the run.
        deadline: When it must have ended.
        status: What is to be said if it has not.
        error: The same in a sentence.
        put_down: Whether it was killed for that.
    """

    number: int
    deadline: float = float("inf")
    status: str = "killed"
    error: str = ""
    put_down: bool = False


class ForkServer:
    """Reads commands and forks guards, until its owner is gone."""

    def __init__(self, commands: int, events: int) -> None:
        """Start with no run.

        Args:
            commands: Where commands come from.
            events: Where guards write events.
        """
        self.commands, self.events = commands, events
        self.wake = wake_up_pipe()
        self.guards: dict[int, _Watch] = {}
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def serve(self, pending: bytes) -> None:
        """Carry out commands until there are no more, then end all runs."""
        while True:
            *lines, pending = pending.split(b"\n")
            for line in lines:
                self._command(json.loads(line))
            patience = TICK_SECONDS if self.guards else None
            ready, _, _ = select.select([self.commands, self.wake], [], [], patience)
            if self.wake in ready:
                read_available(self.wake)
            self._bury()
            self._put_down(lambda watch: time.monotonic() > watch.deadline)
            if self.commands in ready:
                part = os.read(self.commands, 2**16)
                if not part:
                    break
                pending += part
        deadline = time.monotonic() + SWEEP_SECONDS
        for guard in self.guards:
            os.kill(guard, signal.SIGQUIT)
            os.kill(guard, signal.SIGCONT)  # lest it was stopped and cannot hear
        while self.guards and time.monotonic() < deadline:
            self._bury()
            time.sleep(0.005)
        self._put_down(lambda watch: True)

    def _command(self, command: dict[str, Any]) -> None:
        """Start a run, or have one stopped."""
        if "start" in command:
            self._start(command["start"], command["job"])
            return
        for guard, watch in self.guards.items():
            if watch.number == command["stop"]:
                os.kill(guard, signal.SIGTERM)
                os.kill(guard, signal.SIGCONT)  # lest it was stopped and cannot hear
                watch.deadline = min(watch.deadline, time.monotonic() + LATE_SECONDS)
                watch.status, watch.error = "stopped", "it was stopped before its end"

    def _start(self, number: int, job: dict[str, Any]) -> None:
        """Fork the guard of a run."""
        # A guard takes signals once it knows what to do with them.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGQUIT))
        guard = os.fork()
        if guard == 0:
            self._guard(number, job)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        watch = self.guards[guard] = _Watch(number)
        limit = job["limits"]["seconds"]
        if limit is not None:
            watch.deadline = time.monotonic() + limit + LATE_SECONDS
            watch.status = "timeout"
            watch.error = f"it took longer than {limit:g} s and was ended"

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

    def _put_down(self, is_late: Callable[[_Watch], bool]) -> None:
        """Kill guards that do not end their runs, with all that they watch over.

        A run may stop its guard with a signal, which would let it live for ever.
        """
        for guard in [guard for guard, watch in self.guards.items() if is_late(watch)]:
            self.guards[guard].put_down = True
            kill_all([*descendants(guard), guard])

    def _bury(self) -> None:
        """Forget guards that ended; one that did not end well leaves its run to us."""
        for process, code in reap():
            watch = self.guards.pop(process, None)
            if watch is None or code == 0:
                continue
            kill_all(descendants(spared=self.guards))
            text = f"the process that watched over it ended with status {code}"
            event = {"number": watch.number, "status": "killed", "error": text}
            if watch.put_down:
                text = f"{watch.error}; the process that watched over it was kept from that"
                event |= {"status": watch.status, "error": text}
            select.select([], [self.events], [], SWEEP_SECONDS)
            with contextlib.suppress(OSError):
                os.write(self.events, encode(event))
