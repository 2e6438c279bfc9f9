"""Scores: pure functions of records and references. They know no problem and run nothing.

- `paper` is the rule of the SCBO paper: any feasible point is better than any infeasible one, and
  a run that has found none is given the largest objective value found for that problem by any run
  that takes part. It is relative: a new participant can change the numbers of the others.
- `regret` is the same rule with the worst value frozen and the scale normalised.
- `anytime` is the mean share of targets reached, over the whole run, from 0 to 100.

The last two of a run depend on nobody else's run. docs/scoring.md has the formulas.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from cbo_suite.errors import RecordError
from cbo_suite.protocols import Array
from cbo_suite.records import Record
from cbo_suite.references import Reference

NUM_TARGETS = 50


class PaperScore(NamedTuple):
    """The paper's score of one optimizer on one problem.

    Attributes:
        problem: Id of the problem.
        optimizer: Id of the optimizer.
        mean: Mean final value over the runs, infeasible runs at the default value.
        standard_error: Its standard error, NaN for a single run.
        feasible_runs: Number of runs that found a feasible point.
        runs: Number of runs.
        median_feasible: Median final value of the feasible runs, NaN if there are none.
        seconds_per_evaluation: Time in ask and tell per evaluation, mean over the runs.
    """

    problem: str
    optimizer: str
    mean: float
    standard_error: float
    feasible_runs: int
    runs: int
    median_feasible: float
    seconds_per_evaluation: float


class Standing(NamedTuple):
    """One row of the ranking over several problems.

    Attributes:
        optimizer: Id of the optimizer.
        mean_rank: Mean over the problems of its rank by the paper's score; 1 is best.
        problems: Number of problems it was run on.
        feasible_runs: Number of runs that found a feasible point.
        runs: Number of runs.
        seconds_per_evaluation: Time in ask and tell per evaluation, mean over the problems.
    """

    optimizer: str
    mean_rank: float
    problems: int
    feasible_runs: int
    runs: int
    seconds_per_evaluation: float


def best_so_far(record: Record) -> Array:
    """Trace the least feasible objective found so far.

    Returns:
        Shape `(budget,)`, NaN before the first feasible point. A run that failed early keeps its
        last value to the end.
    """
    feasible = np.frombuffer(record.feasible.encode(), dtype="S1") == b"1"
    values = np.where(feasible, record.objectives, np.inf)
    trace = np.minimum.accumulate(
        np.append(values, np.full(record.task.budget - len(values), np.inf))
    )
    return np.where(np.isinf(trace), np.nan, trace)


def default_value(records: Iterable[Record]) -> float:
    """Return the largest feasible objective value that any run found, NaN if none did."""
    found = [
        value
        for record in records
        for value, feasible in zip(record.objectives, record.feasible, strict=True)
        if feasible == "1"
    ]
    return max(found, default=float("nan"))


def paper_curve(records: Sequence[Record], default: float) -> tuple[Array, Array]:
    """Score the runs of one optimizer on one problem at every evaluation.

    Args:
        records: Runs of equal budget.
        default: The value of a run that has found nothing feasible.

    Returns:
        Mean and standard error, each of shape `(budget,)`; the error of a single run is NaN.
    """
    budgets = {record.task.budget for record in records}
    if len(budgets) != 1:
        raise RecordError(f"runs to be averaged need one budget, got {sorted(budgets)}")
    traces = np.stack([best_so_far(record) for record in records])
    traces = np.where(np.isnan(traces), default, traces)
    error = np.full(traces.shape[1], np.nan)
    if len(records) > 1:
        error = traces.std(axis=0, ddof=1) / np.sqrt(len(records))
    return traces.mean(axis=0), error


def regret(record: Record, reference: Reference) -> Array:
    """Score one run at every evaluation between the best known (0) and the worst value (1).

    Returns:
        Shape `(budget,)`; 1 before the first feasible point.
    """
    scaled = (best_so_far(record) - reference.best) / (reference.worst - reference.best)
    return np.where(np.isnan(scaled), 1.0, np.clip(scaled, 0.0, 1.0))


def targets(reference: Reference) -> Array:
    """Return the objective values that `anytime` counts, from easy to hard, shape `(50,)`.

    The distance to the best known value falls from that of the reference level to a thousandth.
    """
    return reference.best + (reference.level - reference.best) * np.logspace(0, -3, NUM_TARGETS)


def targets_reached(record: Record, reference: Reference) -> Array:
    """Trace the share of targets that a run has reached: a feasible point, and 50 values.

    Returns:
        Shape `(budget,)`, between 0 and 1.
    """
    trace = best_so_far(record)
    feasible = ~np.isnan(trace)
    # Targets fall, so those reached are the first ones: count how many are not below the trace.
    ascending = targets(reference)[::-1]
    reached = NUM_TARGETS - np.searchsorted(ascending, np.where(feasible, trace, np.inf))
    share: Array = (feasible + reached) / (NUM_TARGETS + 1)
    return share


def anytime(record: Record, reference: Reference) -> float:
    """Score a whole run: the mean share of targets reached after the initial design, 0 to 100."""
    return float(100.0 * targets_reached(record, reference)[record.task.n_init :].mean())


def evaluations_to_feasible(records: Sequence[Record]) -> float:
    """Estimate the evaluations to the first feasible point: all spent until it, per success.

    It is the expected running time of restarting until success (Auger and Hansen 2005), infinite
    if no run succeeded.
    """
    firsts = [record.feasible.find("1") for record in records]
    spent = sum(
        record.task.budget if first < 0 else first + 1
        for record, first in zip(records, firsts, strict=True)
    )
    successes = sum(first >= 0 for first in firsts)
    return spent / successes if successes else float("inf")


def outcome_ranks(groups: Sequence[Sequence[Record]]) -> Array:
    """Rank the final outcomes of several optimizers, seed by seed.

    Feasible runs come first, by their value; infeasible ones after them, by their least
    violation. Ties share the mean of their ranks.

    Args:
        groups: The runs of each optimizer on the same seeds, in the same order.

    Returns:
        Shape `(k, n)` for k optimizers and n seeds; 1 is best.
    """
    outcomes = [[_outcome(record) for record in group] for group in groups]
    # Dense ranks put the pairs (infeasibility, value) in their order.
    ordered = {pair: place for place, pair in enumerate(sorted({p for g in outcomes for p in g}))}
    places = np.array([[ordered[pair] for pair in group] for group in outcomes])
    ranks: Array = rankdata(places, axis=0)
    return ranks


def _outcome(record: Record) -> tuple[bool, float]:
    """Order the end of a run: feasible by value, then infeasible by least violation."""
    final = float(best_so_far(record)[-1])
    if np.isnan(final):
        return True, float(np.min(record.violations, initial=np.inf))
    return False, final


def family(problem_id: str) -> str:
    """Name the family of a problem: its id without dimension, terrains, layout and version."""
    return re.sub(r"(-m\d+)?(-\d+d)?(-alt)?-v\d+$", "", problem_id)


def paper_scores(records: Iterable[Record]) -> list[PaperScore]:
    """Score every optimizer on every problem, best first within a problem."""
    scores = []
    for problem, by_optimizer in sorted(_group(records).items()):
        default = default_value(r for runs in by_optimizer.values() for r in runs)
        rows = [_score(problem, name, runs, default) for name, runs in by_optimizer.items()]
        scores += sorted(rows, key=lambda row: (_last_if_nan(row.mean), row.optimizer))
    return scores


def standings(scores: Iterable[PaperScore]) -> list[Standing]:
    """Rank the optimizers over all problems by their mean rank, best first.

    Ties share the mean of their ranks. An optimizer is ranked on the problems it was run on.
    """
    by_problem: dict[str, list[PaperScore]] = defaultdict(list)
    for score in scores:
        by_problem[score.problem].append(score)
    ranks: dict[str, list[float]] = defaultdict(list)
    rows: dict[str, list[PaperScore]] = defaultdict(list)
    for group in by_problem.values():
        for score, rank in zip(group, rankdata([_last_if_nan(s.mean) for s in group]), strict=True):
            ranks[score.optimizer].append(float(rank))
            rows[score.optimizer].append(score)
    table = [
        Standing(
            optimizer,
            float(np.mean(ranks[optimizer])),
            len(own),
            sum(score.feasible_runs for score in own),
            sum(score.runs for score in own),
            float(np.mean([score.seconds_per_evaluation for score in own])),
        )
        for optimizer, own in rows.items()
    ]
    return sorted(table, key=lambda row: (row.mean_rank, row.optimizer))


def _group(records: Iterable[Record]) -> Mapping[str, Mapping[str, list[Record]]]:
    """Sort records by problem, then by optimizer, then by seed."""
    groups: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        groups[record.task.problem][record.task.optimizer].append(record)
    for by_optimizer in groups.values():
        for runs in by_optimizer.values():
            runs.sort(key=lambda record: record.task.seed)
    return groups


def _score(problem: str, optimizer: str, runs: Sequence[Record], default: float) -> PaperScore:
    """Score the runs of one optimizer on one problem."""
    mean, error = paper_curve(runs, default)
    finals = np.array([best_so_far(run)[-1] for run in runs])
    feasible = finals[~np.isnan(finals)]
    evaluations = sum(len(run.objective) for run in runs)
    return PaperScore(
        problem,
        optimizer,
        float(mean[-1]),
        float(error[-1]),
        len(feasible),
        len(runs),
        float(np.median(feasible)) if len(feasible) else float("nan"),
        sum(run.seconds_optimizer for run in runs) / max(1, evaluations),
    )


def _last_if_nan(value: float) -> float:
    """Sort a missing value behind all others."""
    return float("inf") if np.isnan(value) else value
