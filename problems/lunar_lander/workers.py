"""Many landings on all processor cores, with the same rewards as one after the other.

Workers are plain Python processes that run `serve` and talk over pipes in a fixed binary form:
twelve weights and a terrain go in, a reward comes out. Unlike the pools of `multiprocessing` they
never import the user's main script, so it needs no guard, they may be started from a worker of
somebody else's pool, and they end by themselves when their pipe closes, however its owner died.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from struct import Struct

from cbo_suite.errors import EvaluationFailed
from cbo_suite.problems.lunar_lander.flight import fly
from cbo_suite.system import ONE_THREAD, cores

Flight = tuple[Sequence[float], int]

SERVE = "from cbo_suite.problems.lunar_lander.workers import serve; serve()"
REQUEST = Struct("=12dq")
REPLY = Struct("=d")
# A worker takes as long to start as some 50 flights; until this number were flown it would not pay.
START_UP_FLIGHTS = 100


class Pool:
    """A number of worker processes, started on first use, one batch at a time."""

    def __init__(self) -> None:
        self._workers: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    @property
    def processes(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.pid for worker in self._workers]

    def fly(self, flights: Sequence[Flight], count: int) -> list[float]:
        """Fly all flights on `count` workers and return their rewards in order.

        Flights of a worker that dies are flown again by another.

        Raises:
            EvaluationFailed: No worker survived a single flight.
        """
        rewards: list[float | None] = [None] * len(flights)
        with self._lock:
            while missing := [i for i, reward in enumerate(rewards) if reward is None]:
                self._start(count)
                self._round(flights, rewards, missing, self._workers[:count])
                if all(rewards[i] is None for i in missing):
                    codes = sorted({worker.returncode for worker in self._workers[:count]})
                    raise EvaluationFailed(
                        f"the lunar lander's worker processes ended with exit status {codes} "
                        "before they could fly; make the problem with workers=1 to see why"
                    )
        return [reward for reward in rewards if reward is not None]

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            while self._workers:
                _end(self._workers.pop())

    def _start(self, count: int) -> None:
        """Replace dead workers and start missing ones, up to `count`."""
        for worker in [worker for worker in self._workers if worker.poll() is not None]:
            self._workers.remove(worker)
            _end(worker)
        for _ in range(count - len(self._workers)):
            self._workers.append(_start_worker())

    @staticmethod
    def _round(
        flights: Sequence[Flight],
        rewards: list[float | None],
        missing: Sequence[int],
        workers: Sequence[subprocess.Popen[bytes]],
    ) -> None:
        """Hand out the missing flights, each worker the next one when it is free."""
        todo: SimpleQueue[int] = SimpleQueue()
        for i in missing:
            todo.put(i)

        def serve(worker: subprocess.Popen[bytes]) -> None:
            # One flight more than is in the air, so that no worker waits for its next one.
            sent: deque[int] = deque()
            try:
                for i in _drain(todo):
                    _send(worker, flights[i])
                    sent.append(i)
                    if len(sent) > 1:
                        rewards[sent[0]] = _receive(worker)
                        sent.popleft()
                for i in sent:
                    rewards[i] = _receive(worker)
            except (OSError, EOFError):
                worker.kill()
                worker.wait()

        with ThreadPoolExecutor(len(workers)) as threads:
            try:
                list(threads.map(serve, workers))
            finally:
                # After an interrupt the threads finish the flight in hand and find no other.
                for _ in _drain(todo):
                    pass


_flown = 0
_shared: Pool | None = None
_making = threading.Lock()


def fly_all(flights: Sequence[Flight], workers: int | None = None) -> list[float]:
    """Return the rewards of flights in order.

    Args:
        flights: Pairs of twelve weights and a terrain.
        workers: Number of processes; 1 flies in this one. None takes one for each core once there
            was enough to fly, but none in a process that is itself a worker: whoever started it
            has filled the cores already.
    """
    global _flown
    _flown += len(flights)
    if workers is None:
        too_few = _shared is None and _flown < START_UP_FLIGHTS
        workers = 1 if too_few or multiprocessing.parent_process() else cores()
    count = min(workers, len(flights))
    if count <= 1 or not sys.executable or getattr(sys, "frozen", False):
        return [fly(weights, terrain) for weights, terrain in flights]
    return shared_pool().fly(flights, count)


def shared_pool() -> Pool:
    """Return the pool of this process, which ends with it."""
    global _shared
    with _making:
        if _shared is None:
            _shared = Pool()
            atexit.register(_shared.close)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=_disown)
        return _shared


def _disown() -> None:
    """Forget the pool in a forked child, which shares its pipes but must not use them."""
    global _shared, _making
    if _shared is not None:
        atexit.unregister(_shared.close)
        for worker in _shared._workers:
            worker.returncode = 0  # not a child of this process, so nothing to wait for
        _shared, _making = None, threading.Lock()


def _drain(queue: SimpleQueue[int]) -> Iterator[int]:
    """Yield what is in a queue until it is empty."""
    while True:
        try:
            yield queue.get_nowait()
        except Empty:
            return


def _start_worker() -> subprocess.Popen[bytes]:
    """Start a process that runs `serve`, and that finds the modules that this one finds."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": path},
    )


def _send(worker: subprocess.Popen[bytes], flight: Flight) -> None:
    """Ask a worker to fly; an OSError says that it is dead."""
    weights, terrain = flight
    if worker.stdin is not None:
        worker.stdin.write(REQUEST.pack(*weights, terrain))


def _receive(worker: subprocess.Popen[bytes]) -> float:
    """Return the reward of the earliest flight asked for; an EOFError says that it is dead."""
    # Messages are so short that a pipe never splits them.
    reply = worker.stdout.read(REPLY.size) if worker.stdout is not None else b""
    if len(reply) < REPLY.size:
        raise EOFError
    reward: float = REPLY.unpack(reply)[0]
    return reward


def _end(worker: subprocess.Popen[bytes]) -> None:
    """Kill a worker, which holds nothing worth saving, and close its pipes."""
    worker.kill()
    with worker:
        pass


def serve() -> None:
    """Fly what comes in until the pipe closes."""
    # An interrupt is the owner's business, who ends this process by closing the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    # Nothing that a library prints may get between the replies.
    sys.stdout = sys.stderr
    while len(request := requests.read(REQUEST.size)) == REQUEST.size:
        *weights, terrain = REQUEST.unpack(request)
        replies.write(REPLY.pack(fly(weights, terrain)))
        replies.flush()
