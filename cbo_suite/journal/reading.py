"""Reading a journal: whole and as it was written, or refused with the number of the line.

The last line may be torn, cut off or in part zeros: it was being written when the power or the
process went, and nobody was told of it. It is dropped, with a notice. Anything else that is not as
it was written is damage.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from cbo_suite.errors import JournalDamaged, JournalError
from cbo_suite.journal.lines import (
    OLDEST_SCHEMA,
    SCHEMA,
    Batch,
    End,
    Given,
    Header,
    Status,
    begins_with_line,
    split_line,
    without_checksum,
)

# What the file of a journal starts with, whatever its version.
_START = b'{"type":"header","schema":'
# Journals of another kind, see `cbo_suite.study`.
_START_OF_STUDY = b'{"type":"study",'


class Contents(msgspec.Struct, frozen=True):
    """What a journal holds.

    Attributes:
        header: The first line.
        batches: The batches in the order told.
        end: How the run ended, None while it runs or after a crash.
        notice: What was dropped of a torn last line, "" for nothing.
    """

    header: Header
    batches: list[Batch]
    end: End | None
    notice: str = ""


class Outline(msgspec.Struct, frozen=True):
    """What a journal says of its run without the points and values.

    Attributes:
        header: The first line.
        evaluations: Number of evaluations.
        end: How the run ended, None while it runs or after a crash.
        notice: What was dropped of a torn last line, "" for nothing.
    """

    header: Header
    evaluations: int
    end: End | None
    notice: str = ""


class _Told(msgspec.Struct, frozen=True, tag="batch"):
    """What an outline reads of a batch: the rest is skipped, which is ten times as fast."""

    first: int
    status: list[Status]


class _Format(msgspec.Struct, frozen=True):
    """What a header of any version says of its format."""

    schema: int


B = TypeVar("B", bound=Batch | _Told)
_decoder = msgspec.json.Decoder(Header | Batch | End)
_outline_decoder = msgspec.json.Decoder(Header | _Told | End)
_format_decoder = msgspec.json.Decoder(_Format)


def read_journal(path: str | Path) -> Contents | None:
    """Read a journal; a torn last line is dropped.

    Returns:
        The contents, None when not even the header is whole.

    Raises:
        JournalError: It is no journal, or one of a format that this version does not know.
        JournalDamaged: It is not as it was written.
    """
    return parse_journal(read_regular(Path(path)), path)


def parse_journal(data: bytes, path: str | Path) -> Contents | None:
    """Read a journal that is in memory; `path` is what messages call it.

    Returns:
        The contents, None when not even the header is whole.

    Raises:
        JournalError: It is no journal, or one of a format that this version does not know.
        JournalDamaged: It is not as it was written.
    """
    walk = _Walk[Batch](data, path, _decoder)
    if walk.header is None:
        return None
    if not isinstance(walk.header.given, msgspec.UnsetType):
        reason = _wrong_given(walk.header.given, walk.header)
        if reason:
            raise damaged(path, 1, reason)
    for number, batch in enumerate(walk.batches, start=2):
        reason = _wrong_sizes(batch, walk.header)
        if reason:
            raise damaged(path, number, reason)
    recommended = None if walk.end is None else walk.end.recommendation
    if recommended is not None and len(recommended) != walk.header.dim:
        reason = f"the recommendation has not {walk.header.dim} coordinates"
        raise damaged(path, len(walk.batches) + 2, reason)
    return Contents(walk.header, walk.batches, walk.end, walk.notice)


def outline_journal(path: str | Path) -> Outline | None:
    """Check a journal from end to end without reading points and values.

    All but the lengths of the rows is checked as `read_journal` does.

    Returns:
        What it says of its run, None when not even the header is whole.

    Raises:
        JournalError: It is no journal, or one of a format that this version does not know.
        JournalDamaged: It is not as it was written.
    """
    walk = _Walk[_Told](read_regular(Path(path)), path, _outline_decoder)
    if walk.header is None:
        return None
    return Outline(walk.header, walk.told, walk.end, walk.notice)


def read_header(path: str | Path) -> Header | None:
    """Read the first line of a journal; None where it is not whole or something else."""
    try:
        refuse_special(Path(path))
        with Path(path).open("rb") as file:
            contents = parse_journal(file.readline(), path)
    except (OSError, JournalError):
        return None
    return None if contents is None else contents.header


def read_regular(path: Path) -> bytes:
    """Read a file, but no pipe or device, which might never end.

    Raises:
        JournalError: It is no regular file.
    """
    refuse_special(path)
    return path.read_bytes()


def refuse_special(path: Path) -> None:
    """Refuse what is there but can be no journal: a folder, a pipe, a device.

    Raises:
        JournalError: It is no regular file.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a device or a socket"
        raise JournalError(f"{path} is {kind}, no journal: choose the path of a file")


def damaged(path: str | Path, number: int, reason: str) -> JournalDamaged:
    """Say that a line of a journal is not what was written."""
    before = (
        f"lines 1 to {number - 1} are as written" if number > 1 else "nothing before it is whole"
    )
    return JournalDamaged(
        f"{path}, line {number}: {reason}: the file was changed after it was written; {before}. "
        "Restore it from a copy, or move it away to run anew"
    )


class _Walk(Generic[B]):
    """Goes through the lines of a journal, from the first to the last.

    Attributes:
        header: The header, None when it is not whole.
        batches: The batches.
        end: The end, None if there is none.
        told: Number of evaluations.
        notice: What was dropped, "" for nothing.
    """

    def __init__(
        self,
        data: bytes,
        path: str | Path,
        decoder: msgspec.json.Decoder[Header | B | End],
    ) -> None:
        """Go through all lines."""
        self.header: Header | None = None
        self.batches: list[B] = []
        self.end: End | None = None
        self.told, self.notice = 0, ""
        self._path, self._decoder = path, decoder
        self._checksum = b""
        self._numbers: set[int] = set()
        *rows, tail = data.split(b"\n")
        if not rows and not (tail.startswith(_START) or _START.startswith(tail)):
            raise JournalError(f"{path} is no journal; it is left as it is: choose another path")
        self._chained = bool(rows) and self._schema(rows[0]) > OLDEST_SCHEMA
        for number, raw in enumerate(rows, start=1):
            may_be_torn = number > 1 and number == len(rows) and not tail
            if not self._take_row(number, raw, may_be_torn):
                self._drop(number, raw)
        if tail:
            if self.end is not None:
                raise damaged(path, len(rows) + 1, "there is something after the end")
            self._drop(len(rows) + 1, tail)

    def _schema(self, row: bytes) -> int:
        """Return the format that the first line says it is in."""
        if row.startswith(_START_OF_STUDY):
            raise JournalError(
                f"{self._path} is a study, which `Study` and `cbo ask` go on with: choose another "
                "path"
            )
        try:
            schema = _format_decoder.decode(row).schema
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not row.startswith(_START):
                raise JournalDamaged(
                    f"{self._path}, line 1: no header of a journal: the file is something else, or "
                    "was changed; it is left as it is: choose another path"
                ) from error
            return SCHEMA  # its checksum will tell
        if not OLDEST_SCHEMA <= schema <= SCHEMA:
            raise JournalError(
                f"{self._path}: format {schema}, this version reads {OLDEST_SCHEMA} to {SCHEMA}: "
                "use the version of cbo-suite that wrote it"
            )
        return schema

    def _take_row(self, number: int, raw: bytes, may_be_torn: bool) -> bool:
        """Take in a line; tell whether it is whole. Only one that may be torn need not be."""
        may_be_torn = may_be_torn and self.end is None
        if self._chained:
            parts = split_line(raw, self._checksum)
            if parts is None:
                if may_be_torn and not self._is_line(raw):
                    return False
                raise damaged(self._path, number, "its checksum is wrong")
            raw, self._checksum = parts
        try:
            line = self._decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if may_be_torn and not self._chained:
                return False
            raise damaged(self._path, number, str(error)) from error
        reason = self._wrong(number, line)
        if reason:
            raise damaged(self._path, number, reason)
        return True

    def _is_line(self, raw: bytes) -> bool:
        """Tell whether bytes are a line, though perhaps not of this place: no crash makes one."""
        body = without_checksum(raw)
        try:
            return body is not None and self._decoder.decode(body) is not None
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False

    def _wrong(self, number: int, line: Header | B | End) -> str:
        """Count a line; say what is wrong with it in its place, "" for nothing."""
        if isinstance(line, Header) != (number == 1) or self.end is not None:
            return f"a {line.__struct_config__.tag} line does not belong here"
        if isinstance(line, Header):
            self.header = line
            return ""
        if self.header is None:
            return "there is no header before it"
        task = self.header.task
        if isinstance(line, End):
            self.end = line
            # Format 1 did not count.
            counted = self.told if line.evaluations is None else line.evaluations
            whole = line.status == "failed" or self.told == task.budget
            return (
                "" if whole and counted == self.told else f"it ends after {self.told} evaluations"
            )
        self.batches.append(line)
        # Workers may overtake each other; batches come one after the other.
        in_order = line.first == self.told if task.workers is None else len(line.status) == 1
        if not line.status or not in_order or line.first in self._numbers:
            return f"evaluation {line.first} does not follow {self.told} others"
        self._numbers.add(line.first)
        self.told += len(line.status)
        if max(line.first, self.told - 1) >= task.budget or line.first < 0:
            return f"evaluation {max(line.first, self.told - 1)} is beyond the budget"
        return ""

    def _drop(self, number: int, raw: bytes) -> None:
        """Drop a last line that was being written when the run was interrupted."""
        if self._chained and begins_with_line(raw, self._checksum):
            raise damaged(self._path, number, "its newline is gone")
        self.notice = (
            f"{self._path}: the last line, number {number}, was not written whole; its {len(raw)} "
            "bytes are dropped, and what it held is evaluated again"
        )


def _wrong_sizes(batch: Batch, header: Header) -> str:
    """Say which part of a batch has not the size that it should have, "" if all have."""
    count = len(batch.status)
    if not len(batch.x) == len(batch.objective) == len(batch.constraints) == count:
        return f"x, objective, constraints and status are not {count} each"
    points = [*batch.x, *(row for group in batch.pending for row in group.x)]
    if any(len(row) != header.dim for row in points):
        return f"a point has not {header.dim} coordinates"
    if any(len(row) != header.num_constraints for row in batch.constraints):
        return f"there are not {header.num_constraints} constraints"
    if not all(_is_position(key, count) for key in batch.messages):
        return f"a message is of none of the {count} points"
    return ""


def _wrong_given(given: Given, header: Header) -> str:
    """Say which part of what was known beforehand has not its size, "" if all have."""
    if not len(given.x) == len(given.objective) == len(given.constraints):
        return f"x, objective and constraints that were given are not {len(given.x)} each"
    if any(len(row) != header.dim for row in (*given.x, *given.first)):
        return f"a point that was given has not {header.dim} coordinates"
    if any(len(row) != header.num_constraints for row in given.constraints):
        return f"there are not {header.num_constraints} constraints of what was given"
    return ""


def _is_position(text: str, count: int) -> bool:
    """Tell whether a text is the number of one of so many points."""
    return text.isascii() and text.isdecimal() and int(text) < count
