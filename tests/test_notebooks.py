"""The notebooks run from top to bottom, and are kept without what they print.

The code cells of a notebook are one program, run in order in an empty folder by a process of its
own, as Jupyter would run them. They are plain Python, so Jupyter is not needed for that.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells_of(path: Path, kind: str) -> list[tuple[int, str]]:
    """Return number and text of the cells of one kind."""
    cells: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    numbered = enumerate(cells, start=1)
    return [(number, "".join(c["source"])) for number, c in numbered if c["cell_type"] == kind]


def test_there_are_two() -> None:
    """The two that the documentation names."""
    assert [path.stem for path in NOTEBOOKS] == ["compare-optimizers", "own-function"]


@pytest.mark.slow
@each_notebook
def test_cells_run_in_order(path: Path, tmp_path: Path) -> None:
    """No cell raises, also a second time, and the notebook prints something to look at."""
    pytest.importorskip("matplotlib")
    code = [f"# cell {number}\n{text}\n" for number, text in cells_of(path, "code")]
    program = tmp_path / f"{path.stem}.py"
    program.write_text("\n\n".join(code), "utf-8")
    folder = tmp_path / "empty"
    folder.mkdir()
    for attempt in ("first", "second"):
        done = subprocess.run(
            [sys.executable, program],
            cwd=folder,
            env=os.environ | {"MPLBACKEND": "agg"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        if re.search(r"^cbo_suite\.errors\.MissingExtra", done.stderr, re.MULTILINE):
            pytest.skip(done.stderr.strip().splitlines()[-1])
        assert done.returncode == 0, f"{path.name}, {attempt} time:\n{done.stderr}"
        assert len(done.stdout.splitlines()) > 5


@each_notebook
def test_notebook_is_clean(path: Path) -> None:
    """It has the format of Jupyter, no output that could be out of date, and plain Python only."""
    notebook = json.loads(path.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        fields = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            fields |= {"outputs", "execution_count"}
        assert set(cell) == fields
    for number, text in cells_of(path, "code"):
        compile(text, f"cell {number}", "exec")


@each_notebook
def test_links_lead_somewhere(path: Path) -> None:
    """A relative link names a file that exists."""
    text = "\n".join(text for _, text in cells_of(path, "markdown"))
    targets = [t.partition("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text)]
    relative = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert relative
    assert [target for target in relative if not (FOLDER / target).exists()] == []
