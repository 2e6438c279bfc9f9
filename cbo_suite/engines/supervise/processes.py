"""Processes and signals: what guards and the fork server need of the system."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>
GRACE_SECONDS = 1.0  # between asking a run to end and killing it
SWEEP_SECONDS = 1.5  # how long killed processes may take to disappear
TICK_SECONDS = 0.5  # how often guards and the fork server look at each other
# A guard that has not spoken so long after the limit of its run was kept from it.
LATE_SECONDS = GRACE_SECONDS + SWEEP_SECONDS + 1.0


def prctl(option: int, value: int) -> bool:
    """Set a property of this process; tell whether the platform has it."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, AttributeError, OSError):
        return False


class Process(NamedTuple):
    """A living process: its id, that of its parent, and that of its session's first process."""

    id: int
    parent: int
    session: int


def process_table() -> Iterator[Process]:
    """Give every living process of the machine; nothing where there is no /proc."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib would make a path of each
    except OSError:
        return
    for name in filter(str.isdigit, names):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if state not in (b"Z", b"X"):
            yield Process(int(name), int(parent), int(session))


def descendants(ancestor: int | None = None, spared: Collection[int] = ()) -> list[int]:
    """Return every living process that descends from one, but for the spared and theirs.

    Args:
        ancestor: The process that they descend from, this one by default.
        spared: Processes to leave out.
    """
    table = [process for process in process_table() if process.id not in spared]
    first = os.getpid() if ancestor is None else ancestor
    found = {first}
    while new := {process.id for process in table if process.parent in found} - found:
        found |= new
    return sorted(found - {first})


def session_members(leader: int) -> list[int]:
    """Return every living process of the session that a process began."""
    return sorted(process.id for process in process_table() if process.session == leader)


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


def kill_all(processes: Iterable[int]) -> None:
    """Kill processes, of which some may be gone."""
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


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
