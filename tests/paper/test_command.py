"""`cbo paper` as a person calls it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cbo_suite.cli import main
from tests.terminal import on_terminal

Cbo = Callable[..., Result]


@pytest.fixture
def cbo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cbo:
    """Call `cbo` in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, arguments)


@pytest.mark.skipif(os.name != "posix", reason="campaigns run on Linux and macOS")
def test_status_and_run_on_a_tiny_store(cbo: Cbo, tmp_path: Path) -> None:
    """What is on the board from the present version is not run again; the rest is."""
    assert (
        "4390 runs: 0 in leaderboard/runs, 0 more in runs/paper, 4390"
        in cbo("paper", "status").output
    )
    part = ("paper", "run", "--problems", "toy-2d", "--optimizers", "random-search,sobol-search")
    plan = cbo(*part, "--seeds", "0-2", "--dry-run")
    assert "6 runs: 0 done, 0 failed, 0 skipped, 6 to run" in plan.output, plan.output
    assert not (tmp_path / "runs").exists()
    done = cbo(*part, "--seeds", "0,1", "--jobs", "2")
    assert "4 of 4 runs done" in done.output, done.output
    assert (
        "0 in leaderboard/runs, 4 more in runs/paper, 4386 missing" in cbo("paper", "status").output
    )
    assert cbo("export", "runs/paper").exit_code == 0
    assert (
        "4 in leaderboard/runs, 0 more in runs/paper, 4386 missing" in cbo("paper", "status").output
    )
    # The board is enough: the campaign's own folder may be gone.
    plan = cbo(*part, "--seeds", "0-2", "--out", "elsewhere", "--dry-run")
    assert "4 of 6 runs are in leaderboard/runs already" in plan.output
    assert "2 runs: 0 done, 0 failed, 0 skipped, 2 to run" in plan.output
    # A record of another version of the optimizer does not count.
    path = tmp_path / "leaderboard/runs/toy-2d-v1/sobol-search.jsonl"
    path.write_text(path.read_text().replace('"optimizer-source":"', '"optimizer-source":"0'))
    assert "2 records in leaderboard/runs are of other versions" in cbo("paper", "status").output
    assert "2 of 6 runs are in" in cbo(*part, "--seeds", "0-2", "--dry-run").output
    nothing = cbo(*part, "--stage", "keane")
    assert nothing.exit_code == 1
    assert "the stages have no run of these problems" in nothing.output


def test_status_on_a_terminal_of_80_columns(tmp_path: Path) -> None:
    """No line is broken or too long."""
    shown = on_terminal(
        [sys.executable, "-m", "cbo_suite", "paper", "status"], tmp_path, TERM="xterm", COLUMNS="80"
    )
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in shown.splitlines()]
    assert max(map(len, lines)) <= 80
    assert any("transformed" in line and "1200" in line for line in lines)
