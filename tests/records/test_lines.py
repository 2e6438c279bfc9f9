"""Records: what is kept of a run, strict reading, canonical writing."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.errors import RecordError
from cbo_suite.harness.results import Run
from cbo_suite.journal import read_journal
from cbo_suite.protocols import Evaluation
from cbo_suite.records import (
    MAX_POINT_NUMBERS,
    Record,
    decode_record,
    encode_record,
    improvements,
    make_record,
    read_records,
    regular_batches,
    write_records,
)
from cbo_suite.tasks import Task
from tests.doubles import Disc, Hill, Scripted, defective


class Restless(Hill):
    """A search that says it begins anew after every third ask."""

    def inspect(self) -> dict[str, int]:
        """Count the restarts."""
        return {"restarts": self.asks // 3}


def record_of(path: Path) -> Record:
    """Make the record of a journal."""
    contents = read_journal(path)
    assert contents is not None
    return make_record(contents)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The record of a short run."""
    path = tmp_path_factory.mktemp("runs") / "run.jsonl"
    cbo.run("toy-2d-v1", "random-search", budget=25, n_init=5, batch_size=3, seed=2, journal=path)
    return record_of(path)


@pytest.fixture(scope="module")
def run() -> Run:
    """The run itself."""
    return cbo.run("toy-2d-v1", "random-search", budget=25, n_init=5, batch_size=3, seed=2)


def test_a_record_holds_what_the_run_found(record: Record, run: Run) -> None:
    """Values, feasibility, improvements and the digest are those of the run."""
    assert record.task == run.task
    assert np.array_equal(record.objectives, run.objective)
    assert np.array_equal(record.violations, run.evaluation.violation)
    assert np.array_equal(record.feasible, run.evaluation.feasible)
    assert record.statuses == "o" * 25
    assert record.digest == run.digest
    best = record.improvements[-1]
    assert (best.index, best.objective) == (run.best_index, run.best_objective)
    assert np.array_equal(best.x, run.best_x)
    assert record.x is not None
    assert np.array_equal(record.x, run.x)
    assert (record.dim, record.num_constraints) == (2, 2)
    assert (record.batches, record.restarts, record.sample) == (None, None, None)
    assert record.seconds_processor is not None
    assert record.lacks == []
    assert {"cbo-suite", "python", "numpy"} <= record.versions.keys()
    assert {"system", "libc", "architecture", "processor", "cores"} == record.machine.keys()


def test_reading_and_writing_are_inverse(record: Record, tmp_path: Path) -> None:
    """A file of records is read back equal, in the order of the tasks, byte for byte."""
    later = msgspec.structs.replace(record, task=msgspec.structs.replace(record.task, seed=10))
    path = tmp_path / "runs.jsonl"
    write_records(path, [later, record])
    assert list(read_records(path)) == [record, later]
    assert record != later
    assert record != "a record"
    before = path.read_bytes()
    write_records(path, read_records(path))
    assert path.read_bytes() == before


def test_lists_of_numbers_are_doubles_in_base64(record: Record, run: Run) -> None:
    """Any language reads them with nothing but its standard library."""
    line = json.loads(encode_record(record))
    for name, values in (("objective", run.objective), ("points", run.x)):
        assert base64.b64decode(line[name]) == values.astype("<f8").tobytes()


def test_failures_are_on_record(tmp_path: Path) -> None:
    """A failed run and values that are not finite have their place."""
    path = tmp_path / "run.jsonl"
    odd = Scripted(
        lambda x: (np.where(x[:, 0] > 0, np.nan, x[:, 0]), np.where(x > 0.5, np.inf, -1.0)[:, 1:])
    )
    broken = defective(ask=lambda self, n: 1 / 0 if self.asks > 9 else Hill.ask(self, n))
    with pytest.raises(cbo.errors.OptimizerFailed):
        cbo.run(odd, broken, budget=30, n_init=10, journal=path)
    record = record_of(path)
    assert record.status == "failed"
    assert "ZeroDivisionError" in record.error
    assert np.isnan(record.objectives).any()
    assert record.statuses is not None
    lost = [letter == "n" for letter in record.statuses]
    assert np.array_equal(lost, np.isinf(record.violations))
    assert decode_record(encode_record(record)) == record


def test_restarts_are_on_record(tmp_path: Path) -> None:
    """What the optimizer says of them in its journal."""
    path = tmp_path / "run.jsonl"
    cbo.run(Disc(), Restless, budget=12, n_init=2, journal=path)
    record = record_of(path)
    assert record.restarts == [4, 7, 10]
    assert decode_record(encode_record(record)) == record


def test_the_points_of_a_large_run_are_left_out(tmp_path: Path) -> None:
    """Up to a size all are kept, above only the improvements have their point."""
    kept, left_out = tmp_path / "kept.jsonl", tmp_path / "left-out.jsonl"
    most = MAX_POINT_NUMBERS // 60
    whole = cbo.run("rover-60d-v1", "random-search", budget=most, batch_size=99, journal=kept)
    run = cbo.run("rover-60d-v1", "random-search", budget=most + 1, batch_size=99, journal=left_out)
    assert np.array_equal(record_of(kept).points, whole.x)
    record = record_of(left_out)
    assert record.x is None
    assert np.array_equal(record.points, run.x[record.steps])
    assert decode_record(encode_record(record)) == record


def test_irregular_batches_are_on_record(tmp_path: Path) -> None:
    """An optimizer that asks for fewer points than it may leaves the sizes of its batches."""
    path = tmp_path / "run.jsonl"
    one_less = defective(ask=lambda self, n: Hill.ask(self, max(1, n - 1)))
    cbo.run(Disc(), one_less, budget=12, n_init=4, batch_size=3, journal=path)
    record = record_of(path)
    assert record.batches == [3, 1, 2, 2, 2, 1, 1]
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize(
    ("n", "sizes"),
    [(0, []), (2, [2]), (4, [3, 1]), (7, [3, 1, 3]), (12, [3, 1, 3, 3, 2])],
)
def test_regular_batches_are_as_large_as_they_may_be(n: int, sizes: list[int]) -> None:
    """The design and what was asked are batches of their own; workers take one point each."""
    assert regular_batches(Task("p-v1", "o", 12, 3, 4, 0), n) == sizes
    assert regular_batches(Task("p-v1", "o", 12, 3, 4, 0, workers=2), n) == [1] * n


def test_a_run_without_evaluations_has_a_record(tmp_path: Path) -> None:
    """What failed before its first evaluation has no points, and says so."""
    path = tmp_path / "run.jsonl"
    with pytest.raises(cbo.errors.OptimizerFailed):
        cbo.run(Disc(), defective(ask=lambda self, n: 1 / 0), budget=3, n_init=0, journal=path)
    record = record_of(path)
    assert record.points.shape == (0, Disc().space.dim)
    assert record.improvements == []
    assert decode_record(encode_record(record)) == record


def test_a_run_that_has_not_ended_has_no_record(tmp_path: Path) -> None:
    """The message says what to do."""
    path = tmp_path / "run.jsonl"
    cbo.run(Disc(), Hill, budget=10, n_init=2, journal=path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(RecordError, match="has not ended: resume it first"):
        record_of(path)


def edit(record: Record, **changes: Any) -> bytes:
    """Return the line of a record with fields of its JSON changed."""
    return msgspec.json.encode(json.loads(encode_record(record)) | changes) + b"\n"


def doubles(*values: float) -> str:
    """Write numbers as a line does."""
    return base64.b64encode(np.array(values, dtype="<f8").tobytes()).decode()


def replaced(old: bytes, new: bytes) -> Callable[[Record], bytes]:
    """Replace some bytes of the line."""

    def change(record: Record) -> bytes:
        line = encode_record(record)
        assert old in line
        return line.replace(old, new, 1)

    return change


def sorted_keys(record: Record) -> bytes:
    """Write the fields in the order of the alphabet."""
    return msgspec.json.encode(dict(sorted(json.loads(encode_record(record)).items()))) + b"\n"


def another_nan(record: Record) -> bytes:
    """Write a NaN with other bits."""
    objective = b"\x01\x00\x00\x00\x00\x00\xf8\x7f" + record.objectives.tobytes()[8:]
    return edit(
        record,
        objective=base64.b64encode(objective).decode(),
        violation=doubles(np.inf, *record.violations[1:]),
        statuses="n" + "o" * 24,
    )


CANONICAL = "field line: from byte .* it is not written as this record must be"
MALFORMED: dict[str, tuple[Callable[[Record], bytes], str]] = {
    "empty": (lambda r: b"\n", "Input data was truncated"),
    "truncated": (lambda r: encode_record(r)[:-20] + b"\n", "malformed|truncated"),
    "no newline": (lambda r: encode_record(r)[:-1], "does not end with a newline"),
    "byte order mark": (lambda r: b"\xef\xbb\xbf" + encode_record(r), "malformed"),
    "utf-16": (lambda r: encode_record(r).decode().encode("utf-16") + b"\n", "malformed"),
    "not an object": (lambda r: b"[]\n", "Expected `object`"),
    "unknown key": (lambda r: edit(r, more=1), "unknown field `more`"),
    "missing key": (replaced(b'"digest"', b'"digset"'), "digset"),
    "nan literal": (replaced(b'"seconds_processor":', b'"seconds_processor":NaN,"a":'), "malform"),
    "1e999": (replaced(b'"seed":2', b'"seed":1e999'), "out of range"),
    "float seed": (replaced(b'"seed":2', b'"seed":2.5'), "seed"),
    "negative budget": (replaced(b'"budget":25', b'"budget":-1'), "budg"),
    "string for number": (lambda r: edit(r, seconds_optimizer="1"), "Expected `float`"),
    "deep nesting": (replaced(b'"options":{}', b'"options":{"a":' + b"[" * 10**5), "recursion"),
    "other schema": (lambda r: edit(r, schema=3), "schema"),
    "bad digest": (lambda r: edit(r, digest="xyz"), "digest"),
    # One record, one line: whatever means the same in other bytes is refused.
    "carriage return": (lambda r: encode_record(r)[:-1] + b"\r\n", CANONICAL),
    "space at the end": (lambda r: encode_record(r)[:-1] + b" \n", CANONICAL),
    "space inside": (replaced(b'"seed":2', b'"seed": 2'), CANONICAL),
    "escaped key": (replaced(b'"seed"', b'"s\\u0065ed"'), CANONICAL),
    "escaped value": (replaced(b'"toy-2d-v1"', b'"toy\\u002d2d-v1"'), CANONICAL),
    "duplicate key": (lambda r: encode_record(r)[:-2] + b',"schema":2}\n', "field "),
    "nested duplicate": (replaced(b'"seed":2', b'"seed":2,"seed":2'), CANONICAL),
    "duplicate option": (replaced(b'"options":{}', b'"options":{"a":1,"a":1}'), CANONICAL),
    "unsorted options": (replaced(b'"options":{}', b'"options":{"b":1,"a":1}'), CANONICAL),
    "spelling of a number": (replaced(b'"options":{}', b'"options":{"a":1e0}'), CANONICAL),
    "order of keys": (sorted_keys, CANONICAL),
    "sloppy base64": (replaced(b'=","batches"', b'/","batches"'), "points|field line"),
    "another nan": (another_nan, CANONICAL),
    "violation of minus zero": (
        lambda r: edit(r, violation=doubles(*np.where(r.feasible, -0.0, r.violations))),
        CANONICAL,
    ),
    "statuses that say nothing": (lambda r: edit(r, statuses="o" * 25), CANONICAL),
    # Parts that contradict each other.
    "short violation": (lambda r: edit(r, violation=doubles(0.0)), "violation: 8 bytes are not 25"),
    "negative violation": (
        lambda r: edit(r, violation=doubles(*[-1.0] * 25)),
        "field violation: a total",
    ),
    "too few": (replaced(b'"budget":25', b'"budget":26'), "25 evaluations of a complete run"),
    "too many": (replaced(b'"budget":25', b'"budget":24'), "25 evaluations, the budget is 24"),
    "negative seconds": (lambda r: edit(r, seconds_evaluation=-1.0), "seconds_evaluation"),
    "finite violation of nan": (
        lambda r: edit(r, objective=doubles(np.nan, *r.objectives[1:])),
        "field violation: an objective that is not finite",
    ),
    "lost, with a value": (lambda r: edit(r, statuses="f" + "o" * 24), "statuses: it contradicts"),
    "unknown status": (lambda r: edit(r, statuses="x" * 25), "statuses: it is not 25 letters"),
    "no base64": (lambda r: edit(r, points="!" * 8), "points"),
    "too few points": (lambda r: edit(r, points=doubles(*r.points[1:].ravel())), "384 bytes are n"),
    "other dimension": (lambda r: edit(r, dim=3), "400 bytes are not 25 x 3 doubles"),
    "no dimension": (lambda r: edit(r, dim=0), "dim"),
    "a point that is nan": (
        lambda r: edit(r, points=doubles(*np.full(50, np.nan))),
        "field points: a coordinate is not finite",
    ),
    "other batches": (lambda r: edit(r, batches=[3, 3]), "field batches: 6 points in all"),
    "an empty batch": (lambda r: edit(r, batches=[25, 0]), "batches"),
    "falling restarts": (lambda r: edit(r, restarts=[7, 4]), "field restarts"),
    "late restarts": (lambda r: edit(r, restarts=[26]), "field restarts"),
    "a sample of a small run": (
        lambda r: edit(r, sample={"points": doubles(1.0), "constraints": "", "path": ""}),
        "field sample.points: 8 bytes are not 0 x 2 doubles",
    ),
    "an empty sample of a small run": (
        lambda r: edit(r, sample={"points": "", "constraints": "", "path": doubles(1.0)}),
        "field sample: all points are kept",
    ),
    "error of a complete run": (lambda r: edit(r, error="none"), "field error: a complete run"),
    "failed, with an objective": (
        lambda r: edit(r, violation=doubles(np.inf, *r.violations[1:]), statuses="f" + "o" * 24),
        "field statuses: it contradicts objective: f and t have no values",
    ),
    "long name": (lambda r: edit(r, machine={"a" * 301: "b"}), "machine"),
    "name of a megabyte": (replaced(b'"error"', b'"' + b"`" * 2**20 + b'":1,"error"'), "field "),
    "a megabyte of keys": (
        replaced(b'"options":{}', b'"options":{' + b",".join([b'"a":1'] * 200_000) + b"}"),
        "field options: more than 100000 bytes",
    ),
    "brackets in brackets": (
        replaced(b'"options":{}', b'"options":{"a":[' + b",".join([b"[[[]]]"] * 200_000) + b"]}"),
        "field options: more than 100000 bytes",
    ),
    "two megabytes of unicode": (
        replaced(b'"error":""', '"error":"\U0001f600'.encode() + b"a" * 2**21 + b'"'),
        "field line: more than 1048576 bytes, and not all of them are ASCII",
    ),
    "a million values": (
        replaced(b'"options":{}', b'"options":{"a":[' + b"0," * 10**6 + b"0]}"),
        "field line: more than 250000 values",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_records_are_refused(name: str, record: Record, tmp_path: Path) -> None:
    """Each is refused with the file and the reason."""
    make, message = MALFORMED[name]
    path = tmp_path / "bad.jsonl"
    path.write_bytes(encode_record(record) + make(record))
    with pytest.raises(RecordError, match=message) as caught:
        list(read_records(path))
    assert str(caught.value).startswith(f"{path}, line 2")
    assert len(str(caught.value)) < 2000


def test_lines_are_bounded(record: Record) -> None:
    """Nobody has to decode what is larger."""
    with pytest.raises(RecordError, match="field line: more than 16777216 bytes"):
        decode_record(edit(record, error="a" * 2**24))


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    """Random bytes are refused, never crash."""
    with pytest.raises(RecordError):
        decode_record(data)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_mutated_records_are_read_or_refused(record: Record, data: st.DataObject) -> None:
    """A byte changed anywhere is refused or gives a record that is written as it was read."""
    raw = bytearray(encode_record(record))
    place = data.draw(st.integers(0, len(raw) - 2))
    raw[place] = data.draw(st.integers(0, 255))
    try:
        changed = decode_record(bytes(raw))
    except RecordError:
        return
    assert encode_record(changed) == bytes(raw)


values = st.lists(
    st.tuples(st.floats(-5, 5, width=16) | st.just(np.nan), st.floats(-1, 2, width=16)), max_size=20
)


@given(values)
@settings(deadline=None)
def test_improvements_are_the_running_best(pairs: list[tuple[float, float]]) -> None:
    """An evaluation is listed iff it is the best of all up to it, and finite."""
    table = np.array(pairs).reshape(-1, 2)
    evaluation = Evaluation(table[:, 0], table[:, 1:])
    expected = []
    for i in range(len(table)):
        part = Evaluation(table[: i + 1, 0], table[: i + 1, 1:])
        if part.best() == i and np.isfinite(part.violation[i]):
            expected.append(i)
    assert improvements(evaluation) == expected
