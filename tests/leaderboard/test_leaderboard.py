"""The leaderboard's files: tables, the site beside them, and the check that they are current."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cbo_suite.cli import main
from cbo_suite.errors import RecordError
from cbo_suite.leaderboard import build_board, markdown, read_folder
from cbo_suite.leaderboard.markdown_page import RANKING_COLUMNS, problem_rows, ranking_rows
from cbo_suite.leaderboard.marks import read_verified
from cbo_suite.records import write_records
from cbo_suite.scoring.board import decode_board
from cbo_suite.scoring.overall import make_board
from cbo_suite.scoring.references import load_references
from tests.make_records import make

TOY = "toy-2d-v1"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write the records of two optimizers on one problem, three seeds each."""
    folder = tmp_path / "runs"
    for name, value in (("random-search", 1.0), ("scbo", 0.7)):
        records = [
            make([None, value, value + 0.1 * seed], problem=TOY, optimizer=name, seed=seed)
            for seed in range(3)
        ]
        write_records(folder / TOY / f"{name}.jsonl", records)
    return folder


def build(runs: Path, *options: str) -> Result:
    """Call `cbo leaderboard build` on these runs."""
    arguments = ["leaderboard", "build", "--runs", str(runs), "--out", str(runs.parent / "board")]
    return CliRunner().invoke(main, [*arguments, *options])


def test_build_writes_tables_and_site_and_ends_with_the_ranking(runs: Path) -> None:
    """The same bytes every time, and the path of the first page is the last line."""
    done = build(runs)
    assert done.exit_code == 0, done.output
    board = runs.parent / "board"
    index = board / "site" / "index.html"
    assert done.output.splitlines()[-1] == f"the site: {index}"
    assert "Ranking by anytime" in done.output
    assert index.exists()
    files = {path: path.read_bytes() for path in board.rglob("*") if path.is_file()}
    assert board / "README.md" in files
    assert decode_board(files[board / "scores.json"]) == build_board(runs)
    assert build(runs).exit_code == 0
    assert {path: path.read_bytes() for path in board.rglob("*") if path.is_file()} == files


def test_check_passes_on_what_build_wrote_and_writes_nothing(runs: Path) -> None:
    """Without files it fails, with them it passes, and the site is not needed."""
    missing = build(runs, "--check")
    assert missing.exit_code == 1
    assert "README.md is missing" in missing.output
    assert not (runs.parent / "board").exists()
    build(runs)
    assert build(runs, "--check").exit_code == 0


def test_check_fails_on_a_difference(runs: Path) -> None:
    """It names the file, the line and what to do."""
    build(runs)
    page = runs.parent / "board" / "README.md"
    lines = page.read_text("utf-8").splitlines()
    lines[5] += " and more"
    page.write_text("\n".join(lines) + "\n", "utf-8")
    failed = build(runs, "--check")
    assert failed.exit_code == 1
    assert "README.md is not what the records give: it differs in line 6" in failed.output
    assert "run `cbo leaderboard build`" in failed.output
    build(runs)
    (runs / TOY / "scbo.jsonl").unlink()
    failed = build(runs, "--check")
    assert failed.exit_code == 1
    assert "scores.json is not what the records give" in failed.output


def test_only_the_file_that_was_verified_has_the_badge(runs: Path) -> None:
    """One byte more, and the badge is gone."""
    path = runs / TOY / "scbo.jsonl"
    notes = {f"{TOY}/scbo": hashlib.sha256(path.read_bytes()).hexdigest()}
    (runs.parent / "verified.json").write_text(json.dumps(notes))
    assert read_verified(runs) == {f"{TOY}/scbo": True, f"{TOY}/random-search": False}
    assert {row.optimizer: row.verified for row in build_board(runs).overall} == {
        "scbo": True,
        "random-search": False,
    }
    assert "verified, provisional" in ranking_rows(build_board(runs))[0]
    write_records(path, read_folder(runs)[3:5])
    assert not any(read_verified(runs).values())


def test_damaged_notes_are_an_error_that_names_the_file(runs: Path) -> None:
    """Not a badge for nobody."""
    (runs.parent / "verified.json").write_text("[1")
    with pytest.raises(RecordError, match=r"verified\.json: .*write it anew with `cbo verify`"):
        read_verified(runs)
    failed = build(runs)
    assert failed.exit_code == 1
    assert "Traceback" not in failed.output


def test_the_ranking_has_a_cell_for_every_column(runs: Path) -> None:
    """Rank, name, score, interval, mean rank, problems, runs, seconds, notes."""
    first, second = ranking_rows(build_board(runs))
    assert len(first) == len(second) == len(RANKING_COLUMNS)
    assert first[:2] == ("1", "scbo")
    assert first[4:7] == ("1.00", "1/1", "3/3")
    assert first[-1] == "provisional"


def test_tables_show_what_they_rank_by() -> None:
    """Two rows that differ in the seventh digit only, and what is missing."""
    records = [
        make([value + 1e-4 * seed], optimizer=name, seed=seed, problem="speed-reducer-7d-v1")
        for name, value in (("a", 2996.3485), ("b", 2996.3495))
        for seed in range(3)
    ] + [make([None], optimizer="c", problem="speed-reducer-7d-v1")]
    (problem,) = make_board(records, load_references()).problems
    a, b, c = (row[1:6] for row in problem_rows(problem))
    assert a == ("2996.348600", "5.8e-5", "2996.3485", "2996.3486", "2996.3487")
    assert b == ("2996.349600", "5.8e-5", "2996.3495", "2996.3496", "2996.3497")
    assert c == ("2996.3497", "NA", "NA", "NA", "NA")


def test_names_cannot_break_the_page() -> None:
    """Markup in a name is text on the page."""
    record = make([1.0], optimizer="a|b<script>`x`\n# no", problem="p\n# [q](r)")
    page = markdown(make_board([record], load_references()))
    assert "a\\|b\\<script\\>\\`x\\` # no" in page
    assert "## p # \\[q\\](r)" in page
