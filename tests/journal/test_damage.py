"""Journals that are not as they were written: every change is found, whatever it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.errors import JournalDamaged, JournalError
from cbo_suite.journal import Contents, outline_journal, parse_journal, read_journal
from tests.doubles import Disc, Hill, StatefulHill, rechained

FULL = os.environ.get("CBO_FAULTS") == "full"
FLIPS = 10_000 if FULL else 800
SETTINGS: dict[str, Any] = {"budget": 31, "batch_size": 4, "n_init": 6, "seed": 5}


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Complete and interrupted journals, with and without states, in batches and with workers."""
    folder = tmp_path_factory.mktemp("journals")
    found = []
    for optimizer in (Hill, StatefulHill):
        for workers in (None, 3):
            path = folder / f"{optimizer.__name__}-{workers}.jsonl"
            cbo.run(Disc(), optimizer, journal=path, workers=workers, **SETTINGS)
            whole = path.read_bytes()
            lines = whole.splitlines(keepends=True)
            found += [whole, b"".join(lines[:-3]), b"".join(lines[:-3]) + lines[-3][:99]]
    return found


def read(data: bytes) -> Contents:
    """Read a journal that has a header."""
    contents = parse_journal(data, "run.jsonl")
    assert contents is not None
    return contents


def is_silent(data: bytes, original: Contents) -> bool:
    """Tell whether a changed journal is taken for something else than it was, without a word.

    It may be refused; it may be read as what it was; and the last line, which could be one that
    was never acknowledged, may be dropped with a notice.
    """
    try:
        contents = parse_journal(data, "run.jsonl")
    except JournalError:
        return False
    if contents is None:
        return len(original.batches) > 0
    if (contents.header, contents.batches, contents.end) == (
        original.header,
        original.batches,
        original.end,
    ):
        return False
    if contents.end is not None or not contents.notice or contents.header != original.header:
        return True
    kept = original.batches if original.end is not None else original.batches[:-1]
    return contents.batches != kept


def test_no_flipped_bit_is_silent(journals: list[bytes]) -> None:
    """Random bits in complete and interrupted journals: refused, harmless, or said."""
    random = np.random.default_rng(14)
    originals = [read(data) for data in journals]
    for _ in range(FLIPS):
        number = int(random.integers(len(journals)))
        data = bytearray(journals[number])
        place, bit = int(random.integers(len(data))), int(random.integers(8))
        data[place] ^= 1 << bit
        assert not is_silent(bytes(data), originals[number]), (number, place, bit)


def test_every_bit_of_what_binds_the_lines_is_guarded(journals: list[bytes]) -> None:
    """All bits of checksums, newlines, the header's schema and the count in the end."""
    data = journals[0]
    original = read(data)
    places = [i for i, byte in enumerate(data) if byte == ord("\n")]
    for mark in (b'"chain":"', b'"schema":', b'"evaluations":'):
        start = data.find(mark)
        while start >= 0:
            places += range(start, start + len(mark) + 18)
            start = data.find(mark, start + 1)
    for place in {place for place in places if place < len(data)}:
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            assert not is_silent(bytes(changed), original), (place, bit)


@pytest.mark.parametrize("kind", range(3))
def test_lost_doubled_and_moved_lines_are_found(kind: int, journals: list[bytes]) -> None:
    """Each line of a complete journal, and of an interrupted one all but the torn tail."""
    for data in journals[kind::3]:
        lines = data.splitlines(keepends=True)
        original = read(data)
        last = len(lines) - 1
        for i, line in enumerate(lines):
            changes = {
                "lost": [*lines[:i], *lines[i + 1 :]],
                "doubled": [*lines[: i + 1], line, *lines[i + 1 :]],
                "moved": [*lines[:i], *lines[i + 1 : i + 2], line, *lines[i + 2 :]],
            }
            for word, changed in changes.items():
                joined = b"".join(changed)
                if word == "lost" and i == last:
                    # The end of a file is missing: that is how an interrupted run looks.
                    assert read(joined).end is None
                elif kind == 2 and i >= last - 1 and (word, i) != ("doubled", last - 1):
                    # What touches the torn line is dropped with it, and that is said.
                    contents = read(joined)
                    assert contents.notice
                    assert contents.batches == original.batches[: len(contents.batches)]
                elif joined != data:
                    with pytest.raises(JournalDamaged, match="line"):
                        parse_journal(joined, "run.jsonl")


def test_nothing_may_follow_the_end(journals: list[bytes]) -> None:
    """Not even half a line: after its end a journal is not written to."""
    for more in (b"{", b"\n", b"\0" * 512, b"\0" * 511 + b"\n"):
        with pytest.raises(JournalDamaged):
            parse_journal(journals[0] + more, "run.jsonl")


@pytest.mark.parametrize("tail", [b"\0" * 300, b"\0" * 300 + b"\n", b'{"type":"batch","fi\n'])
def test_a_broken_last_line_is_dropped_with_a_notice(
    tail: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With a newline or without, as power losses leave it; the run goes on to the same end."""
    path = tmp_path / "run.jsonl"
    expected = cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + tail)
    contents = read_journal(path)
    outline = outline_journal(path)
    assert contents is not None
    assert outline is not None
    assert len(contents.batches) == 3
    assert outline.notice == contents.notice
    resumed = cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    assert resumed.digest == expected.digest
    assert [record.getMessage() for record in caplog.records] == [contents.notice]
    assert "line, number 5, was not written whole" in contents.notice
    final = read_journal(path)
    assert final is not None
    assert final.notice == ""


def test_a_line_that_counted_is_not_taken_for_a_torn_one(journals: list[bytes]) -> None:
    """When the newline before the last line is gone, two lines look like one that is torn."""
    lines = journals[0].splitlines(keepends=True)
    joined = b"".join(lines[:-2]) + lines[-2][:-1] + b"\x0b" + lines[-1]
    with pytest.raises(JournalDamaged, match="its newline is gone"):
        parse_journal(joined, "run.jsonl")
    with pytest.raises(JournalDamaged, match="its newline is gone"):
        parse_journal(b"".join(lines[:-1]) + lines[-1][:-1] + b"\x0b", "run.jsonl")


def test_an_outline_says_what_the_contents_say(journals: list[bytes], tmp_path: Path) -> None:
    """Without points and values, but with the same checks: lost lines, bits, the notice."""
    path = tmp_path / "run.jsonl"
    random = np.random.default_rng(2)
    for trial in range(100):
        data = bytearray(journals[trial % len(journals)])
        if trial >= len(journals):
            data[int(random.integers(len(data)))] ^= 1 << int(random.integers(8))
        path.write_bytes(data)
        texts = []
        for reader in (read_journal, outline_journal):
            try:
                found: Any = reader(path)
            except JournalError as error:
                texts.append(str(error))
                continue
            evaluations = getattr(found, "evaluations", None)
            if evaluations is None:
                evaluations = sum(len(batch.x) for batch in found.batches)
            texts.append(f"{evaluations} {found.end} {found.header} {found.notice}")
        assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"first":6,', b'"first":7,', "evaluation 7 does not follow 6 others"),
        (b'"first":6,', b'"first":0,', "evaluation 0 does not follow 6 others"),
        (b'"budget":31,', b'"budget":30,', "evaluation 30 is beyond the budget"),
        (b'"budget":31,', b'"budget":32,', "it ends after 31 evaluations"),
        (b'"dim":2,', b'"dim":3,', "a point has not 3 coordinates"),
        (b'"num_constraints":1,', b'"num_constraints":2,', "there are not 2 constraints"),
        (b'"status":["ok","ok","ok",', b'"status":["ok","ok",', "evaluation 4 does not follow 3"),
        (b'"evaluations":31', b'"evaluations":30', "it ends after 31 evaluations"),
    ],
)
def test_lines_that_disagree_are_refused(
    old: bytes, new: bytes, reason: str, journals: list[bytes]
) -> None:
    """Numbers, sizes and totals, also where somebody made the checksums fit."""
    changed = journals[0].replace(old, new, 1)
    assert changed != journals[0]
    with pytest.raises(JournalDamaged, match=reason):
        parse_journal(rechained(changed), "run.jsonl")


def old_format(data: bytes) -> bytes:
    """Turn a journal into one of format 1, as earlier versions wrote it."""
    lines = []
    for line in data.splitlines():
        body = line[: line.rindex(b',"chain":"')] + b"}"
        body = body.replace(b'"schema":2', b'"schema":1').replace(b',"evaluations":31', b"")
        lines.append(body + b"\n")
    return b"".join(lines)


@pytest.mark.parametrize("optimizer", [Hill, StatefulHill])
def test_journals_of_format_1_are_read_and_resumed(optimizer: type[Hill], tmp_path: Path) -> None:
    """A complete one stays as it is; one that goes on is brought to the new format."""
    path = tmp_path / "run.jsonl"
    expected = cbo.run(Disc(), optimizer, journal=path, **SETTINGS)
    whole = path.read_bytes()
    old = old_format(whole)
    path.write_bytes(old)
    assert cbo.run(Disc(), optimizer, journal=path, **SETTINGS).digest == expected.digest
    assert path.read_bytes() == old
    path.write_bytes(b"".join(old.splitlines(keepends=True)[:4]) + b'{"type":"ba')
    problem = Disc()
    assert cbo.run(problem, optimizer, journal=path, **SETTINGS).digest == expected.digest
    assert len(problem.points) == 31 - 10
    assert path.read_bytes().startswith(b"".join(whole.splitlines(keepends=True)[:4]))
    lines = old.splitlines(keepends=True)
    for changed in (lines[:3] + lines[4:], lines[:3] + lines[2:], lines + lines[-1:]):
        with pytest.raises(JournalDamaged):
            parse_journal(b"".join(changed), "run.jsonl")


def test_a_format_of_the_future_is_refused() -> None:
    """With the advice to use the version that wrote it."""
    with pytest.raises(JournalError, match="format 99, this version reads 1 to 2"):
        parse_journal(b'{"type":"header","schema":99,"more":1}\n', "run.jsonl")
