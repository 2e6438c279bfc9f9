"""The script of `no_choice.py`, with PyTorch and on a machine that has not got it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# What Python runs first in the process: libraries are not found, whatever is installed.
MISSING = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *more: (
    None if name.partition(".")[0] in {libraries!r} else find(name, *more)
)
"""


def run_script(folder: Path, *missing: str) -> tuple[dict[str, tuple[str, str]], str]:
    """Run the script; return optimizer and reason by call, and what was on standard error."""
    shutil.copy(Path(__file__).with_name("no_choice.py"), folder)
    start = folder / "start"
    start.mkdir()
    (start / "sitecustomize.py").write_text(MISSING.format(libraries=missing))
    path = os.pathsep.join(filter(None, [str(start), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "no_choice.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    *calls, slip = done.stdout.splitlines()
    assert slip.startswith("InvalidTask: the options delta are those of one optimizer: name it")
    taken = {}
    for line in calls:
        call, _, rest = line.partition(": ")
        optimizer, _, reason = rest.partition(" (")
        taken[call] = (optimizer, reason.removesuffix(")"))
    return taken, done.stderr


@pytest.mark.slow
def test_with_everything_installed(tmp_path: Path) -> None:
    """Calls are served by several lines of the rule, and the log has what the result says."""
    pytest.importorskip("torch", reason="needs the extra scbo")
    taken, log = run_script(tmp_path)
    assert {call: optimizer for call, (optimizer, _) in taken.items()} == {
        "one by one": "cei",
        "going on": "cei",
        "four at once": "cei",
        "noisy": "scbo",
        "many": "cobyla",
        "by name": "cobyqa",
        "served": "cei",
    }
    assert taken["going on"][1] == "cei, with which the journal was begun"
    assert taken["by name"][1] == "named"
    for call, (_, reason) in taken.items():
        assert (f"LOG cbo_suite.choice auto took {reason}\n" in log) == (call != "by name")
    assert "pip install" not in log


@pytest.mark.slow
def test_without_torch(tmp_path: Path) -> None:
    """The same script works, and says what to install; the better methods are not there."""
    taken, log = run_script(tmp_path, "torch", "cma")
    assert {call: optimizer for call, (optimizer, _) in taken.items()} == dict.fromkeys(
        ("one by one", "going on", "four at once", "noisy", "many", "served"), "cobyla"
    ) | {"by name": "cobyqa"}
    assert "torch is not installed, so auto took cobyla; better methods come with pip" in log
    assert 'pip install "cbo-suite[scbo]"' in taken["one by one"][1]
