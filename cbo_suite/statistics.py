"""Uncertainty and tests for scores; SciPy does the mathematics where it has it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, norm, rankdata, studentized_range, wilcoxon

from cbo_suite.protocols import Array


class Interval(NamedTuple):
    """A confidence interval.

    Attributes:
        low: Its lower end.
        high: Its upper end.
    """

    low: float
    high: float


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


def paired_wilcoxon(ranks: Array, control: Array) -> float:
    """Test two-sidedly whether paired outcome ranks differ (Wilcoxon signed ranks).

    Args:
        ranks: Ranks of one optimizer's outcomes, one per seed, shape `(n,)`.
        control: Ranks of the control's outcomes on the same seeds, shape `(n,)`.

    Returns:
        The p-value; 1 if the outcomes are the same on every seed.
    """
    difference = np.asarray(ranks, dtype=float) - np.asarray(control, dtype=float)
    if not difference.any():
        return 1.0
    return float(wilcoxon(difference, zero_method="wilcox", method="auto").pvalue)


def probability_of_superiority(outcomes: Array, others: Array) -> float:
    """Estimate how likely an outcome is to be lower than another (A12 of Vargha and Delaney).

    Ties count one half; 0.5 means no difference, 1 that the first is always lower.
    """
    first, second = np.asarray(outcomes)[:, None], np.asarray(others)[None, :]
    return float(np.mean((first < second) + 0.5 * (first == second)))


class FriedmanTest(NamedTuple):
    """Whether optimizers differ over problems.

    Attributes:
        p_value: Of the hypothesis that all are alike.
        mean_ranks: Mean rank of each optimizer, shape `(k,)`; 1 is best.
        critical_difference: Mean ranks further apart than this differ at 5 % (Nemenyi).
    """

    p_value: float
    mean_ranks: Array
    critical_difference: float


def friedman(scores: Array) -> FriedmanTest:
    """Compare k >= 3 optimizers over N problems by their ranks (Friedman; Demsar 2006).

    Args:
        scores: Lower is better, shape `(N, k)`.
    """
    table = np.asarray(scores, dtype=float)
    n, k = table.shape
    p_value = 1.0
    if (table != table[:, :1]).any():
        p_value = float(friedmanchisquare(*table.T).pvalue)
    quantile = float(studentized_range.ppf(0.95, k, np.inf)) / math.sqrt(2)
    difference = quantile * math.sqrt(k * (k + 1) / (6 * n))
    return FriedmanTest(p_value, rankdata(table, axis=1).mean(axis=0), difference)


def bootstrap_indices(n: int, resamples: int, seed: int) -> np.ndarray:
    """Draw resamples of n paired seeds, shape `(resamples, n)`.

    The draw depends on n and the seed only: all optimizers of a problem are resampled alike.
    """
    return np.random.default_rng([seed, n]).integers(0, n, size=(resamples, n))


def bootstrap_interval(
    values: Array,
    statistic: Callable[[Array], Array],
    *,
    resamples: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Bound a statistic of the seeds by the percentile bootstrap.

    Args:
        values: One value per seed, shape `(n,)`.
        statistic: Takes resamples of shape `(resamples, n)` and gives one value each.
        resamples: Number of resamples.
        confidence: Probability that the interval covers.
        seed: Of the resampling.
    """
    drawn = statistic(np.asarray(values)[bootstrap_indices(len(values), resamples, seed)])
    tail = 50 * (1 - confidence)
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return Interval(float(low), float(high))
