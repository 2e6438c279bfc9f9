"""The augmented Lagrangian with slack variables, and how its multipliers follow the data.

Source: Picheny, Gramacy, Wild and Le Digabel, "Bayesian optimization under mixed constraints with a
slack-variable augmented Lagrangian", NeurIPS 2016. With multipliers l and a penalty parameter r

    A(x, s) = f + sum_j l_j (c_j + s_j) + sum_j (c_j + s_j)^2 / (2 r),    s_j >= 0.

The best slack s_j = max(0, -l_j r - c_j) leaves

    f + (r / 2) sum_j (max(0, l_j + c_j / r)^2 - l_j^2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbo_suite.protocols import Array, BoolArray

# Among this number of first points the automatic penalty parameter looks for a feasible one.
FIRST_POINTS = 10
# Halving it at every violation comes to an end here.
SMALLEST_PENALTY = 1e-12


@dataclass(frozen=True)
class Multipliers:
    """The state of an augmented Lagrangian.

    Attributes:
        weights: The multipliers l, at least zero, shape `(m,)`.
        penalty: The penalty parameter r: the smaller, the more a violation costs.
    """

    weights: Array
    penalty: float

    @classmethod
    def first(cls, objective: Array, constraints: Array) -> Multipliers:
        """Begin with weights of one, given the first data `(n,)` and `(n, m)`."""
        return cls(np.ones(constraints.shape[1]), automatic_penalty(objective, constraints))

    def slack(self, constraints: Array) -> Array:
        """The best slacks for constraint values `(n, m)`, same shape."""
        best: Array = np.maximum(0.0, -self.weights * self.penalty - constraints)
        return best

    def lagrangian(self, objective: Array, constraints: Array) -> Array:
        """The augmented Lagrangian with the best slacks, shape `(n,)`."""
        excess = np.maximum(0.0, self.weights + constraints / self.penalty)
        total: Array = objective + 0.5 * self.penalty * (excess**2 - self.weights**2).sum(axis=1)
        return total

    def updated(self, objective: Array, constraints: Array) -> Multipliers:
        """The multipliers after one iteration with data `(n,)` and `(n, m)`.

        While nothing is feasible the weights are zero and the penalty parameter falls, by a tenth
        at least and by half at most. From then on the point of least augmented Lagrangian moves
        the weights, and halves the penalty parameter if it violates a constraint.
        """
        if (constraints > 0.0).any(axis=1).all():
            automatic = automatic_penalty(objective, constraints)
            penalty = float(np.clip(automatic, self.penalty / 2.0, 0.9 * self.penalty))
            return Multipliers(np.zeros_like(self.weights), max(penalty, SMALLEST_PENALTY))
        best = int(np.argmin(self.lagrangian(objective, constraints)))
        change = (constraints[best] + self.slack(constraints[best])) / self.penalty
        violated = bool((constraints[best] > 0.0).any())
        penalty = self.penalty / 2.0 if violated else self.penalty
        # Rounding must not leave a weight below zero.
        return Multipliers(np.maximum(self.weights + change, 0.0), max(penalty, SMALLEST_PENALTY))


def automatic_penalty(objective: Array, constraints: Array) -> float:
    """A penalty parameter that makes the least violation cost as much as the objective.

    It is the least sum of squared violations of an infeasible point over twice the magnitude of
    the objective: that of the best feasible one of the first points, else the median. Without an
    infeasible point it is 1/2.

    Args:
        objective: Shape `(n,)`.
        constraints: Shape `(n, m)`.
    """
    violation = np.square(np.maximum(constraints, 0.0)).sum(axis=1)
    infeasible: BoolArray = np.asarray((constraints > 0.0).any(axis=1))
    if not infeasible.any():
        return 0.5
    early = objective[:FIRST_POINTS][~infeasible[:FIRST_POINTS]]
    magnitude = abs(float(early.min() if early.size else np.median(objective)))
    penalty = float(violation[infeasible].min()) / (2.0 * max(magnitude, SMALLEST_PENALTY))
    return max(penalty, SMALLEST_PENALTY)
