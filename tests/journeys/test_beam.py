"""The engineer's script of `beam.py`, run as engineers run scripts: in a process, on a terminal."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra scbo")

SLOW = """
import time
import cbo_suite as cbo
from beam import BEAM, simulate

def slow(x):
    time.sleep(0.05)
    return simulate(x)

if __name__ == "__main__":
    result = cbo.minimize(slow, budget=500, optimizer="cobyla", callback=print, {more} **BEAM)
    print("RESULT", result.nfev, result.run.status)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with nothing but the script."""
    shutil.copy(Path(__file__).with_name("beam.py"), tmp_path)
    return tmp_path


@pytest.mark.slow
def test_every_wish_is_granted(folder: Path) -> None:
    """From the first try to the errors; files are left behind, and nothing floods the screen."""
    done = subprocess.run(
        [sys.executable, "beam.py"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) < 25
    assert (folder / "beam.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "beam.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows].count("data") >= 5
    assert {"width", "height", "ribs", "damping", "stress", "buckling"} <= set(rows[0])
    errors = [line.partition(":") for line in done.stdout.splitlines()[-7:]]
    assert [kind for kind, _, _ in errors] == [
        "InvalidSpace",
        "InvalidPoint",
        "InvalidData",
        "InvalidData",
        "InvalidSpace",
        "InvalidSpace",
        "InvalidSpace",
    ]
    for (_, _, text), word in zip(
        errors, ("swap", "width = 9", "F of", "finite", "'ribs'", "0 to 3", "no point"), strict=True
    ):
        assert word in text


@pytest.mark.skipif(os.name != "posix", reason="needs a signal that Ctrl-C sends")
@pytest.mark.parametrize("more", ["", 'journal="slow.jsonl",', "processes=2,"])
def test_ctrl_c_gives_what_there_is(folder: Path, more: str) -> None:
    """The script goes on with the result, and a note says how to go on with the run."""
    (folder / "slow.py").write_text(SLOW.format(more=more))
    process = subprocess.Popen(
        [sys.executable, "-u", "slow.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    # Some evaluations are told.
    for _ in range(5):
        assert process.stdout.readline().startswith("Progress")
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    _, nfev, status = output.splitlines()[-1].split()
    assert 5 <= int(nfev) < 100
    assert status == "stopped"
    advice = "goes on from slow.jsonl" if "journal" in more else "data=result.as_data()"
    assert f"stopped after {nfev} of 500 evaluations: interrupted by Ctrl-C" in errors
    assert advice in errors
