"""Run one executable once, let nothing of it survive, and report what happened.

`cbo_suite.problems.mopta08.executable` starts this file as a process of its own, one a point:

    python -I -S executable_guard.py FOLDER TIMEOUT FILE_BYTES MEMORY_BYTES EXECUTABLE

A process of its own can do what a library must not do to its user's process: adopt the orphans of
the executable (Linux), so that a child that left the session is found and killed too, and set
resource limits between fork and exec, which is unsafe in a process with threads. It lives as long
as its standard input is open: when its owner stops or dies, however that happens, it kills the
executable and removes the folder.

The report on standard output begins at once with a line `GROUP`. When the executable is gone,
there follow a line `REASON CODE LEFT FLOODED WRITTEN`, a line with the start of the executable's
stderr in hexadecimal, and output.txt as it is:

    GROUP    process group of the executable, should its owner have to end it without this guard
    REASON   exit, signal, timeout, or unstarted
    CODE     exit status, signal number, or errno
    LEFT     number of processes that outlived the executable and were killed
    FLOODED  which of stdout, stderr and output.txt reached FILE_BYTES, joined by commas, or -
    WRITTEN  yes if output.txt is a regular file, else no

Imports are few and small because this start-up is paid for every evaluation: to import the package
would cost as much as all else, so what is needed of `cbo_suite.engines.supervise.processes` stands
here again.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import stat
import sys
import time

STDERR_BYTES = 4096
# How long killed processes may take to disappear.
SWEEP_SECONDS = 1.0
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


def launch(executable: str, folder: str, stdout: int, stderr: int) -> tuple[int, int]:
    """Start the executable in a session of its own; return its process id and errno or 0."""
    # Both ends close on exec: an empty pipe means that the executable took over.
    failed, tell = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.setsid()
            # Before the executable can do anything, such as to kill this guard.
            os.write(1, f"{os.getpid()}\n".encode())
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            restrict()
            environment = {
                "PATH": "/usr/bin:/bin",
                "LC_ALL": "C",
                "HOME": folder,
                "TMPDIR": folder,
            }
            os.execve(executable, [executable], environment)  # noqa: S606 - no shell on purpose
        except OSError as error:
            os.write(tell, str(error.errno or 1).encode())
        finally:
            os._exit(127)
    os.close(tell)
    return process, int(os.read(failed, 16) or 0)


def restrict() -> None:
    """Limit what the executable may use, and undo what Python sets for itself."""
    _, _, timeout, file_bytes, memory_bytes, _ = sys.argv
    wanted = {
        "RLIMIT_FSIZE": int(file_bytes),
        "RLIMIT_AS": int(memory_bytes),
        "RLIMIT_CPU": int(float(timeout)) + 2,
        "RLIMIT_CORE": 0,
    }
    for name, limit in wanted.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        try:
            resource.setrlimit(kind, (limit, limit))
        except (ValueError, OSError):
            # macOS knows RLIMIT_AS but does not let it be set; the timeout still holds.
            continue
    # Python ignores these two, and an ignored signal stays ignored across exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def watch(process: int, timeout: float, wake: int) -> tuple[str, int]:
    """Wait for the executable, the timeout or the end of the owner; return reason and code."""
    deadline = time.monotonic() + timeout
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return ("exit", code) if code >= 0 else ("signal", -code)
        remaining = deadline - time.monotonic()
        if remaining <= 0.0:
            return "timeout", 0
        ready, _, _ = select.select([wake, 0], [], [], remaining)
        if 0 in ready:
            return "stopped", 0
        if wake in ready:
            os.read(wake, 4096)


def survivors(group: int, adopts: bool) -> list[int]:
    """Return what to kill: every living descendant, or minus the group where none is adopted."""
    if not adopts:
        try:
            os.kill(-group, 0)
        except OSError:
            return []
        return [-group]
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib takes long to import
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state not in (b"Z", b"X"):
                parents[int(name)] = int(parent)
    found = {os.getpid()}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return sorted(found - {os.getpid()})


def reap() -> bool:
    """Collect every child that ended; tell whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def sweep(group: int, adopts: bool) -> int:
    """Kill all that is left of the executable; return how many processes that were."""
    if not reap() and adopts:
        return 0
    left = survivors(group, adopts)
    deadline = time.monotonic() + SWEEP_SECONDS
    remaining = left
    while remaining and time.monotonic() < deadline:
        for process in remaining:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.002)
        reap()
        remaining = survivors(group, adopts)
    return len(left)


def read_regular(path: str, limit: int) -> bytes | None:
    """Read the start of a regular file; None for anything else, a pipe or a link included."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return read_start(handle, limit) if stat.S_ISREG(os.fstat(handle).st_mode) else None
    finally:
        os.close(handle)


def read_start(handle: int, limit: int) -> bytes:
    """Read up to `limit` bytes from the start of an open file."""
    os.lseek(handle, 0, os.SEEK_SET)
    data = b""
    while len(data) < limit and (part := os.read(handle, limit - len(data))):
        data += part
    return data


def scratch(folder: str, name: str) -> int:
    """Open a file without a name, which the executable can write to but not reach."""
    path = f"{folder}/{name}"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)  # noqa: PTH108 - pathlib takes long to import
    return handle


def main() -> None:
    """Run the executable named on the command line and report."""
    _, folder, timeout, file_bytes, _, executable = sys.argv
    limit = int(file_bytes)
    adopts = prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)

    stdout, stderr = scratch(folder, "stdout"), scratch(folder, "stderr")
    process, code = launch(executable, folder, stdout, stderr)
    reason = "unstarted"
    if not code:
        reason, code = watch(process, float(timeout), wake)
    left = sweep(process, adopts)
    if reason == "stopped":
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
        return
    output = read_regular(f"{folder}/output.txt", limit)
    sizes = {
        "stdout": os.fstat(stdout).st_size,
        "stderr": os.fstat(stderr).st_size,
        "output.txt": len(output or b""),
    }
    flooded = ",".join(name for name, size in sizes.items() if size >= limit) or "-"
    written = "no" if output is None else "yes"
    errors = read_start(stderr, STDERR_BYTES).hex()
    report = f"{reason} {code} {left} {flooded} {written}\n{errors}\n".encode() + (output or b"")
    while report:
        report = report[os.write(1, report) :]


if __name__ == "__main__":
    main()
