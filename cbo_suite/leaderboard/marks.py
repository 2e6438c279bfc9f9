"""Marks of rows whose points were evaluated again: `verified.json`, written and read here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from cbo_suite.errors import RecordError
from cbo_suite.files import write_whole


class Mark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `cbo verify` has noted of a file that it verified.

    Attributes:
        sha256: Digest of the file.
        replayed: Share of its evaluations that were made again.
    """

    sha256: str
    replayed: float


def read_marks(runs: Path) -> dict[str, Mark | None]:
    """Read what was noted of files of records that are still those which were verified.

    Args:
        runs: The folder of the records; the notes are in `verified.json` beside it.

    Returns:
        "<problem>/<optimizer>" to its mark, None if the file is not the one that was verified.

    Raises:
        RecordError: The notes are damaged.
    """
    notes = runs.parent / "verified.json"
    if not notes.exists():
        return {}
    noted = _read(notes)
    found: dict[str, Mark | None] = {}
    for path in runs.glob("*/*.jsonl"):
        name = f"{path.parent.name}/{path.stem}"
        mark = noted.get(name)
        same = mark and mark.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        found[name] = mark if same else None
    return found


def _read(path: Path) -> dict[str, Mark]:
    """Read the file of the marks."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Mark])
    except msgspec.DecodeError as error:
        raise RecordError(
            f"{path}, field line: {error}; remove it and write it anew with `cbo verify --mark`"
        ) from error


def change_marks(path: Path, verified: Mapping[str, Mark], refused: Iterable[str]) -> None:
    """Write down which files were verified: "<problem>/<optimizer>" to its mark.

    A row that is refused loses its mark. One that cannot be verified here keeps it: the mark
    counts as long as the file is the one that was verified elsewhere.

    Args:
        path: The file of the marks.
        verified: Rows that were verified now.
        refused: Rows that were refused now.

    Raises:
        RecordError: The file holds something else.
    """
    marks = (_read(path) if path.exists() else {}) | dict(verified)
    for row in refused:
        marks.pop(row, None)
    data = msgspec.json.format(msgspec.json.encode(marks, order="sorted"), indent=1)
    write_whole(path, data + b"\n")
