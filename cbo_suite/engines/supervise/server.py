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
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NoReturn

from cbo_suite.engines.supervise.child import prepare
from cbo_suite.engines.supervise.guard import SWEEP_SECONDS, Guard, encode
from cbo_suite.engines.supervise.processes import (
    PR_SET_CHILD_SUBREAPER,
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
            kill_all(descendants(spared=self.guards))
            text = f"the process that watched over it ended with status {code}"
            event = {"number": number, "status": "killed", "error": text}
            select.select([], [self.events], [], SWEEP_SECONDS)
            with contextlib.suppress(OSError):
                os.write(self.events, encode(event))
