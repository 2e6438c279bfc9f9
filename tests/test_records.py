"""Records: what is kept of a run, strict reading, canonical writing."""

from __future__ import annotations

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
from cbo_suite.errors import OptimizerFailed, RecordError
from cbo_suite.harness.results import Run
from cbo_suite.protocols import Array, Evaluation
from cbo_suite.records import (
    Record,
    decode_record,
    encode_points,
    encode_record,
    improvements,
    make_record,
    read_records,
    regular_batches,
    write_records,
)
from cbo_suite.tasks import Task
from tests.doubles import Disc, Hill, Scripted, contents_of, defective


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The record of a short run."""
    path = tmp_path_factory.mktemp("runs") / "run.jsonl"
    cbo.run("toy-2d-v1", "random-search", budget=25, n_init=5, batch_size=3, seed=2, journal=path)
    return make_record(contents_of(path))


@pytest.fixture(scope="module")
def run() -> Run:
    """The run itself."""
    return cbo.run("toy-2d-v1", "random-search", budget=25, n_init=5, batch_size=3, seed=2)


def points_of(record: Record) -> Array:
    """Return the points of a record that has them."""
    assert record.x is not None
    return record.x


def test_a_record_holds_what_the_run_found(record: Record, run: Run) -> None:
    """Values, feasibility, improvements and the digest are those of the run."""
    assert record.task == run.task
    assert np.array_equal(record.objectives, run.objective)
    assert np.array_equal(record.violations, run.evaluation.violation)
    assert record.feasible == "".join(str(int(f)) for f in run.evaluation.feasible)
    assert record.digest == run.digest
    assert record.improvements[-1].index == run.best_index
    assert np.array_equal(record.improvements[-1].x, run.best_x)
    assert np.array_equal(points_of(record), run.x)
    assert record.batches is None
    assert {"cbo-suite", "python", "numpy"} <= record.versions.keys()
    assert {"system", "architecture", "processor", "cores"} == record.machine.keys()


def test_reading_and_writing_are_inverse(record: Record, tmp_path: Path) -> None:
    """A file of records is read back equal, in the order of the tasks, byte for byte."""
    later = msgspec.structs.replace(record, task=msgspec.structs.replace(record.task, seed=10))
    path = tmp_path / "runs.jsonl"
    write_records(path, [later, record])
    assert list(read_records(path)) == [record, later]
    before = path.read_bytes()
    write_records(path, read_records(path))
    assert path.read_bytes() == before


def test_failures_are_on_record(tmp_path: Path) -> None:
    """A failed run and values that are not finite have their place."""
    path = tmp_path / "run.jsonl"
    odd = Scripted(
        lambda x: (np.where(x[:, 0] > 0, np.nan, x[:, 0]), np.where(x > 0.5, np.inf, -1.0)[:, 1:])
    )
    broken = defective(ask=lambda self, n: 1 / 0 if self.asks > 9 else Hill.ask(self, n))
    with pytest.raises(OptimizerFailed):
        cbo.run(odd, broken, budget=30, n_init=10, journal=path)
    record = make_record(contents_of(path))
    assert record.status == "failed"
    assert "ZeroDivisionError" in record.error
    assert "nan" in record.objective
    assert "inf" in record.violation
    assert decode_record(encode_record(record)) == record


def test_the_points_of_a_large_run_are_left_out(tmp_path: Path) -> None:
    """Up to 50,000 numbers are kept, above only the improvements have their point."""
    kept, left_out = tmp_path / "kept.jsonl", tmp_path / "left-out.jsonl"

    def run_to(path: Path, budget: int) -> Run:
        return cbo.run(
            "rover-60d-v1",
            "random-search",
            budget=budget,
            n_init=10,
            batch_size=500,
            journal=path,
        )

    run = run_to(kept, 833)
    run_to(left_out, 834)
    assert np.array_equal(points_of(make_record(contents_of(kept))), run.x)
    record = make_record(contents_of(left_out))
    assert record.points is None
    assert record.x is None
    assert decode_record(encode_record(record)) == record


def test_irregular_batches_are_on_record(tmp_path: Path) -> None:
    """An optimizer that asks for fewer points than it may leaves the sizes of its batches."""
    path = tmp_path / "run.jsonl"
    one_less = defective(ask=lambda self, n: Hill.ask(self, max(1, n - 1)))
    cbo.run(Disc(), one_less, budget=12, n_init=4, batch_size=3, journal=path)
    record = make_record(contents_of(path))
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


def test_a_run_without_evaluations_has_a_record(record: Record) -> None:
    """What failed before its first evaluation has no points, and says so."""
    empty: dict[str, Any] = dict(
        objective=[], violation=[], feasible="", improvements=[], points="", batches=None
    )
    nothing = msgspec.structs.replace(record, status="failed", error="it broke", **empty)
    assert decode_record(encode_record(nothing)) == nothing
    assert points_of(nothing).size == 0


def test_a_run_that_has_not_ended_has_no_record(tmp_path: Path) -> None:
    """The message says what to do."""
    path = tmp_path / "run.jsonl"
    cbo.run(Disc(), Hill, budget=10, n_init=2, journal=path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(RecordError, match="has not ended: resume it first"):
        make_record(contents_of(path))


def edit(record: Record, **changes: object) -> bytes:
    """Return the line of a record with fields changed."""
    return json.dumps(json.loads(encode_record(record)) | changes).encode()


def listed(record: Record) -> list[dict[str, Any]]:
    """Return the improvements of a record as JSON has them."""
    improved: list[dict[str, Any]] = json.loads(encode_record(record))["improvements"]
    return improved


def flipped(step: dict[str, Any]) -> dict[str, Any]:
    """Change the sign of the constraints of an improvement."""
    return step | {"constraints": [-value for value in step["constraints"]]}


MALFORMED: dict[str, tuple[Callable[[Record], bytes], str]] = {
    "empty": (lambda r: b"", "Input data was truncated"),
    "truncated": (lambda r: encode_record(r)[:-20], "malformed|truncated"),
    "byte order mark": (lambda r: b"\xef\xbb\xbf" + encode_record(r), "malformed"),
    "utf-16": (lambda r: encode_record(r).decode().encode("utf-16"), "malformed"),
    "not an object": (lambda r: b"[]", "Expected `object`"),
    "unknown key": (lambda r: edit(r, more=1), "unknown field `more`"),
    "missing key": (lambda r: encode_record(r).replace(b'"digest"', b'"digset"'), "digset"),
    "nan literal": (lambda r: edit(r, seconds_optimizer=float("nan")), "malformed"),
    "infinity literal": (lambda r: edit(r, seconds_optimizer=float("inf")), "malformed"),
    "1e999": (lambda r: encode_record(r).replace(b'"seed":2', b'"seed":1e999'), "out of range"),
    "float seed": (lambda r: encode_record(r).replace(b'"seed":2', b'"seed":2.5'), "seed"),
    "negative budget": (lambda r: encode_record(r).replace(b'"budget":25', b'"budget":-1'), "budg"),
    "string for number": (lambda r: edit(r, seconds_optimizer="1"), "Expected `float`"),
    "string for value": (lambda r: edit(r, objective=["1"] * 25), "Invalid enum value"),
    "duplicate key": (lambda r: encode_record(r)[:-2] + b',"schema":1}', "'schema' stands there t"),
    "nested duplicate": (
        lambda r: encode_record(r).replace(b'"seed":2', b'"seed":2,"seed":2'),
        "'seed' stands there twice",
    ),
    "deep nesting": (
        lambda r: edit(r).replace(b'"options": {}', b'"options": {"a": ' + b"[" * 10**5),
        "recursion",
    ),
    "other schema": (lambda r: edit(r, schema=2), "schema"),
    "bad digest": (lambda r: edit(r, digest="xyz"), "digest"),
    "bad feasible": (lambda r: edit(r, feasible="2" * 25), "feasible"),
    "wrong feasible": (lambda r: edit(r, feasible="0" * 25), "field feasible: it disagrees"),
    "short violation": (lambda r: edit(r, violation=[0.0]), "field violation: objective, viola"),
    "negative violation": (lambda r: edit(r, violation=[-1.0] * 25), "field violation: a total"),
    "too many": (lambda r: edit(r, objective=[1.0] * 26), "26 evaluations, the budget is 25"),
    "too few": (lambda r: edit(r, objective=[1.0] * 5), "5 evaluations of a complete run"),
    "no improvement": (lambda r: edit(r, improvements=[]), "field improvements"),
    "negative seconds": (lambda r: edit(r, seconds_evaluation=-1.0), "seconds_evaluation"),
    "finite violation of nan": (
        lambda r: edit(r, objective=["nan", *r.objective[1:]]),
        "field violation: an objective that is not finite",
    ),
    "constraints of another sign": (
        lambda r: edit(r, improvements=[flipped(step) for step in listed(r)]),
        "field improvements: the constraints at 0 contradict violation",
    ),
    "constraints of unequal length": (
        lambda r: edit(r, improvements=[listed(r)[0] | {"constraints": []}, *listed(r)[1:]]),
        "field improvements: x or constraints differ in length",
    ),
    "no base64": (lambda r: edit(r, points="!" * 8), "field points: no Base64"),
    "sloppy base64": (
        lambda r: edit(r, points=encode_points(points_of(r))[:-2] + "/="),
        "field points: no canonical",
    ),
    "too few points": (
        lambda r: edit(r, points=encode_points(points_of(r)[1:])),
        "384 bytes are not 25",
    ),
    "no points": (lambda r: edit(r, points=""), "field points: 0 bytes are not 25 points"),
    "too many points": (lambda r: edit(r, points="A" * 600_000), "points"),
    "a point that is nan": (
        lambda r: edit(r, points=encode_points(np.full((25, 2), np.nan))),
        "field points: a coordinate is not finite",
    ),
    "other points": (
        lambda r: edit(r, points=encode_points(points_of(r)[::-1])),
        "field points: point 0 is not the x of its improvement",
    ),
    "other batches": (lambda r: edit(r, batches=[3, 3]), "field batches: 6 points in all"),
    "an empty batch": (lambda r: edit(r, batches=[25, 0]), "batches"),
    "long name": (lambda r: edit(r, machine={"a" * 301: "b"}), "machine"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_records_are_refused(name: str, record: Record, tmp_path: Path) -> None:
    """Each is refused with the file and the reason."""
    make, message = MALFORMED[name]
    path = tmp_path / "bad.jsonl"
    path.write_bytes(encode_record(record) + make(record) + b"\n")
    with pytest.raises(RecordError, match=message) as caught:
        list(read_records(path))
    assert str(caught.value).startswith(f"{path}, line 2")


def test_another_objective_in_an_improvement_is_found(record: Record) -> None:
    """The list of values and the improvements must agree to the bit."""
    steps = json.loads(encode_record(record))["improvements"]
    steps[0]["objective"] = float(np.nextafter(steps[0]["objective"], np.inf))
    with pytest.raises(RecordError, match=r"the objective at \d+ differs"):
        decode_record(edit(record, improvements=steps))


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    """Random bytes are refused, never crash."""
    with pytest.raises(RecordError):
        decode_record(data)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_mutated_records_are_read_or_refused(record: Record, data: st.DataObject) -> None:
    """A byte changed anywhere is refused or gives a record that is written back."""
    raw = bytearray(encode_record(record))
    place = data.draw(st.integers(0, len(raw) - 2))
    raw[place] = data.draw(st.integers(0, 255))
    try:
        changed = decode_record(bytes(raw))
    except RecordError:
        return
    assert decode_record(encode_record(changed)) == changed


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
