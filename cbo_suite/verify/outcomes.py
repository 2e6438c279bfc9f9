"""How runs end and how fast they get there, and whether some do better than others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from cbo_suite.protocols import Array, Task
from cbo_suite.scoring.references import Reference, load_references
from cbo_suite.scoring.runs import anytime, outcome_ranks


class Outcome(NamedTuple):
    """What came of a run.

    Attributes:
        final: Least feasible objective value, NaN if there is none.
        violation: Least violation, infinite if nothing is finite.
        anytime: Share of targets reached, 0 to 100; NaN if the problem has no reference.
    """

    final: float
    violation: float
    anytime: float


def outcome_of(task: Task, objective: Array, violation: Array) -> Outcome:
    """Say what came of a run from its values, shape `(n,)` each."""
    reference = load_references().get(task.problem)
    tolerance = reference.feasibility_tolerance if reference else 0.0
    values = np.full(task.budget, np.nan)
    values[: len(objective)] = np.where(violation <= tolerance, objective, np.nan)
    trace = np.fmin.accumulate(values)
    return Outcome(
        float(trace[-1]),
        float(np.min(violation, initial=np.inf)),
        _score(trace, reference, task.n_init),
    )


def _score(trace: Array, reference: Reference | None, n_init: int) -> float:
    """Score the course of a run, NaN if the problem has no reference."""
    return float("nan") if reference is None else anytime(trace, reference, n_init)


def rank_ends(outcomes: Sequence[Outcome]) -> Array:
    """Rank runs by how they end; 1 is the best, equals share a rank."""
    finals, violations = (np.array([outcome[i] for outcome in outcomes]) for i in range(2))
    return outcome_ranks(finals, violations)


def rank_courses(outcomes: Sequence[Outcome]) -> Array:
    """Rank runs by how fast they are; 1 is the best, equals share a rank."""
    ranks: Array = rankdata([-outcome.anytime for outcome in outcomes])
    return ranks


def rank_sum_test(ranks: Array, others: Array) -> float:
    """Test whether runs rank lower, that is better, than others (Wilcoxon's rank sum).

    One-sided and exact, also with ties: every way to deal the joint ranks to the two groups counts
    the same.

    Args:
        ranks: Ranks of the runs in both groups together, shape `(n,)`.
        others: Ranks of the other group, shape `(k,)`.

    Returns:
        The probability of a rank sum of the others that is as large or larger.
    """
    # Shared ranks are halves, so twice a rank is a whole number.
    doubled = np.rint(2 * np.concatenate([ranks, others])).astype(int)
    most = int(np.sort(doubled)[len(ranks) :].sum())
    # chance[j, s]: in how many ways j of the ranks seen so far sum up to s.
    ways = np.zeros((len(others) + 1, most + 1))
    ways[0, 0] = 1.0
    for rank in doubled:
        ways[1:, rank:] += ways[:-1, : most + 1 - rank].copy()
    observed = int(np.rint(2 * others.sum()))
    return float(ways[-1, observed:].sum() / ways[-1].sum())
