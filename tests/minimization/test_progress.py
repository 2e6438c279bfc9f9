"""How progress is shown: a bar on a terminal, few lines elsewhere, nothing in notebooks."""

from __future__ import annotations

import sys
import time
import types
from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.harness import Progress
from cbo_suite.minimization import progress as module
from cbo_suite.minimization.progress import Lines, Pace, in_words
from tests.terminal import on_terminal

SCRIPT = """
import cbo_suite as cbo

def fun(x):
    if x[0] > 0.9:
        raise ValueError
    if x[0] > 0.8:
        print("a remark of the function")
    return x[0], 0.25 - x[0]

cbo.minimize(fun, [0], [1], num_constraints=1, optimizer="sobol-search", budget=24,
             vectorized=False, progress={progress})
"""


def minimize(**settings: Any) -> None:
    """Minimise something in no time."""
    cbo.minimize(lambda x: x[:, 0], [0], [1], optimizer="random-search", budget=12, **settings)


def test_a_terminal_shows_a_bar() -> None:
    """Best value, feasibility, failures and time in one line of 80 columns, all others above it."""
    command = [sys.executable, "-c", SCRIPT.format(progress=None)]
    shown = on_terminal(command, COLUMNS="80", TERM="xterm")
    last = [line for line in shown.replace("\r", "\n").split("\n") if "24/24" in line][-1]
    assert "sobol-search" in last
    assert "best 0." in last
    assert "feasible, " in last
    assert " failed" in last
    assert "a remark of the function" in shown
    quiet = on_terminal([sys.executable, "-c", SCRIPT.format(progress=False)])
    assert "sobol-search" not in quiet


def test_elsewhere_a_short_run_says_nothing_unless_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Standard output stays the user's own."""
    minimize()
    minimize(progress=False)
    assert capsys.readouterr() == ("", "")
    minimize(progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("random-search: 12/12 best 0.")
    assert shown.err.count("\n") == 1


def test_long_runs_have_few_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long and however quick the evaluations are."""
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    for seconds, count in ((0.001, 20_000), (60.0, 500)):
        with (lines := Lines("title", last=False)):
            for done in range(1, count + 1):
                clock += seconds
                lines(Progress(done, count, np.zeros(1), 1.0, 0.0, None, 2))
        shown = capsys.readouterr().err.splitlines()
        assert 2 <= len(shown) <= 25
        assert "best 1 feasible, 2 failed" in shown[0]
        assert shown[0].endswith(" left")
        assert shown[-1].startswith(f"title: {count}/{count}")


def test_notebooks_are_quiet_unless_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then a line at the end is enough for a short run."""

    class ZMQInteractiveShell:
        """What a kernel calls its shell."""

    ipython = types.ModuleType("IPython")
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(ipython, "get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
    minimize()
    assert capsys.readouterr() == ("", "")
    minimize(progress=True)
    assert 1 <= capsys.readouterr().err.count("\n") <= 22


def test_a_note_says_what_there_is() -> None:
    """Feasible, infeasible, nothing at all."""

    def note(violation: float, failures: int = 0) -> str:
        return Progress(5, 9, np.zeros(1), 1.25, violation, None, failures).note

    assert note(0.0) == "best 1.25 feasible"
    assert note(0.5, 3) == "infeasible, violation 0.5, 3 failed"
    assert note(np.inf, 5) == "no values yet, 5 failed"


def test_the_rest_is_estimated_by_the_latest_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow beginning is forgotten."""
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    pace, left = Pace(), 0.0
    for done in range(1, 51):
        clock += 100.0 if done <= 10 else 2.0
        left = pace.seconds_left(Progress(done, 60, np.zeros(1), 0.0, 0.0, None))
    assert left == pytest.approx(20.0)
    assert [in_words(seconds) for seconds in (9.6, 300.0, 7200.0)] == ["10 s", "5 min", "2.0 h"]
