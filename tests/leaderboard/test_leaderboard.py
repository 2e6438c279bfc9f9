"""The leaderboard's files: tables, the site beside them, and the check that they are current."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len
from rich.text import Text

from cbo_suite.cli import main
from cbo_suite.errors import RecordError
from cbo_suite.leaderboard import build_board, markdown, read_folder
from cbo_suite.leaderboard.markdown_page import (
    PARTIAL_COLUMNS,
    RANKED_COLUMNS,
    VARIANT_COLUMNS,
    partial_rows,
    problem_rows,
    ranked_rows,
    variant_rows,
)
from cbo_suite.leaderboard.marks import Mark, read_marks
from cbo_suite.records import write_records
from cbo_suite.scoring.board import decode_board
from cbo_suite.scoring.overall import make_board
from cbo_suite.scoring.references import load_references
from cbo_suite.scoring.tracks import TRACKS
from tests.make_records import make
from tests.terminal import on_terminal

TOY = "toy-2d-v1"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write the records of two optimizers on one problem, three seeds each."""
    folder = tmp_path / "runs"
    for name, value in (("random-search", 1.0), ("scbo", 0.61)):
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


def test_build_writes_tables_and_site_and_prints_the_tracks(runs: Path) -> None:
    """The same bytes every time, and the path of the first page is the last line."""
    done = build(runs)
    assert done.exit_code == 0, done.output
    board = runs.parent / "board"
    index = board / "site" / "index.html"
    assert done.output.splitlines()[-1] == f"the site: {index}"
    assert "Partial in small-v1" in done.output
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
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    notes = {f"{TOY}/scbo": {"sha256": digest, "replayed": 0.25}}
    (runs.parent / "verified.json").write_text(json.dumps(notes))
    assert read_marks(runs) == {f"{TOY}/scbo": Mark(digest, 0.25), f"{TOY}/random-search": None}
    small = build_board(runs).tracks[0]
    assert {row.optimizer: (row.verified, row.replayed) for row in small.partial} == {
        "scbo": (True, 0.25),
        "random-search": (False, 0.0),
    }
    assert "verified 25 %, provisional, 3 seeds" in partial_rows(small)[0]
    build(runs)
    folder = runs.parent / "board"
    assert "verified 25 %, provisional" in (folder / "README.md").read_text("utf-8")
    for page in ("index", f"problem/{TOY}", "optimizer/scbo"):
        text = (folder / "site" / f"{page}.html").read_text("utf-8")
        assert text.count(">verified 25 %</span>") == 1
    write_records(path, read_folder(runs)[3:5])
    assert not any(read_marks(runs).values())


def test_damaged_notes_are_an_error_that_names_the_file(runs: Path) -> None:
    """Not a badge for nobody."""
    (runs.parent / "verified.json").write_text("[1")
    with pytest.raises(RecordError, match=r"verified\.json, field line: .*write it anew with"):
        read_marks(runs)
    failed = build(runs)
    assert failed.exit_code == 1
    assert "Traceback" not in failed.output


def ranked(path: Path, *names: str) -> Path:
    """Write ten seeds of each of these optimizers on every problem of a track, in a folder."""
    for problem in (problem for track in TRACKS for problem in track.problems):
        best = load_references()[problem].best
        for place, name in enumerate(names):
            records = [
                make([None, best + place], problem=problem, optimizer=name, seed=seed)
                for seed in range(10)
            ]
            write_records(path / problem / f"{name}.jsonl", records)
    return path


def test_tables_of_a_track_have_a_cell_for_every_column(tmp_path: Path, runs: Path) -> None:
    """Ranked, partial and variants, with or without a rank."""
    (row, _) = partial_rows(build_board(runs).tracks[0])
    assert len(row) == len(PARTIAL_COLUMNS)
    assert row[0] == "scbo"
    assert row[3:5] == ("1/7", "3/3")
    assert row[-1] == "provisional, 3 seeds"
    board = build_board(ranked(tmp_path / "all", "scbo", "scbo-ei"), methods={"scbo-ei": "scbo"})
    for rows in (board.overall, board.tracks[0].ranked):
        (row,) = ranked_rows(rows)
        assert len(row) == len(RANKED_COLUMNS)
        assert row[:3] == ("1", "scbo", "50.0")
        assert row[4:6] == ("1 to 1", "1.00")
    (row,) = variant_rows(board.tracks[0])
    assert len(row) == len(VARIANT_COLUMNS)
    assert row[:2] == ("scbo-ei", "scbo")


def test_page_has_a_section_for_every_track(runs: Path) -> None:
    """It says who is ranked, who is partial, and why nobody is; variants are folded, not gone."""
    page = markdown(build_board(runs, methods={"random-search": "scbo"}))
    overall, small, large, mopta = page.split("\n## ")[1:5]
    assert "Nobody is ranked in both yet." in overall
    assert small.startswith("Track small-v1\n\nAt most ten variables")
    assert "at least 10 seeds on each of its 7 problems" in small
    assert "| scbo | " in small.partition("<details>")[0]
    assert "| random-search | scbo | " in small.partition("<details>")[2]
    assert "No runs on its problems yet." in large
    assert "lunar-lander-m10-v1, lunar-lander-m30-v1, lunar-lander-m50-v1;" in large
    assert mopta.startswith("Track mopta08-v1")


def test_names_are_whole_on_a_narrow_terminal(tmp_path: Path) -> None:
    """At 80 columns other columns go first, and the command says which."""
    long = "a-plug-in-with-a-name-of-forty-letters-x"
    folder = ranked(tmp_path / "runs", "scbo", "scbo-untransformed-ei-global", long)
    command = [sys.executable, "-m", "cbo_suite", "leaderboard", "build", "--variants"]
    command += ["--runs", str(folder), "--out", str(tmp_path / "board")]
    lines = on_terminal(command, TERM="xterm", COLUMNS="80").splitlines()
    tables = [line for line in lines if "│" in line or "┃" in line]
    assert tables
    assert all(cell_len(Text.from_ansi(line).plain) <= 80 for line in tables)
    # In the overall table and those of three tracks.
    assert sum(f"│ {long} │" in line for line in tables) == 4
    assert sum("│ scbo-untransformed-ei-global │ scbo " in line for line in tables) == 3
    assert any("A wider terminal also shows:" in line for line in lines)


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


def test_records_may_stand_in_several_folders(tmp_path: Path) -> None:
    """The board of two folders is that of one with all their files; no folder is left out."""
    both = ranked(tmp_path / "both", "scbo", "scbo-ei")
    parts = []
    for name in ("scbo", "scbo-ei"):
        part = tmp_path / name
        for path in both.glob(f"*/{name}.jsonl"):
            (part / path.parent.name).mkdir(parents=True, exist_ok=True)
            (part / path.parent.name / path.name).write_bytes(path.read_bytes())
        parts.append(part)
    words = ["leaderboard", "build", "--out", str(tmp_path / "board")]
    for part in parts:
        words += ["--runs", str(part)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    expected = build_board(both, methods={"scbo-ei": "scbo"})
    assert decode_board((tmp_path / "board" / "scores.json").read_bytes()) == expected


@pytest.mark.parametrize("name", ["README.md", "scores.json", "site/index.html"])
def test_files_of_others_are_not_replaced(name: str, runs: Path) -> None:
    """A folder that is not that of a leaderboard, given by mistake."""
    path = runs.parent / "board" / name
    path.parent.mkdir(parents=True)
    path.write_text("# My project", encoding="utf-8")
    done = build(runs)
    assert (done.exit_code, "left as it is" in done.output) == (1, True), done.output
    assert path.read_text(encoding="utf-8") == "# My project"
    path.unlink()
    assert [build(runs).exit_code for _ in range(2)] == [0, 0]
