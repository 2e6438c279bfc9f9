"""Transforms of observations before Gaussian process regression.

Source: Eriksson and Poloczek, "Scalable Constrained Bayesian Optimization", AISTATS 2021: a
Gaussian copula for the objective, the bilog for every constraint.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from cbo_suite.protocols import Array, BoolArray

# Keeps the square of any value finite, so that means and standard deviations are.
LARGEST = 1e150
# What single precision has room for.
LARGEST_SINGLE = 1e15
# Below this a series counts as constant, and its standard deviation is taken as this.
SMALLEST_SCALE = 1e-6


def bilog(values: Array) -> Array:
    """Return sgn(v) log(1 + |v|): stretched around zero, damped far from it, any shape."""
    transformed: Array = np.sign(values) * np.log1p(np.abs(values))
    return transformed


def copula(values: Array) -> Array:
    """Map values `(n,)` to normal quantiles of their ranks; ties share a value.

    Rank k of n becomes the quantile of (k - 1/2) / n, since the plain empirical distribution
    function would send the largest value to infinity.
    """
    if values.size == 0:
        return values.copy()
    quantiles: Array = ndtri((rankdata(values, method="average") - 0.5) / values.size)
    return quantiles


def bilog_back(transformed: Array) -> Array:
    """Return the values whose bilog is given, any shape."""
    with np.errstate(over="ignore"):
        size = np.minimum(np.expm1(np.abs(transformed)), LARGEST)
    values: Array = np.sign(transformed) * size
    return values


def copula_back(quantiles: Array, values: Array) -> Array:
    """Return what normal quantiles, any shape, stand for among values `(n,)`, n at least 1.

    Between the data it is linear interpolation. Beyond them it goes on with the mean slope of the
    outermost standard normal unit inside, since the last two data may be close by chance.
    """
    known, first = np.unique(values, return_index=True)
    places = copula(values)[first]
    inside: Array = np.interp(quantiles, places, known)
    for end, inward in ((0, 1.0), (-1, -1.0)):
        reach = abs(float(np.clip(places[end] + inward, places[0], places[-1]) - places[end]))
        if reach > 0.0:
            change = float(known[end] - np.interp(places[end] + inward, places, known))
            beyond = np.maximum(inward * (places[end] - quantiles), 0.0)
            inside = inside + change / reach * beyond
    return inside


def finite_objective(values: Array) -> Array:
    """Replace what is not a finite number in `(n,)` by the worst finite value (0 if none)."""
    finite = np.isfinite(values)
    worst = values[finite].max() if finite.any() else 0.0
    cleaned: Array = np.clip(np.where(finite, values, worst), -LARGEST, LARGEST)
    return cleaned


def finite_constraints(values: Array) -> Array:
    """Replace what is not finite in `(n, m)` by a violation of the constraint's own size.

    A value that could not be computed counts as violated, by the largest magnitude that the
    constraint has had (1 before it had any but 0).
    """
    finite = np.isfinite(values)
    largest = np.abs(values).max(axis=0, where=finite, initial=0.0)
    violated = np.where(largest > 0.0, largest, 1.0)
    cleaned: Array = np.clip(np.where(finite, values, violated), -LARGEST, LARGEST)
    return cleaned


class Standardized(NamedTuple):
    """Series with mean zero and variance one, and the way back.

    Attributes:
        values: Standardised series, shape `(n, k)`.
        mean: Mean of each series, shape `(k,)`.
        scale: Standard deviation of each series, at least `SMALLEST_SCALE`, shape `(k,)`.
        constant: Which series have a single value, shape `(k,)`.
    """

    values: Array
    mean: Array
    scale: Array
    constant: BoolArray


def standardize(values: Array) -> Standardized:
    """Standardise the columns of `(n, k)`."""
    mean = values.mean(axis=0)
    deviation = values.std(axis=0)
    scale = np.maximum(deviation, SMALLEST_SCALE)
    return Standardized((values - mean) / scale, mean, scale, np.ptp(values, axis=0) == 0.0)
