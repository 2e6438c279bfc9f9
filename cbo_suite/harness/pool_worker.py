"""What happens inside a process that evaluates points for a run.

The process leads a process group, and a guard watches it from inside that group. When the process
is gone, or the run that it works for, the guard kills what is left of the group: a simulator that
was started and hangs outlives neither. Nobody has to know any process ids for that, and they cannot
be taken by others meanwhile, because the guard keeps the group alive until the end.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from multiprocessing.connection import wait
from multiprocessing.reduction import ForkingPickler

from cbo_suite.errors import describe
from cbo_suite.harness.evaluate import Result, evaluate_points, no_values
from cbo_suite.protocols import Array, ConstrainedProblem
from cbo_suite.registry import make_problem

WATCH_SECONDS = 0.1
# The guard closes what it inherited up to here; none of its files has a higher number.
_FILES = 256

_problem: ConstrainedProblem | str = "no problem was set up"


def set_up(source: bytes) -> None:
    """Prepare this process: its group, its guard and the problem.

    Args:
        source: The id of a registered problem or a problem, as sent by the process of the run.
    """
    global _problem
    if hasattr(os, "fork"):
        os.setpgid(0, 0)
        worker = os.getpid()
        if os.fork() == 0:
            _guard(worker)
    try:
        sent = ForkingPickler.loads(source)
        _problem = make_problem(sent) if isinstance(sent, str) else sent
    except Exception as error:  # whatever a foreign module raises is told to the run
        _problem = describe(error)


def obstacle() -> str:
    """Say why this process cannot evaluate, "" if it can."""
    return _problem if isinstance(_problem, str) else ""


def evaluate_here(x: Array) -> Result:
    """Evaluate points, shape `(1, d)`, whatever they raise."""
    if isinstance(_problem, str):
        raise RuntimeError(_problem)
    try:
        return evaluate_points(_problem, x)
    except BaseException as error:  # such as SystemExit, which must not end this process
        return no_values(_problem.space.num_constraints, "failed", describe(error), 0.0)


def _guard(worker: int) -> None:
    """Wait until the worker or the run is gone, then kill the group, this process included."""
    try:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        run = multiprocessing.parent_process()
        sentinels = [] if run is None else [run.sentinel]
        for file in range(_FILES):
            if file not in sentinels:
                with contextlib.suppress(OSError):
                    os.close(file)
        while os.getppid() == worker and not wait(sentinels, WATCH_SECONDS):
            pass
        # A worker that left the group is still known by its number while it is the parent.
        if os.getppid() == worker:
            os.kill(worker, signal.SIGKILL)
    finally:
        os.killpg(0, signal.SIGKILL)
