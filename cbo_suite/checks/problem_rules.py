"""The rules that a problem keeps; `cbo_suite.checks.check_problem` runs them."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from cbo_suite.checks.rules import Rule, RuleSkipped, copied, require_float64, same
from cbo_suite.errors import ConformanceError, EvaluationFailed, PartialEvaluation, describe
from cbo_suite.protocols import Array, Evaluation, Space

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*-v[0-9]+")


class ProblemSubject:
    """A problem under check and the few points it is checked at."""

    def __init__(self, problem: Any, num_points: int) -> None:
        """Take anything that claims to be a problem."""
        self.problem = problem
        self._num_points = num_points

    @property
    def space(self) -> Space:
        """The space of the problem, which the rule `space` has checked."""
        space: Space = self.problem.space
        return space

    @cached_property
    def points(self) -> Array:
        """The random points that all rules share, shape `(num_points, d)`."""
        unit = np.random.default_rng(0).random((self._num_points, self.space.dim))
        return self.space.from_unit(unit)

    @cached_property
    def values(self) -> Evaluation:
        """The evaluation of the shared points, kept for comparison."""
        return copied(self.evaluate(self.points))

    def evaluate(self, x: Array) -> Evaluation:
        """Evaluate points `(n, d)` and refuse a malformed answer; what fails has NaN for values."""
        answer = self.answer(x)
        if not isinstance(answer, Evaluation):
            raise ConformanceError(
                f"evaluate returned {type(answer).__name__}: "
                "return cbo_suite.Evaluation(objective, constraints)"
            )
        n, m = len(x), self.space.num_constraints
        require_float64(answer.objective, f"the objective of {n} points", (n,))
        require_float64(answer.constraints, f"the constraints of {n} points", (n, m))
        return answer

    def answer(self, x: Array) -> Any:
        """Return what the problem makes of a copy of points `(n, d)`, of whatever layout.

        Where a problem declares `may_fail = True`, a point that cannot be evaluated has NaN.
        """
        try:
            return self.problem.evaluate(x.copy(order="K"))
        except EvaluationFailed as error:
            if not self.may_fail:
                raise
            if isinstance(error, PartialEvaluation):
                return error.evaluation
            if len(x) != 1:
                rows = [self.answer(row[None]) for row in x]
                return Evaluation(*(np.concatenate(part) for part in zip(*rows, strict=True)))
            nothing = np.full((1, self.space.num_constraints), np.nan)
            return Evaluation(np.full(1, np.nan), nothing)

    @property
    def may_fail(self) -> bool:
        """Whether the problem declares that some points have no value."""
        return bool(getattr(self.problem, "may_fail", False))


def _id(subject: ProblemSubject) -> None:
    """The id is a string such as "ackley-10d-v1"."""
    id_ = getattr(subject.problem, "id", None)
    if not isinstance(id_, str) or not _ID.fullmatch(id_):
        raise ConformanceError(
            f"id is {id_!r}: use lower-case letters, digits and hyphens and end in a version, "
            'such as "ackley-10d-v1"'
        )


def _space(subject: ProblemSubject) -> None:
    """The space is a cbo_suite.Space."""
    if isinstance(subject.problem, type):
        raise ConformanceError(
            f"{subject.problem.__name__} is a class: pass a problem, "
            f"such as {subject.problem.__name__}()"
        )
    space = getattr(subject.problem, "space", None)
    if not isinstance(space, Space):
        raise ConformanceError(
            f"space is of type {type(space).__name__}: "
            "set it to cbo_suite.Space(lower, upper, num_constraints)"
        )


def _evaluation(subject: ProblemSubject) -> None:
    """One call gives float64 objective (n,) and constraints (n, m)."""
    for n in sorted({1, 2, len(subject.points)}):
        subject.evaluate(subject.points[:n])


def _empty(subject: ProblemSubject) -> None:
    """No points in, no values out."""
    subject.evaluate(subject.points[:0])


def _corners(subject: ProblemSubject) -> None:
    """The bounds belong to the box: its corners have finite values."""
    lower, upper = subject.space.lower, subject.space.upper
    even = np.arange(lower.size) % 2 == 0
    corners = np.array([lower, upper, np.where(even, lower, upper), np.where(even, upper, lower)])
    try:
        values = subject.evaluate(corners)
        if subject.may_fail and not np.isfinite(values.objective).all():
            raise RuleSkipped("the problem declares may_fail = True, and fails there")
    except EvaluationFailed as error:
        # This is how a problem says that a simulation has no answer at a point.
        raise RuleSkipped(f"the problem cannot be evaluated there: {error}") from error
    finite = np.isfinite(values.objective) & np.isfinite(values.constraints).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ConformanceError(
            f"the corner {corners[row].tolist()} has objective {values.objective[row]} and "
            f"constraints {values.constraints[row].tolist()}: guard the formula there, or raise "
            "EvaluationFailed if the point has no value"
        )


def _require_deterministic(subject: ProblemSubject) -> None:
    """Skip rules that compare values of a problem that declares noise."""
    if not getattr(subject.problem, "deterministic", True):
        raise RuleSkipped("the problem declares deterministic = False")


def _repeatable(subject: ProblemSubject) -> None:
    """The same points give the same values again, to the last bit."""
    _require_deterministic(subject)
    first = subject.values
    _require_same(
        subject.evaluate(subject.points),
        first,
        "a second evaluation of the same points",
        "keep no state between calls and fix every random seed, or declare the class attribute "
        "deterministic = False",
    )


def _order(subject: ProblemSubject) -> None:
    """The order of the points makes no difference to their values."""
    _require_deterministic(subject)
    expected = Evaluation(subject.values.objective[::-1], subject.values.constraints[::-1])
    _require_same(
        subject.evaluate(subject.points[::-1]),
        expected,
        "evaluating the points in reversed order",
        "compute every row from its own point alone",
    )


def _batch(subject: ProblemSubject) -> None:
    """A batch gives what its points give one by one, to the last bit."""
    _require_deterministic(subject)
    singles = [copied(subject.evaluate(x[None, :])) for x in subject.points]
    _require_same(
        Evaluation(*(np.concatenate(parts) for parts in zip(*singles, strict=True))),
        subject.values,
        "evaluating the points one by one",
        "compute every row from its own point alone; a matrix product may round differently for "
        "another number of rows, a sum over an axis does not",
    )


def _layout(subject: ProblemSubject) -> None:
    """The layout of the points in memory makes no difference."""
    _require_deterministic(subject)
    _require_same(
        subject.answer(np.asfortranarray(subject.points)),
        subject.values,
        "storing the points column by column",
        "start with `x = np.ascontiguousarray(x)`, for sums round differently by columns",
    )


def _require_same(got: Evaluation, expected: Evaluation, what: str, advice: str) -> None:
    """Refuse values that differ in a single bit, and say by how much."""
    if same(got, expected):
        return
    with np.errstate(invalid="ignore"):
        differences = [np.abs(a - b) for a, b in zip(got, expected, strict=True)]
    largest = max((float(np.nanmax(d)) for d in differences if d.size), default=math.nan)
    raise ConformanceError(f"{what} changes the values, by up to {largest:.3g}: {advice}")


def _input_untouched(subject: ProblemSubject) -> None:
    """Evaluating does not modify the points."""
    x = subject.points.copy()
    with suppress(EvaluationFailed):
        subject.problem.evaluate(x)
    if not np.array_equal(x, subject.points):
        raise ConformanceError(
            "evaluate modified the array it was given: work on a copy, "
            "such as the one that `self.space.validate(x)` returns"
        )


def _fresh_results(subject: ProblemSubject) -> None:
    """A later call does not modify the results of an earlier one."""
    first = subject.evaluate(subject.points)
    before = copied(first)
    subject.evaluate(subject.points[::-1])
    if not same(first, before):
        raise ConformanceError(
            "a second call modified the arrays that the first one returned: "
            "return new arrays every time"
        )


def _refuses_shape(subject: ProblemSubject) -> None:
    """Points of another shape are refused with a ValueError."""
    x = subject.points
    _require_refusal(subject, x[0], "one point of shape (d,)")
    _require_refusal(subject, x[None], "points of shape (1, n, d)")
    _require_refusal(subject, np.hstack([x, x[:, :1]]), "points with a variable too many")
    _require_refusal(subject, x[:, :-1], "points with a variable too few")


def _refuses_nonfinite(subject: ProblemSubject) -> None:
    """NaN and infinite points are refused with a ValueError."""
    for value in (np.nan, np.inf, -np.inf):
        x = subject.points[:2].copy()
        x[-1, -1] = value
        _require_refusal(subject, x, f"a point with a variable that is {value}")


def _refuses_outside(subject: ProblemSubject) -> None:
    """Points outside the box are refused with a ValueError."""
    lower, upper = subject.space.lower, subject.space.upper
    margin = 1e-3 * (upper - lower)
    for bound, name in ((lower - margin, "below its lower"), (upper + margin, "above its upper")):
        x = subject.points[:2].copy()
        x[-1, 0] = bound[0]
        _require_refusal(subject, x, f"a point with a variable {name} bound")


def _require_refusal(subject: ProblemSubject, x: Array, what: str) -> None:
    """Refuse a problem that evaluates these points."""
    try:
        subject.problem.evaluate(x.copy())
    except ValueError:
        return
    except Exception as error:
        raise ConformanceError(
            f"{what} must be refused with a ValueError such as InvalidPoint, got "
            f"{describe(error, kind=True)}: start evaluate with `x = self.space.validate(x)`"
        ) from error
    raise ConformanceError(
        f"{what} must be refused, but was evaluated: "
        "start evaluate with `x = self.space.validate(x)`"
    )


def _best_known(subject: ProblemSubject) -> None:
    """The best known point is feasible and evaluates to its value."""
    best = getattr(subject.problem, "best_known", None)
    if best is None:
        raise RuleSkipped("the problem states no best_known")
    _require_deterministic(subject)
    x = subject.space.validate(np.asarray(best.x)[None, :])
    values = subject.evaluate(x)
    got = float(values.objective[0])
    # The absolute term is for optima of zero, which rounding misses by a few ulp of the terms.
    if not math.isclose(got, best.objective, rel_tol=1e-9, abs_tol=1e-12):
        raise ConformanceError(
            f"best_known states {best.objective!r}, but its point evaluates to {got!r}: "
            "give the value and the point at full precision"
        )
    if not values.feasible[0]:
        raise ConformanceError(
            f"the point of best_known is infeasible, with constraints "
            f"{values.constraints[0].tolist()}: round the point to the feasible side"
        )


PROBLEM_RULES: tuple[Rule[ProblemSubject], ...] = (
    Rule("id", _id),
    Rule("space", _space),
    Rule("evaluation", _evaluation, ("space",)),
    Rule("empty", _empty, ("evaluation",)),
    Rule("corners", _corners, ("evaluation",)),
    Rule("repeatable", _repeatable, ("evaluation",)),
    Rule("order", _order, ("evaluation", "repeatable")),
    Rule("batch", _batch, ("evaluation", "repeatable")),
    Rule("layout", _layout, ("evaluation", "repeatable")),
    Rule("input-untouched", _input_untouched, ("evaluation",)),
    Rule("fresh-results", _fresh_results, ("evaluation",)),
    Rule("refuses-shape", _refuses_shape, ("evaluation",)),
    Rule("refuses-nonfinite", _refuses_nonfinite, ("evaluation",)),
    Rule("refuses-outside", _refuses_outside, ("evaluation",)),
    Rule("best-known", _best_known, ("evaluation",)),
)
