"""Optimizers that misbehave, each in one definite way; registered as a plug-in for child processes.

Everything here happens in the processes of supervised runs, never in the process of the tests.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from cbo_suite import Evaluation
from tests.doubles import Hill

# Where processes that a run leaves behind write their ids.
PIDS = "CBO_TEST_PIDS"


class SlowHill(Hill):
    """Behaves, slowly enough that it can be killed in the middle."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Take some time."""
        time.sleep(0.01)
        return super().ask(n)


class Builder(SlowHill):
    """Behaves, and says once why nothing happens for a while, as KeOps' models do."""

    def __init__(self, space: Any, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Take longer than a run waits between two reports."""
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        logging.getLogger("cbo_suite").warning("it builds\n\033[31msomething %s", "once")
        time.sleep(0.6)


class Counted(Hill):
    """Behaves, and leaves a line for every instance that was made."""

    def __init__(self, space: Any, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Add a line to the common file, in one piece."""
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        leave_word(f"{space.dim} {seed}")


def leave_word(text: object) -> None:
    """Add a line to the file that the tests read."""
    handle = os.open(os.environ[PIDS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, f"{text}\n".encode())
    os.close(handle)


def leave_child(escape: bool = False) -> None:
    """Fork a process that outlives its parent if nobody kills it."""
    if os.fork() == 0:
        if escape:
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        leave_word(os.getpid())
        time.sleep(600)
        os._exit(0)


class Hang(Hill):
    """Never returns."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Sleep."""
        leave_word(os.getpid())
        time.sleep(600)
        return super().ask(n)


class Deaf(Hill):
    """Never returns and does not listen to SIGTERM."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Sleep deeply."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        leave_word(os.getpid())
        while True:
            time.sleep(1)


class Parent(Hill):
    """Forks children, one of them into a session of its own, and hangs."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Fork and sleep."""
        leave_child()
        leave_child(escape=True)
        time.sleep(600)
        return super().ask(n)


class Leaver(Hill):
    """Behaves, but leaves a child behind that left the session."""

    def __init__(self, space: Any, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Fork."""
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        leave_child(escape=True)


class Storm(Hill):
    """Forks fifty children and hangs."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Fork and sleep."""
        for number in range(50):
            leave_child(escape=bool(number % 2))
        time.sleep(600)
        return super().ask(n)


class Stopper(Hill):
    """Stops the process that watches over it, and hangs."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Stop and sleep."""
        leave_word(os.getpid())
        os.kill(os.getppid(), signal.SIGSTOP)
        time.sleep(600)
        return super().ask(n)


class GreatStopper(Hill):
    """Stops the process that watches over it and the one that watches over that, for ever."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Stop them again and again."""
        leave_word(os.getpid())
        parent = os.getppid()
        grandparent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
        leave_word(parent)
        while True:
            os.kill(parent, signal.SIGSTOP)
            os.kill(grandparent, signal.SIGSTOP)
            time.sleep(0.001)


class Orphan(Hill):
    """Stops the process that watches over it and kills the one that watches over that."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Stop the one, kill the other, and sleep."""
        leave_word(os.getpid())
        parent = os.getppid()
        grandparent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
        leave_word(parent)
        os.kill(parent, signal.SIGSTOP)
        os.kill(grandparent, signal.SIGKILL)
        time.sleep(600)
        return super().ask(n)


# What is no report, one way each: words, types, ranges, names, nesting, other runs' numbers.
REPORTS = [
    b"nonsense",
    b'{"status": "splendid"}',
    b'{"status": "timeout", "error": 7}',
    b'{"evaluations": "many"}',
    b'{"evaluations": 1e400}',
    b'{"evaluations": ' + b"9" * 5000 + b"}",
    b'{"number": 1, "status": "complete"}',
    b'{"task": {}}',
    b"[" * 20_000,
    b'"text"',
    b"\xff\xfe",
]


class Liar(Hill):
    """Reports nonsense, one kind per seed, and then hangs or goes on."""

    def __init__(self, space: Any, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Write to every pipe there is."""
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        for path in Path("/proc/self/fd").iterdir():
            try:
                if int(path.name) > 2 and str(path.readlink()).startswith("pipe:"):
                    os.write(int(path.name), REPORTS[seed] + b"\n")
            except OSError:
                continue

    def ask(self, n: int = 1) -> np.ndarray:
        """Fail."""
        raise RuntimeError("after the lie")


class GreatLiar(Hill):
    """Writes nonsense where its guard writes, which is out of bounds but not out of reach."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Write it all, and go on."""
        if self.asks == 0:
            for path in Path(f"/proc/{os.getppid()}/fd").iterdir():
                try:
                    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                except OSError:
                    continue
                for line in [b'{"number": 1, "evaluations": "x"}', b'{"number": []}', *REPORTS[:6]]:
                    os.write(handle, line + b"\n")
                os.close(handle)
        return super().ask(n)


class Segfault(Hill):
    """Reads from address 0."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Crash."""
        ctypes.string_at(0)
        return super().ask(n)


class Exit(Hill):
    """Ends its process as if all were well."""

    def ask(self, n: int = 1) -> np.ndarray:
        """End."""
        os._exit(0)


class ExitSeven(Hill):
    """Ends its process by sys.exit."""

    def ask(self, n: int = 1) -> np.ndarray:
        """End."""
        sys.exit(7)


class Suicide(Hill):
    """Is killed as the system does it when memory runs out."""

    def ask(self, n: int = 1) -> np.ndarray:
        """End."""
        os.kill(os.getpid(), signal.SIGKILL)
        return super().ask(n)


class Bomb(Hill):
    """Eats memory."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Eat."""
        eaten = []
        while True:
            eaten.append(np.ones(2**20))


class Flood(Hill):
    """Prints 50 MB and fails."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Print."""
        for _ in range(50):
            os.write(1, b"0123456789abcdef" * 2**16)
        sys.stdout.write("the last words")
        raise RuntimeError("enough")


class Silent(Hill):
    """Behaves, but closes the standard streams."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Close and go on."""
        if self.asks == 0:
            os.close(1)
            os.close(2)
        return super().ask(n)


class WrongShape(Hill):
    """Asks for points of another dimension."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Ask."""
        return np.zeros((n, self.space.dim + 1))


class NotANumber(Hill):
    """Asks for NaN."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Ask."""
        return np.full((n, self.space.dim), np.nan)


class OutOfBox(Hill):
    """Asks outside the box."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Ask."""
        return np.tile(self.space.upper + 1.0, (n, 1))


class TooMany(Hill):
    """Asks for a million points."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Ask."""
        return self.space.from_unit(np.full((10**6, self.space.dim), 0.5))


class NoPoint(Hill):
    """Asks for no point at all."""

    def ask(self, n: int = 1) -> np.ndarray:
        """Ask."""
        return np.empty((0, self.space.dim))


class Generator(Hill):
    """Gives a generator instead of an array."""

    def ask(self, n: int = 1) -> Any:
        """Ask."""
        return (row for row in super().ask(n))


class Complex(Hill):
    """Asks for complex numbers."""

    def ask(self, n: int = 1) -> Any:
        """Ask."""
        return super().ask(n) + 0j


class RaisesInTell(Hill):
    """Raises when it is told."""

    def tell(self, x: np.ndarray, evaluation: Evaluation) -> None:
        """Raise."""
        raise ZeroDivisionError("told\x1b[2J too much")


class RaisesInConstructor(Hill):
    """Cannot be made."""

    def __init__(self, space: Any, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Raise."""
        raise LookupError("no licence")


OPTIMIZERS = {
    "slow-hill": SlowHill,
    "builder": Builder,
    "counted": Counted,
    "hang": Hang,
    "deaf": Deaf,
    "parent": Parent,
    "leaver": Leaver,
    "storm": Storm,
    "stopper": Stopper,
    "great-stopper": GreatStopper,
    "orphan": Orphan,
    "liar": Liar,
    "great-liar": GreatLiar,
    "segfault": Segfault,
    "exit": Exit,
    "exit-seven": ExitSeven,
    "suicide": Suicide,
    "bomb": Bomb,
    "flood": Flood,
    "silent": Silent,
    "wrong-shape": WrongShape,
    "not-a-number": NotANumber,
    "out-of-box": OutOfBox,
    "too-many": TooMany,
    "no-point": NoPoint,
    "generator": Generator,
    "complex": Complex,
    "raises-in-tell": RaisesInTell,
    "raises-in-constructor": RaisesInConstructor,
}


def register(folder: Path) -> None:
    """Make a folder that, on the path of Python, registers these optimizers."""
    metadata = folder / "misbehaviour-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: misbehaviour\nVersion: 1\n")
    rows = [f"{id_} = {__name__}:{kind.__name__}" for id_, kind in OPTIMIZERS.items()]
    text = "\n".join(["[cbo_suite.optimizers]", *rows, ""])
    (metadata / "entry_points.txt").write_text(text)
