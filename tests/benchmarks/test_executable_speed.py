"""What supervision of an executable costs, and how fast a call that hangs is ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbo_suite.errors import ExecutableTimeout
from cbo_suite.problems.mopta08.executable import evaluate_points
from tests.problems.stand_ins import compile_c, script

TIMEOUT = 0.5

pytestmark = pytest.mark.skipif(os.name != "posix", reason="executables need Linux or macOS")


def children_seconds() -> float:
    """Return the processor time of all child processes that ended, which load does not inflate."""
    times = os.times()
    return times.children_user + times.children_system


def test_supervision_costs_a_few_starts_of_python(benchmark: Any, tmp_path: Path) -> None:
    """A supervised call of a tiny program takes less than five times a bare Python.

    Such a start takes some 10 ms where a call of the genuine MOPTA08 takes 160 ms.
    """
    path = compile_c(tmp_path)
    x = np.full((1, 124), 0.5)
    bare, supervised = [], []

    def start_python() -> None:
        """Take the cost of one start of a bare Python, before every call."""
        before = children_seconds()
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
        bare.append(children_seconds() - before)

    def call() -> None:
        """Take the cost of one supervised call."""
        before = children_seconds()
        evaluate_points(path, x, 69, timeout=30.0, workers=1)
        supervised.append(children_seconds() - before)

    benchmark.pedantic(call, setup=start_python, rounds=30)
    assert sum(supervised) < 5 * sum(bare)


@pytest.mark.parametrize("hang", ["sleep 1000", "trap '' TERM; (setsid sleep 1000 &); sleep 1000"])
def test_a_hanging_call_ends_within_two_seconds_of_its_timeout(
    benchmark: Any, tmp_path: Path, hang: str
) -> None:
    """Also one that ignores signals and has a child in another session."""
    path = script(tmp_path / "hang", "", good=hang)
    x = np.full((2, 124), 0.5)

    def call() -> None:
        """Evaluate two points that hang, side by side."""
        _, failures = evaluate_points(path, x, 69, timeout=TIMEOUT, workers=2)
        assert [type(error) for error in failures.values()] == [ExecutableTimeout] * 2

    benchmark.pedantic(call, rounds=3)
    assert benchmark.stats.stats.max < TIMEOUT + 2.0
