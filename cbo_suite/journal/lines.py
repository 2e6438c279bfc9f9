"""The lines of a journal: what they hold, and the chain that binds each to those before it.

Every line ends with a checksum over itself and the checksum of the line before, so that a changed,
lost, doubled or moved line breaks the chain at that place.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np

from cbo_suite.protocols import Array, Evaluation, Task

SCHEMA = 2
# Format 1 had neither checksums nor processor seconds.
OLDEST_SCHEMA = 1
# JSON has no literal for these; strings keep them apart from each other.
Number = float | Literal["nan", "inf", "-inf"]
Status = Literal["ok", "nonfinite", "failed", "timeout"]


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, dict=True):
    """What the user knew before the run, and told it.

    Attributes:
        x: Points whose results were known, shape `(k, d)`.
        objective: Their objective values, shape `(k,)`.
        constraints: Their constraint values, shape `(k, m)`.
        first: Points that the initial design begins with, shape `(j, d)`.
    """

    x: list[list[float]] = []
    objective: list[float] = []
    constraints: list[list[float]] = []
    first: list[list[float]] = []

    @cached_property
    def points(self) -> Array:
        """The points as a read-only array, shape `(k, d)`."""
        return _read_only(self.x)

    @cached_property
    def evaluation(self) -> Evaluation:
        """The results as read-only arrays, shapes `(k,)` and `(k, m)`."""
        return Evaluation(_read_only(self.objective), _read_only(self.constraints))

    @property
    def first_points(self) -> Array:
        """The points of the design, shape `(j, d)`, or `(0,)` if there are none."""
        return _read_only(self.first)

    @property
    def digest(self) -> str:
        """Fingerprint: SHA-256 of this object as it stands in the header."""
        return hashlib.sha256(_encoder.encode(self)).hexdigest()


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
        given: What the user knew beforehand, unset if that is nothing.
    """

    schema: int
    task: Task
    options: dict[str, Any]
    dim: int
    num_constraints: int
    versions: dict[str, str]
    machine: dict[str, str]
    facts: dict[str, str] = {}
    given: Given | msgspec.UnsetType = msgspec.UNSET


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
            that of all threads together, and of processes that the optimizer says are its own;
            None where it was not measured.
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
        evaluations: Number of evaluations of the whole journal, None in format 1.
    """

    status: Literal["complete", "failed"]
    seconds_optimizer: float
    error: str = ""
    recommendation: list[float] | None = None
    seconds_processor: float | None = None
    evaluations: int | None = None


Line = Header | Batch | End
_encoder = msgspec.json.Encoder()


def _read_only(values: object) -> Array:
    """Return numbers as an array that nobody can change."""
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


# A line of format 2 is a JSON object whose last field is the checksum, 64 bits in hexadecimal.
_MARK, _CLOSE, _DIGITS = b',"chain":"', b'"}', 16
_SUFFIX_LENGTH = len(_MARK) + _DIGITS + len(_CLOSE)


def _checksum(before: bytes, body: bytes) -> bytes:
    """Return the checksum of a line without its own, given that of the line before."""
    total = hashlib.sha256(before)
    total.update(body)
    return total.hexdigest()[:_DIGITS].encode()


def encode_line(line: msgspec.Struct, before: bytes) -> tuple[bytes, bytes]:
    """Write a line with its newline.

    Args:
        line: What it says.
        before: Checksum of the line before, empty for the first.

    Returns:
        The bytes and the checksum.
    """
    body = _encoder.encode(line)[:-1]
    checksum = _checksum(before, body)
    return b"".join((body, _MARK, checksum, _CLOSE, b"\n")), checksum


def split_line(raw: bytes, before: bytes) -> tuple[bytes, bytes] | None:
    """Take apart a line without its newline.

    Args:
        raw: The line.
        before: Checksum of the line before, empty for the first.

    Returns:
        The JSON object without the checksum, and the checksum; None if that is wrong.
    """
    body = raw[:-_SUFFIX_LENGTH]
    checksum = _checksum(before, body)
    if raw[-_SUFFIX_LENGTH:] != _MARK + checksum + _CLOSE:
        return None
    return body + b"}", checksum


def without_checksum(raw: bytes) -> bytes | None:
    """Take the checksum off a line, right or wrong; None if there is none in its place."""
    body, suffix = raw[:-_SUFFIX_LENGTH], raw[-_SUFFIX_LENGTH:]
    return body + b"}" if suffix.startswith(_MARK) and suffix.endswith(_CLOSE) else None


def begins_with_line(raw: bytes, before: bytes) -> bool:
    """Tell whether a whole line with the right checksum stands at the beginning of some bytes.

    That is what is left of a line that counted when its newline is gone.
    """
    position = raw.find(_MARK)
    while position >= 0:
        if split_line(raw[: position + _SUFFIX_LENGTH], before) is not None:
            return len(raw) > position + _SUFFIX_LENGTH
        position = raw.find(_MARK, position + 1)
    return False
