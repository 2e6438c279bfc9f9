"""Kill a campaign anywhere at any moment: run again, it ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.helpers import FULL, children, records_without_times, survivors

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="finds the processes of a campaign in /proc"
)
KILLS = 20 if FULL else 3
PATIENCE = 120.0
Start = Callable[..., subprocess.Popen[str]]
PLAN = ("--problems", "toy-2d", "--optimizers", "slow-hill,sobol-search", "--seeds", "0-2")


def campaign(out: str) -> list[str]:
    """Return the command of six short runs, two side by side."""
    return ["run", *PLAN, "--budget", "40", "--jobs", "2", "--out", out]


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for a campaign, which must succeed; return what it printed."""
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    return output


def wait_for_journals(folder: Path, lines: int = 0) -> None:
    """Wait until the first run has begun, and its journal has so many lines."""
    deadline = time.monotonic() + PATIENCE
    while not any(path.read_bytes().count(b"\n") >= lines for path in folder.glob("*/*/*.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_killed_at_random_moments_it_ends_the_same(
    misbehaviour: Path, tmp_path: Path, start_cbo: Start
) -> None:
    """The parent, any one of its processes, or both: no record differs, no process is left."""
    began = time.monotonic()
    finish(start_cbo(*campaign("whole")))
    # Most of the time of a campaign this small is spent in starting.
    duration = 0.7 * (time.monotonic() - began)
    expected = records_without_times(tmp_path / "whole")
    assert sum(map(len, expected.values())) == 6
    chance = random.Random(1)  # noqa: S311 - moments, not secrets
    interrupted = 0
    for trial in range(KILLS):
        process = start_cbo(*campaign(f"{trial}"))
        wait_for_journals(tmp_path / f"{trial}")
        time.sleep(chance.uniform(0.0, duration))
        family = children(process.pid)
        victims = [process.pid] if trial % 3 != 1 else []
        if trial % 3 and family:
            victims.append(chance.choice(family))
        interrupted += process.poll() is None
        for victim in victims:
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.communicate(timeout=PATIENCE)
        assert survivors(family) == []
        finish(start_cbo(*campaign(f"{trial}")))
        assert records_without_times(tmp_path / f"{trial}") == expected
        assert not list((tmp_path / f"{trial}").rglob("*.claim"))
    assert interrupted >= KILLS / 4


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_stops_and_the_next_call_goes_on(
    times: int, misbehaviour: Path, tmp_path: Path, start_cbo: Start
) -> None:
    """Once or twice: the exit status says so, nothing is lost, nothing is left running."""
    arguments = ["run", *PLAN, "--budget", "300", "--jobs", "2", "--out", "runs"]
    process = start_cbo(*arguments)
    wait_for_journals(tmp_path / "runs", lines=2)
    family = children(process.pid)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    assert "runs to go; the same command goes on" in output
    assert survivors(family) == []
    assert not list(tmp_path.rglob("*.claim"))
    begun = {path: path.read_bytes() for path in (tmp_path / "runs").glob("*/*/*.jsonl")}
    assert any(before.count(b"\n") > 1 for before in begun.values())
    output = finish(start_cbo(*arguments))
    assert "6 of 6 runs done, 0 skipped, 0 failed" in output
    for path, before in begun.items():
        # A header alone has nothing to keep: it is written again when the optimizer is made.
        if before.count(b"\n") > 1:
            assert path.read_bytes().startswith(before[: before.rindex(b"\n") + 1])
