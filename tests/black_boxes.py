"""Functions for processes of their own: they hang, crash, or say where they run.

What they leave behind goes to the folder that the variable CBO_TEST_FOLDER names.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

# Behaviour k shows where the first coordinate is k + 0.5.
BEHAVIOURS = (
    "good",
    "hang",
    "ignore",
    "grandchild",
    "storm",
    "segfault",
    "exit 0",
    "exit 7",
    "system exit",
    "raise",
    "hold",
)


def place() -> Path:
    """Return the folder for notes."""
    return Path(os.environ["CBO_TEST_FOLDER"])


def note(pid: int) -> None:
    """Write down a process id."""
    (place() / f"{pid}.pid").touch()


def disc(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give values for points of shape (n, d)."""
    return x.sum(axis=1), (x**2).sum(axis=1)[:, None] - 0.5


def sleepy(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Take as many seconds as the first coordinate says."""
    time.sleep(float(x[0, 0]))
    return disc(x)


def threads(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the number of threads that the environment asks for, and the process id."""
    count = float(os.environ["OMP_NUM_THREADS"]) * float(os.environ["OPENBLAS_NUM_THREADS"])
    return np.full(len(x), count), np.full((len(x), 1), float(os.getpid()))


def misbehave(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Behave as the first coordinate says."""
    note(os.getpid())
    behaviour = BEHAVIOURS[int(x[0, 0])]
    if behaviour == "hang":
        time.sleep(1000)
    elif behaviour == "ignore":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
    elif behaviour == "grandchild":
        note(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]).pid)
        time.sleep(1000)
    elif behaviour == "storm":
        for _ in range(50):
            if (child := os.fork()) == 0:
                time.sleep(1000)
            note(child)
        time.sleep(1000)
    elif behaviour == "segfault":
        ctypes.string_at(0)
    elif behaviour.startswith("exit"):
        os._exit(int(behaviour[-1]))
    elif behaviour == "system exit":
        sys.exit(3)
    elif behaviour == "raise":
        raise ValueError("no")
    elif behaviour == "hold":
        # A call into C that keeps the interpreter to itself.
        ctypes.PyDLL(None).sleep(1000)
    return disc(x)
