"""Lines of records: decode strictly, encode canonically.

A line is the canonical bytes of a record: what is read must be written the same, to the byte. All
passes over a line take time and memory in proportion to its length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from cbo_suite.errors import RecordError
from cbo_suite.files import write_whole
from cbo_suite.journal import Number, to_json_numbers
from cbo_suite.protocols import Array, Task
from cbo_suite.records.agreement import Refused, check_agreement, refuse
from cbo_suite.records.record import MAX_POINT_NUMBERS, Record, Sample

MAX_LINE_BYTES = 16 * 2**20
# Every value of JSON but the first stands behind a comma, so this bounds what decoding takes.
MAX_LINE_COMMAS = 250_000
# Lists in lists take much more memory than the brackets that they are written with.
MAX_OPTIONS_BYTES = 100_000
# Batches and restarts of this many evaluations are fewer values than that.
MAX_EVALUATIONS = 100_000
# One letter outside ASCII lets a string take four bytes per letter.
MAX_UNICODE_BYTES = 2**20
# Version 1 kept points up to this many numbers.
_MAX_OLD_POINT_NUMBERS = 50_000

Text = Annotated[str, msgspec.Meta(max_length=10_000)]
Word = Annotated[str, msgspec.Meta(max_length=300)]
Words = Annotated[dict[Word, Word], msgspec.Meta(max_length=100)]
Numbers = Annotated[list[Number], msgspec.Meta(max_length=MAX_EVALUATIONS)]
Vector = Annotated[list[float], msgspec.Meta(max_length=10_000)]
Index = Annotated[int, msgspec.Meta(ge=0, lt=MAX_EVALUATIONS)]
# Thirty years: sums of such times stay finite.
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=1e9)]
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
Sizes = Annotated[
    list[Annotated[int, msgspec.Meta(ge=1)]], msgspec.Meta(max_length=MAX_EVALUATIONS)
]


class SampleLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sample of a large run; lists of numbers are little-endian doubles in Base64.

    Attributes:
        points: Points that were drawn, shape `(k, d)`.
        constraints: Their constraint values, shape `(k, m)`.
        path: Hashes that lead from them to the root.
    """

    points: bytes
    constraints: bytes
    path: bytes


class RecordLine(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="schema", tag=2
):
    """Version 2 of the format; the attributes are those of `Record`.

    Lists of numbers are little-endian doubles in Base64, which msgspec writes for bytes.
    """

    task: Task
    options: msgspec.Raw
    versions: Words
    machine: Words
    facts: Words
    status: Literal["complete", "failed"]
    error: Text
    dim: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    num_constraints: Annotated[int, msgspec.Meta(ge=0, le=10_000)]
    objective: bytes
    violation: bytes
    statuses: Annotated[str, msgspec.Meta(max_length=MAX_EVALUATIONS)] | None
    points: bytes
    batches: Sizes | None
    restarts: Annotated[list[Index], msgspec.Meta(max_length=MAX_EVALUATIONS)] | None
    seconds_optimizer: Seconds
    seconds_processor: Seconds | None
    seconds_evaluation: Seconds
    digest: Digest
    root: Digest
    sample: SampleLine | None


class OldImprovement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An evaluation that is better than all before it, in version 1."""

    index: Index
    x: Vector
    objective: float
    constraints: Vector


class OldRecordLine(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="schema", tag=1
):
    """Version 1 of the format: lists of numbers are lists of JSON."""

    task: Task
    options: msgspec.Raw
    versions: Words
    machine: Words
    facts: Words
    status: Literal["complete", "failed"]
    error: Text
    objective: Numbers
    violation: Numbers
    feasible: Annotated[str, msgspec.Meta(max_length=MAX_EVALUATIONS)]
    improvements: Annotated[list[OldImprovement], msgspec.Meta(max_length=MAX_EVALUATIONS)]
    seconds_optimizer: Seconds
    seconds_evaluation: Seconds
    digest: Digest
    points: bytes | None
    batches: Sizes | None


_decoder = msgspec.json.Decoder(RecordLine | OldRecordLine)
_encoder = msgspec.json.Encoder(order="deterministic")


def encode_record(record: Record) -> bytes:
    """Write a record as one canonical line."""
    line = _old_line(record) if record.schema == 1 else _line(record)
    return _encoder.encode(line) + b"\n"


def decode_record(line: bytes, where: str = "record") -> Record:
    """Read one line strictly: it must be the canonical bytes of a record, with its newline.

    Raises:
        RecordError: The line is no record; the message names the place and the field.
    """
    try:
        check_size(line)
        decoded = _decoder.decode(line)
        is_old = isinstance(decoded, OldRecordLine)
        record = _old_record(decoded) if is_old else _record(decoded)
        check_agreement(record)
        _check_bytes(line, encode_record(record))
    except Refused as reason:
        field, text = reason.args
        raise RecordError(f"{where}, field {field}: {text}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        # A name of many megabytes may be part of the message.
        text = str(error) if len(str(error)) < 1000 else f"{str(error)[:500]}...{str(error)[-200:]}"
        raise RecordError(f"{where}, field {_field(text)}: {text}") from error
    return record


def read_records(path: str | Path) -> Iterator[Record]:
    """Read a file of records line by line, strictly.

    Raises:
        RecordError: A line is no record; the message names file, line and field.
    """
    with Path(path).open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            yield decode_record(line, f"{path}, line {number}")


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write a file of records in the order of their tasks, whole or not at all."""
    lines = [encode_record(record) for record in sorted(records, key=_order)]
    write_whole(Path(path), b"".join(lines))


def _order(record: Record) -> tuple[str, str, int]:
    """Order records by problem, optimizer and seed."""
    return record.task.problem, record.task.optimizer, record.task.seed


def check_size(line: bytes) -> None:
    """Refuse a line that is too large to decode, or cut off.

    Raises:
        Refused: It is.
    """
    if len(line) > MAX_LINE_BYTES:
        refuse("line", f"more than {MAX_LINE_BYTES} bytes")
    if line.count(b",") > MAX_LINE_COMMAS:
        refuse("line", f"more than {MAX_LINE_COMMAS} values")
    if len(line) > MAX_UNICODE_BYTES and not line.isascii():
        refuse("line", f"more than {MAX_UNICODE_BYTES} bytes, and not all of them are ASCII")
    if not line.endswith(b"\n"):
        refuse("line", "it does not end with a newline: the file was cut off")


def _check_bytes(line: bytes, canonical: bytes) -> None:
    """Refuse a line that is not written as it must be."""
    if line == canonical:
        return
    size = min(len(line), len(canonical))
    pair = (np.frombuffer(data, np.uint8, size) for data in (line, canonical))
    differs = np.not_equal(*pair)
    place = int(differs.argmax()) if differs.any() else size
    refuse(
        "line",
        f"from byte {place} on it is not written as this record must be: {line[place:][:20]!r} "
        f"instead of {canonical[place:][:20]!r}; a key stands there twice, or it was edited",
    )


def _field(text: str) -> str:
    """Find the field that a message of the decoder speaks of, "line" if there is none."""
    path = re.search(r" - at `\$\.?([^`]*)`$", text)
    key = re.search(r"field `([^`]*)`", text)
    names = [path[1] if path else "", key[1] if key else ""]
    return ".".join(filter(None, names))[:100] or "line"


def _options(raw: msgspec.Raw) -> dict[str, Any]:
    """Read the options, whose form is free, once they are known to be small."""
    if len(bytes(raw)) > MAX_OPTIONS_BYTES:
        refuse("options", f"more than {MAX_OPTIONS_BYTES} bytes")
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.DecodeError as error:
        refuse("options", str(error))


def _doubles(values: Array) -> bytes:
    """Write numbers row by row as little-endian doubles, every NaN as the same one."""
    return np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes()


def _array(data: bytes, field: str, rows: int, width: int | None = None) -> Array:
    """Read an array of shape `(rows,)`, or `(rows, width)` if a width is given."""
    shape = (rows,) if width is None else (rows, width)
    if len(data) != 8 * math.prod(shape):
        refuse(field, f"{len(data)} bytes are not {' x '.join(map(str, shape))} doubles")
    array: Array = np.frombuffer(data, dtype="<f8").astype(float).reshape(shape)
    array.setflags(write=False)
    return array


def _line(record: Record) -> RecordLine:
    """Put a record into the form of version 2."""
    sample = record.sample
    letters = record.statuses or ""
    return RecordLine(
        task=record.task,
        options=msgspec.Raw(_encoder.encode(record.options)),
        versions=record.versions,
        machine=record.machine,
        facts=record.facts,
        status=record.status,
        error=record.error,
        dim=record.dim,
        num_constraints=record.num_constraints,
        objective=_doubles(record.objectives),
        violation=_doubles(record.violations + 0.0),
        statuses=None if letters.count("o") == len(letters) else letters,
        points=_doubles(record.points),
        batches=record.batches,
        restarts=record.restarts,
        seconds_optimizer=float(record.seconds_optimizer),
        seconds_processor=record.seconds_processor,
        seconds_evaluation=float(record.seconds_evaluation),
        digest=record.digest,
        root=record.root or "",
        sample=None
        if sample is None
        else SampleLine(_doubles(sample.points), _doubles(sample.constraints), sample.path),
    )


def _record(line: RecordLine) -> Record:
    """Read arrays of version 2; their lengths follow from each other."""
    n = len(line.objective) // 8
    if n > MAX_EVALUATIONS:
        refuse("objective", f"{n} evaluations, at most {MAX_EVALUATIONS} are read")
    record = Record(
        schema=2,
        task=line.task,
        options=_options(line.options),
        versions=line.versions,
        machine=line.machine,
        facts=line.facts,
        status=line.status,
        error=line.error,
        dim=line.dim,
        num_constraints=line.num_constraints,
        objectives=_array(line.objective, "objective", n),
        violations=_array(line.violation, "violation", n),
        statuses="o" * n if line.statuses is None else line.statuses,
        points=np.empty((0, line.dim)),
        batches=line.batches,
        restarts=line.restarts,
        seconds_optimizer=line.seconds_optimizer,
        seconds_processor=line.seconds_processor,
        seconds_evaluation=line.seconds_evaluation,
        digest=line.digest,
        root=line.root,
    )
    kept = n if n * line.dim <= MAX_POINT_NUMBERS else len(record.steps)
    points = _array(line.points, "points", kept, line.dim)
    record = msgspec.structs.replace(record, points=points)
    if line.sample is None:
        return record
    # Imported late: blocks are made of lines.
    from cbo_suite.records.blocks import sample_size

    size = sample_size(record)
    sample = Sample(
        _array(line.sample.points, "sample.points", size, line.dim),
        _array(line.sample.constraints, "sample.constraints", size, line.num_constraints),
        line.sample.path,
    )
    return msgspec.structs.replace(record, sample=sample)


def _old_line(record: Record) -> OldRecordLine:
    """Put a record of version 1 into its form."""
    constraints = record.step_constraints
    return OldRecordLine(
        task=record.task,
        options=msgspec.Raw(_encoder.encode(record.options)),
        versions=record.versions,
        machine=record.machine,
        facts=record.facts,
        status=record.status,
        error=record.error,
        objective=to_json_numbers(record.objectives),
        violation=to_json_numbers(record.violations + 0.0),
        feasible="".join("1" if feasible else "0" for feasible in record.feasible.tolist()),
        improvements=[
            OldImprovement(step.index, step.x.tolist(), step.objective, values.tolist())
            for step, values in zip(
                record.improvements, [] if constraints is None else constraints, strict=True
            )
        ],
        seconds_optimizer=record.seconds_optimizer,
        seconds_evaluation=record.seconds_evaluation,
        digest=record.digest,
        points=_doubles(record.points) if record.whole else None,
        batches=record.batches,
    )


def _old_record(line: OldRecordLine) -> Record:
    """Read the lists of version 1 into arrays."""
    n, steps = len(line.objective), line.improvements
    if len(line.violation) != n:
        refuse("violation", f"{len(line.violation)} values, of objective there are {n}")
    if len({(len(step.x), len(step.constraints)) for step in steps}) > 1:
        refuse("improvements", "x or constraints differ in length")
    dim = len(steps[0].x) if steps else 0
    if line.points is None:
        points = np.array([step.x for step in steps], dtype=float).reshape(len(steps), dim)
    else:
        width = dim or len(line.points) // (8 * max(1, n))
        if n * width > _MAX_OLD_POINT_NUMBERS:
            refuse("points", f"more than {_MAX_OLD_POINT_NUMBERS} numbers")
        points = _array(line.points, "points", n, width)
    m = len(steps[0].constraints) if steps else 0
    record = Record(
        schema=1,
        task=line.task,
        options=_options(line.options),
        versions=line.versions,
        machine=line.machine,
        facts=line.facts,
        status=line.status,
        error=line.error,
        dim=dim or points.shape[1],
        num_constraints=m,
        objectives=np.array([float(value) for value in line.objective]),
        violations=np.array([float(value) for value in line.violation]),
        statuses=None,
        points=points,
        batches=line.batches,
        restarts=None,
        seconds_optimizer=line.seconds_optimizer,
        seconds_processor=None,
        seconds_evaluation=line.seconds_evaluation,
        digest=line.digest,
        root=None,
        step_constraints=np.array([s.constraints for s in steps]).reshape(len(steps), m),
    )
    if [step.index for step in steps] != record.steps.tolist():
        refuse("improvements", f"objective and violation improve at {record.steps[:5].tolist()}")
    return record
