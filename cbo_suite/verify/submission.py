"""Read a result file that a stranger sends: is it a file, is it whole, is it one honest grid?

Nothing here runs a problem or an optimizer. Sizes are bounded before anything is decoded, names
are checked before they are used, and every complaint names file, line and field.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from cbo_suite.errors import RecordError, UnknownId, printable
from cbo_suite.harness.environment import LIBRARIES
from cbo_suite.records import BLOCK_SEEDS, MAX_LINE_BYTES, SOURCE, Record, decode_record
from cbo_suite.registry import protocol_of

MIN_SEEDS = 10
FULL_SEEDS = 30
MAX_SEEDS = 100
MAX_FILE_BYTES = 16 * 2**20
MAX_OPTIONS_BYTES = 10_000
MAX_NAME = 60
# Versions, machine and facts of a run; honest ones take less than a tenth.
MAX_WORDS_BYTES = 10_000
# What a problem and a run in batches can be pinned by; only version 1 named the box.
FACTS = {"space", "executable_sha256", "evaluation_timeout"}

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
# Windows cannot have files of these names, whatever their suffix.
RESERVED = re.compile(r"(?:con|prn|aux|nul|(?:com|lpt)[0-9])")


class Row(NamedTuple):
    """One line of a file.

    Attributes:
        line: Its number, counted from 1.
        sha256: Digest of its bytes.
        record: What it says.
    """

    line: int
    sha256: str
    record: Record


class Complaints:
    """What is wrong with a file, in the words for its author.

    Attributes:
        texts: One line per complaint: file, line, field, reason.
    """

    def __init__(self, path: Path) -> None:
        """Start with nothing to complain about."""
        self.name = printable(str(path))
        self.texts: list[str] = []

    def add(self, line: int, field: str, reason: str) -> None:
        """Note a complaint; line 0 is the file itself."""
        place = f"{self.name}, line {line}" if line else self.name
        self.texts.append(f"{place}, field {field}: {printable(reason)[:500]}")


class Submission(NamedTuple):
    """A result file that is well formed.

    Attributes:
        problem: Id of the problem.
        optimizer: Id of the optimizer.
        sha256: Digest of the bytes of the file.
        rows: Its records, by seed.
    """

    problem: str
    optimizer: str
    sha256: str
    rows: list[Row]

    @property
    def provisional(self) -> bool:
        """Whether there are fewer runs than a full grid has."""
        return len(self.rows) < FULL_SEEDS


def read_submission(path: Path, complaints: Complaints) -> Submission | None:
    """Read a result file `<problem>/<optimizer>.jsonl`.

    Args:
        path: The file.
        complaints: Takes what is wrong with it.

    Returns:
        Its contents, None if there is a complaint.
    """
    rows, sha256 = [], hashlib.sha256()
    names = _names(path, complaints)
    if names is None:
        return None
    for number, line in enumerate(read_lines(path, complaints), start=1):
        sha256.update(line)
        if number > MAX_SEEDS:
            complaints.add(number, "seed", f"more than {MAX_SEEDS} runs")
        else:
            record = _decode(line, number, complaints)
            if record is not None:
                _check_record(record, number, names, complaints)
                rows.append(Row(number, hashlib.sha256(line).hexdigest(), record))
        if complaints.texts:
            # What follows a broken line means nothing, and may be there to exhaust the reader.
            break
    if not complaints.texts:
        _check_grid(rows, complaints)
    return None if complaints.texts else Submission(*names, sha256.hexdigest(), rows)


def row_name(path: Path) -> str:
    """Name the row "<problem>/<optimizer>" that a file stands for, "" if its path does not say."""
    return "/".join(_names(path, Complaints(path)) or ())


def _names(path: Path, complaints: Complaints) -> tuple[str, str] | None:
    """Take problem and optimizer from the path, if they are names and the file is a file."""
    folder = path.parent if path.parent.name not in ("", "..") else path.parent.resolve()
    problem, name = folder.name, path.name
    optimizer = name.removesuffix(".jsonl")
    try:
        protocol_of(problem)
    except UnknownId:
        complaints.add(
            0,
            "path",
            f"the folder {problem[:80]!r} is no problem that is known here: `cbo list` names them, "
            "and those of another package once it is installed",
        )
    if name == optimizer or not NAME.fullmatch(optimizer) or len(optimizer) > MAX_NAME:
        complaints.add(
            0,
            "path",
            f"the file {name[:80]!r} is not named <optimizer>.jsonl, with an id of at most "
            f"{MAX_NAME} lower-case letters, digits and single hyphens, such as my-search.jsonl",
        )
    elif RESERVED.fullmatch(optimizer):
        complaints.add(0, "path", f"Windows cannot have a file {name!r}: choose another id")
    return None if complaints.texts else (problem, optimizer)


def read_lines(path: Path, complaints: Complaints) -> Iterator[bytes]:
    """Give the lines of a plain file, each of bounded length."""
    # A link must not be followed, and a pipe must not block.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if path.is_symlink() or path.parent.is_symlink():
            complaints.add(0, "path", "the file or its folder is a symbolic link: send a file")
            return
        handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        complaints.add(0, "path", f"it cannot be opened: {reason}")
        return
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        complaints.add(0, "path", "it is no regular file")
    elif facts.st_nlink > 1:
        complaints.add(0, "path", f"the file has {facts.st_nlink} names (hard links): copy it")
    elif facts.st_size > MAX_FILE_BYTES:
        complaints.add(0, "size", f"{facts.st_size} bytes, more than {MAX_FILE_BYTES}")
    elif facts.st_size == 0:
        complaints.add(0, "size", "the file is empty")
    if complaints.texts:
        os.close(handle)
        return
    with os.fdopen(handle, "rb") as file:
        while line := file.readline(MAX_LINE_BYTES + 1):
            yield line


def _decode(line: bytes, number: int, complaints: Complaints) -> Record | None:
    """Decode a line, or complain."""
    try:
        return decode_record(line, f"line {number}")
    except RecordError as error:
        _, _, text = str(error).partition(", field ")
        field, _, reason = text.partition(": ")
        complaints.add(number, field, reason)
    return None


def _check_record(
    record: Record, number: int, names: tuple[str, str], complaints: Complaints
) -> None:
    """Check what a single record must say: the names of its path and the problem's protocol."""
    task, protocol = record.task, protocol_of(names[0])
    for field, got, wanted in (
        ("task.problem", task.problem, names[0]),
        ("task.optimizer", task.optimizer, names[1]),
        ("task.budget", task.budget, protocol.budget),
        ("task.batch_size", task.batch_size, protocol.batch_size),
        ("task.n_init", task.n_init, protocol.n_init),
        ("task.workers", task.workers, None),
    ):
        if got != wanted:
            source = "the path says" if field in ("task.problem", "task.optimizer") else "must be"
            complaints.add(number, field, f"{got!r:.120}, {source} {wanted!r}")
    if len(msgspec.json.encode(record.options)) > MAX_OPTIONS_BYTES:
        complaints.add(number, "options", f"more than {MAX_OPTIONS_BYTES} bytes")
    words_bytes = len(msgspec.json.encode([record.versions, record.machine, record.facts]))
    if words_bytes > MAX_WORDS_BYTES:
        complaints.add(
            number, "versions", f"more than {MAX_WORDS_BYTES} bytes with machine and facts"
        )
    # Version 1 named the bounds of the space alone.
    space = "box" if record.schema == 1 and "space" not in record.facts else "space"
    for field, key in (("versions", "cbo-suite"), ("facts", space), ("machine", "system")):
        words: dict[str, str] = getattr(record, field)
        if key not in words:
            complaints.add(number, field, f"it does not name {key!r}")
        if not all(word.isprintable() for pair in words.items() for word in pair):
            complaints.add(number, field, "it holds signs that cannot be printed")
    unknown = record.facts.keys() - (FACTS | {"box"} if record.schema == 1 else FACTS)
    if unknown:
        complaints.add(number, "facts", f"no such run has {min(unknown)!r}")


def _check_grid(rows: Sequence[Row], complaints: Complaints) -> None:
    """Check what the records must be together: seeds 0 to n - 1, each once, of one version."""
    seeds = [row.record.task.seed for row in rows]
    for place, row in enumerate(rows):
        if seeds[place] != place:
            kind = "is there twice" if seeds[place] in seeds[:place] else "stands there"
            complaints.add(
                row.line,
                "task.seed",
                f"seed {seeds[place]} {kind}, expected seed {place}: every seed from 0 on, in "
                "order, each once",
            )
            break
    if len(rows) < MIN_SEEDS:
        complaints.add(
            len(rows), "task.seed", f"{len(rows)} runs, at least {MIN_SEEDS} seeds are needed"
        )
    elif len(rows) % BLOCK_SEEDS and rows[0].record.schema == 2:
        complaints.add(
            len(rows),
            "task.seed",
            f"{len(rows)} runs: rows consist of whole blocks of {BLOCK_SEEDS} seeds",
        )
    seen: dict[str, int] = {}
    for row in rows:
        # Runs that failed before their first evaluation are alike, and honest.
        if row.record.digest in seen and len(row.record.objectives):
            line = seen[row.record.digest]
            complaints.add(row.line, "digest", f"the same run as line {line}")
            break
        seen[row.record.digest] = row.line
    _check_likeness(rows, complaints)


def _check_likeness(rows: Sequence[Row], complaints: Complaints) -> None:
    """Check that all runs are of one version and one setting."""
    versions: dict[str, str] = {}
    for row in rows:
        different = differing_version(versions or row.record.versions, row.record.versions)
        if different is not None:
            complaints.add(row.line, "versions", f"{different}, unlike a line above: one version")
            return
        versions |= row.record.versions
        for field in ("schema", "options", "facts"):
            # As they are written: 1, 1.0 and true are different options.
            one, first = (
                msgspec.json.encode(getattr(record, field), order="deterministic")
                for record in (row.record, rows[0].record)
            )
            if one != first:
                complaints.add(row.line, field, "it differs from line 1: one setting for all runs")
                return


def differing_version(first: Mapping[str, str], second: Mapping[str, str]) -> str | None:
    """Name a package that two runs had in different versions, None if there is none that matters.

    If both say which identity of the optimizer made them, that decides. Otherwise a library that
    only one of them names was imported by what ran before in the same process; everything else
    must be named by both.
    """
    decisive = {SOURCE} if SOURCE in first and SOURCE in second else first.keys() | second.keys()
    for package in sorted(decisive):
        one, other = first.get(package), second.get(package)
        if one != other and not (package in LIBRARIES.values() and None in (one, other)):
            return f"no {package}" if other is None else f"{package} {other}"
    return None


def check_published(submission: Submission, folder: Path, complaints: Complaints) -> str:
    """Check that the lines which are published already are there, byte by byte.

    Runs that are not published must name the digest of the optimizer's source, so that all runs
    of a row are known to be made by the same code.

    Args:
        submission: The new file.
        folder: The published runs, `<problem>/<optimizer>.jsonl`.
        complaints: Takes what is wrong.

    Returns:
        What was found, in a few words.
    """
    rows = submission.rows
    path = folder / submission.problem / f"{submission.optimizer}.jsonl"
    unreadable = Complaints(path)
    lines = read_lines(path, unreadable) if path.exists() else ()
    published = [hashlib.sha256(line).hexdigest() for line in lines]
    complaints.texts += unreadable.texts
    # Both files begin with seed 0, so what is published is the beginning of what is sent.
    for seed, sha256 in enumerate(published):
        if seed >= len(rows):
            complaints.add(0, "task.seed", f"seed {seed} is published and missing here")
        elif rows[seed].sha256 != sha256:
            complaints.add(
                rows[seed].line,
                "line",
                f"seed {seed} is published with other bytes; what is published is never "
                f"overwritten: restore the line, and give a new version an id of its own, such as "
                f"{submission.optimizer}-2",
            )
        if complaints.texts:
            break
    more = len(rows) - len(published)
    if more > 0 and SOURCE not in rows[0].record.versions:
        why = "new runs name the code that made them: run them with this version of cbo-suite"
        if published:
            why = "the published runs do not say which code made them: more seeds cannot be added"
        complaints.add(len(published) + 1, "versions", f"it does not name {SOURCE!r}; {why}")
    elif more > 0 and rows[0].record.schema == 1:
        complaints.add(
            len(published) + 1,
            "schema",
            "new runs are of version 2 of the format: make them with this version of cbo-suite",
        )
    return f"{more} runs more than published" if published else "a new row"
