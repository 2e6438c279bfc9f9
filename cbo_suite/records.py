"""The record of a run: one line of JSON with what scoring and verification need.

The format is described in docs/data-format.md. Reading is strict, because records come from
strangers: no unknown or missing or duplicate key, no literal that JSON does not have, bounded
sizes, and the parts must agree with each other. Writing is canonical: equal records are equal
bytes.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import msgspec
import numpy as np

from cbo_suite.errors import RecordError
from cbo_suite.files import write_whole
from cbo_suite.journal import Contents, Number, digest, gather, to_json_numbers
from cbo_suite.protocols import Array, Evaluation, Task

SCHEMA: Literal[1] = 1
MAX_EVALUATIONS = 1_000_000
MAX_LINE_BYTES = 64 * 2**20
# With more coordinates (n * d) the points of a run are left out: its record stays below a megabyte.
MAX_POINT_NUMBERS = 50_000

Text = Annotated[str, msgspec.Meta(max_length=10_000)]
Word = Annotated[str, msgspec.Meta(max_length=300)]
Words = Annotated[dict[Word, Word], msgspec.Meta(max_length=100)]
Numbers = Annotated[list[Number], msgspec.Meta(max_length=MAX_EVALUATIONS)]
Vector = Annotated[list[float], msgspec.Meta(max_length=10_000)]
# Thirty years: sums of such times stay finite.
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=1e9)]
Base64 = Annotated[str, msgspec.Meta(max_length=-(-8 * MAX_POINT_NUMBERS // 3) * 4)]
Sizes = Annotated[
    list[Annotated[int, msgspec.Meta(ge=1)]], msgspec.Meta(max_length=MAX_EVALUATIONS)
]


class Improvement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An evaluation that is better than all before it: the point and its values.

    Attributes:
        index: Number of the evaluation, counted from 0.
        x: The point, shape `(d,)`.
        objective: Its objective value.
        constraints: Its constraint values, shape `(m,)`.
    """

    index: Annotated[int, msgspec.Meta(ge=0, lt=MAX_EVALUATIONS)]
    x: Vector
    objective: float
    constraints: Vector


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of a run.

    Attributes:
        schema: Version of the format.
        task: What was run.
        options: Options of the optimizer.
        versions: Package name to version of what took part.
        machine: Facts of the machine.
        facts: Digests that pin the problem.
        status: "complete" or "failed".
        error: What ended a failed run, "" otherwise.
        objective: Objective value of every evaluation, shape `(n,)`.
        violation: Total violation of every evaluation, "inf" where a value is not finite.
        feasible: One character per evaluation: "1" if it is feasible, else "0".
        improvements: Every evaluation that is better than all before it.
        seconds_optimizer: Time spent in ask and tell.
        seconds_evaluation: Time spent in the problem.
        digest: Fingerprint of all points and values of the journal.
        points: All points, shape `(n, d)`, row by row as little-endian 64-bit floats in Base64;
            None if they are more than `MAX_POINT_NUMBERS` numbers.
        batches: Number of points of every batch in the order told; None if they are those of
            `regular_batches`.
    """

    schema: Literal[1]
    task: Task
    options: dict[Word, Any]
    versions: Words
    machine: Words
    facts: Words
    status: Literal["complete", "failed"]
    error: Text
    objective: Numbers
    violation: Numbers
    feasible: Annotated[str, msgspec.Meta(max_length=MAX_EVALUATIONS, pattern="^[01]*$")]
    improvements: Annotated[list[Improvement], msgspec.Meta(max_length=MAX_EVALUATIONS)]
    seconds_optimizer: Seconds
    seconds_evaluation: Seconds
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    points: Base64 | None = None
    batches: Sizes | None = None

    @property
    def objectives(self) -> Array:
        """Objective values as an array, shape `(n,)`."""
        return np.array([float(value) for value in self.objective])

    @property
    def violations(self) -> Array:
        """Total violations as an array, shape `(n,)`."""
        return np.array([float(value) for value in self.violation])

    @property
    def x(self) -> Array | None:
        """All points as an array, shape `(n, d)`, None if they were left out."""
        if self.points is None:
            return None
        raw = base64.b64decode(self.points, validate=True)
        n = len(self.objective)
        numbers = np.frombuffer(raw, dtype="<f8").astype(float)
        return numbers.reshape(n, numbers.size // max(1, n))


_decoder = msgspec.json.Decoder(Record)
_encoder = msgspec.json.Encoder(order="deterministic")


def make_record(contents: Contents) -> Record:
    """Condense the journal of a run that ended.

    Raises:
        RecordError: The run has not ended.
    """
    header, end = contents.header, contents.end
    if end is None:
        raise RecordError(f"{header.task.name} has not ended: resume it first")
    batches = contents.batches
    x, evaluation = gather(batches, header.dim, header.num_constraints)
    objective, constraints = evaluation
    sizes = [len(batch.x) for batch in batches]
    return Record(
        schema=SCHEMA,
        task=header.task,
        options=header.options,
        versions=header.versions,
        machine=header.machine,
        facts=header.facts,
        status=end.status,
        error=end.error[:10_000],
        objective=to_json_numbers(objective),
        violation=to_json_numbers(evaluation.violation),
        feasible="".join("1" if feasible else "0" for feasible in evaluation.feasible),
        improvements=[
            Improvement(i, x[i].tolist(), float(objective[i]), constraints[i].tolist())
            for i in improvements(evaluation)
        ],
        seconds_optimizer=end.seconds_optimizer + sum(b.seconds_optimizer for b in batches),
        seconds_evaluation=sum(b.seconds_evaluation for b in batches),
        digest=digest(batches),
        points=encode_points(x) if x.size <= MAX_POINT_NUMBERS else None,
        batches=None if sizes == regular_batches(header.task, len(x)) else sizes,
    )


def encode_points(x: Array) -> str:
    """Write points of shape `(n, d)` row by row as little-endian 64-bit floats in Base64."""
    return base64.b64encode(np.ascontiguousarray(x, dtype="<f8").tobytes()).decode("ascii")


def regular_batches(task: Task, n: int) -> list[int]:
    """Return the sizes of the batches of n evaluations if every batch is as large as it may be.

    The design is told first, then what was asked; the last batch of either may be smaller.
    """
    size = 1 if task.workers is not None else task.batch_size
    design = min(task.n_init, n)
    starts = [*range(0, design, size), *range(design, n, size), n]
    return [int(step) for step in np.diff(starts)]


def improvements(evaluation: Evaluation) -> list[int]:
    """Number the evaluations that are better than all before them.

    Better is: feasible, else of less violation; among equals of less objective. What is not
    finite never counts.
    """
    found, best = [], (np.inf, np.inf)
    for i, outcome in enumerate(
        zip(evaluation.violation.tolist(), evaluation.objective.tolist(), strict=True)
    ):
        if outcome < best and outcome[0] < np.inf:
            found.append(i)
            best = outcome
    return found


def encode_record(record: Record) -> bytes:
    """Write a record as one canonical line."""
    return _encoder.encode(record) + b"\n"


def decode_record(line: bytes, where: str = "record") -> Record:
    """Read one line strictly.

    Raises:
        RecordError: The line is no record; the message names the place and the field.
    """
    if len(line) > MAX_LINE_BYTES:
        raise RecordError(f"{where}, field line: more than {MAX_LINE_BYTES} bytes")
    try:
        record = _decoder.decode(line)
        # msgspec takes the last of two equal keys; a record must mean one thing to every reader.
        # Numbers are of no interest here and would cost memory.
        json.loads(line, object_pairs_hook=_unique_keys, parse_float=bool, parse_int=bool)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RecordError(f"{where}, field {_field(str(error))}: {error}") from error
    _check_agreement(record, where)
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


def _field(text: str) -> str:
    """Find the field that a message of the decoder speaks of, "line" if there is none."""
    path = re.search(r" - at `\$\.?(.*?)`$", text)
    key = re.search(r"field `(.*?)`|key '(.*?)'", text)
    names = [path[1] if path else "", (key[1] or key[2]) if key else ""]
    return ".".join(filter(None, names))[:100] or "line"


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> None:
    """Refuse an object with two equal keys."""
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands there twice")


def _check_agreement(record: Record, where: str) -> None:
    """Refuse a record whose parts contradict each other."""

    def refuse(field: str, reason: str) -> NoReturn:
        raise RecordError(f"{where}, field {field}: {reason}")

    n = len(record.objective)
    if n > record.task.budget:
        refuse("objective", f"{n} evaluations, the budget is {record.task.budget}")
    if record.status == "complete" and n < record.task.budget:
        refuse("objective", f"{n} evaluations of a complete run, of {record.task.budget}")
    if len(record.violation) != n or len(record.feasible) != n:
        refuse("violation", f"objective, violation and feasible differ in length ({n}, ...)")
    objectives, violations = record.objectives, record.violations
    if (violations < 0).any() or np.isnan(violations).any():
        refuse("violation", "a total violation is a number >= 0, or inf")
    if (np.isinf(violations) < ~np.isfinite(objectives)).any():
        refuse("violation", "an objective that is not finite has the violation inf")
    if record.feasible != "".join("1" if v == 0 else "0" for v in violations):
        refuse("feasible", "it disagrees with violation: feasible is violation 0")
    steps = record.improvements
    expected = improvements(Evaluation(objectives, violations[:, None]))
    if [step.index for step in steps] != expected:
        refuse("improvements", f"objective and violation improve at {expected[:5]}...")
    if len({(len(step.x), len(step.constraints)) for step in steps}) > 1:
        refuse("improvements", "x or constraints differ in length")
    for step in steps:
        if step.objective != objectives[step.index]:
            refuse("improvements", f"the objective at {step.index} differs from the list")
        excess = sum(value for value in step.constraints if value > 0)
        # Sums round by the order they are made in.
        if not math.isclose(excess, violations[step.index], rel_tol=1e-12):
            refuse("improvements", f"the constraints at {step.index} contradict violation")
    if record.batches is not None and sum(record.batches) != n:
        refuse("batches", f"{sum(record.batches)} points in all, there are {n} evaluations")
    if record.points is not None:
        _check_points(record, n, refuse)


def _check_points(record: Record, n: int, refuse: Callable[[str, str], NoReturn]) -> None:
    """Refuse points that are not n points of one length, or contradict the improvements."""
    points = record.points or ""
    try:
        raw = base64.b64decode(points, validate=True)
    except ValueError as error:
        refuse("points", f"no Base64: {error}")
    if base64.b64encode(raw).decode("ascii") != points:
        refuse("points", "no canonical Base64")
    if (n == 0) != (raw == b"") or len(raw) % (8 * max(1, n)):
        refuse("points", f"{len(raw)} bytes are not {n} points of 64-bit floats")
    if len(raw) > 8 * MAX_POINT_NUMBERS:
        refuse("points", f"more than {MAX_POINT_NUMBERS} numbers: leave the points out (null)")
    x = np.frombuffer(raw, dtype="<f8").reshape(max(1, n), -1)
    if not np.isfinite(x).all():
        refuse("points", "a coordinate is not finite")
    for step in record.improvements:
        if not np.array_equal(x[step.index], step.x):
            refuse("points", f"point {step.index} is not the x of its improvement")
