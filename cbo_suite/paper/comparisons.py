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
# What sets our baselines apart, where they do better than the paper's; docs/optimizers has more.
STRONGER = {
    "cei": "our cEI is built on SCBO's own models, and on logarithms that do not vanish",
    "pesc": "our PESC also evaluates the points that it recommends",
    "slack": "our SLACK gives every draw of the constraints a slack of its own",
    "cobyla": "our COBYLA starts again where it has converged",
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
    """Two methods on common seeds.

    Attributes:
        first: Id of the one that is said to be better.
        second: Id of the other.
        p_value: That the first is no better, one-sided, adjusted where several are made.
        superiority: Probability that a run of the first beats one of the second (A12).
        interval: 95 % interval of that probability.
        pairs: Number of common seeds.
    """

    first: str
    second: str
    p_value: float
    superiority: float
    interval: Interval
    pairs: int

    @property
    def result(self) -> str:
        """Write the numbers."""
        return f"{p_text(self.p_value)}, A12 = {self.superiority:.2f}"

    @property
    def effect(self) -> str:
        """Write against whom, and how large the difference is."""
        low, high = self.interval
        return (
            f"against {name(self.second)} A12 = {self.superiority:.2f} (95 % interval {low:.2f} to "
            f"{high:.2f})"
        )

    @property
    def text(self) -> str:
        """Write against whom, and the numbers."""
        return f"against {name(self.second)} {self.result}"


# Why a sentence probably fails: a text, or what makes one of the comparisons that fail.
Reason = str | Callable[[Sequence[Duel]], str]


def name(optimizer: str) -> str:
    """Name a method as the paper does; what it has no name for goes by its id."""
    return NAMES.get(optimizer, optimizer)


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
    p_value = paired_wilcoxon(mine, theirs, "two-sided" if two_sided else "less")
    effect, interval = probability_of_superiority(mine, theirs), superiority_interval(mine, theirs)
    return Duel(first, second, p_value, effect, interval, len(common))


def adjusted(duels: Sequence[Duel]) -> list[Duel]:
    """Adjust the p-values of several comparisons by Holm's rule."""
    p_values = holm([found.p_value for found in duels])
    return [found._replace(p_value=float(p)) for found, p in zip(duels, p_values, strict=True)]


def better(
    text: str, duels: Sequence[Duel], reason: Reason = "", *, where: Sequence[str] = ()
) -> Part:
    """Judge that the first of each pair is better than the second, all of them.

    Args:
        text: What is said.
        duels: One-sided comparisons, not yet adjusted.
        reason: Why it probably fails where it does.
        where: What to put before each comparison, such as the problem.
    """
    found = adjusted(duels)
    lost = [one for one in found if one.p_value >= LEVEL]
    several = ", Holm" if len(found) > 1 else ""
    return Part(
        text,
        f"{_listed(found, where)} (one-sided Wilcoxon{several}, {_pairs(found)})",
        not lost,
        reason if isinstance(reason, str) else reason(lost) if lost else "",
    )


def _listed(duels: Sequence[Duel], where: Sequence[str]) -> str:
    """Write comparisons one after the other, naming the first method where it changes."""
    texts, last = [], ""
    for one, label in zip(duels, where or [""] * len(duels), strict=True):
        subject = "" if one.first == last else f"{name(one.first)} "
        texts.append(f"{label + ': ' if label else ''}{subject}{one.text}")
        last = one.first
    return "; ".join(texts)


def best_of(
    evidence: Evidence,
    problem: str,
    winner: str,
    rivals: Sequence[str],
    text: str,
    reason: Reason = "",
) -> Part:
    """Judge that one method ends better than each of its rivals."""
    duels = [duel(evidence, problem, winner, rival) for rival in rivals if rival != winner]
    return better(text, duels, reason)


def stronger(lost: Sequence[Duel]) -> str:
    """Say what sets those of our baselines apart that another method is not better than."""
    rivals = dict.fromkeys(one.second for one in lost)
    known = [STRONGER[id_] for id_ in rivals if id_ in STRONGER]
    return "; ".join(known) or "the paper's settings are not all published; ours may be others"


def alike(text: str, duels: Sequence[Duel], reason: str = "", *, where: Sequence[str] = ()) -> Part:
    """Judge that two methods do not differ noticeably.

    It holds where no two-sided test sees a difference and no effect is large, it fails where a
    test does; a large effect that no test sees is too few runs to tell.
    """
    found = adjusted(duels)
    labels = [f"{label}: " for label in where] or [""] * len(found)
    listed = "; ".join(
        f"{label}{name(one.first)} and {name(one.second)} {one.result}"
        for label, one in zip(labels, found, strict=True)
    )
    large = any(max(d.superiority, 1 - d.superiority) >= LARGE_EFFECT for d in found)
    different = any(one.p_value < LEVEL for one in found)
    holds = False if different else None if large else True
    several = ", Holm" if len(found) > 1 else ""
    return Part(text, f"{listed} (two-sided Wilcoxon{several}, {_pairs(found)})", holds, reason)


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


def _pairs(duels: Sequence[Duel]) -> str:
    """Say on how many pairs of runs tests are made."""
    counts = sorted({one.pairs for one in duels})
    return " or ".join(map(str, counts)) + " pairs"
