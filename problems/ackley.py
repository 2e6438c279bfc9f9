"""Ackley's function inside half a ball: many ripples, and a feasible set that is hard to hit.

Minimise over [-5, 10]^d, with d = 10 in the suite,

    f(x)  = -20 exp(-0.2 sqrt(sum_i x_i^2 / d)) - exp(sum_i cos(2 pi x_i) / d) + 20 + e
    c1(x) = sum_i x_i
    c2(x) = |x| - 5

Best known. f = 0 at the origin, the global optimum in every dimension. It lies on the boundary of
c1, which shows why feasible means c <= 0 and not c < 0.

Feasible fraction. Exactly half a ball of radius 5, which fits into the box: 2.159e-5 for d = 10.

How it is computed. The terms 20 - 20 exp(.) and e - exp(.) both cancel near the origin, where
rounding would leave values such as 4.4e-16. With expm1, and 1 - cos(2 t) = 2 sin^2(t), the same
function comes out exactly zero at the origin and accurate around it.

Where public versions disagree. Domain, constants and constraints are printed in [SCBO]. The usual
domain of the function without constraints is [-32.768, 32.768]^d, BoTorch's default.

References:
    [Ackley1987] Ackley: A connectionist machine for genetic hillclimbing. Kluwer, 1987.
    [SCBO] Eriksson, Poloczek: Scalable constrained Bayesian optimization. AISTATS 2021.

Version history:
    v1: First release.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_suite.errors import InvalidSpace
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space

LOWER, UPPER = -5.0, 10.0  # [SCBO]
RADIUS = 5.0  # [SCBO]


class Ackley(Problem):
    """Ackley's function with two constraints: any d, m = 2."""

    def __init__(self, dim: int = 10) -> None:
        """Set up the problem in `dim` dimensions, at least 1.

        Raises:
            InvalidSpace: `dim` is below 1.
        """
        if dim < 1:
            raise InvalidSpace(f"Ackley needs dim >= 1, got {dim}")
        self.id = f"ackley-{dim}d-v1"
        self.space = Space(np.full(dim, LOWER), np.full(dim, UPPER), num_constraints=2)
        self.best_known = BestKnown(0.0, np.zeros(dim), "global optimum: f >= 0 by its formula")
        self.feasible_fraction = _half_ball(dim, RADIUS / (UPPER - LOWER))

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, d)`; all constants are from [Ackley1987]."""
        squares = np.square(x).sum(axis=1)
        bowl = -20 * np.expm1(-0.2 * np.sqrt(squares / self.space.dim))
        ripples = -math.e * np.expm1(-2 * np.square(np.sin(np.pi * x)).mean(axis=1))
        constraints = np.column_stack((x.sum(axis=1), np.sqrt(squares) - RADIUS))
        return Evaluation(bowl + ripples, constraints)


def _half_ball(dim: int, radius: float) -> float:
    """Return the volume of half a ball in `dim` dimensions."""
    # In logarithms, since the gamma function overflows from 342 dimensions on.
    return 0.5 * math.exp(dim * math.log(math.sqrt(math.pi) * radius) - math.lgamma(dim / 2 + 1))
