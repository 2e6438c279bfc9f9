"""What the operating system knows: cores, signals, and how to keep a process to one thread."""

from __future__ import annotations

import os
import signal

# What says how many threads linear algebra has.
LINEAR_ALGEBRA = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# For the environment of processes that work side by side, one per core: more threads each would
# slow down the others. Rayon is what libraries in Rust have.
ONE_THREAD = dict.fromkeys((*LINEAR_ALGEBRA, "RAYON_NUM_THREADS"), "1")


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load() -> float:
    """Return how many processes ran or waited to run, mean of a minute; 0 if nobody knows."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def signal_name(number: int) -> str:
    """Name a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
