"""The tests that claims are decided by, each as a sentence that holds, fails or cannot be told.

Runs are compared by the order of their outcomes: feasible before infeasible, feasible ones by
value, infeasible ones by violation. Comparisons are paired on common seeds: equal designs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import betabinom, fisher_exact

from cbo_suite.paper.evidence import Evidence
from cbo_suite.paper.experiments import ACKLEY, KEANE, MOPTA08, ROSENBROCK, ROVER, TOY
from cbo_suite.protocols import Array
from cbo_suite.scoring.references import load_references
from cbo_suite.scoring.runs import outcome_ranks
from cbo_suite.scoring.statistics import (
    Interval,
    holm,
    paired_wilcoxon,
    probability_of_superiority,
    superiority_interval,
    wilson_interval,
)

LEVEL = 0.05
# Vargha and Delaney (2000): from here on an effect is large.
LARGE_EFFECT = 0.71
# Share of what random search leaves to the best known value that is an excellent result, and of the
# runs that must have one: the paper gives no numbers.
CLOSE, NEARLY_ALL = 0.1, 0.9

TITLES = {
    "tension-string-3d-v1": "3D tension-compression string",
    "pressure-vessel-4d-v1": "4D pressure vessel",
    "welded-beam-4d-v1": "4D welded beam",
    "speed-reducer-7d-v1": "7D speed reducer",
    ACKLEY: "10D Ackley",
    KEANE: "30D Keane",
    ROVER: "60D rover",
    MOPTA08: "124D MOPTA08",
    TOY: "2D toy problem",
    ROSENBROCK: "5D Rosenbrock",
}
NAMES = {
    "scbo": "SCBO",
    "cei": "cEI",
    "pesc": "PESC",
    "slack": "SLACK",
    "cobyla": "COBYLA",
    "cma-es": "CMA-ES",
    "random-search": "random search",
    "scbo-ei": "SCBO with EI",
    "scbo-global": "SCBO without region",
    "scbo-ei-global": "SCBO with EI, without region",
    "scbo-untransformed": "untransformed SCBO",
    "scbo-untransformed-ei": "untransformed SCBO with EI",
    "scbo-untransformed-global": "untransformed SCBO without region",
    "scbo-untransformed-ei-global": "untransformed SCBO with EI, without region",
    "scbo-copula-only": "SCBO with the copula alone",
    "scbo-bilog-only": "SCBO with the bilog alone",
    "scbo-no-perturbation": "SCBO that changes all variables",
    "cei-transformed": "cEI on transformed values",
    "pesc-transformed": "PESC on transformed values",
    "slack-transformed": "SLACK on transformed values",
}


class Part(NamedTuple):
    """One sentence of a claim.

    Attributes:
        text: What it says.
        evidence: What was measured, and the test.
        holds: Whether it does; None if that cannot be told.
        reason: Why it probably fails where it does.
    """

    text: str
    evidence: str
    holds: bool | None
    reason: str = ""


class Duel(NamedTuple):
    """Two methods on common seeds of a problem.

    Attributes:
        problem: Id of the problem.
        after: Number of evaluations after which they are compared, None for all.
        first: Id of the one that is said to be better.
        second: Id of the other.
        p_value: That the first is no better, or in a two-sided test that they do not differ.
        reverse: That the second is no better, one-sided.
        superiority: Probability that a run of the first beats one of the second (A12).
        interval: 95 % interval of that probability.
        pairs: Number of common seeds.
    """

    problem: str
    after: int | None
    first: str
    second: str
    p_value: float
    reverse: float
    superiority: float
    interval: Interval
    pairs: int

    @property
    def effect(self) -> str:
        """Write how large the difference is."""
        low, high = self.interval
        return f"{a12_text(self.superiority)} ({low:.2f} to {high:.2f})"

    @property
    def result(self) -> str:
        """Write the numbers."""
        return f"{p_text(self.p_value)}, {self.effect}"

    @property
    def text(self) -> str:
        """Write against whom, and the numbers."""
        return f"against {name(self.second)} {self.result}"


# Why a sentence probably fails: a text, or what makes one of the comparisons that fail.
Reason = str | Callable[[Sequence[Duel]], str]


def name(optimizer: str) -> str:
    """Name a method as the paper does; what it has no name for goes by its id."""
    return NAMES.get(optimizer, optimizer)


def a12_text(value: float) -> str:
    """Write an A12; 1 and 0 are for methods of which every run beats every run of the other."""
    rounded = f"{value:.2f}"
    if rounded == "1.00" and value < 1.0:
        return "A12 > 0.99"
    return "A12 < 0.01" if rounded == "0.00" and value > 0.0 else f"A12 = {rounded}"


def p_text(value: float) -> str:
    """Write a p-value."""
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"


def duel(
    evidence: Evidence,
    problem: str,
    first: str,
    second: str,
    *,
    after: int | None = None,
    two_sided: bool = False,
) -> Duel:
    """Compare two methods on a problem by Wilcoxon's signed ranks.

    Args:
        evidence: The runs.
        problem: Id of the problem.
        first: The one that is said to be better.
        second: The other one.
        after: Number of evaluations after which they are compared, all by default.
        two_sided: Whether any difference counts.
    """
    sides = [evidence.runs[problem, id_] for id_ in (first, second)]
    common = sorted(set(sides[0].seeds) & set(sides[1].seeds))
    rows = [[runs.seeds.index(seed) for seed in common] for runs in sides]
    place = -1 if after is None else after - 1
    finals = np.stack([runs.best[own, place] for runs, own in zip(sides, rows, strict=True)])
    least = np.stack([runs.violation[own, place] for runs, own in zip(sides, rows, strict=True)])
    mine, theirs = outcome_ranks(finals, least)
    return Duel(
        problem,
        after,
        first,
        second,
        p_value=paired_wilcoxon(mine, theirs, "two-sided" if two_sided else "less"),
        reverse=paired_wilcoxon(theirs, mine, "less"),
        superiority=probability_of_superiority(mine, theirs),
        interval=superiority_interval(mine, theirs),
        pairs=len(common),
    )


def adjusted(duels: Sequence[Duel]) -> list[Duel]:
    """Adjust the p-values of several comparisons by Holm's rule, each direction on its own."""
    p_values = holm([one.p_value for one in duels])
    reverse = holm([one.reverse for one in duels])
    return [
        one._replace(p_value=float(p), reverse=float(back))
        for one, p, back in zip(duels, p_values, reverse, strict=True)
    ]


def better(
    text: str, duels: Sequence[Duel], reason: Reason = "", *, where: Sequence[str] = ()
) -> Part:
    """Judge that the first of each pair is better than the second, all of them.

    It holds where every test says so; as all must, none is adjusted. It fails where the interval of
    one effect that no test sees ends below a large one. Else there are too few runs to tell.

    Args:
        text: What is said.
        duels: One-sided comparisons.
        reason: Why it probably fails where it does.
        where: What to put before each comparison, such as the problem.
    """
    lost = [one for one in duels if one.p_value >= LEVEL]
    excluded = any(one.interval.high < LARGE_EFFECT for one in lost)
    return Part(
        text,
        f"{_listed(duels, where)} (one-sided Wilcoxon, {_pairs(duels)}){_reversed(duels, where)}",
        not lost or (False if excluded else None),
        _because(reason, lost),
    )


def _because(reason: Reason, lost: Sequence[Duel]) -> str:
    """Write why comparisons were lost, if any were."""
    return reason if isinstance(reason, str) else reason(lost) if lost else ""


def _listed(duels: Sequence[Duel], where: Sequence[str]) -> str:
    """Write comparisons one after the other, naming place and first method where they change."""
    texts, last = [], ("", "")
    for one, label in zip(duels, where or [""] * len(duels), strict=True):
        place = f"{label}: " if label and label != last[0] else ""
        subject = "" if one.first == last[1] else f"{name(one.first)} "
        texts.append(f"{place}{subject}{one.text}")
        last = label, one.first
    return "; ".join(texts)


def _reversed(duels: Sequence[Duel], where: Sequence[str]) -> str:
    """Write which comparisons come out the other way round, by tests that Holm's rule adjusts."""
    found = [
        f"{label + ' ' if label else ''}{name(one.second)} over {name(one.first)}"
        for one, label in zip(adjusted(duels), where or [""] * len(duels), strict=True)
        if one.reverse < LEVEL
    ]
    return f"; the other way round (Holm): {', '.join(found)}" if found else ""


def leads_early(
    text: str,
    evidence: Evidence,
    problem: str,
    pair: tuple[str, str],
    times: Sequence[int],
    reason: str,
) -> Part:
    """Judge that one method is ahead of another after one of some numbers of evaluations."""
    duels = adjusted([duel(evidence, problem, *pair, after=after) for after in times])
    listed = "; ".join(f"after {one.after} {one.text}" for one in duels)
    holds = any(one.p_value < LEVEL for one in duels)
    return Part(text, f"{name(pair[0])} {listed} (one-sided Wilcoxon, Holm)", holds, reason)


def alike(
    text: str, duels: Sequence[Duel], reason: Reason = "", *, where: Sequence[str] = ()
) -> Part:
    """Judge that two methods do not differ noticeably.

    It fails where a two-sided test sees a difference, and holds where the intervals of all effects
    leave no large one. Else there are too few runs to tell.
    """
    found = adjusted(duels)
    labels = [f"{label}: " for label in where] or [""] * len(found)
    listed = "; ".join(
        f"{label}{name(one.first)} and {name(one.second)} {one.result}"
        for label, one in zip(labels, found, strict=True)
    )
    lost = [one for one in found if one.p_value < LEVEL]
    small = all(
        1 - LARGE_EFFECT < one.interval.low and one.interval.high < LARGE_EFFECT for one in found
    )
    several = ", Holm" if len(found) > 1 else ""
    return Part(
        text,
        f"{listed} (two-sided Wilcoxon{several}, {_pairs(found)})",
        False if lost else small or None,
        _because(reason, lost),
    )


def order(evidence: Evidence, problem: str, methods: Sequence[str]) -> list[tuple[str, float]]:
    """Order methods on a problem by the mean rank of their outcomes, seed by seed."""
    runs = [evidence.runs[problem, id_] for id_ in methods]
    common = sorted(set.intersection(*(set(own.seeds) for own in runs)))
    rows = [[own.seeds.index(seed) for seed in common] for own in runs]
    finals = np.stack([own.best[row, -1] for own, row in zip(runs, rows, strict=True)])
    least = np.stack([own.violation[row, -1] for own, row in zip(runs, rows, strict=True)])
    ranks = np.stack([outcome_ranks(finals[:, i], least[:, i]) for i in range(len(common))], axis=1)
    means: Array = ranks.mean(axis=1)
    return sorted(zip(methods, means.tolist(), strict=True), key=lambda row: (row[1], row[0]))


def order_text(ordered: Sequence[tuple[str, float]]) -> str:
    """Write methods with their mean ranks."""
    return ", ".join(f"{name(id_)} {rank:.2f}" for id_, rank in ordered)


def feasible_text(successes: int, runs: int) -> str:
    """Write a share of feasible runs with Wilson's interval."""
    low, high = wilson_interval(successes, runs)
    return f"{successes}/{runs} (95 % interval {low:.0%} to {high:.0%})"


def share_p_value(successes: int, runs: int, printed: int, printed_runs: int) -> float:
    """Test whether two shares of feasible runs differ, by Fisher's exact test."""
    table = np.array([[successes, runs - successes], [printed, printed_runs - printed]])
    return float(fisher_exact(table).pvalue)


def place_p_value(below: int, runs: int, place: float, printed_runs: int) -> float:
    """Test whether so many runs lie below a printed order statistic, if both have one law.

    The number of runs below the j-th smallest of n others is beta-binomial; the median of an even
    number of others counts as the place half way between two.

    Args:
        below: Number of our runs with a smaller value.
        runs: Number of our runs.
        place: Place of the printed value among those that it was taken from, 1 for the smallest.
        printed_runs: Number of those.

    Returns:
        The two-sided p-value.
    """
    law = betabinom(runs, place, printed_runs - place + 1)
    return min(1.0, 2.0 * float(min(law.cdf(below), law.sf(below - 1))))


def always_feasible(evidence: Evidence, problem: str, method: str, reason: str) -> Part:
    """Judge that every run of a method finds a feasible point."""
    runs = evidence.runs[problem, method]
    found, total = runs.num_feasible, len(runs.seeds)
    text = f"{name(method)} finds a feasible point in every run"
    return Part(text, f"feasible runs {feasible_text(found, total)}", found == total, reason)


def excellent(evidence: Evidence, problem: str, method: str, text: str, reason: str) -> Part:
    """Judge that nearly all runs of a method end close to the best known value."""
    known = load_references()[problem].best
    bound = CLOSE * (evidence.imputed(problem, "random-search")[:, -1].mean() - known)
    finals = evidence.runs[problem, method].finals
    close = int(np.count_nonzero(finals - known <= bound))
    return Part(
        text,
        f"{close} of {len(finals)} runs end at most {bound:.3g} above the best known value, "
        f"which is {CLOSE:.0%} of what random search leaves on average (excellent: at least "
        f"{NEARLY_ALL:.0%} of the runs)",
        close >= NEARLY_ALL * len(finals),
        reason,
    )


def _pairs(duels: Sequence[Duel]) -> str:
    """Say on how many pairs of runs tests are made."""
    counts = sorted({one.pairs for one in duels})
    return " or ".join(map(str, counts)) + " pairs"
