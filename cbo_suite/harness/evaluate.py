"""Evaluate points and take whatever a problem does: values, nonsense or an exception.

A run hands its points to an `Evaluator`. The one here works in the process of the run; that of
`cbo_suite.harness.pool` works in others.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from cbo_suite.errors import MalformedEvaluation, PartialEvaluation, describe
from cbo_suite.journal import Status
from cbo_suite.protocols import Array, ConstrainedProblem, Evaluation


class Result(NamedTuple):
    """What came of evaluating n points.

    Attributes:
        evaluation: The values, all NaN for points that failed.
        status: One word per point.
        messages: For points that failed, their row and what happened.
        seconds: Time spent in the problem, summed over the points.
        malformed: Whether every point gave something that is no values of the right shape: a fault
            of the function, not of the points.
    """

    evaluation: Evaluation
    status: list[Status]
    messages: dict[int, str]
    seconds: float
    malformed: bool = False


class Evaluator(Protocol):
    """Where groups of points are evaluated; each group has a number of its own."""

    def start(self, number: int, x: Array) -> None:
        """Take on a group of points, shape `(k, d)`."""

    def result(self, number: int) -> Result:
        """Return what came of a group, once; wait for it where it is not done."""

    def first_done(self) -> int:
        """Return the number of a group whose result can be had, the one done first if known."""

    def close(self) -> None:
        """Let go of everything; what is under way is given up."""


class InProcess:
    """Evaluates a group in this process at the moment its result is wanted."""

    def __init__(self, problem: ConstrainedProblem) -> None:
        self._problem = problem
        self._groups: dict[int, Array] = {}

    def start(self, number: int, x: Array) -> None:
        """Remember the points."""
        self._groups[number] = x

    def result(self, number: int) -> Result:
        """Evaluate the points now."""
        return evaluate_points(self._problem, self._groups.pop(number))

    def first_done(self) -> int:
        """Return the group that was started first."""
        return next(iter(self._groups))

    def close(self) -> None:
        """Hold nothing, so let go of nothing."""


def evaluate_points(problem: ConstrainedProblem, x: Array) -> Result:
    """Evaluate points of shape `(n, d)`; failures become statuses, never exceptions.

    When a batch as a whole fails, its points are evaluated again one by one, so that one bad point
    does not cost the results of the others. The budget counts each point once.
    """
    start = time.perf_counter()
    m = problem.space.num_constraints
    try:
        evaluation, failures = _attempt(problem, x)
    except Exception as error:
        if len(x) == 1:
            nothing = no_values(m, "failed", describe(error), time.perf_counter() - start)
            return nothing._replace(malformed=isinstance(error, MalformedEvaluation))
        joined = join_rows([evaluate_points(problem, row[None, :]) for row in x])
        return joined._replace(seconds=time.perf_counter() - start)
    seconds = time.perf_counter() - start
    finite = np.isfinite(evaluation.objective) & np.isfinite(evaluation.constraints).all(axis=1)
    status: list[Status] = ["ok" if good else "nonfinite" for good in finite]
    for row in failures:
        status[row] = "failed"
        evaluation.objective[row] = np.nan
        evaluation.constraints[row] = np.nan
    messages = {row: describe(error) for row, error in failures.items()}
    kinds = [isinstance(error, MalformedEvaluation) for error in failures.values()]
    malformed = len(kinds) == len(x) and all(kinds)
    return Result(evaluation, status, messages, seconds, malformed)


def _attempt(problem: ConstrainedProblem, x: Array) -> tuple[Evaluation, Mapping[int, Exception]]:
    """Evaluate once; return the values and the errors of the rows that failed."""
    m = problem.space.num_constraints
    try:
        # A copy, so that a problem that writes into its input changes nothing on record.
        return check_values(problem.evaluate(x.copy()), len(x), m), {}
    except PartialEvaluation as partial:
        return check_values(partial.evaluation, len(x), m), partial.failures


def check_values(values: Any, n: int, m: int) -> Evaluation:
    """Turn what a problem gave into float64 arrays of shapes `(n,)` and `(n, m)`, or refuse it."""
    try:
        objective, constraints = values
    except (TypeError, ValueError) as error:
        raise MalformedEvaluation(
            f"evaluate must give (objective, constraints), got {type(values).__name__}"
        ) from error
    return Evaluation(
        _numbers(objective, (n,), "objective"), _numbers(constraints, (n, m), "constraints")
    )


def _numbers(values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Copy values into a float64 array of this shape, or refuse them."""
    try:
        # What a mask hides is no value.
        hidden = np.ma.isMaskedArray(values)
        array = values.astype(float).filled(np.nan) if hidden else np.asarray(values)
    except (TypeError, ValueError) as error:
        raise MalformedEvaluation(f"{name} must be an array of numbers: {error}") from error
    if array.dtype.kind not in "fiub":
        raise MalformedEvaluation(
            f"{name} must be real numbers, got {values!r:.80} of dtype {array.dtype}"
        )
    if array.shape != shape:
        raise MalformedEvaluation(f"{name} must have shape {shape}, got {array.shape}")
    return array.astype(float)


def no_values(m: int, status: Status, message: str, seconds: float) -> Result:
    """Return the result of one point that gave no values."""
    nothing = Evaluation(np.full(1, np.nan), np.full((1, m), np.nan))
    return Result(nothing, [status], {0: message}, seconds)


def join_rows(rows: Sequence[Result]) -> Result:
    """Put the results of single points together, in their order."""
    return Result(
        Evaluation(
            np.concatenate([row.evaluation.objective for row in rows]),
            np.concatenate([row.evaluation.constraints for row in rows]),
        ),
        [row.status[0] for row in rows],
        {i: row.messages[0] for i, row in enumerate(rows) if row.messages},
        sum(row.seconds for row in rows),
        all(row.malformed for row in rows),
    )
