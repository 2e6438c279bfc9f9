"""The recipes for problems: to a row on a board of one's own, and into the suite."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.recipes import ROOT, Step, follow, path_of, recipe

OWN = recipe("a problem")
SUITE = recipe("a problem of the suite")
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def commands(steps: list[Step]) -> list[str]:
    """Return the commands of a recipe, each by its first two words."""
    return [" ".join(step.text.split()[:2]) for step in steps if step.language == "console"]


@pytest.mark.slow
def test_the_recipe_leads_to_a_verified_row_on_a_board_of_ones_own(tmp_path: Path) -> None:
    """An empty file becomes a problem that is checked, run, verified and ranked."""
    home = tmp_path / "crescent-2d"
    folder = tmp_path / "cbo-suite"
    folder.mkdir()
    environment = ENVIRONMENT | {"PYTHONPATH": path_of(home)}
    said = {}
    for _, text in OWN:
        if text.startswith("cd "):
            folder = (folder / text.removeprefix("cd ")).resolve(strict=True)
        else:
            said[" ".join(text.split()[:2])] = follow(text, folder, environment)
    assert commands(OWN) == [
        "mkdir ../crescent-2d",
        "cd ../crescent-2d",
        "cbo new",
        "cbo check",
        "pip install",
        "python -m",
        "cbo references",
        "cbo run",
        "cbo export",
        "cbo verify",
        "cbo leaderboard",
    ]
    assert "3 passed" in said["python -m"]
    assert "2 verified, 0 unverified, 0 refused" in said["cbo verify"]
    (problem,) = json.loads((home / "board" / "scores.json").read_text())["problems"]
    assert problem["problem"] == "crescent-2d-v1"
    assert (problem["budget"], problem["batch_size"], problem["n_init"]) == (100, 1, 10)
    # The optima of x1 + x2 in the circle of radius 1.5.
    assert [problem["best"], problem["worst"]] == pytest.approx([-1.5 * 2**0.5, 1.5 * 2**0.5])
    rows = {row["optimizer"]: row for row in problem["rows"]}
    assert rows.keys() == {"random-search", "cobyla"}
    for row in rows.values():
        assert row["verified"]
        assert row["runs"] == row["feasible_runs"] == 10
    assert rows["cobyla"]["anytime"] > rows["random-search"]["anytime"] > 0.0
    # Where its package is not installed the board needs a file, and gets the same numbers.
    references = home / "crescent_2d" / "references.json"
    elsewhere = "cbo leaderboard build --runs board/runs --out other"
    follow(f"{elsewhere} --references {references}", home, ENVIRONMENT)
    assert (home / "other" / "scores.json").read_bytes() == (
        home / "board" / "scores.json"
    ).read_bytes()
    follow(elsewhere, home, ENVIRONMENT)
    (without,) = json.loads((home / "other" / "scores.json").read_text())["problems"]
    assert without["worst"] is None


def change(text: str, files: list[Path]) -> None:
    """Apply the lines of a diff to the one file that they fit."""
    lines = text.splitlines(keepends=True)
    old, new = ("".join(line[1:] for line in lines if line[0] == sign) for sign in "-+")
    (file,) = (file for file in files if old in file.read_text())
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.slow
def test_a_problem_of_the_suite_is_one_file_one_row_one_page(tmp_path: Path) -> None:
    """The tests of pages, golden values and references accept it; nothing else changes."""
    home, clone = tmp_path / "crescent-2d", tmp_path / "cbo-suite"
    home.mkdir()
    follow("cbo new problem crescent-2d", home, ENVIRONMENT)
    follow("pip install --editable .", home, ENVIRONMENT)
    unwanted = shutil.ignore_patterns("__pycache__")
    for place in ("cbo_suite", "problems", "optimizers", "docs/problems"):
        shutil.copytree(ROOT / place, clone / place, symlinks=True, ignore=unwanted)
    for place in ("golden", "problems", "scoring"):
        shutil.copytree(ROOT / "tests" / place, clone / "tests" / place, ignore=unwanted)
    shutil.copy(ROOT / "pyproject.toml", clone)
    environment = ENVIRONMENT | {"PYTHONPATH": f"{clone}:{home / 'lib'}"}
    added = [clone / "problems" / "crescent.py", clone / "tests" / "problems" / "test_crescent.py"]
    table, pages = clone / "problems" / "__init__.py", clone / "docs" / "problems"
    for language, text in SUITE:
        if language == "diff":
            change(text, added)
        elif language == "python":
            table.write_text(table.read_text().removesuffix("}\n") + text + "}\n")
        elif text.startswith("# "):
            (pages / "crescent.md").write_text(text)
        elif text.startswith("| "):
            index, below = (pages / "README.md").read_text(), "\nAn id never changes"
            (pages / "README.md").write_text(index.replace(below, text + below))
        else:
            follow(text, clone, environment)
    assert commands(SUITE) == [
        "pip uninstall",
        "cp ../crescent-2d/crescent_2d/__init__.py",
        "cp ../crescent-2d/test_crescent_2d.py",
        "cbo references",
        "cbo golden",
    ]
    tests = "tests/problems/test_crescent.py tests/problems/test_index_page.py"
    tables = "tests/problems/test_golden_values.py tests/scoring/test_references.py"
    chosen = "-k 'crescent or every_problem'"
    said = follow(f"python -m pytest -q {tests} {tables} {chosen}", clone, environment)
    assert " passed" in said
    frozen = (ROOT / "cbo_suite" / "scoring" / "references.json").read_text()
    now = (clone / "cbo_suite" / "scoring" / "references.json").read_text()
    assert now.startswith(frozen.removesuffix("\n}\n"))
    ruff = f"python -m ruff check --no-cache {' '.join(map(str, added))}"
    follow(ruff, clone, environment)
