"""Every rule for problems catches what breaks it; a well-behaved problem passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cbo_suite.checks import check_problem, problem_report
from cbo_suite.checks.problem_rules import PROBLEM_RULES
from cbo_suite.checks.rules import Finding
from cbo_suite.errors import ConformanceError, EvaluationFailed, MissingExecutable
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space


def rules_that(findings: list[Finding], outcome: str) -> list[str]:
    """Name the rules that ended with this outcome."""
    return [finding.rule for finding in findings if finding.outcome == outcome]


def detail(findings: list[Finding], rule: str) -> str:
    """Return what one rule says."""
    return next(finding.detail for finding in findings if finding.rule == rule)


class Bowl:
    """A well-behaved problem: d = 2, m = 2, optimum 0 at the middle."""

    id = "bowl-2d-v1"
    space = Space(np.array([-1.0, -2.0]), np.array([1.0, 2.0]), 2)
    best_known: Any = BestKnown(0.0, np.zeros(2), "by construction")

    def evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points."""
        return self.compute(self.space.validate(x))

    def compute(self, x: Array) -> Evaluation:
        """Evaluate points that are known to be valid."""
        return Evaluation((x**2).sum(axis=1), np.column_stack([x[:, 0] - 0.5, x[:, 1] - 0.5]))


class NoVersion(Bowl):
    """Has an id without a version."""

    id = "bowl-2d"


class BoundsAsTuple(Bowl):
    """Has a space of another type."""

    space: Any = ((-1.0, 1.0), (-2.0, 2.0))


class PlainTuple(Bowl):
    """Returns a tuple."""

    def evaluate(self, x: Array) -> Any:
        """Return a plain tuple."""
        return tuple(super().evaluate(x))


class ColumnObjective(Bowl):
    """Returns an objective of shape (n, 1)."""

    def compute(self, x: Array) -> Evaluation:
        """Keep an axis too many."""
        return Evaluation((x**2).sum(axis=1, keepdims=True), x - 0.5)


class SinglePrecision(Bowl):
    """Returns float32."""

    def compute(self, x: Array) -> Any:
        """Round to single precision."""
        values: Any = super().compute(x)
        return Evaluation(values.objective.astype("f4"), values.constraints)


class ListConstraints(Bowl):
    """Returns constraints as a list."""

    def compute(self, x: Array) -> Any:
        """Give a list where an array belongs."""
        values = super().compute(x)
        return Evaluation(values.objective, values.constraints.tolist())


class FewConstraints(Bowl):
    """Returns one constraint where the space says two."""

    def compute(self, x: Array) -> Evaluation:
        """Drop a constraint."""
        values = super().compute(x)
        return Evaluation(values.objective, values.constraints[:, :1])


class NeedsPoints(Bowl):
    """Cannot evaluate no points."""

    def compute(self, x: Array) -> Evaluation:
        """Use the first point."""
        x[0]
        return super().compute(x)


class PoleAtCorner(Bowl):
    """Divides by zero at a corner."""

    def compute(self, x: Array) -> Evaluation:
        """Give NaN at the upper corner."""
        objective, constraints = super().compute(x)
        objective[(x == self.space.upper).all(axis=1)] = np.nan
        return Evaluation(objective, constraints)


class Drifting(Bowl):
    """Counts its calls into its values."""

    best_known = None

    def __init__(self) -> None:
        """Start to count."""
        self.calls = 0

    def compute(self, x: Array) -> Evaluation:
        """Add the number of calls."""
        self.calls += 1
        objective, constraints = super().compute(x)
        return Evaluation(objective + 1e-12 * self.calls, constraints)


class FirstIsSpecial(Bowl):
    """Treats the first of several points in its own way."""

    best_known = None

    def compute(self, x: Array) -> Evaluation:
        """Change the first row of a batch."""
        objective, constraints = super().compute(x)
        objective[:1] += 1.0
        return Evaluation(objective, constraints)


class CountsRows(Bowl):
    """Adds the number of points, which no order changes."""

    best_known = None

    def compute(self, x: Array) -> Evaluation:
        """Let every row depend on the others."""
        objective, constraints = super().compute(x)
        return Evaluation(objective + len(x), constraints)


class ByColumns(Bowl):
    """Gives other values for points that are stored column by column."""

    def evaluate(self, x: Array) -> Evaluation:
        """Let the layout decide, as it does in the last bits of a sum."""
        objective, constraints = super().evaluate(x)
        return Evaluation(objective if x.flags.c_contiguous else objective + 1e-12, constraints)


class Overwrites(Bowl):
    """Modifies its input."""

    def evaluate(self, x: Array) -> Evaluation:
        """Square in place."""
        values = super().evaluate(x)
        x **= 2
        return values


class Reuses(Bowl):
    """Returns the same array every time."""

    def __init__(self) -> None:
        """Make the array."""
        self.buffer = np.empty(100)

    def compute(self, x: Array) -> Evaluation:
        """Write into the array."""
        objective, constraints = super().compute(x)
        self.buffer[: len(x)] = objective
        return Evaluation(self.buffer[: len(x)], constraints)


class OnePointToo(Bowl):
    """Takes a point of shape (d,)."""

    def evaluate(self, x: Array) -> Evaluation:
        """Be generous."""
        return super().evaluate(np.atleast_2d(x))


class WrongRefusal(Bowl):
    """Refuses a wrong shape with an IndexError."""

    def evaluate(self, x: Array) -> Evaluation:
        """Refuse in the wrong way."""
        if x.ndim != 2 or x.shape[1] != 2:
            raise IndexError("too many indices")
        return super().evaluate(x)


class AcceptsNan(Bowl):
    """Evaluates points that are not finite."""

    def evaluate(self, x: Array) -> Evaluation:
        """Replace what is not finite."""
        return super().evaluate(np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0))


class Clips(Bowl):
    """Clips points into the box."""

    def evaluate(self, x: Array) -> Evaluation:
        """Move points that are outside."""
        x = np.where(np.isfinite(x), np.clip(x, *self.bounds(x)), x)
        return super().evaluate(x)

    def bounds(self, x: Array) -> tuple[Array, Array]:
        """Return the bounds if the points have the right shape."""
        if x.ndim != 2 or x.shape[1] != 2:
            raise ValueError("shape")
        return self.space.lower, self.space.upper


class WrongBest(Bowl):
    """States a value that its point does not have."""

    best_known = BestKnown(1e-6, np.zeros(2), "a typing error")


class InfeasibleBest(Bowl):
    """States an infeasible point."""

    best_known = BestKnown(0.36, np.array([0.6, 0.0]), "rounded the wrong way")


BROKEN_PROBLEMS: list[tuple[str, type[Bowl], str]] = [
    ("id", NoVersion, "end in a version"),
    ("space", BoundsAsTuple, "cbo_suite.Space"),
    ("evaluation", PlainTuple, "return cbo_suite.Evaluation"),
    ("evaluation", ColumnObjective, "has shape (1, 1): return shape (1,)"),
    ("evaluation", SinglePrecision, "float32"),
    ("evaluation", ListConstraints, "list"),
    ("evaluation", FewConstraints, "return shape (1, 2)"),
    ("empty", NeedsPoints, "IndexError"),
    ("corners", PoleAtCorner, "[1.0, 2.0] has objective nan"),
    ("repeatable", Drifting, "by up to"),
    ("order", FirstIsSpecial, "reversed"),
    ("batch", CountsRows, "one by one changes the values, by up to 6"),
    ("layout", ByColumns, "column by column changes the values"),
    ("input-untouched", Overwrites, "work on a copy"),
    ("fresh-results", Reuses, "new arrays"),
    ("refuses-shape", OnePointToo, "was evaluated"),
    ("refuses-shape", WrongRefusal, "IndexError: too many indices"),
    ("refuses-nonfinite", AcceptsNan, "is nan"),
    ("refuses-outside", Clips, "below its lower bound"),
    ("best-known", WrongBest, "evaluates to 0.0"),
    ("best-known", InfeasibleBest, "infeasible"),
]


def test_well_behaved_problem_passes_every_rule() -> None:
    """A good problem is ok in all rules, in their order."""
    assert rules_that(problem_report(Bowl()), "ok") == [rule.name for rule in PROBLEM_RULES]
    check_problem(Bowl())


@pytest.mark.parametrize(
    ("rule", "problem", "text"), BROKEN_PROBLEMS, ids=[row[1].__name__ for row in BROKEN_PROBLEMS]
)
def test_broken_problem_is_caught_by_its_rule(rule: str, problem: type[Bowl], text: str) -> None:
    """The rule fails that the problem breaks, and says so."""
    findings = problem_report(problem())
    assert rule in rules_that(findings, "failed"), findings
    assert text in detail(findings, rule)
    # Only a problem that mixes the rows of a batch breaks two rules at once.
    assert len(rules_that(findings, "failed")) == (2 if problem is FirstIsSpecial else 1), findings
    with pytest.raises(ConformanceError, match=rf"(?s) breaks .*- {rule}: "):
        check_problem(problem())


def test_every_problem_rule_has_something_that_breaks_it() -> None:
    """No rule is left without a broken example."""
    assert {row[0] for row in BROKEN_PROBLEMS} == {rule.name for rule in PROBLEM_RULES}


def test_a_class_is_not_a_problem() -> None:
    """The class instead of the problem is the commonest mistake, and has its own advice."""
    findings = problem_report(Bowl)  # type: ignore[arg-type]
    assert "such as Bowl()" in detail(findings, "space")
    assert detail(findings, "evaluation") == "means nothing until 'space' holds"


def test_error_lists_all_broken_rules_and_keeps_the_first_cause() -> None:
    """One error names every broken rule; the traceback of the problem's own error is kept."""

    class Twice(NeedsPoints):
        id = "Twice"

    with pytest.raises(ConformanceError) as caught:
        check_problem(Twice())
    lines = str(caught.value).splitlines()
    assert lines[0] == f"Twice breaks 2 of {len(PROBLEM_RULES)} rules:"
    assert [line.split(":")[0] for line in lines[1:]] == ["- id", "- empty"]
    assert isinstance(caught.value.__cause__, IndexError)


def test_declared_noise_skips_the_rules_that_compare_values() -> None:
    """A problem that declares noise is not held to repeat itself."""

    class Noisy(Drifting):
        deterministic = False

    findings = problem_report(Noisy())
    assert rules_that(findings, "failed") == []
    assert rules_that(findings, "skipped") == [
        "repeatable",
        "order",
        "batch",
        "layout",
        "best-known",
    ]
    assert detail(findings, "order") == "the problem declares deterministic = False"


def test_no_best_known_and_failing_corners_are_skipped_with_reason() -> None:
    """A problem may know no optimum, and may say that it has no value at a corner."""

    class Simulation(Bowl):
        best_known = None

        def compute(self, x: Array) -> Evaluation:
            if (x == self.space.lower).all(axis=1).any():
                raise EvaluationFailed("the simulation diverged")
            return super().compute(x)

    findings = problem_report(Simulation())
    assert rules_that(findings, "skipped") == ["corners", "best-known"]
    assert "diverged" in detail(findings, "corners")


@pytest.mark.parametrize("num_points", [1, 2, 7])
def test_number_of_evaluations_follows_num_points(num_points: int) -> None:
    """Few points make few evaluations, for problems that are expensive."""

    class Counting(Bowl):
        evaluated = 0

        def compute(self, x: Array) -> Evaluation:
            type(self).evaluated += len(x)
            return super().compute(x)

    check_problem(Counting(), num_points=num_points)
    assert Counting.evaluated <= 9 * num_points + 8
    with pytest.raises(ValueError, match="num_points must be at least 1, got 0"):
        check_problem(Counting(), num_points=0)


def test_missing_executable_is_no_broken_rule() -> None:
    """An executable that is not installed says nothing about the problem."""

    class Foreign(Bowl):
        def compute(self, x: Array) -> Evaluation:
            raise MissingExecutable("install it first")

    with pytest.raises(MissingExecutable, match="install it first"):
        check_problem(Foreign())
