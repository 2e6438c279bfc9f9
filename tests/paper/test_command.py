"""`cbo paper` as a person calls it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from cbo_suite.cli import main
from cbo_suite.paper.measurements import SECONDS, read_measurements, write_measurement
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
        "4400 runs: 0 in leaderboard/runs, 0 more in runs/paper, 4400"
        in cbo("paper", "status").output
    )
    part = ("paper", "run", "--problems", "toy-2d", "--optimizers", "random-search,sobol-search")
    plan = cbo(*part, "--seeds", "0-2", "--dry-run")
    assert "6 runs: 0 done, 0 failed, 0 skipped, 6 to run" in plan.output, plan.output
    assert not (tmp_path / "runs").exists()
    done = cbo(*part, "--seeds", "0,1", "--jobs", "2")
    assert "4 of 4 runs done" in done.output, done.output
    assert (
        "0 in leaderboard/runs, 4 more in runs/paper, 4396 missing" in cbo("paper", "status").output
    )
    assert cbo("export", "runs/paper").exit_code == 0
    assert (
        "4 in leaderboard/runs, 0 more in runs/paper, 4396 missing" in cbo("paper", "status").output
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


@pytest.mark.skipif(os.name != "posix", reason="campaigns run on Linux and macOS")
def test_seconds_are_measured_and_kept(cbo: Cbo, tmp_path: Path) -> None:
    """One run each; what is known of other optimizers stays, other processors are refused."""
    measurements = tmp_path / "leaderboard" / "measurements"
    assert "measurements/seconds.json is missing" in cbo("paper", "status").output
    plan = cbo("paper", "measure", "seconds", "--dry-run").output
    assert "keane-30d-v1" in plan
    assert "lunar" not in plan
    command = ("paper", "measure", "seconds", "--problems", "toy-2d", "--optimizers")
    assert cbo(*command, "random-search").exit_code == 0
    assert cbo(*command, "sobol-search").exit_code == 0
    found = read_measurements(measurements).seconds
    assert found is not None
    times = found.problems["toy-2d-v1"]
    assert times.keys() == {"random-search", "sobol-search"}
    assert all(0.0 < seconds < 1.0 for seconds in times.values())
    assert "measurements/seconds.json is there" in cbo("paper", "status").output
    refused = cbo("paper", "measure", "seconds", "--problems", "toy-2d")
    assert "--problems needs --optimizers" in refused.output
    other = msgspec.structs.replace(found, processor="another one")
    write_measurement(measurements, SECONDS, other)
    mixed = cbo(*command, "random-search")
    assert mixed.exit_code == 1
    assert "seconds of different processors do not compare" in mixed.output
    assert read_measurements(measurements).seconds == other


def test_status_on_a_terminal_of_80_columns(tmp_path: Path) -> None:
    """No line is broken or too long."""
    shown = on_terminal(
        [sys.executable, "-m", "cbo_suite", "paper", "status"], tmp_path, TERM="xterm", COLUMNS="80"
    )
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in shown.splitlines()]
    assert max(map(len, lines)) <= 80
    assert any("transformed" in line and "1200" in line for line in lines)
