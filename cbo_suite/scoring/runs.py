"""Scores: pure functions of records and references. They know no problem and run nothing.

- `paper` is the rule of the SCBO paper: any feasible point is better than any infeasible one, and
  a run that has found none is given the largest objective value found for that problem by any run
  that takes part. It is relative: a new participant can change the numbers of the others.
- `regret` is the same rule with the worst value frozen and the scale normalised.
- `anytime` is the mean share of targets reached, over the whole run, from 0 to 100.

The last two of a run depend on nobody else's run. docs/scoring.md has the formulas. Most functions
take the trace of a run, `best_so_far(record)`: it is computed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import rankdata

from cbo_suite.errors import RecordError
from cbo_suite.protocols import Array
from cbo_suite.records import Record
from cbo_suite.scoring.references import Reference

NUM_TARGETS = 50
# What a run may lie below the best known value by rounding, in units of best to worst.
_ROUNDING = 1e-9

Scope = Literal["feasible", "all_evals", "final_best"]


class RunSummary(NamedTuple):
    """What the board needs of a run.

    Attributes:
        seed: The seed.
        trace: Best feasible value after the evaluations of a grid, NaN before the first.
        final: Best feasible value at the end, NaN if there is none.
        violation: Least total violation, infinite if no evaluation was finite.
        first_feasible: Number of the first feasible evaluation counted from 1, 0 if there is none.
        largest_feasible: Largest feasible objective value, NaN if there is none.
        reached: Share of the targets reached after the evaluations of the grid.
        anytime: Score of the whole run, NaN without a reference.
        evaluations: Number of evaluations made.
        seconds: Time in ask and tell.
        imputed: Whether the run failed and its last state is carried to the end of the budget.
    """

    seed: int
    trace: Array
    final: float
    violation: float
    first_feasible: int
    largest_feasible: float
    reached: Array
    anytime: float
    evaluations: int
    seconds: float
    imputed: bool


class FeasibleTable(NamedTuple):
    """The form of the paper's lunar table: final values of the feasible runs, NaN if none is.

    Attributes:
        best: Least final value.
        worst: Largest final value.
        median: Median final value.
        feasible_runs: Number of runs that found a feasible point.
        runs: Number of runs.
    """

    best: float
    worst: float
    median: float
    feasible_runs: int
    runs: int


def best_so_far(record: Record, tolerance: float = 0.0) -> Array:
    """Trace the least feasible objective found so far.

    Args:
        record: The run.
        tolerance: Largest total violation that counts as feasible.

    Returns:
        Shape `(budget,)`, NaN before the first feasible point. A run that failed early keeps its
        last value to the end.
    """
    return _trace(_feasible_values(record, tolerance), record.task.budget)


def default_value(
    records: Iterable[Record], scope: Scope = "feasible", tolerance: float = 0.0
) -> float:
    """Return the value that the paper's rule gives to a run without a feasible point.

    Args:
        records: All runs on a problem that take part.
        scope: The largest of which values: of all feasible evaluations, of all finite evaluations
            (feasible or not), or of the final values of the runs.
        tolerance: Largest total violation that counts as feasible.

    Returns:
        The largest value, NaN if there is none.
    """
    return _largest([_largest_of_run(record, scope, tolerance) for record in records])


def paper_curve(
    records: Sequence[Record], default: float, tolerance: float = 0.0
) -> tuple[Array, Array]:
    """Score the runs of one optimizer on one problem at every evaluation.

    Args:
        records: Runs of equal budget.
        default: The value of a run that has found nothing feasible.
        tolerance: Largest total violation that counts as feasible.

    Returns:
        Mean and standard error, each of shape `(budget,)`; the error of a single run is NaN.
    """
    budgets = {record.task.budget for record in records}
    if len(budgets) != 1:
        raise RecordError(f"runs to be averaged need one budget, got {sorted(budgets)}")
    traces = np.stack([best_so_far(record, tolerance) for record in records])
    return mean_and_error(np.where(np.isnan(traces), default, traces))


def mean_and_error(values: Array) -> tuple[Array, Array]:
    """Average values `(n, t)` of n runs: mean and standard error, each of shape `(t,)`."""
    n = len(values)
    error = np.full(values.shape[1], np.nan)
    if n > 1:
        error = values.std(axis=0, ddof=1) / np.sqrt(n)
    return values.mean(axis=0), error


def feasible_table(finals: Array) -> FeasibleTable:
    """Describe the final values `(n,)` of n runs, NaN where a run found nothing feasible."""
    feasible = finals[~np.isnan(finals)]
    if not len(feasible):
        return FeasibleTable(np.nan, np.nan, np.nan, 0, len(finals))
    best, worst, median = feasible.min(), feasible.max(), np.median(feasible)
    return FeasibleTable(float(best), float(worst), float(median), len(feasible), len(finals))


def gap(trace: Array, reference: Reference) -> Array:
    """Scale a trace of any shape to the best known (0) and the worst value (1), unclipped."""
    scaled: Array = (trace - reference.best) / (reference.worst - reference.best)
    return scaled


def regret(trace: Array, reference: Reference) -> Array:
    """Score a trace of any shape between the best known (0) and the worst value (1).

    It is 1 before the first feasible point, and clipped: feasible is never worse than infeasible.
    """
    scaled = gap(trace, reference)
    return np.where(np.isnan(scaled), 1.0, np.clip(scaled, 0.0, 1.0))


def beats_reference(final: float, reference: Reference) -> bool:
    """Tell whether a final value is better than the best known value by more than rounding."""
    return final < reference.best - _ROUNDING * (reference.worst - reference.best)


def targets(reference: Reference) -> Array:
    """Return the objective values that `anytime` counts, from easy to hard, shape `(50,)`.

    The distance to the best known value falls from that of the reference level to a thousandth.
    """
    return reference.best + (reference.level - reference.best) * np.logspace(0, -3, NUM_TARGETS)


def targets_reached(trace: Array, reference: Reference) -> Array:
    """Trace the share of targets that a run has reached: a feasible point, and 50 values.

    Returns:
        Of the trace's shape, between 0 and 1.
    """
    feasible = ~np.isnan(trace)
    # Targets fall, so those reached are the first ones: count how many are not below the trace.
    ascending = targets(reference)[::-1]
    reached = NUM_TARGETS - np.searchsorted(ascending, np.where(feasible, trace, np.inf))
    share: Array = (feasible + reached) / (NUM_TARGETS + 1)
    return share


def anytime(trace: Array, reference: Reference, n_init: int) -> float:
    """Score a whole run: the mean share of targets reached after the initial design, 0 to 100.

    Args:
        trace: Best value so far, shape `(budget,)`.
        reference: Of the problem.
        n_init: Size of the initial design; a run that has nothing else is scored by its end.
    """
    reached = targets_reached(trace, reference)
    return float(100.0 * reached[min(n_init, len(reached) - 1) :].mean())


def evaluations_to_feasible(first_feasible: Sequence[int], budget: int) -> float:
    """Estimate the evaluations to the first feasible point: all spent until it, per success.

    It is the expected running time of restarting until success (Auger and Hansen 2005).

    Args:
        first_feasible: Of each run the number of the first feasible evaluation, 0 for none.
        budget: Evaluations of a run.

    Returns:
        The expected number, infinite if no run succeeded.
    """
    successes = sum(first > 0 for first in first_feasible)
    spent = sum(first or budget for first in first_feasible)
    return spent / successes if successes else float("inf")


def outcome_ranks(finals: Array, violations: Array) -> Array:
    """Rank the ends of runs against each other; ties share the mean of their ranks.

    Feasible runs come first, by their value; infeasible ones after them, by their least violation.

    Args:
        finals: Final values of any shape, NaN where there is none.
        violations: Least violations, of the same shape.

    Returns:
        Of the same shape; 1 is best.
    """
    infeasible = np.isnan(finals).ravel()
    value = np.where(infeasible, violations.ravel(), finals.ravel())
    order = np.lexsort((value, infeasible))
    value, infeasible = value[order], infeasible[order]
    # Equal ends have equal places, which the ranks turn into ties.
    new = (value[1:] != value[:-1]) | (infeasible[1:] != infeasible[:-1])
    places = np.empty(value.shape)
    places[order] = np.concatenate([[0], np.cumsum(new)])
    ranks: Array = rankdata(places).reshape(finals.shape)
    return ranks


def family(problem_id: str) -> str:
    """Name the family of a problem: its id without function, sizes, instance and version."""
    return re.sub(r"(-f\d+(?=-))?(-m\d+)?(-\d+d)?(-i\d+)?(-alt)?-v\d+$", "", problem_id)


def summarize(record: Record, reference: Reference | None, grid: Sequence[int]) -> RunSummary:
    """Condense a run.

    Args:
        record: The run.
        reference: Of its problem, None if there is none: then nothing counts as a target.
        grid: Numbers of evaluations, counted from 1, at which the course of the run is kept.
    """
    tolerance = reference.feasibility_tolerance if reference else 0.0
    values = _feasible_values(record, tolerance)
    trace = _trace(values, record.task.budget)
    places = np.asarray(grid) - 1
    missing = np.full(len(grid), np.nan)
    feasible = ~np.isnan(trace)
    return RunSummary(
        seed=record.task.seed,
        trace=trace[places],
        final=float(trace[-1]),
        violation=float(np.min(record.violations, initial=np.inf)),
        first_feasible=int(np.argmax(feasible)) + 1 if feasible[-1] else 0,
        largest_feasible=_largest(values),
        reached=targets_reached(trace[places], reference) if reference else missing,
        anytime=anytime(trace, reference, record.task.n_init) if reference else float("nan"),
        evaluations=len(record.objectives),
        # Of the processor where they are on record: those of a clock tell how busy the machine was.
        seconds=record.seconds_optimizer
        if record.seconds_processor is None
        else record.seconds_processor,
        imputed=record.status == "failed",
    )


def _largest_of_run(record: Record, scope: Scope, tolerance: float) -> float:
    """Return the largest value of a run in this scope, NaN if there is none."""
    if scope == "all_evals":
        objectives = record.objectives
        return _largest(objectives[np.isfinite(objectives)])
    if scope == "final_best":
        return float(best_so_far(record, tolerance)[-1])
    if scope == "feasible":
        return _largest(_feasible_values(record, tolerance))
    raise ValueError(f"scope must be 'feasible', 'all_evals' or 'final_best', got {scope!r}")


def _feasible_values(record: Record, tolerance: float) -> Array:
    """Return the objective values, NaN where a point is not feasible, shape `(n,)`."""
    return np.where(record.violations <= tolerance, record.objectives, np.nan)


def _trace(values: Array, budget: int) -> Array:
    """Trace the least of values `(n,)` so far, NaN before the first, to the end of the budget."""
    padded = np.full(budget, np.nan)
    padded[: len(values)] = values
    trace: Array = np.fmin.accumulate(padded)
    return trace


def _largest(values: Sequence[float] | Array) -> float:
    """Return the largest value that is not NaN, NaN if there is none."""
    largest = float(np.fmax.reduce(np.asarray(values, dtype=float), initial=-np.inf))
    return float("nan") if largest == -np.inf else largest
