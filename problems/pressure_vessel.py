"""Pressure vessel: the cheapest cylinder with two hemispherical heads that holds a given volume.

Minimise, over the thickness of shell x1 and head x2, the inner radius x3 and the length x4 of the
cylinder in [0, 10] x [0, 10] x [10, 50] x [150, 200], with the plates rolled in sixteenths of an
inch, r1 = round(16 x1) / 16 and r2 = round(16 x2) / 16,

    f(x)  = 0.6224 r1 x3 x4 + 1.7781 r2 x3^2 + 3.1661 r1^2 x4 + 19.84 r1^2 x3       cost
    c1(x) = 0.0193 x3 - r1                                                          shell
    c2(x) = 0.00954 x3 - r2                                                         head
    c3(x) = 1296000 - pi x3^2 x4 - 4/3 pi x3^3                                      volume
    c4(x) = x4 - 240                                                                length

c4 is never active in this box; it stays because the problem is known with four constraints.
Halves are rounded to the even neighbour.

Best known. f = 6059.7143350485 at (0.8125, 0.4375, 42.0984455959, 176.6365958424), with c1 and c3
active: the global optimum. For a given radius the cost grows in r1, r2 and x4, so that a search
along the radius is exhaustive (tests/golden/derive_witnesses.py); [Yang2013] proves the same value.

Feasible fraction. 0.1683, from 4e7 random points (tests/golden/derive_feasible_fractions.py).

Where public versions disagree. [SCBO] gives the bounds and rounds before objective and constraints,
as here. BoTorch rounds in the objective only: the plates paid for can be thinner than those that
hold, and the least value of that problem is about 5633.95. A length up to 240 moves the optimum to
5850.383, and without rounding to 5804.376. pymoo counts the plates in whole sixteenths, 1 to 99,
and scales the constraints. [Coello2002], which we know through codes that cite it, has a feasible
point of 6059.946, not optimal.

References:
    [Coello2002] Coello Coello, Mezura-Montes: Constraint-handling in genetic algorithms through
        the use of dominance-based tournament selection. Advanced Engineering Informatics 16
        (2002).
    [SCBO] Eriksson, Poloczek: Scalable constrained Bayesian optimization. AISTATS 2021.
    [Yang2013] Yang, Huyck, Karamanoglu, Khan: True global optimality of the pressure vessel design
        problem: a benchmark for bio-inspired optimisation algorithms. International Journal of
        Bio-Inspired Computation 5 (2013).

Version history:
    v1: First release.
"""

from __future__ import annotations

import numpy as np

from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space

PLATE_STEP = 0.0625  # [Coello2002]; a power of two, so that rounding to it is exact


class PressureVessel(Problem):
    """The pressure vessel: d = 4, m = 4."""

    id = "pressure-vessel-4d-v1"
    space = Space(
        lower=np.array([0.0, 0.0, 10.0, 150.0]),  # [SCBO]
        upper=np.array([10.0, 10.0, 50.0, 200.0]),  # [SCBO]
        num_constraints=4,
    )
    best_known = BestKnown(
        objective=6059.714335048585,
        x=np.array([0.8125, 0.4375, 42.09844559585432, 176.6365958424501]),
        source="exhaustive search along the radius, tests/golden/derive_witnesses.py",
    )
    feasible_fraction = 0.1683  # tests/golden/derive_feasible_fractions.py

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 4)`; all constants are from [Coello2002]."""
        shell, head = PLATE_STEP * np.round(x[:, :2].T / PLATE_STEP)
        x3, x4 = x[:, 2], x[:, 3]
        cost = (
            0.6224 * shell * x3 * x4
            + 1.7781 * head * x3 * x3
            + 3.1661 * shell * shell * x4
            + 19.84 * shell * shell * x3
        )
        constraints = np.column_stack(
            (
                0.0193 * x3 - shell,
                0.00954 * x3 - head,
                1296000 - np.pi * x3 * x3 * x4 - 4 / 3 * np.pi * x3 * x3 * x3,
                x4 - 240,
            )
        )
        return Evaluation(cost, constraints)
