"""The recipe of CONTRIBUTING, from an idea to a row of the leaderboard, followed to the letter."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CBO = Path(sys.executable).with_name("cbo")


def recipe() -> list[str]:
    """Return the commands of the recipe, in their order."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = page.partition("## Recipe: from an idea to a row")[2].partition("\n## ")[0]
    return re.findall(r"^ +\$ (.+)$", section, re.MULTILINE)


def follow(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Run one command as its reader would, and return what it says."""
    # The package goes into a folder of the test instead of the environment, and needs no network.
    install = "-m pip install --quiet --no-deps --no-index --no-build-isolation --target lib ."
    words = shlex.split(command)
    if words[0] == "pip":
        words = [sys.executable, *install.split()]
    elif words[0] == "cbo":
        # Ten seeds show as much as thirty.
        words = [str(CBO), *("0-9" if word == "0-29" else word for word in words[1:])]
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_the_recipe_leads_to_a_row(tmp_path: Path) -> None:
    """A new user's optimizer is checked, run, exported, verified and ranked among the others."""
    commands = recipe()
    assert [command.split()[:2] for command in commands if not command.startswith("git ")] == [
        ["cbo", "new"],
        ["cbo", "check"],
        ["pip", "install"],
        ["cbo", "run"],
        ["cbo", "status"],
        ["cbo", "export"],
        ["cbo", "verify"],
        ["cbo", "leaderboard"],
        ["cbo", "plot"],
    ]
    runs = tmp_path / "leaderboard" / "runs" / "toy-2d-v1"
    shutil.copytree(ROOT / "leaderboard" / "runs" / "toy-2d-v1", runs)
    others = sorted(path.stem for path in runs.glob("*.jsonl"))
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "lib"), "OMP_NUM_THREADS": "1"}
    said = {
        command: follow(command, tmp_path, environment)
        for command in commands
        if not command.startswith("git ")
    }
    verified = next(text for command, text in said.items() if "verify" in command)
    assert "1 verified, 0 unverified, 0 refused" in verified
    assert "1,000 of 1,000 evaluations again: bit-equal" in verified
    assert "identical" in verified
    scores = json.loads((tmp_path / "leaderboard" / "scores.json").read_text())
    (problem,) = scores["problems"]
    rows = {row["optimizer"]: row for row in problem["rows"]}
    assert sorted(rows) == sorted([*others, "my-search"])
    assert rows["my-search"]["runs"] == 10
    assert rows["my-search"]["provisional"]
    assert rows["my-search"]["versions"]["my-search"] == "0.1.0"
    assert "| my-search |" in (tmp_path / "leaderboard" / "README.md").read_text()
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF-")
    follow("cbo leaderboard build --check", tmp_path, environment)


def test_the_pull_request_adds_the_folder_that_was_written() -> None:
    """What the recipe commits is what its commands have changed."""
    git = [command for command in recipe() if command.startswith("git ")]
    assert git[1] == "git add leaderboard"
    assert re.fullmatch(r'git commit -m "results: .{1,60}"', git[2])
