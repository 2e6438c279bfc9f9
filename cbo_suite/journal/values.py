"""What a journal says of a run as a whole: arrays, digest, times, restarts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cbo_suite.journal.lines import Batch, End
from cbo_suite.protocols import Array, Evaluation


def to_json_numbers(values: Array) -> list[Any]:
    """Turn an array into nested lists; what is not finite becomes "nan", "inf" or "-inf"."""
    listed: list[Any] = values.tolist()
    if np.isfinite(values).all():
        return listed
    if values.ndim > 1:
        return [to_json_numbers(row) for row in values]
    return [value if np.isfinite(value) else str(float(value)) for value in listed]


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
