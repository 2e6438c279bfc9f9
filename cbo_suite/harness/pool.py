"""Evaluate points in other processes: side by side, with a hard time-out, whatever they do.

Every point is evaluated alone in one of k processes. A process that takes too long is killed with
everything it started, one that dies is replaced; either costs that one evaluation, which is on
record with its status. Nothing of the pool outlives the run, however the run ends.

The processes are started on first use as fresh interpreters, never as forks of the run, which may
have threads. So a problem that is not registered has to be one that can be sent: made of classes
and functions that are defined at the top level of a module.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.reduction import ForkingPickler
from queue import LifoQueue
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from cbo_suite.errors import EvaluationFailed, InvalidTask
from cbo_suite.harness.evaluate import Result, join_rows, no_values
from cbo_suite.harness.pool_worker import evaluate_here, obstacle, set_up
from cbo_suite.journal import Status
from cbo_suite.protocols import Array, ConstrainedProblem
from cbo_suite.system import ONE_THREAD, signal_name

T = TypeVar("T")

_starting = threading.Lock()
# Stands for exit status 0, see `_Process.exitcode`.
_CLEAN_EXIT = 256
_START_ATTEMPTS = 3


class _Process(SpawnProcess):
    """A process of a pool, as pebble needs it to be."""

    def start(self) -> None:
        """Start with one thread for linear algebra, unless the environment says otherwise."""
        with _starting:
            unset = ONE_THREAD.keys() - os.environ.keys()
            os.environ.update({name: ONE_THREAD[name] for name in unset})
            try:
                super().start()
            finally:
                for name in unset:
                    del os.environ[name]

    def terminate(self) -> None:
        """Kill: an evaluation may ignore a request to end, and there is nothing to save."""
        self.kill()

    @property
    def exitcode(self) -> int | None:
        """How the process ended; pebble overlooks one that ends in the middle with status 0."""
        code = super().exitcode
        return _CLEAN_EXIT if code == 0 else code


class _Context(SpawnContext):
    """Starts processes of the class above."""

    Process = _Process


class _Closed(Exception):
    """The pool is being closed, nobody waits for this result."""


class _Slot:
    """One process, replaced whenever it is gone.

    Each has a pool of its own, because pebble can lose track of a task when one of several
    processes dies at the wrong moment.
    """

    def __init__(self, source: bytes, num_constraints: int, timeout: float | None) -> None:
        self._source, self._num_constraints, self._timeout = source, num_constraints, timeout
        self._pool: ProcessPool | None = None
        self._future: ProcessFuture[Any] | None = None
        self._proven = self._closed = False
        self._lock = threading.Lock()

    def evaluate(self, x: Array) -> Result:
        """Evaluate one point, shape `(1, d)`."""
        self._prepare()
        status: Status = "failed"
        start = time.perf_counter()
        try:
            return self._call(evaluate_here, x, timeout=self._timeout)
        except TimeoutError:
            status, message = "timeout", f"not done after {self._timeout:g} s, killed"
        except ProcessExpired as death:
            message = f"the process that evaluated it {_ending(death.exitcode)}"
        except BrokenProcessPool:
            message = "the process that evaluated it died"
        self._proven = False
        seconds = time.perf_counter() - start
        return no_values(self._num_constraints, status, message, seconds)

    def _prepare(self) -> None:
        """Make sure that there is a process that can evaluate; its start is on no time-out.

        Raises:
            EvaluationFailed: No process can be started, or it cannot make the problem.
        """
        for _ in range(_START_ATTEMPTS):
            if self._proven:
                return
            try:
                reason = self._call(obstacle)
            except (ProcessExpired, BrokenProcessPool):
                continue
            if reason:
                raise EvaluationFailed(
                    f"the problem cannot be made in another process: {reason}; it must consist of "
                    "classes and functions from the top level of a module that can be imported"
                )
            self._proven = True
        if not self._proven:
            raise EvaluationFailed(
                "no process could be started to evaluate points; a script that evaluates in other "
                'processes must start its work under `if __name__ == "__main__":`'
            )

    def _call(
        self, function: Callable[..., T], *arguments: Array, timeout: float | None = None
    ) -> T:
        """Call a function in the process and wait for what it gives."""
        with self._lock:
            if self._closed:
                raise _Closed
            if self._pool is None or not self._pool.active:
                self._discard()
                self._pool = ProcessPool(
                    1, initializer=set_up, initargs=(self._source,), context=_Context()
                )
            future: ProcessFuture[T] = self._pool.schedule(function, arguments, timeout=timeout)
            self._future = future
        return future.result()

    def _discard(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()
            self._pool = None

    def stop(self) -> None:
        """Give up what is under way, without waiting."""
        with self._lock:
            self._closed = True
            if self._pool is not None:
                self._pool.stop()  # type: ignore[no-untyped-call]
            if self._future is not None:
                self._future.cancel()  # type: ignore[no-untyped-call]

    def join(self) -> None:
        """Wait until the process is gone."""
        with self._lock:
            self._discard()


class EvaluationPool:
    """An evaluator with a number of processes of its own."""

    def __init__(
        self,
        problem: str | ConstrainedProblem,
        num_constraints: int,
        processes: int,
        timeout: float | None,
    ) -> None:
        """Prepare the pool; processes start when there is something to evaluate.

        Args:
            problem: The id of a registered problem, which each process makes anew, or a problem,
                which is sent to them.
            num_constraints: Its number of constraints.
            processes: Number of processes.
            timeout: Seconds after which an evaluation is killed, None for never.

        Raises:
            InvalidTask: The problem cannot be sent to another process, or there is none.
        """
        if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
            raise InvalidTask(f"processes must be a whole number >= 1, got {processes!r}")
        try:
            source = bytes(ForkingPickler.dumps(problem))
        except Exception as error:  # the library raises whatever the object does
            raise InvalidTask(
                f"the problem cannot be sent to other processes: {error}; make it of classes and "
                "functions from the top level of a module (no lambda, no nested function), or "
                "evaluate in this process"
            ) from error
        self._slots = [_Slot(source, num_constraints, timeout) for _ in range(processes)]
        # Last in, first out: where one process is enough, no second one is started.
        self._idle: LifoQueue[_Slot] = LifoQueue()
        for slot in self._slots:
            self._idle.put(slot)
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="cbo-evaluation")
        self._groups: dict[int, list[Future[Result]]] = {}

    def start(self, number: int, x: Array) -> None:
        """Spread a group of points, shape `(k, d)`, over the processes."""
        self._groups[number] = [self._threads.submit(self._evaluate, row[None, :]) for row in x]

    def result(self, number: int) -> Result:
        """Wait for all points of a group.

        Raises:
            EvaluationFailed: There is no process that could evaluate.
        """
        return join_rows([future.result() for future in self._groups.pop(number)])

    def first_done(self) -> int:
        """Wait until some group is done."""
        while True:
            for number, futures in self._groups.items():
                if all(future.done() for future in futures):
                    return number
            under_way = [f for futures in self._groups.values() for f in futures if not f.done()]
            wait(under_way, return_when=FIRST_COMPLETED)

    def close(self) -> None:
        """End all processes; what is under way is given up."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        # First stop all, then wait: each takes a moment.
        for slot in self._slots:
            slot.stop()
        for slot in self._slots:
            slot.join()
        self._threads.shutdown(wait=True)

    def _evaluate(self, x: Array) -> Result:
        """Evaluate one point in the next process that is free."""
        slot = self._idle.get()
        try:
            return slot.evaluate(x)
        finally:
            self._idle.put(slot)


def _ending(code: int) -> str:
    """Say how a process ended."""
    if code < 0:
        return f"was killed by {signal_name(-code)}"
    return f"ended with exit status {0 if code == _CLEAN_EXIT else code}"
