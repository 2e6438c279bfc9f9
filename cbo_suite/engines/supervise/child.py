"""The process of one run: it limits itself, runs the task and reports to its guard."""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from cbo_suite.engines import Job
from cbo_suite.engines.supervise.processes import PR_SET_PDEATHSIG, prctl
from cbo_suite.errors import (
    JournalLocked,
    JournalNotWritten,
    JournalTakenOver,
    UnsupportedTask,
    describe,
    one_line,
)
from cbo_suite.harness import Callback, Progress, Run, Settings, execute
from cbo_suite.harness.environment import describe_machine, describe_versions
from cbo_suite.registry import (
    OWN_PACKAGE,
    list_optimizers,
    list_problems,
    make_problem,
    optimizer_factory,
)

# A run reports how far it is no more often than this.
REPORT_SECONDS = 0.5
# A run waits this long for its journal: what is left of a killed campaign may still hold it.
LOCK_SECONDS = 5.0
# What libraries say, in errors of other kinds than MemoryError, when there is no memory left.
_NO_MEMORY = ("can't allocate memory", "cannot allocate memory", "bad_alloc", "out of memory")


def prepare() -> None:
    """Look up once what every run would look up again: registered names, versions, the machine."""
    list_problems()
    # With optimizers of others the packages of all modules are looked up, which takes a second.
    foreign = any(row.package != OWN_PACKAGE for row in list_optimizers())
    describe_versions(msgspec.Struct if foreign else None)
    describe_machine()


def perform(job: dict[str, Any], tell: int, write: int, unwanted: Collection[int]) -> NoReturn:
    """Run a job in this process, which is made for it, and end the process.

    Args:
        job: The `Job` as plain JSON.
        tell: Where reports go to.
        write: Where standard output and error go to.
        unwanted: Handles of the guard that a run has no business with.
    """
    guard = os.getppid()
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    # By the terminal's Ctrl-C only the campaign is meant, and it stops its runs itself.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(1)
    for handle in unwanted:
        os.close(handle)
    os.dup2(write, 1)
    os.dup2(write, 2)
    os.close(write)
    code = 0
    try:
        _run(msgspec.convert(job, Job), tell)
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException as error:
        _report(tell, {"status": "failed", "error": describe(error)})
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        # At once: threads, pools and exit handlers of an optimizer could keep the process alive.
        os._exit(code & 0xFF)


def _run(job: Job, tell: int) -> None:
    """Run the task and report how it went."""
    _limit_memory(job.limits.memory)
    last = 0.0

    def show(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_SECONDS:
            last = now
            found = _best(progress.done, progress.best_objective, progress.best_violation)
            _report(tell, {**found, "note": ""})

    logging.getLogger("cbo_suite").addHandler(_Notes(tell))
    try:
        done = _patiently(job, show)
    except UnsupportedTask as reason:
        _report(tell, {"status": "skipped", "error": describe(reason)})
    except (JournalLocked, JournalTakenOver) as reason:
        _report(tell, {"status": "taken", "error": describe(reason)})
    except JournalNotWritten as reason:
        _report(tell, {"status": "stopped", "error": describe(reason)})
    except Exception as error:
        status = "memory" if any(map(_is_memory, _causes(error))) else "failed"
        _report(tell, {"status": status, "error": describe(error)})
    else:
        violation = float(done.evaluation.violation[done.best_index])
        found = _best(len(done.x), done.best_objective, violation)
        _report(tell, {"status": "complete", **found})


class _Notes(logging.Handler):
    """Reports the package's own warnings at once: they say why nothing happens for a while."""

    def __init__(self, tell: int) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Report what was logged, and print it as if nobody had listened."""
        note = one_line(record.getMessage())
        print(note, file=sys.stderr)
        _report(self._tell, {"note": note})


def _patiently(job: Job, callback: Callback) -> Run:
    """Run the task, once nobody else writes its journal."""
    task = job.task
    problem, factory = make_problem(task.problem), optimizer_factory(task.optimizer)
    settings = Settings(
        journal=Path(job.journal), callback=callback, registered=True, **job.settings
    )
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return execute(task, problem, factory, settings)
        except JournalLocked:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _best(evaluations: int, objective: float, violation: float) -> dict[str, Any]:
    """Say how far a run is, in the fields of `Progress`."""
    return {
        "evaluations": evaluations,
        "best_objective": objective,
        "best_violation": violation,
    }


def _limit_memory(memory: int | None) -> None:
    """Let this process and its children have `memory` bytes more than it has now."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is None:
        return
    limit = memory + _address_space()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    # macOS knows this limit but does not let it be set; the limit of time still holds.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _address_space() -> int:
    """Return the number of bytes of address space that this process has."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Give an error and what caused it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _is_memory(error: BaseException) -> bool:
    """Tell whether an error says that there is no memory left."""
    return isinstance(error, MemoryError) or any(text in str(error) for text in _NO_MEMORY)


def _report(tell: int, fields: dict[str, Any]) -> None:
    """Write a report; a guard that is gone is no matter, it took the run with it."""
    data = msgspec.json.encode(fields) + b"\n"
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(tell, data) :]
