"""Uncertainty and tests for scores; SciPy does the mathematics where it has it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import friedmanchisquare, norm, rankdata, studentized_range, t, wilcoxon

from cbo_suite.protocols import Array

RESAMPLES = 2000
_MOST_EXACT_PAIRS = 50


class Interval(NamedTuple):
    """A confidence interval.

    Attributes:
        low: Its lower end.
        high: Its upper end.
    """

    low: float
    high: float


@lru_cache(maxsize=1024)
def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Bound the probability of a success by Wilson's score interval (Wilson 1927)."""
    if trials == 0:
        return Interval(0.0, 1.0)
    z = float(norm.ppf(0.5 + confidence / 2))
    share = successes / trials
    spread = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / spread
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2)) / spread
    # At the ends rounding would leave a probability of -1e-17 or 1 + 1e-16.
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def holm(p_values: Sequence[float]) -> Array:
    """Adjust p-values for several comparisons by Holm's step-down rule (Holm 1979).

    Returns:
        Adjusted p-values in the order given, shape `(k,)`; NaN stays NaN and does not count.
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    valid = np.flatnonzero(~np.isnan(p))
    order = valid[np.argsort(p[valid], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return adjusted


def paired_wilcoxon(
    ranks: Array, control: Array, alternative: Literal["two-sided", "less"] = "two-sided"
) -> float:
    """Test whether paired outcome ranks differ (Wilcoxon signed ranks).

    Pairs without a difference are left out. Up to 50 pairs the p-value is exact, also with ties:
    SciPy is so only by trying permutations one by one, a second for each test.

    Args:
        ranks: Ranks of one optimizer's outcomes, one per seed, shape `(n,)`.
        control: Ranks of the control's outcomes on the same seeds, shape `(n,)`.
        alternative: Whether any difference counts, or only that of lower ranks.

    Returns:
        The p-value; 1 if the outcomes are the same on every seed.
    """
    difference = np.asarray(ranks, dtype=float) - np.asarray(control, dtype=float)
    difference = difference[difference != 0]
    if not len(difference):
        return 1.0
    if len(difference) > _MOST_EXACT_PAIRS:
        return float(wilcoxon(difference, alternative=alternative).pvalue)
    # Shared ranks are halves, so twice a rank is a whole number.
    doubled = np.rint(2 * rankdata(np.abs(difference))).astype(int)
    # Probability of each sum of the ranks that get a plus when every sign is a coin's.
    chance = np.zeros(doubled.sum() + 1)
    chance[0] = 1.0
    for rank in doubled:
        chance[rank:] += chance[:-rank].copy()
        chance /= 2
    positive = int(doubled[difference > 0].sum())
    lower, upper = float(chance[: positive + 1].sum()), float(chance[positive:].sum())
    return min(1.0, lower if alternative == "less" else 2 * min(lower, upper))


def probability_of_superiority(outcomes: Array, others: Array) -> float:
    """Estimate how likely an outcome is to be lower than another (A12 of Vargha and Delaney).

    Ties count one half; 0.5 means no difference, 1 that the first is always lower.
    """
    return float(np.mean(_wins(outcomes, others)))


def _wins(outcomes: Array, others: Array) -> Array:
    """Compare each outcome with each other one: 1 where it is lower, a half at ties, `(n, m)`."""
    first, second = np.asarray(outcomes)[:, None], np.asarray(others)[None, :]
    wins: Array = (first < second) + 0.5 * (first == second)
    return wins


def superiority_interval(outcomes: Array, others: Array, confidence: float = 0.95) -> Interval:
    """Bound the probability of superiority of paired outcomes.

    The variance is that of the placements (DeLong, DeLong and Clarke-Pearson 1988), taken in pairs,
    since outcomes of one seed go together; the interval is normal on the scale of log-odds, which
    keeps it between 0 and 1. Where one always wins there is no variance: then it reaches down to
    the probability of a win by which as many pairs would all be won in 5 % of experiments.

    Args:
        outcomes: One outcome per seed, shape `(n,)`.
        others: Those of the other on the same seeds, shape `(n,)`.
        confidence: Probability that the interval covers.
    """
    wins = _wins(outcomes, others)
    n, mean = len(wins), float(wins.mean())
    if n < 2:
        return Interval(0.0, 1.0)
    if not 0.0 < mean < 1.0:
        least = (1 - confidence) ** (1 / n)
        return Interval(least, 1.0) if mean == 1.0 else Interval(0.0, 1 - least)
    placements = wins.mean(axis=1) + wins.mean(axis=0) - 2 * mean
    error = math.sqrt(float(placements @ placements) / (n * (n - 1)))
    half = float(norm.ppf(0.5 + confidence / 2)) * error / (mean * (1 - mean))
    low, high = expit(logit(mean) + np.array([-half, half]))
    return Interval(float(low), float(high))


class FriedmanTest(NamedTuple):
    """Whether optimizers differ over problems.

    Attributes:
        p_value: Of the hypothesis that all are alike.
        mean_ranks: Mean rank of each optimizer, shape `(k,)`; 1 is best.
        critical_difference: Mean ranks further apart than this differ at 5 % (Nemenyi).
        p_values: Against the optimizer of the least mean rank, adjusted by Holm, shape `(k,)`; NaN
            for itself.
    """

    p_value: float
    mean_ranks: Array
    critical_difference: float
    p_values: Array


def friedman(scores: Array) -> FriedmanTest:
    """Compare k >= 3 optimizers over N problems by their ranks (Friedman; Demsar 2006).

    Args:
        scores: Lower is better, shape `(N, k)`; infinite where there is none.
    """
    ranks = rankdata(np.asarray(scores, dtype=float), axis=1)
    n, k = ranks.shape
    p_value = 1.0
    if (ranks != ranks[:, :1]).any():
        p_value = float(friedmanchisquare(*ranks.T).pvalue)
    error = math.sqrt(k * (k + 1) / (6 * n))
    mean_ranks = ranks.mean(axis=0)
    control = int(np.argmin(mean_ranks))
    p_values = 2 * norm.sf((mean_ranks - mean_ranks[control]) / error)
    p_values[control] = np.nan
    return FriedmanTest(p_value, mean_ranks, _nemenyi_quantile(k) * error, holm(p_values))


@cache
def _nemenyi_quantile(k: int) -> float:
    """Return the 95 % quantile of Nemenyi's test for k optimizers; SciPy integrates for it."""
    return float(studentized_range.ppf(0.95, k, np.inf)) / math.sqrt(2)


@lru_cache(maxsize=64)
def bootstrap_indices(n: int, key: str, resamples: int = RESAMPLES) -> NDArray[np.int64]:
    """Draw resamples of n seeds, shape `(resamples, n)`, read-only.

    The draw depends on the arguments only. With the id of a problem as the key, all optimizers of
    the problem are resampled alike (paired), and problems independently (stratified).
    """
    random = np.random.Generator(_bit_generator(n, key))
    indices = random.integers(0, n, size=(resamples, n))
    indices.setflags(write=False)
    return indices


def bootstrap_state(n: int, key: str) -> tuple[int, int]:
    """Return where the generator of `bootstrap_indices` begins: state and increment of PCG64."""
    state = _bit_generator(n, key).state["state"]
    return state["state"], state["inc"]


def _bit_generator(n: int, key: str) -> np.random.PCG64:
    """Make the generator that draws n seeds for a key."""
    return np.random.PCG64([zlib.crc32(key.encode()), n])


def bootstrap_means(values: Array, key: str, resamples: int = RESAMPLES) -> Array:
    """Draw means of resampled values.

    Args:
        values: One value per seed, shape `(n,)`.
        key: Equal keys draw equal seeds.
        resamples: Number of resamples.

    Returns:
        Shape `(resamples,)`.
    """
    means: Array = np.asarray(values)[bootstrap_indices(len(values), key, resamples)].mean(axis=1)
    return means


def percentile_interval(
    drawn: Array, sizes: Sequence[int], confidence: float = 0.95
) -> Interval | None:
    """Bound a mean, or a mean of means, by percentiles of its bootstrap draws.

    Plain percentiles of few values are too narrow, by what separates a normal distribution from
    Student's and n from n - 1; they are taken further out by as much (the expanded percentile
    interval of Hesterberg 2015, "What Teachers Should Know About the Bootstrap").

    Args:
        drawn: Bootstrap draws, shape `(resamples,)`.
        sizes: Number of values that were resampled, for each mean.
        confidence: Probability that the interval covers.

    Returns:
        The interval; None if no mean is of two values or more, as nothing is known of its spread.
    """
    freedom = sum(sizes) - len(sizes)
    if freedom < 1:
        return None
    tail = _expanded_tail(sum(sizes), freedom, confidence)
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(float(low), float(high))


@lru_cache(maxsize=256)
def _expanded_tail(n: int, freedom: int, confidence: float) -> float:
    """Return the probability below the lower end of an expanded percentile interval."""
    return float(norm.cdf(math.sqrt(n / freedom) * t.ppf((1 - confidence) / 2, freedom)))
