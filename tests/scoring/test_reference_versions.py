"""Versions of the references: new values of a problem join, the old ones stay to be built with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

import cbo_suite as cbo
from cbo_suite.cli import main
from cbo_suite.errors import InvalidTask
from cbo_suite.journal import read_journal
from cbo_suite.leaderboard.marks import Mark, change_marks
from cbo_suite.records import make_record, write_records
from cbo_suite.scoring import load_references, make_board
from cbo_suite.scoring import references as module
from cbo_suite.scoring.board import decode_board, encode_board
from cbo_suite.scoring.references import (
    Reference,
    encode_references,
    latest_version,
    read_references,
    suite_file,
)
from tests.golden.derive_references_2 import find_better
from tests.make_records import make

TOY, BEAM = "toy-2d-v1", "welded-beam-4d-v1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder in whose references, those of the first version, a second one can join."""
    names = {version: suite_file(version).name for version in (1, 2, 3)}
    first = suite_file().read_bytes()
    place = tmp_path / "references"
    place.mkdir()
    (place / names[1]).write_bytes(first)
    monkeypatch.setattr(module, "suite_file", lambda version=1: place / names[version])
    load_references.cache_clear()
    yield place
    load_references.cache_clear()


def add_second(folder: Path, **values: object) -> Reference:
    """Write a second version, in which the references of the toy problem have other values."""
    changed = msgspec.structs.replace(load_references(1)[TOY], version=2, **values)
    (folder / "references-2.json").write_bytes(encode_references({TOY: changed}))
    load_references.cache_clear()
    return changed


def record_runs(runs: Path, tmp_path: Path) -> None:
    """Write the records of three runs of random search on the toy problem."""
    records = []
    for seed in range(3):
        journal = tmp_path / f"{seed}.jsonl"
        cbo.run(TOY, "random-search", budget=100, seed=seed, journal=journal)
        contents = read_journal(journal)
        assert contents is not None
        records.append(make_record(contents))
    (runs / TOY).mkdir(parents=True)
    write_records(runs / TOY / "random-search.jsonl", records)


def test_the_published_versions_are_whole() -> None:
    """Every version after the first changes problems that there were, and names itself."""
    first = read_references(suite_file())
    assert {reference.version for reference in first.values()} == {1}
    known = dict(first)
    for version in range(2, latest_version() + 1):
        brought = read_references(suite_file(version))
        assert brought.keys() <= first.keys()
        assert {reference.version for reference in brought.values()} == {version}
        for id_, reference in brought.items():
            assert reference.best < known[id_].best
        known |= brought
    assert load_references() == known
    assert load_references(1) == first


def test_a_new_version_changes_its_problems_only(folder: Path) -> None:
    """All others keep their values, and the old version is what it was."""
    before = dict(load_references())
    changed = add_second(folder, best=0.5)
    assert load_references() == before | {TOY: changed}
    assert list(load_references()) == list(before)
    assert load_references(1) == before
    assert latest_version() == 2


def test_a_version_that_is_not_there_is_refused(folder: Path) -> None:
    """The error says which there are."""
    with pytest.raises(InvalidTask, match="no version 2 of the references: take 1 to 1"):
        load_references(2)
    add_second(folder, best=0.5)
    assert load_references(2)[TOY].best == 0.5
    with pytest.raises(InvalidTask, match="take 1 to 2"):
        load_references(0)


def test_a_board_says_which_version_its_numbers_are_of(folder: Path) -> None:
    """Problem by problem; none where there are no references."""
    add_second(folder, best=0.5)
    known = load_references()
    budgets = {id_: known[id_].budget for id_ in (TOY, BEAM)}
    records = [make([1.0] * budgets[id_], problem=id_) for id_ in budgets]
    board = make_board([*records, make([1.0])], known)
    versions = {problem.problem: problem.references_version for problem in board.problems}
    assert versions == {TOY: 2, BEAM: 1, "some-1d-v1": None}


def test_a_board_of_before_the_versions_stays_readable() -> None:
    """Its numbers are those of the first version."""
    board = make_board([make([1.0] * 100, problem=TOY)], load_references(1))
    old = encode_board(board).replace(b',"references_version":1', b"")
    assert old != encode_board(board)
    assert decode_board(old) == board


def test_the_leaderboard_can_be_built_with_an_older_version(folder: Path, tmp_path: Path) -> None:
    """The scores of the old version are what they were before the new one joined."""
    runs = tmp_path / "runs"
    record_runs(runs, tmp_path)

    def build(out: str, *options: str) -> bytes:
        command = ["leaderboard", "build", "--runs", str(runs), "--out", str(tmp_path / out)]
        result = CliRunner().invoke(main, [*command, "--docs", str(tmp_path), *options])
        assert result.exit_code == 0, result.output
        return (tmp_path / out / "scores.json").read_bytes()

    before = build("before")
    add_second(folder, best=0.5, level=0.9)
    now, then = build("now"), build("then", "--references-version", "1")
    assert then == before
    (old,), (new,) = decode_board(then).problems, decode_board(now).problems
    assert (old.references_version, new.references_version) == (1, 2)
    assert new.best == 0.5
    assert new.rows[0].anytime != old.rows[0].anytime


def test_the_second_version_comes_from_the_runs_that_found_more(tmp_path: Path) -> None:
    """The point of the best verified run is evaluated again; the scale above it stays."""
    runs = tmp_path / "runs"
    record_runs(runs, tmp_path)
    values = load_references(1)[TOY]
    before = {TOY: msgspec.structs.replace(values, best=values.level)}
    assert find_better(runs, before) == {}, "the row is not verified yet"
    path = runs / TOY / "random-search.jsonl"
    mark = Mark(hashlib.sha256(path.read_bytes()).hexdigest(), 1.0)
    change_marks(tmp_path / "verified.json", {f"{TOY}/random-search": mark}, [])
    (made,) = find_better(runs, before).values()
    evaluation = cbo.make_problem(TOY).evaluate(np.array([made.best_x]))
    assert evaluation.feasible[0]
    assert made.best == evaluation.objective[0] < values.level
    assert made.source.startswith("best: found by random-search with seed ")
    assert made == msgspec.structs.replace(
        before[TOY], best=made.best, best_x=made.best_x, source=made.source, version=2
    )
    assert find_better(runs, {TOY: values}) == {}
