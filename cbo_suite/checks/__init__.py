"""Conformance checks for problems and optimizers, ours and anybody's.

Three lines are a complete test of an optimizer:

    from cbo_suite.checks import check_optimizer

    check_optimizer(MyOptimizer)

`check_problem` and `check_optimizer` raise one `ConformanceError` that lists every broken rule,
each with what was got and what to do. `problem_report` and `optimizer_report` return the findings
of all rules instead.
"""

from __future__ import annotations

from collections.abc import Callable

from cbo_suite.checks.optimizer_rules import OPTIMIZER_RULES
from cbo_suite.checks.problem_rules import PROBLEM_RULES, ProblemSubject
from cbo_suite.checks.rules import Finding, raise_broken, run_rules
from cbo_suite.checks.session import DESIGN, OptimizerSubject
from cbo_suite.protocols import ConstrainedProblem, Optimizer

__all__ = ["Finding", "check_optimizer", "check_problem", "optimizer_report", "problem_report"]

# The design and two rounds: the least that shows how an optimizer takes its own results.
_MIN_BUDGET = DESIGN + 2


def check_problem(problem: ConstrainedProblem, *, num_points: int = 7) -> None:
    """Check that a problem keeps its contract.

    A problem that gives noisy values declares the class attribute `deterministic = False`; the
    rules that compare values are then skipped.

    Args:
        problem: The problem, made and not its class.
        num_points: Number of random points; about ten times as many evaluations are made.

    Raises:
        ConformanceError: It breaks at least one rule; the message lists all of them.
        MissingExtra: It needs a library that is not installed.
        MissingExecutable: It needs an executable that is not installed.
    """
    findings = problem_report(problem, num_points=num_points)
    raise_broken(str(getattr(problem, "id", type(problem).__name__)), findings)


def problem_report(problem: ConstrainedProblem, *, num_points: int = 7) -> list[Finding]:
    """Run every rule for problems and return what each found; arguments as `check_problem`."""
    if num_points < 1:
        raise ValueError(f"num_points must be at least 1, got {num_points}")
    return run_rules(PROBLEM_RULES, ProblemSubject(problem, num_points))


def check_optimizer(factory: Callable[..., Optimizer], *, budget: int = _MIN_BUDGET) -> None:
    """Check that an optimizer keeps its contract.

    Limits are declared as class attributes, and the rules beyond them are skipped:
    `sequential = True` (one point at a time), `max_dim`, `max_batch_size`, and
    `deterministic_search = True` (the seed makes no difference, or only late in a run). An
    optimizer may also refuse a task with `UnsupportedTask` when it is made.

    Args:
        factory: The class, or anything that is called as `(space, *, budget, batch_size, seed)`.
        budget: Evaluations of each of some twenty short runs, of which the initial design takes
            five; one run has at least 30. More of them reach deeper into the optimizer and take
            longer.

    Raises:
        ConformanceError: It breaks at least one rule; the message lists all of them.
        MissingExtra: It needs a library that is not installed.
    """
    findings = optimizer_report(factory, budget=budget)
    raise_broken(str(getattr(factory, "__name__", repr(factory))), findings)


def optimizer_report(
    factory: Callable[..., Optimizer], *, budget: int = _MIN_BUDGET
) -> list[Finding]:
    """Run every rule for optimizers and return what each found; arguments as `check_optimizer`."""
    if budget < _MIN_BUDGET:
        raise ValueError(f"budget must be at least {_MIN_BUDGET}, got {budget}")
    return run_rules(OPTIMIZER_RULES, OptimizerSubject(factory, budget))
