"""Do the parts of a record agree with each other? None of them is believed alone."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from cbo_suite.records.record import Record, regular_batches


class Refused(Exception):
    """A record says something that cannot be: field and reason."""


def refuse(field: str, reason: str) -> NoReturn:
    """Refuse a record."""
    raise Refused(field, reason)


def check_agreement(record: Record) -> None:
    """Refuse a record whose parts contradict each other."""
    n, task = len(record.objectives), record.task
    if n > task.budget:
        refuse("objective", f"{n} evaluations, the budget is {task.budget}")
    if record.status == "complete" and n < task.budget:
        refuse("objective", f"{n} evaluations of a complete run, of {task.budget}")
    if record.status == "complete" and record.error:
        refuse("error", "a complete run has none: it is written as an empty text")
    if record.whole and record.sample is not None:
        refuse("sample", "all points are kept, so nothing is drawn: that is written as null")
    violations = record.violations
    if (violations < 0).any() or np.isnan(violations).any():
        refuse("violation", "a total violation is a number >= 0, or inf")
    if (np.isinf(violations) < ~np.isfinite(record.objectives)).any():
        refuse("violation", "an objective that is not finite has the violation inf")
    if not np.isfinite(record.points).all():
        refuse("points", "a coordinate is not finite")
    if record.batches is not None and sum(record.batches) != n:
        refuse("batches", f"{sum(record.batches)} points in all, there are {n} evaluations")
    if record.batches is not None:
        most = 1 if task.workers is not None else task.batch_size
        if max(record.batches, default=0) > most:
            refuse("batches", f"a batch has {max(record.batches)} points, at most {most} are asked")
        if record.schema == 2 and record.batches == regular_batches(task, n):
            refuse("batches", "they are as large as they may be: that is written as null")
    if record.statuses is not None:
        if len(record.statuses) != n or not set(record.statuses) <= set("onft"):
            refuse("statuses", f"it is not {n} letters of o, n, f and t")
        lost = np.array([letter != "o" for letter in record.statuses], dtype=bool)
        if (lost & np.isfinite(violations)).any() or not np.isfinite(
            record.objectives[~lost]
        ).all():
            refuse("statuses", "it contradicts objective and violation: o has finite values")
        gone = np.array([letter in "ft" for letter in record.statuses], dtype=bool)
        if not np.isnan(record.objectives[gone]).all():
            refuse("statuses", "it contradicts objective: f and t have no values")
    if record.restarts is not None and (
        sorted(set(record.restarts)) != record.restarts or max(record.restarts, default=0) > n
    ):
        refuse("restarts", f"it is no rising list of numbers up to {n}")
    if record.step_constraints is not None:
        excess = np.maximum(record.step_constraints, 0.0).sum(axis=1)
        stated = violations[record.steps]
        # Sums round by the order they are made in.
        if (np.abs(excess - stated) > 1e-12 * np.maximum(excess, stated)).any():
            refuse("improvements", "the constraints of an improvement contradict violation")
