"""The engine of one machine: a supervised process per run, as many side by side as cores."""

from __future__ import annotations

import select
from collections.abc import Sequence

from cbo_suite.engines import EngineOptions, Event, Job
from cbo_suite.engines.supervise import ForkServerClient
from cbo_suite.registry import list_optimizers
from cbo_suite.system import cores
from cbo_suite.tasks import Task

# Optimizers of an extra share a fork server that has their slow libraries; no other run loads them.
_SLOW_LIBRARIES: dict[str, Sequence[str]] = {"scbo": ("torch",)}


class LocalEngine:
    """Carries out jobs on this machine."""

    def __init__(self, jobs: int) -> None:
        """Carry out at most `jobs` jobs side by side."""
        self.jobs = jobs
        self._extras = {optimizer.id: optimizer.extra for optimizer in list_optimizers()}
        self._servers: dict[Sequence[str], ForkServerClient] = {}

    def room(self) -> int:
        """Return how many more runs may begin."""
        return self.jobs - sum(server.running for server in self._servers.values())

    def start(self, job: Job) -> None:
        """Begin a run."""
        preload = _SLOW_LIBRARIES.get(self._extras.get(job.task.optimizer, ""), ())
        server = self._servers.get(preload)
        if server is None:
            server = self._servers[preload] = ForkServerClient(preload)
        server.start(job)

    def wait(self, seconds: float) -> list[Event]:
        """Return what happened, after `seconds` at most."""
        select.select(list(self._servers.values()), [], [], seconds)
        events: list[Event] = []
        for preload, server in list(self._servers.items()):
            events += server.wait(0.0)
            if not server.alive and not server.running:
                del self._servers[preload]
                server.close()
        return events

    def stop(self, task: Task | None = None) -> None:
        """Ask one run, or all, to end."""
        for server in self._servers.values():
            server.stop(task)

    def close(self) -> None:
        """Kill all runs."""
        for server in self._servers.values():
            server.abandon()
        while self._servers:
            self._servers.popitem()[1].close()


def make(options: EngineOptions) -> LocalEngine:
    """Make the engine, with a run per core where no number is given."""
    return LocalEngine(options.jobs or cores())
