"""Marks of rows whose points were evaluated again: `verified.json`, written and read here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from cbo_suite.errors import RecordError
from cbo_suite.files import write_whole


def read_verified(runs: Path) -> dict[str, bool]:
    """Tell which files of records are verified: those whose digest `cbo verify` has noted.

    Args:
        runs: The folder of the records; the notes are in `verified.json` beside it.

    Returns:
        "<problem>/<optimizer>" to whether the file is the one that was verified.

    Raises:
        RecordError: The notes are damaged.
    """
    notes = runs.parent / "verified.json"
    if not notes.exists():
        return {}
    try:
        noted = msgspec.json.decode(notes.read_bytes(), type=dict[str, str])
    except msgspec.DecodeError as error:
        raise RecordError(f"{notes}: {error}; write it anew with `cbo verify`") from error
    found = {
        f"{path.parent.name}/{path.stem}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in runs.glob("*/*.jsonl")
    }
    return {name: digest == noted.get(name) for name, digest in found.items()}


def change_marks(path: Path, verified: Mapping[str, str], refused: Iterable[str]) -> None:
    """Write down which files were verified: "<problem>/<optimizer>" to the digest of the file.

    A row that is refused loses its mark. One that cannot be verified here keeps it: the mark
    counts as long as the file is the one that was verified elsewhere.

    Args:
        path: The file of the marks.
        verified: Rows that were verified now, and the digests of their files.
        refused: Rows that were refused now.

    Raises:
        RecordError: The file holds something else.
    """
    marks: dict[str, str] = {}
    if path.exists():
        try:
            marks = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
        except msgspec.DecodeError as error:
            raise RecordError(f"{path}, field line: {error}; remove the file") from error
    marks |= verified
    for row in refused:
        marks.pop(row, None)
    data = msgspec.json.format(msgspec.json.encode(marks, order="sorted"), indent=1)
    write_whole(path, data + b"\n")
