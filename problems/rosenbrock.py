"""Rosenbrock's valley where the functions of Dixon-Price and Levy are small: three bad scalings.

Minimise over [-3, 5]^d, with d = 5 in the suite,

    f(x)  = sum_{i=1}^{d-1} 100 (x_{i+1} - x_i^2)^2 + (x_i - 1)^2
    c1(x) = DP(x) - 10,    DP(x) = (x_1 - 1)^2 + sum_{i=2}^{d} i (2 x_i^2 - x_{i-1})^2
    c2(x) = Levy(x) - 10,  Levy(x) = sin^2(pi w_1)
                               + sum_{i=1}^{d-1} (w_i - 1)^2 (1 + 10 sin^2(pi w_i + 1))
                               + (w_d - 1)^2 (1 + sin^2(2 pi w_d)),   w_i = 1 + (x_i - 1) / 4

Best known. The optimum of the function without constraints, f = 0 at (1, ..., 1), is infeasible:
DP is 14 there for d = 5. With c1 active the optimum for d = 5 is f = 0.00236134247115 at
(0.9946877171, 0.9893632301, 0.9788000001, 0.9579747651, 0.9175274217)
(tests/golden/derive_witnesses.py). No best value is given for other dimensions.

Feasible fraction. 6.73e-4 for d = 5, from 4e7 random points
(tests/golden/derive_feasible_fractions.py).

Where public versions disagree. [SCBO] introduced the problem with the two constraint functions as
defined in [Surjanovic2013]. A later re-implementation of it shifts the indices of Dixon-Price and
leaves out the + 1 in Levy, another one the factor 100 of the objective.

References:
    [Rosenbrock1960] Rosenbrock: An automatic method for finding the greatest or least value of a
        function. The Computer Journal 3 (1960).
    [SCBO] Eriksson, Poloczek: Scalable constrained Bayesian optimization. AISTATS 2021.
    [Surjanovic2013] Surjanovic, Bingham: Virtual library of simulation experiments, test functions
        and datasets. https://www.sfu.ca/~ssurjano, pages dixonpr and levy.

Version history:
    v1: First release.
"""

from __future__ import annotations

import numpy as np

from cbo_suite.errors import InvalidSpace
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space

LOWER, UPPER = -3.0, 5.0  # [SCBO]
LIMIT = 10.0  # [SCBO], for both constraints
PAPER_DIM = 5  # [SCBO]


class Rosenbrock(Problem):
    """Rosenbrock's function with two constraints: any d from 2, m = 2."""

    def __init__(self, dim: int = PAPER_DIM) -> None:
        """Set up the problem in `dim` dimensions, at least 2.

        Raises:
            InvalidSpace: `dim` is below 2.
        """
        if dim < 2:
            raise InvalidSpace(f"Rosenbrock needs dim >= 2, got {dim}")
        self.id = f"rosenbrock-{dim}d-v1"
        self.space = Space(np.full(dim, LOWER), np.full(dim, UPPER), num_constraints=2)
        if dim == PAPER_DIM:
            self.best_known = BestKnown(
                objective=0.002361342471155904,
                x=np.array(
                    [
                        0.9946877170767408,
                        0.9893632301303109,
                        0.978800000101184,
                        0.9579747651112364,
                        0.9175274217175191,
                    ]
                ),
                source="KKT conditions solved with 40 digits, tests/golden/derive_witnesses.py",
            )
            self.feasible_fraction = 6.73e-4  # tests/golden/derive_feasible_fractions.py

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, d)`."""
        first, rest = x[:, :-1], x[:, 1:]
        valley = 100 * np.square(rest - np.square(first)) + np.square(first - 1)
        constraints = np.column_stack((_dixon_price(x) - LIMIT, _levy(x) - LIMIT))
        return Evaluation(valley.sum(axis=1), constraints)


def _dixon_price(x: Array) -> Array:
    """Return the function of Dixon and Price [Surjanovic2013] at points `(n, d)`."""
    weights = np.arange(2, x.shape[1] + 1)
    terms = weights * np.square(2 * np.square(x[:, 1:]) - x[:, :-1])
    value: Array = np.square(x[:, 0] - 1) + terms.sum(axis=1)
    return value


def _levy(x: Array) -> Array:
    """Return the function of Levy [Surjanovic2013] at points `(n, d)`."""
    w = 1 + (x - 1) / 4
    first, last = w[:, :-1], w[:, -1]
    terms = np.square(first - 1) * (1 + 10 * np.square(np.sin(np.pi * first + 1)))
    value: Array = (
        np.square(np.sin(np.pi * w[:, 0]))
        + terms.sum(axis=1)
        + np.square(last - 1) * (1 + np.square(np.sin(2 * np.pi * last)))
    )
    return value
