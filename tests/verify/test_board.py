"""The published rows are what they say: all of cheap problems, of expensive ones a run per file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cbo_suite.cli import main
from cbo_suite.problems import PROBLEMS
from cbo_suite.problems.toy import Toy
from cbo_suite.protocols import Array, Evaluation
from cbo_suite.verify import Designs, verify_file
from tests.submissions.honest import put, run_records

RUNS = Path(__file__).parents[2] / "leaderboard" / "runs"
# What takes longer than this in one evaluation is expensive.
SECONDS = 0.01


def problems() -> Iterator[Any]:
    """List the folders of the board; those of expensive problems are slow."""
    for folder in sorted(RUNS.iterdir()):
        marks = [pytest.mark.slow] if expensive(folder) else []
        yield pytest.param(folder, marks=marks, id=folder.name)


def expensive(folder: Path) -> bool:
    """Tell whether one evaluation of a problem takes long."""
    return PROBLEMS[folder.name].seconds > SECONDS


def test_there_are_rows() -> None:
    """And nothing but folders of files, so that none is overlooked."""
    assert len(list(RUNS.glob("*/*.jsonl"))) >= 150
    assert all(folder.is_dir() for folder in RUNS.iterdir())


@pytest.mark.parametrize("folder", list(problems()))
def test_every_published_row_holds(folder: Path) -> None:
    """`make verify-board` does the same in full."""
    designs = Designs()
    for path in sorted(folder.iterdir()):
        verdict = verify_file(path, quick=True, designs=designs)
        assert verdict.complaints == []
        # Of expensive problems this is not the whole, and not every library is everywhere.
        assert verdict.status == ("unverified" if expensive(folder) else "verified")


def test_files_share_their_designs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of a problem: each point is evaluated once, and those of the designs once in all."""
    for optimizer in ("random-search", "sobol-search"):
        put(tmp_path / "runs", run_records(tmp_path, "toy-2d-v1", optimizer, range(10)))
    counted, true = [], Toy._evaluate

    def counting(self: Toy, x: Array) -> Evaluation:
        counted.append(len(x))
        return true(self, x)

    monkeypatch.setattr(Toy, "_evaluate", counting)
    done = CliRunner().invoke(main, ["verify", str(tmp_path / "runs")])
    assert "2 verified, 0 unverified, 0 refused" in done.output
    # Ten runs of 100 points, 10 of them the design; and the best known point for each file.
    assert sum(counted) == 10 * 10 + 2 * 10 * 90 + 2 * 1
