"""The journal of one run: an append-only file of JSON lines that survives a crash at any byte.

The first line is the header (which run this is), then one line per told batch, then the end.
A line counts once its newline is on the disk: every append is one write followed by fsync, and a
reader drops a last line without newline. The format is described in docs/data-format.md.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import msgspec
import numpy as np

from cbo_suite.errors import JournalError, JournalLocked, JournalNotWritten
from cbo_suite.files import sync_folder
from cbo_suite.protocols import Array, Evaluation, Task

try:
    import fcntl
except ImportError:  # Windows has no flock; a journal is then not guarded against a second writer
    fcntl = None  # type: ignore[assignment]

SCHEMA = 1
# Windows would otherwise turn every newline into two characters.
_BINARY = getattr(os, "O_BINARY", 0)
# JSON has no literal for these; strings keep them apart from each other.
Number = float | Literal["nan", "inf", "-inf"]
Status = Literal["ok", "nonfinite", "failed", "timeout"]


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="header"):
    """The first line: which run this is and what made it.

    Attributes:
        schema: Version of the format.
        task: The task.
        options: Options of the optimizer, as plain JSON.
        dim: Number of variables.
        num_constraints: Number of constraints.
        versions: Package name to version of what took part.
        machine: Facts of the machine.
        facts: What pins the problem: digests of its box and, where it has one, its executable;
            the time-out of its evaluations and the order of telling where they were chosen.
    """

    schema: int
    task: Task
    options: dict[str, Any]
    dim: int
    num_constraints: int
    versions: dict[str, str]
    machine: dict[str, str]
    facts: dict[str, str] = {}


class Pending(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Points that are being evaluated while others are told (asynchronous runs).

    Attributes:
        first: Number of the first point, counted from 0 in the order asked.
        x: The points, shape `(k, d)`.
        finish: Virtual time at which their evaluation ends; in real-time order, when it began.
    """

    first: int
    x: list[list[float]]
    finish: float


class Batch(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="batch"
):
    """Points that were evaluated together, written before the optimizer is told.

    Attributes:
        first: Number of the first point, counted from 0 in the order asked.
        x: The points, shape `(k, d)`.
        objective: Objective values, shape `(k,)`.
        constraints: Constraint values, shape `(k, m)`.
        status: One word per point.
        clock: Virtual time at which the evaluation ended; in real-time order, seconds.
        seconds_optimizer: Time spent in ask and tell since the last line.
        seconds_evaluation: Time spent in the problem for this batch.
        seconds_processor: Time of this process's processors in ask and tell since the last line,
            that of all threads together; None where it was not measured.
        messages: For points that failed, their position in the batch and what happened.
        pending: What was being evaluated meanwhile.
        inspection: What the optimizer says of itself, None if it says nothing.
        state: State of the optimizer before it is told this batch, None if it offers none.
    """

    first: int
    x: list[list[float]]
    objective: list[Number]
    constraints: list[list[Number]]
    status: list[Status]
    clock: float
    seconds_optimizer: float
    seconds_evaluation: float
    seconds_processor: float | None = None
    messages: dict[str, str] = {}
    pending: list[Pending] = []
    inspection: dict[str, Any] | None = None
    state: dict[str, Any] | None = None

    @property
    def points(self) -> Array:
        """The points as an array, shape `(k, d)`."""
        return np.array(self.x, dtype=float)

    def evaluation(self, num_constraints: int) -> Evaluation:
        """Return the values as arrays, shapes `(k,)` and `(k, m)`."""
        constraints = [[float(c) for c in row] for row in self.constraints]
        return Evaluation(
            np.array([float(f) for f in self.objective]),
            np.array(constraints, dtype=float).reshape(len(self.x), num_constraints),
        )


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="end"):
    """The last line: how the run ended.

    Attributes:
        status: "complete" or "failed".
        seconds_optimizer: Time spent in ask and tell since the last batch.
        error: What ended a failed run, "" otherwise.
        recommendation: The point that the optimizer recommends, None if it does not.
        seconds_processor: Time of the processors in ask and tell since the last batch, None where
            it was not measured.
    """

    status: Literal["complete", "failed"]
    seconds_optimizer: float
    error: str = ""
    recommendation: list[float] | None = None
    seconds_processor: float | None = None


Line = Header | Batch | End
_decoder = msgspec.json.Decoder(Line)
_encoder = msgspec.json.Encoder()


class Contents(msgspec.Struct, frozen=True):
    """What a journal holds.

    Attributes:
        header: The first line.
        batches: The batches in the order told.
        end: How the run ended, None while it runs or after a crash.
        size: Number of bytes up to the last batch: where a resumed run goes on writing.
    """

    header: Header
    batches: list[Batch]
    end: End | None
    size: int


def to_json_numbers(values: Array) -> list[Any]:
    """Turn an array into nested lists; what is not finite becomes "nan", "inf" or "-inf"."""
    listed: list[Any] = values.tolist()
    if np.isfinite(values).all():
        return listed
    if values.ndim > 1:
        return [to_json_numbers(row) for row in values]
    return [value if np.isfinite(value) else str(float(value)) for value in listed]


def read_journal(path: str | Path) -> Contents | None:
    """Read a journal; a torn last line is dropped.

    Returns:
        The contents, None when not even the header is whole.

    Raises:
        JournalError: A whole line is not what it should be.
    """
    return parse_journal(Path(path).read_bytes(), path)


def parse_journal(data: bytes, path: str | Path) -> Contents | None:
    """Read a journal that is in memory; `path` is what messages call it.

    Returns:
        The contents, None when not even the header is whole.

    Raises:
        JournalError: A whole line is not what it should be.
    """
    header: Header | None = None
    end: End | None = None
    batches: list[Batch] = []
    position = size = 0
    for number, raw in enumerate(data.split(b"\n")[:-1], start=1):
        position += len(raw) + 1
        try:
            line = _decoder.decode(raw)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
            raise JournalError(
                f"{path}, line {number}: {error}; the file was changed after it was written"
            ) from error
        if isinstance(line, Header) != (number == 1) or end is not None:
            raise JournalError(f"{path}, line {number}: a {_tag(line)} line does not belong here")
        if isinstance(line, Header):
            header = line
            if line.schema != SCHEMA:
                raise JournalError(
                    f"{path}: format {line.schema}, this version reads {SCHEMA}: "
                    "use the version of cbo-suite that wrote it"
                )
        elif isinstance(line, Batch):
            batches.append(line)
        else:
            end = line
        if not isinstance(line, End):
            size = position
    return None if header is None else Contents(header, batches, end, size)


def _tag(line: Line) -> str:
    """Name the kind of a line."""
    return str(line.__struct_config__.tag)


class JournalWriter:
    """Appends lines durably; one process at a time."""

    def __init__(self, path: str | Path) -> None:
        """Open or create the file and lock it.

        Raises:
            JournalNotWritten: The file cannot be created.
            JournalLocked: Another process writes it.
        """
        self.path = Path(path)
        is_new = not self.path.exists()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | _BINARY, 0o644)
        except OSError as error:
            raise JournalNotWritten(
                f"cannot create {self.path}: {error.strerror}; choose a path that can be written"
            ) from error
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(self._file)
                raise JournalLocked(
                    f"{self.path} is being written by another process: wait for it, or choose "
                    "another path"
                ) from error
        if is_new:
            sync_folder(self.path.parent)

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes, dropping a torn line or an end that is taken back."""
        os.ftruncate(self._file, size)
        os.fsync(self._file)

    def append(self, line: Line) -> None:
        """Write one line and wait until it is on the disk.

        Raises:
            JournalNotWritten: The disk is full or fails; the file is as it was before.
        """
        data = memoryview(_encoder.encode(line) + b"\n")
        size = os.lseek(self._file, 0, os.SEEK_END)
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, size)
            raise JournalNotWritten(
                f"cannot write {self.path}: {error.strerror}; what was written before is intact, "
                "fix the cause and run again to resume"
            ) from error

    def close(self) -> None:
        """Close the file, which also unlocks it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> JournalWriter:
        """Return the writer itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def gather(batches: Sequence[Batch], dim: int, num_constraints: int) -> tuple[Array, Evaluation]:
    """Put all batches together: points of shape `(n, d)` and their values, in the order told."""
    values = [batch.evaluation(num_constraints) for batch in batches]
    rows = [row for batch in batches for row in batch.x]
    x = np.array(rows, dtype=float).reshape(len(rows), dim)
    nothing = np.empty((0, num_constraints))
    return x, Evaluation(
        np.concatenate([np.empty(0), *(value.objective for value in values)]),
        np.concatenate([nothing, *(value.constraints for value in values)]),
    )


def digest(batches: Iterable[Batch]) -> str:
    """Fingerprint what was evaluated, times aside: equal for a run and its exact repetition.

    SHA-256 over the number of the first point and the points of each batch, then its objective
    and constraint values, all as little-endian 64-bit numbers in the order told.
    """
    total = hashlib.sha256()
    for batch in batches:
        total.update(batch.first.to_bytes(8, "little"))
        values = batch.evaluation(len(batch.constraints[0]))
        for array in (batch.points, values.objective, values.constraints):
            # One bit pattern for every NaN.
            canonical = np.where(np.isnan(array), np.nan, array)
            total.update(np.ascontiguousarray(canonical, dtype="<f8").tobytes())
    return total.hexdigest()


def seconds_processor(batches: Sequence[Batch], end: End) -> float | None:
    """Add up the time of the processors in ask and tell; None if it was not always measured."""
    parts = [end.seconds_processor, *(batch.seconds_processor for batch in batches)]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def restarts(batches: Sequence[Batch]) -> list[int] | None:
    """Number the evaluations, in the order told, that are the first after a restart.

    An optimizer says in its inspection, as "restarts", how often it has begun anew by then: SCBO
    how many trust regions it has left behind. The numbers rise; None if it says nothing.
    """
    found: list[int] = []
    told, before, says = 0, 0, False
    for batch in batches:
        count = (batch.inspection or {}).get("restarts")
        if isinstance(count, int) and not isinstance(count, bool):
            says = True
            if count > before:
                found.append(told)
                before = count
        told += len(batch.x)
    return found if says else None
