"""Problems that are executables: one supervised process per point, many side by side.

The executable takes no arguments. It reads `input.txt` from its working folder (one number a
line) and writes `output.txt` there (numbers, one a line). Every call has a temporary folder of its
own, no shell, a minimal environment, a timeout and, where the platform has them, limits on memory,
processor time and file sizes. `executable_guard.py` watches one call; nothing of the call is left
when it is over: no process and no folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, cast

import numpy as np

from cbo_suite.errors import (
    ExecutableCrashed,
    ExecutableFailed,
    ExecutableFlooded,
    ExecutableLeftProcesses,
    ExecutableOutputInvalid,
    ExecutableTimeout,
    one_line,
)
from cbo_suite.protocols import Array
from cbo_suite.system import signal_name

SUPERVISED = os.name == "posix"  # Windows has neither fork nor process groups
GUARD = Path(__file__).with_name("executable_guard.py")
FILE_BYTES = 2**20  # of any one file that the executable writes
MEMORY_BYTES = 2**32  # of its address space
# The guard ends a call at its timeout; should the guard itself be stuck, this much later.
PATIENCE_SECONDS = 1.9
STDERR_LINES = 5

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def evaluate_points(
    executable: Path, x: Array, num_values: int, *, timeout: float, workers: int
) -> tuple[Array, dict[int, ExecutableFailed]]:
    """Call an executable once for each point, on several cores at a time.

    Args:
        executable: Absolute path.
        x: Points, shape `(n, d)`.
        num_values: How many numbers the executable gives for a point.
        timeout: Seconds after which a call is killed.
        workers: How many calls run at a time.

    Returns:
        The values, shape `(n, num_values)`, NaN in rows that failed, and the errors of those rows.
    """
    values = np.full((len(x), num_values), np.nan)
    failures: dict[int, ExecutableFailed] = {}
    inputs = ["".join(f"{value!r}\n" for value in row) for row in x.tolist()]
    for row, output in enumerate(run_all(executable, inputs, timeout=timeout, workers=workers)):
        try:
            if isinstance(output, ExecutableFailed):
                raise output
            values[row] = read_numbers(output, num_values)
        except ExecutableFailed as error:
            failures[row] = error
    return values, failures


def read_numbers(output: str, count: int) -> list[float]:
    """Read finite numbers from the text of `output.txt`.

    Raises:
        ExecutableOutputInvalid: There are more or fewer, or something else is among them.
    """
    words = output.split()
    if len(words) != count:
        raise ExecutableOutputInvalid(
            f"the executable must write {count} numbers to output.txt, got {len(words)}"
        )
    numbers = [float(word) if _NUMBER.fullmatch(word) else np.nan for word in words]
    for place, (word, number) in enumerate(zip(words, numbers, strict=True), start=1):
        if not np.isfinite(number):
            raise ExecutableOutputInvalid(
                f"every line of output.txt must be a finite number, got {word!r:.40} in place "
                f"{place}"
            )
    return numbers


def run_all(
    executable: Path, inputs: Sequence[str], *, timeout: float, workers: int
) -> list[str | ExecutableFailed]:
    """Call the executable for each input text; return output texts or errors, in order.

    An exception in the calling thread, such as Ctrl-C, ends all calls before it goes on.
    """
    if not SUPERVISED:
        raise ExecutableFailed(
            "executables are supervised on Linux and macOS only: on Windows, use the Windows "
            "Subsystem for Linux"
        )
    calls = _Calls(executable, timeout)
    with ThreadPoolExecutor(max_workers=max(1, min(workers, len(inputs)))) as pool:
        try:
            return list(pool.map(calls.run, inputs))
        except BaseException:
            calls.stop()
            raise


class _Calls:
    """The calls of one batch, each in a thread that waits for its guard."""

    def __init__(self, executable: Path, timeout: float) -> None:
        self._executable = executable
        self._timeout = timeout
        self._lock = threading.Lock()
        self._guards: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, text: str) -> str | ExecutableFailed:
        """Make one call; return the text of `output.txt` or what went wrong."""
        try:
            with tempfile.TemporaryDirectory(
                prefix="cbo-executable-", ignore_cleanup_errors=True
            ) as folder:
                Path(folder, "input.txt").write_text(text, encoding="ascii")
                return _output(self._report(folder), self._timeout)
        except ExecutableFailed as error:
            return error
        except OSError as error:
            return ExecutableFailed(f"the call could not be set up: {error}")

    def stop(self) -> None:
        """Start no more calls and end the running ones: a guard lives while its stdin is open."""
        with self._lock:
            self._stopped = True
            for guard in self._guards:
                _close_stdin(guard)

    def _report(self, folder: str) -> bytes:
        """Run one guard and return its report."""
        limits = [repr(self._timeout), str(FILE_BYTES), str(MEMORY_BYTES)]
        with self._lock:
            if self._stopped:
                raise ExecutableFailed("the batch was stopped before this call")
            guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), folder, *limits, str(self._executable)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._guards.add(guard)
        try:
            answer, ended = _read_all(guard, self._timeout + PATIENCE_SECONDS)
        finally:
            with self._lock:
                self._guards.discard(guard)
                _close_stdin(guard)
            guard.kill()
            guard.wait()
        group, _, report = answer.partition(b"\n")
        if report:
            return report
        if group:
            _kill_group(int(group))
        if ended:
            raise ExecutableCrashed(
                "the executable's guard was killed, by the executable or the system"
            )
        raise ExecutableTimeout(
            f"the executable's guard did not answer within {self._timeout:g} s and was killed"
        )


def _close_stdin(guard: subprocess.Popen[bytes]) -> None:
    """Close the pipe that keeps a guard alive; nothing was ever written to it."""
    cast(IO[bytes], guard.stdin).close()


def _kill_group(group: int) -> None:
    """Kill the process group of an executable whose guard could not do it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _read_all(guard: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bool]:
    """Read what a guard writes; return it and whether the guard ended in time."""
    deadline = time.monotonic() + seconds
    answer = b""
    with cast(IO[bytes], guard.stdout) as pipe, selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            part = os.read(pipe.fileno(), 2**16)
            if not part:
                return answer, True
            answer += part
    return answer, False


def _output(report: bytes, timeout: float) -> str:
    """Return the text of `output.txt` from a guard's report, or raise what went wrong."""
    header, _, rest = report.partition(b"\n")
    errors, _, output = rest.partition(b"\n")
    reason, code, left, flooded, written = header.decode().split()
    complaint = _quote(bytes.fromhex(errors.decode()))
    if flooded != "-":
        raise ExecutableFlooded(
            f"the executable may write {FILE_BYTES} bytes to a file and wrote more to "
            f"{flooded.replace(',', ' and ')}{complaint}"
        )
    if reason == "timeout":
        raise ExecutableTimeout(
            f"the executable did not end within {timeout:g} s and was killed{complaint}"
        )
    if reason == "unstarted":
        raise ExecutableCrashed(
            f"the executable could not be started: {os.strerror(int(code))} (made for another "
            "system or processor, or not executable?)"
        )
    if reason == "signal":
        raise ExecutableCrashed(f"the executable was killed by {signal_name(int(code))}{complaint}")
    if code != "0":
        raise ExecutableCrashed(f"the executable ended with status {code}{complaint}")
    if left != "0":
        raise ExecutableLeftProcesses(
            f"the executable ended but left {left} running processes behind, which were killed"
            f"{complaint}"
        )
    if written != "yes":
        raise ExecutableOutputInvalid(f"the executable left no file output.txt{complaint}")
    return output.decode("ascii", errors="replace")


def _quote(errors: bytes) -> str:
    """Quote the first lines of an executable's stderr, harmless for a terminal."""
    lines = errors.decode("ascii", errors="replace").splitlines()[:STDERR_LINES]
    shown = [one_line(line, 200) for line in lines]
    return f"; its stderr begins: {' | '.join(shown)}" if any(shown) else ""
