"""The recipe of CONTRIBUTING, from an idea to a row of the leaderboard, followed to the letter."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.recipes import ROOT, follow, path_of, recipe

STEPS = recipe("from an idea to a row of the leaderboard")


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
    environment["PYTHONPATH"] = path_of(tmp_path / "my-search")
    folder = clone = make_clone(tmp_path, environment)
    others = sorted(path.stem for path in clone.glob("leaderboard/runs/*/*.jsonl"))
    cards = clone / "docs" / "optimizers"
    said = {}
    for _, text in STEPS:
        if text.startswith("cd "):
            folder = (folder / text.removeprefix("cd ")).resolve(strict=True)
        elif text.startswith("# "):
            (cards / "my-search.md").write_text(text)
        elif text.startswith("| "):
            (cards / "README.md").write_text((cards / "README.md").read_text() + text)
        else:
            said[text] = follow(text, folder, environment)
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
    (message,) = re.findall(r'git commit -m "(.+)"', "\n".join(step.text for step in STEPS))
    assert re.fullmatch(r"results: .{1,60}", message)
