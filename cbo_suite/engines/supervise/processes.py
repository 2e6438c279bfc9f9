"""Processes and signals: what guards and the fork server need of the system."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Collection, Iterable, Iterator

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
