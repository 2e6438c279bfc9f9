"""The course of runs at every evaluation: what figures and tables of convergence are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

import numpy as np

from cbo_suite.errors import RecordError
from cbo_suite.protocols import Array
from cbo_suite.records import Record
from cbo_suite.scoring.references import Reference, load_references
from cbo_suite.scoring.runs import best_so_far, default_value, mean_and_error, paper_curve, regret

Score = Literal["paper", "regret"]


class Curve(NamedTuple):
    """What an optimizer has reached on a problem after every evaluation.

    Attributes:
        optimizer: Id of the optimizer.
        mean: Mean over the runs, shape `(budget,)`.
        error: Its standard error, NaN for a single run.
        runs: Number of runs.
    """

    optimizer: str
    mean: Array
    error: Array
    runs: int


class Panel(NamedTuple):
    """The curves of one problem.

    Attributes:
        problem: Id of the problem.
        curves: One per optimizer, by its id.
        n_init: Number of evaluations before the optimizers were first asked.
        title: What stands above it, by default the id of the problem.
    """

    problem: str
    curves: list[Curve]
    n_init: int
    title: str = ""


def make_panels(
    records: Iterable[Record],
    score: Score = "paper",
    log: bool = False,
    references: Mapping[str, Reference] | None = None,
) -> list[Panel]:
    """Average the runs of every optimizer on every problem.

    Args:
        records: The runs; those of one optimizer on one problem need one budget.
        score: "paper": the best feasible value, and the largest feasible value of all these runs
            before there is one; "regret": the same between best known (0) and worst value (1).
        log: Whether the figure will have logarithmic values: `paper` is then the distance to the
            best known value.
        references: Reference values by problem, those of the package by default.

    Raises:
        RecordError: A problem has no reference values where they are needed, or runs to be
            averaged differ in budget.
    """
    known = load_references() if references is None else references
    panels = []
    ordered = sorted(records, key=lambda r: (r.task.problem, r.task.optimizer, r.task.seed))
    for problem, on_problem in groupby(ordered, key=lambda record: record.task.problem):
        runs = list(on_problem)
        reference = known.get(problem)
        if reference is None and (log or score == "regret"):
            raise RecordError(
                f"{problem} has no reference values, which regret and logarithmic values need: "
                "leave it out with --problems, or plot the paper's score without --log"
            )
        default = default_value(runs)
        curves = []
        for optimizer, group in groupby(runs, key=lambda record: record.task.optimizer):
            own = list(group)
            mean, error = _average(own, score, default, reference)
            if log and score == "paper" and reference is not None:
                mean = mean - reference.best
            curves.append(Curve(optimizer, mean, error, len(own)))
        panels.append(Panel(problem, curves, max(record.task.n_init for record in runs)))
    return panels


def _average(
    runs: Sequence[Record], score: Score, default: float, reference: Reference | None
) -> tuple[Array, Array]:
    """Return mean and standard error of the runs of an optimizer at every evaluation."""
    if score == "paper" or reference is None:
        return paper_curve(runs, default)
    budgets = {record.task.budget for record in runs}
    if len(budgets) != 1:
        raise RecordError(f"runs to be averaged need one budget, got {sorted(budgets)}")
    return mean_and_error(np.stack([regret(best_so_far(record), reference) for record in runs]))
