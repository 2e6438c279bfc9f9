"""Expected improvement of the augmented Lagrangian of Gaussian objective and constraints.

Two ways to the same number. By quasi-Monte Carlo over the constraints, each draw with its own best
slack; the objective is integrated in closed form, so that the logarithm is smooth and never minus
infinity. And exactly, from the characteristic function by a Fourier cosine series (Fang and
Oosterlee, "A novel pricing method for European options based on Fourier-cosine series expansions",
2008). The slack of Picheny et al. (2016), fixed at its best for the mean of the constraint, is an
option of both.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr, wofz
from torch import Tensor

from cbo_suite.optimizers.models.improvement import SMALLEST_DEVIATION, log_improvement
from cbo_suite.optimizers.shared.augmented_lagrangian import Multipliers
from cbo_suite.protocols import Array

ComplexArray = NDArray[np.complex128]

# Numbers of one block of points times draws times constraints.
BLOCK_ELEMENTS = 1 << 20
# The series covers the law from the objective's deviations below its least value ...
LEFT_DEVIATIONS = 10.0
# ... to this number of deviations of the sum above its mean; squares have long tails.
RIGHT_DEVIATIONS = 30.0
# Its terms end where the characteristic function of the objective has fallen to about 1e-10.
LAST_FREQUENCY = 7.0
FEWEST_TERMS, MOST_TERMS = 64, 4096


def log_expected_improvement(
    mean: Tensor,
    deviation: Tensor,
    multipliers: Multipliers,
    best: float,
    normals: Tensor,
    *,
    mean_slack: bool = False,
) -> Tensor:
    """Log of the expected improvement by quasi-Monte Carlo, shape `(p,)`.

    Args:
        mean: Posterior means of the objective and of the constraints, shape `(1 + m, p)`.
        deviation: Posterior standard deviations, shape `(1 + m, p)`.
        multipliers: Of the m constraints.
        best: Least augmented Lagrangian of the data.
        normals: Draws of the standard normal law, common to all points, shape `(k, m)`.
        mean_slack: Whether the slack is that of the mean instead of each draw's own.
    """
    weights, penalty = torch.as_tensor(multipliers.weights), multipliers.penalty
    deviation = deviation.clamp_min(SMALLEST_DEVIATION)
    size = max(1, BLOCK_ELEMENTS // max(1, normals.numel()))
    parts = []
    for start in range(0, mean.shape[1], size):
        part = slice(start, start + size)
        centre, width = mean[1:, part].mT[:, None], deviation[1:, part].mT[:, None]
        force = weights + (centre + width * normals) / penalty  # (p, k, m)
        if mean_slack:
            force += (-weights * penalty - centre).clamp_min(0.0) / penalty
        else:
            force.clamp_min_(0.0)
        cost = 0.5 * penalty * (force.square_() - weights.square()).sum(2)
        gap = (best - cost - mean[0, part, None]) / deviation[0, part, None]
        parts.append(log_improvement(gap).logsumexp(1))
    return torch.cat(parts) + deviation[0].log() - math.log(normals.shape[0])


def exact_expected_improvement(
    mean: Array,
    deviation: Array,
    multipliers: Multipliers,
    best: float,
    *,
    mean_slack: bool = False,
) -> Array:
    """Expected improvement by a Fourier cosine series, shape `(p,)`; arguments as above.

    It is exact to about 1e-9 of the deviation of the augmented Lagrangian, and less so where the
    objective is known a thousand times better than the constraints' part.
    """
    deviation = np.maximum(deviation, SMALLEST_DEVIATION)
    law = _Law(mean, deviation, multipliers, mean_slack)
    lower = law.least - LEFT_DEVIATIONS * deviation[0]
    lower = np.maximum(lower, law.mean - RIGHT_DEVIATIONS * law.deviation)
    upper = law.mean + RIGHT_DEVIATIONS * law.deviation
    width = upper - lower
    needed = LAST_FREQUENCY * float(np.max(width / deviation[0])) / math.pi
    terms = int(np.clip(needed, FEWEST_TERMS, MOST_TERMS))
    rows = max(1, BLOCK_ELEMENTS // terms)
    reach = np.clip(best, lower, upper) - lower
    series = [
        _cosine_series(law, slice(start, start + rows), lower, width, reach, terms)
        for start in range(0, len(lower), rows)
    ]
    beyond = np.maximum(best - upper, 0.0)
    total: Array = np.maximum(np.concatenate(series), 0.0) + beyond
    return total


def _cosine_series(
    law: _Law, part: slice, lower: Array, width: Array, reach: Array, terms: int
) -> Array:
    """The mean of max(0, lower + reach - Y) for some points, from cosines on [0, width]."""
    frequency = np.arange(1, terms + 1) * np.pi / width[part, None]  # (p, terms)
    phase = np.exp(-1j * frequency * lower[part, None])
    coefficient = 2.0 / width[part, None] * (law.transform(part, frequency) * phase).real
    payoff = (1.0 - np.cos(frequency * reach[part, None])) / frequency**2
    total: Array = (coefficient * payoff).sum(axis=1) + 0.5 * reach[part] ** 2 / width[part]
    return total


class _Law:
    """The law of the augmented Lagrangian at p points.

    It is an independent sum of the objective, of (r / 2) z_j^2 where z_j = l_j + (c_j + s_j) / r
    is Gaussian, and of a constant. With each draw's best slack, z_j is its positive part.

    Attributes:
        least: What the sum without the objective's deviation exceeds, shape `(p,)`.
        mean: Mean of the sum, shape `(p,)`.
        deviation: Standard deviation of the sum, shape `(p,)`.
    """

    def __init__(
        self, mean: Array, deviation: Array, multipliers: Multipliers, mean_slack: bool
    ) -> None:
        """Take means and deviations `(1 + m, p)` of the objective and of the constraints."""
        weights, self._penalty = multipliers.weights[:, None], multipliers.penalty
        self._cut = not mean_slack
        self._centre, self._spread = mean[0], deviation[0]
        self._m, self._s = weights + mean[1:] / self._penalty, deviation[1:] / self._penalty
        if mean_slack:
            self._m = self._m + multipliers.slack(mean[1:].T).T / self._penalty
        second, fourth = _even_moments(self._m, self._s, self._cut)
        half = 0.5 * self._penalty
        self.least = mean[0] - half * (weights**2).sum()
        self.mean = self.least + half * second.sum(axis=0)
        variance = deviation[0] ** 2 + half**2 * (fourth - second**2).sum(axis=0)
        self.deviation = np.sqrt(variance)

    def transform(self, part: slice, frequency: Array) -> ComplexArray:
        """Characteristic function of some points at frequencies `(p, k)`, same shape."""
        product: ComplexArray = np.exp(
            1j * frequency * self.least[part, None]
            - 0.5 * (frequency * self._spread[part, None]) ** 2
        )
        for m, s in zip(self._m[:, part, None], self._s[:, part, None], strict=True):
            shrink = 1.0 - 1j * frequency * self._penalty * s**2
            whole = np.exp(0.5j * frequency * self._penalty * m**2 / shrink)
            if self._cut:
                # The part of the normal law on the other side of zero, by the Faddeeva function.
                other = (
                    0.5
                    * np.exp(-0.5 * (m / s) ** 2)
                    * wofz(1j * np.abs(m) / (s * np.sqrt(2.0 * shrink)))
                )
                whole = np.where(m > 0.0, whole - other, other)
                product *= ndtr(-m / s) + whole / np.sqrt(shrink)
            else:
                product *= whole / np.sqrt(shrink)
        return product


def _even_moments(m: Array, s: Array, cut: bool) -> tuple[Array, Array]:
    """Second and fourth moment of a normal variable, or of its positive part if it is cut."""
    second, fourth = m**2 + s**2, m**4 + 6.0 * m**2 * s**2 + 3.0 * s**4
    if cut:
        share, density = ndtr(m / s), np.exp(-0.5 * (m / s) ** 2) / math.sqrt(2.0 * math.pi)
        second = second * share + m * s * density
        fourth = fourth * share + (m**3 * s + 5.0 * m * s**3) * density
    return second, fourth
