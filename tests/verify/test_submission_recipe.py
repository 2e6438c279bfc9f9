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
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]
CBO = Path(sys.executable).with_name("cbo")


def recipe() -> list[str]:
    """Return what the recipe shows, in its order: commands, and texts to be written."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = page.partition("## Recipe: from an idea to a row")[2].partition("\n## ")[0]
    blocks = re.findall(r"^   ```(\w+)\n(.*?)^   ```", section, re.MULTILINE | re.DOTALL)
    steps: list[str] = []
    for language, block in blocks:
        text = dedent(block)
        steps += re.findall(r"^\$ (.+)$", text, re.MULTILINE) if language == "console" else [text]
    return steps


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


def make_clone(folder: Path, environment: dict[str, str]) -> Path:
    """Make a repository with the runs on the toy problem and the cards, and a remote for it."""
    clone = folder / "cbo-suite"
    runs = Path("leaderboard", "runs", "toy-2d-v1")
    for place in (runs, Path("docs", "optimizers")):
        shutil.copytree(ROOT / place, clone / place)
    for command in (
        "git init --quiet --initial-branch=main .",
        "git add .",
        "git commit --quiet --message published",
        "git init --quiet --bare ../origin",
        "git push --quiet ../origin main",
        "git remote add origin ../origin",
    ):
        follow(command, clone, environment)
    return clone


@pytest.mark.slow
def test_the_recipe_leads_to_a_row(tmp_path: Path) -> None:
    """A new user's optimizer is checked, run, exported, verified, ranked and sent."""
    roles, facts = ("AUTHOR", "COMMITTER"), ("NAME", "EMAIL")
    who = {f"GIT_{role}_{fact}": "a" for role in roles for fact in facts}
    environment = os.environ | who | {"OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(tmp_path / "my-search" / "lib")
    folder = clone = make_clone(tmp_path, environment)
    others = sorted(path.stem for path in clone.glob("leaderboard/runs/*/*.jsonl"))
    cards = clone / "docs" / "optimizers"
    said = {}
    for step in recipe():
        if step.startswith("cd "):
            folder = (folder / step.removeprefix("cd ")).resolve(strict=True)
        elif step.startswith("# "):
            (cards / "my-search.md").write_text(step)
        elif step.startswith("| "):
            (cards / "README.md").write_text((cards / "README.md").read_text() + step)
        else:
            said[step] = follow(step, folder, environment)
    assert [command.split()[:2] for command in said if not command.startswith("git ")] == [
        ["mkdir", "../my-search"],
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
    verified = next(text for command, text in said.items() if "verify" in command)
    assert "1 verified, 0 unverified, 0 refused" in verified
    assert "1,000 of 1,000 evaluations again: bit-equal" in verified
    assert "identical" in verified
    scores = json.loads((clone / "leaderboard" / "scores.json").read_text())
    (problem,) = scores["problems"]
    rows = {row["optimizer"]: row for row in problem["rows"]}
    assert sorted(rows) == sorted([*others, "my-search"])
    assert rows["my-search"]["runs"] == 10
    assert rows["my-search"]["provisional"]
    assert rows["my-search"]["versions"]["my-search"] == "0.1.0"
    assert "| my-search |" in (clone / "leaderboard" / "README.md").read_text()
    page = (clone / "leaderboard" / "site" / "optimizer" / "my-search.html").read_text()
    assert "What it does, in a few sentences." in page
    # The line that the registry has on this machine, where the package is installed.
    assert "from my-search" not in page.partition("<main")[2].partition("Method card")[0]
    assert (tmp_path / "my-search" / "figure.pdf").read_bytes().startswith(b"%PDF-")
    follow("cbo leaderboard build --check", clone, environment)
    sent = follow("git diff --name-only main my-search", tmp_path / "origin", environment)
    assert sent.split() == [
        "docs/optimizers/README.md",
        "docs/optimizers/my-search.md",
        "leaderboard/runs/toy-2d-v1/my-search.jsonl",
    ]


def test_the_message_of_the_commit_is_as_ours_are() -> None:
    """It names the room, and its subject is short enough."""
    (message,) = re.findall(r'^git commit -m "(.+)"$', "\n".join(recipe()), re.MULTILINE)
    assert re.fullmatch(r"results: .{1,60}", message)
