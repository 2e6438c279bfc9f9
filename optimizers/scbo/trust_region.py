"""The trust region: a pure state machine of side length and counters, and what "better" means.

Source: Eriksson and Poloczek, AISTATS 2021, sections 3 and C. All coordinates are those of the
unit cube.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from cbo_suite.protocols import Array

INITIAL_LENGTH = 0.8
SMALLEST_LENGTH = 2.0**-7
LARGEST_LENGTH = 1.6
# The least relative gain that counts as a success: the paper's proof of consistency asks for a
# positive one, without which gains of 1e-12 keep a trust region alive for ever.
RELATIVE_GAIN = 1e-3


@dataclass
class TrustRegion:
    """Side length and counters of one trust region.

    Attributes:
        dim: Number of variables d.
        batch_size: Batch size q.
        length: Side length.
        successes: Batches with a better point since the last change of size or the last failure.
        failures: Batches without one since the last change of size or the last success.
    """

    dim: int
    batch_size: int
    length: float = INITIAL_LENGTH
    successes: int = 0
    failures: int = 0
    success_tolerance: int = field(init=False)
    failure_tolerance: int = field(init=False)

    def __post_init__(self) -> None:
        """Derive the tolerances of the paper from the problem's size."""
        self.success_tolerance = max(3, math.ceil(self.dim / 10))
        self.failure_tolerance = math.ceil(self.dim / self.batch_size)

    @property
    def finished(self) -> bool:
        """Whether the region has shrunk below its least length and a new one must begin."""
        return self.length < SMALLEST_LENGTH

    def update(self, success: bool) -> None:
        """Count one batch and resize where a counter reaches its tolerance."""
        self.successes, self.failures = (
            (self.successes + 1, 0) if success else (0, self.failures + 1)
        )
        if self.successes == self.success_tolerance:
            self.length = min(2.0 * self.length, LARGEST_LENGTH)
        elif self.failures == self.failure_tolerance:
            self.length /= 2.0
        else:
            return
        self.successes = self.failures = 0

    def box(self, centre: Array, weights: Array | float = 1.0) -> tuple[Array, Array]:
        """Lower and upper corner, both `(d,)`, of the region around `centre` in the unit cube.

        Args:
            centre: Its middle, shape `(d,)`.
            weights: Of its sides, shape `(d,)`.
        """
        half = self.length / 2.0 * weights
        return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)


def side_weights(lengthscale: Array) -> Array:
    """Weights of the sides, long where length scales `(d,)` are, of product one: `(d,)`."""
    logarithms = np.log(lengthscale)
    weights: Array = np.exp(logarithms - logarithms.mean())
    return weights


def best_index(objective: Array, violation: Array) -> int:
    """Index of the best of n points: least violation (zero if feasible), then least objective.

    Args:
        objective: Objective values, shape `(n,)`, n at least 1; NaN counts as worst.
        violation: Total violations, shape `(n,)`, zero exactly where feasible.
    """
    return int(np.lexsort((np.where(np.isnan(objective), np.inf, objective), violation))[0])


def improves(
    objective: float,
    violation: float,
    than_objective: float,
    than_violation: float,
    absolute_gain: float | None = None,
) -> bool:
    """Whether a point is a success against another.

    The first feasible point always is. Between two feasible points the objective, between two
    infeasible ones the violation, must fall by more than `RELATIVE_GAIN` of the other's value; an
    `absolute_gain` replaces it for the objective.
    """
    if violation > 0.0 or than_violation > 0.0:
        if math.isinf(than_violation):
            return violation < than_violation
        return violation < than_violation * (1.0 - RELATIVE_GAIN)
    least = RELATIVE_GAIN * abs(than_objective) if absolute_gain is None else absolute_gain
    return objective < than_objective - least
