"""Records of version 1: read as strictly as the others, and honest about what they lack."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cbo_suite.errors import RecordError
from cbo_suite.records import decode_record, encode_record
from tests.records.test_lines import CANONICAL

# A line of a board that was published before version 2.
OLD_FILE = Path(__file__).with_name("version_1.jsonl")


@pytest.fixture(scope="module")
def old_line() -> bytes:
    """A line of version 1 that was published."""
    return OLD_FILE.read_bytes()


def test_old_records_are_read_and_say_what_they_lack(old_line: bytes) -> None:
    """They are written back as they were."""
    record = decode_record(old_line)
    assert record.schema == 1
    assert {"restarts", "processor seconds"} <= set(record.lacks)
    assert (record.restarts, record.seconds_processor) == (None, None)
    assert (record.root, record.statuses) == (None, None)
    assert record.x is not None
    assert record.x.shape == (100, 2)
    assert record.step_constraints is not None
    assert encode_record(record) == old_line


OLD: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "wrong feasible": (lambda r: r.update(feasible="0" * 100), CANONICAL),
    "short violation": (lambda r: r.update(violation=[0.0]), "field violation: 1 values"),
    "no improvement": (lambda r: r.update(improvements=[]), "field improvements: objective and"),
    "string for value": (lambda r: r["objective"].__setitem__(0, "1"), "Invalid enum value"),
    "another objective": (lambda r: r["improvements"][0].update(objective=-7.0), CANONICAL),
    "another point": (lambda r: r["improvements"][0].update(x=[0.5, 0.5]), CANONICAL),
    "constraints of another sign": (
        lambda r: r["improvements"][0].update(constraints=[9.0, 9.0]),
        "field improvements: the constraints of an improvement contradict violation",
    ),
    "constraints of unequal length": (
        lambda r: r["improvements"][0].update(constraints=[]),
        "field improvements: x or constraints differ in length",
    ),
    "half of the points": (lambda r: r.update(points=r["points"][:1064]), "bytes are not 100 x 2"),
    "too many points": (lambda r: r.update(points="A" * 1_000_000), "field points"),
    "a number that is not finite": (lambda r: r["violation"].__setitem__(0, "nan"), "field "),
}


@pytest.mark.parametrize("name", OLD)
def test_old_records_are_read_as_strictly(name: str, old_line: bytes) -> None:
    """What contradicts itself is refused in both versions."""
    change, message = OLD[name]
    record = json.loads(old_line)
    change(record)
    with pytest.raises(RecordError, match=message):
        decode_record(msgspec.json.encode(record) + b"\n")
