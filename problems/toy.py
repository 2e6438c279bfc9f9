"""Toy problem: a linear objective over a wavy feasible set in the unit square.

Minimise over [0, 1]^2

    f(x)  = x1 + x2
    c1(x) = 1.5 - x1 - 2 x2 - 0.5 sin(2 pi (x1^2 - 2 x2))
    c2(x) = x1^2 + x2^2 - 1.5

Best known. f = 0.59978805201 at (0.1951226835, 0.4046653685), with c1 active: the global optimum,
next to two further local ones (tests/golden/derive_witnesses.py). The literature prints 0.5998 at
(0.1954, 0.4044), feasible and 1.2e-5 above.

Feasible fraction. 0.4572, from 4e7 random points (tests/golden/derive_feasible_fractions.py).

Where public versions disagree. [SCBO] credits the article on PESC; the problem is from
[Gramacy2016], with the same formula everywhere. Some codes write the constraints as c >= 0.

References:
    [Gramacy2016] Gramacy, Gray, Le Digabel, Lee, Ranjan, Wells, Wild: Modeling an augmented
        Lagrangian for blackbox constrained optimization. Technometrics 58 (2016).
    [SCBO] Eriksson, Poloczek: Scalable constrained Bayesian optimization. AISTATS 2021.

Version history:
    v1: First release.
"""

from __future__ import annotations

import numpy as np

from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space


class Toy(Problem):
    """The toy problem: d = 2, m = 2."""

    id = "toy-2d-v1"
    space = Space(lower=np.zeros(2), upper=np.ones(2), num_constraints=2)  # [Gramacy2016]
    best_known = BestKnown(
        objective=0.5997880520100859,
        x=np.array([0.19512268347208722, 0.40466536853799867]),
        source="KKT conditions solved with 40 digits, tests/golden/derive_witnesses.py",
    )
    feasible_fraction = 0.4572  # tests/golden/derive_feasible_fractions.py

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 2)`; all constants are from [Gramacy2016]."""
        x1, x2 = x.T
        wave = 0.5 * np.sin(2 * np.pi * (x1 * x1 - 2 * x2))
        constraints = np.column_stack((1.5 - x1 - 2 * x2 - wave, x1 * x1 + x2 * x2 - 1.5))
        return Evaluation(x1 + x2, constraints)
