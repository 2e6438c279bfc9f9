"""Reading a study: whole and as it was written, or refused with the number of the line."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cbo_suite.errors import JournalDamaged, JournalError
from cbo_suite.journal.lines import begins_with_line, split_line, without_checksum
from cbo_suite.journal.reading import damaged, read_regular, refuse_special
from cbo_suite.study.lines import SCHEMA, Asked, Beginning, Event, Raised, Result, StudyLine

_START = b'{"type":"study","schema":'
_decoder = msgspec.json.Decoder(StudyLine)


class _Format(msgspec.Struct, frozen=True):
    """What a first line of any version says of its format."""

    schema: int


_format_decoder = msgspec.json.Decoder(_Format)


class StudyContents:
    """What a study holds.

    Attributes:
        beginning: The first line.
        events: All other lines, in the order written.
        budget: Number of points that may be asked.
        asked: Number to coordinates of every point that was asked, in that order.
        results: Every result, in the order told.
        told: Number of a point that was asked to its result.
        checksum: That of the last line.
        size: Number of bytes up to the end of the last whole line.
    """

    def __init__(self, beginning: Beginning) -> None:
        self.beginning, self.budget = beginning, beginning.budget
        self.events: list[Event] = []
        self.asked: dict[int, list[float]] = {}
        self.results: list[Result] = []
        self.told: dict[int, Result] = {}
        self.checksum, self.size = b"", 0

    @property
    def pending(self) -> dict[int, list[float]]:
        """Number to coordinates of the points that were asked and not told."""
        return {id_: x for id_, x in self.asked.items() if id_ not in self.told}

    @property
    def last_id(self) -> int:
        """Number of the last point that was asked, 0 for none."""
        return len(self.asked)

    def point(self, result: Result) -> list[float]:
        """Return the coordinates of a result's point."""
        if result.id is not None:
            return self.asked[result.id]
        return result.x or []

    def add(self, event: Event) -> str:
        """Take in a line; say what is wrong with it in its place, "" for nothing."""
        dim, m = len(self.beginning.space.lower), self.beginning.space.num_constraints
        self.events.append(event)
        if isinstance(event, Asked):
            if event.first != self.last_id + 1 or not event.x:
                return f"point {event.first} does not follow {self.last_id} others"
            if any(len(x) != dim for x in event.x):
                return f"a point has not {dim} coordinates"
            self.asked |= dict(enumerate(event.x, start=event.first))
            return "" if self.last_id <= self.budget else "it asks more than the budget"
        if isinstance(event, Raised):
            larger, self.budget = event.budget > self.budget, event.budget
            return "" if larger else "it makes the budget smaller"
        for result in event.results:
            if len(result.constraints) != m:
                return f"there are not {m} constraints"
            if result.id is None:
                if result.x is None or len(result.x) != dim:
                    return f"a point has not {dim} coordinates"
            elif result.id in self.told or result.id not in self.asked:
                return f"it tells of point {result.id}, which is not under way"
            else:
                self.told[result.id] = result
            self.results.append(result)
        return ""


def is_study(path: str | Path) -> bool:
    """Tell whether a file begins as a study does; not where it cannot be read."""
    try:
        refuse_special(Path(path))
        with Path(path).open("rb") as file:
            return file.read(len(_START)) == _START
    except (OSError, JournalError):
        return False


def read_study(path: str | Path) -> StudyContents:
    """Read a study; a last line that is being written, or was when a process ended, is left out.

    Raises:
        JournalError: There is no such file, or it is something else.
        JournalDamaged: It is not as it was written.
    """
    try:
        data = read_regular(Path(path))
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}") from error
    contents = parse_study(data, path)
    if contents is None:
        raise JournalError(f"{path} holds no study yet: begin it with `cbo ask`")
    return contents


def parse_study(data: bytes, path: str | Path) -> StudyContents | None:
    """Read a study that is in memory; None when not even its first line is whole.

    Raises:
        JournalError: It is something else.
        JournalDamaged: It is not as it was written.
    """
    *rows, tail = data.split(b"\n")
    if not data.startswith(_START) and not (not rows and _START.startswith(tail)):
        raise JournalError(f"{path} is no study; it is left as it is: choose another path")
    if rows:
        _check_format(rows[0], path)
    contents: StudyContents | None = None
    checksum, size = b"", 0
    for number, raw in enumerate(rows, start=1):
        parts = split_line(raw, checksum)
        if parts is None:
            is_last = number > 1 and number == len(rows) and not tail
            # A crash may leave zeros in a line, but never a line of another place.
            if is_last and without_checksum(raw) is None:
                return contents
            raise damaged(path, number, "its checksum is wrong")
        body, checksum = parts
        size += len(raw) + 1
        contents = _take(contents, body, path, number)
        contents.checksum, contents.size = checksum, size
    if tail and begins_with_line(tail, checksum):
        raise damaged(path, len(rows) + 1, "its newline is gone")
    return contents


def _check_format(row: bytes, path: str | Path) -> None:
    """Refuse a study of a version that is not known here."""
    try:
        schema = _format_decoder.decode(row).schema
    except (msgspec.DecodeError, UnicodeDecodeError):
        return  # its checksum will tell
    if schema != SCHEMA:
        raise JournalError(
            f"{path}: format {schema} of a study, this version reads {SCHEMA}: use the version of "
            "cbo-suite that wrote it"
        )


def _take(
    contents: StudyContents | None, body: bytes, path: str | Path, number: int
) -> StudyContents:
    """Take in one line."""
    try:
        line = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged(path, number, str(error)) from error
    if isinstance(line, Beginning):
        if contents is None:
            return StudyContents(line)
        raise damaged(path, number, "a study begins once")
    if contents is None:
        raise JournalDamaged(f"{path}, line 1: no beginning of a study; it is left as it is")
    reason = contents.add(line)
    if reason:
        raise damaged(path, number, reason)
    return contents
