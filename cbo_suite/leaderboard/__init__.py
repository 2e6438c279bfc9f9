"""From a folder of records to the files of the leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, zip_longest
from pathlib import Path

from cbo_suite.leaderboard.markdown_page import markdown
from cbo_suite.leaderboard.marks import read_verified
from cbo_suite.records import Record, read_records
from cbo_suite.scoring import Reference, load_references, make_board
from cbo_suite.scoring.board import Board, encode_board

__all__ = [
    "build_board",
    "differences",
    "iterate_folder",
    "markdown",
    "read_folder",
    "tables",
]


def read_folder(folder: Path) -> list[Record]:
    """Read every record below a folder, in the order of the file names.

    Raises:
        RecordError: A file holds what is no record.
    """
    return list(iterate_folder(folder))


def iterate_folder(folder: Path) -> Iterator[Record]:
    """Read every record below a folder one by one, so that they need not all fit in memory.

    Raises:
        RecordError: A file holds what is no record.
    """
    for path in sorted(folder.glob("*/*.jsonl")):
        yield from read_records(path)


def build_board(
    *folders: Path,
    references: Mapping[str, Reference] | None = None,
    methods: Mapping[str, str] | None = None,
) -> Board:
    """Make the board of all records below one folder or several.

    Args:
        folders: The folders; a row whose seeds stand in several is verified if all its files are.
        references: Problem id to reference values, by default those of the suite.
        methods: Id of an optimizer to the id of the method that it is a variant of, by default
            everybody is a method.
    """
    known = load_references() if references is None else references
    verified: dict[str, bool] = {}
    for folder in folders:
        for name, mark in read_verified(folder).items():
            verified[name] = mark and verified.get(name, True)
    records = chain.from_iterable(map(iterate_folder, folders))
    return make_board(records, known, verified, methods=methods or {})


def tables(board: Board) -> dict[str, bytes]:
    """Write the files of the leaderboard's folder: name to content."""
    return {"README.md": markdown(board).encode(), "scores.json": encode_board(board)}


def differences(files: Mapping[str, bytes], folder: Path) -> list[str]:
    """Say of each file that differs from the one in a folder where it first does."""
    found = []
    for name, data in files.items():
        path = folder / name
        if not path.exists():
            found.append(f"{path} is missing")
        elif (old := path.read_bytes()) != data:
            pairs = zip_longest(old.splitlines(), data.splitlines(), fillvalue=b"")
            line = next((i for i, (a, b) in enumerate(pairs, start=1) if a != b), 1)
            found.append(f"{path} is not what the records give: it differs in line {line}")
    return found
