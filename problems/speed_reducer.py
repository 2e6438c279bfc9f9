"""Speed reducer: the lightest gear box with two shafts.

Minimise, over the face width x1, the module x2 and the number x3 of teeth of the pinion, the
lengths x4, x5 and the diameters x6, x7 of the two shafts, in
[2.6, 3.6] x [0.7, 0.8] x [17, 28] x [7.3, 8.3] x [7.8, 8.3] x [2.9, 3.9] x [5, 5.5],

    f(x)   = 0.7854 x1 x2^2 (3.3333 x3^2 + 14.9334 x3 - 43.0934)                    weight
             - 1.508 x1 (x6^2 + x7^2) + 7.4777 (x6^3 + x7^3) + 0.7854 (x4 x6^2 + x5 x7^2)
    c1(x)  = 27 / (x1 x2^2 x3) - 1                                                  bending of teeth
    c2(x)  = 397.5 / (x1 x2^2 x3^2) - 1                                             contact stress
    c3(x)  = 1.93 x4^3 / (x2 x3 x6^4) - 1                                           deflection
    c4(x)  = 1.93 x5^3 / (x2 x3 x7^4) - 1
    c5(x)  = sqrt((745 x4 / (x2 x3))^2 + 16.9e6) / (0.1 x6^3) - 1100                shaft stress
    c6(x)  = sqrt((745 x5 / (x2 x3))^2 + 157.5e6) / (0.1 x7^3) - 850
    c7(x)  = x2 x3 - 40                                                             geometry
    c8(x)  = 5 - x1 / x2
    c9(x)  = x1 / x2 - 12
    c10(x) = (1.5 x6 + 1.9) / x4 - 1
    c11(x) = (1.1 x7 + 1.9) / x5 - 1

The number of teeth is a real number, as in [SCBO], which rounds only where it says so; the best
known point has a whole one.

Best known. f = 2996.348164968 at (3.5, 0.7, 17, 7.3, 7.8, 3.3502146661, 5.2866832298), with c5, c6,
c8 and four bounds active (tests/golden/derive_witnesses.py); [Lemonge2010] has 2996.3482. At the
witness c8 is exactly zero in float64, and just below zero in exact arithmetic, since 0.7 is rounded
down.

Feasible fraction. 0.00187, from 4e7 random points (tests/golden/derive_feasible_fractions.py).

Where public versions disagree. The lower bound of x5 is 7.8 in [Lemonge2010] and BoTorch and 7.3 in
[CEC2020], where the optimum is 2994.4245 with two further constants changed (7.477 and 16.91e6);
7.3 alone gives 2994.4711. Many codes divide c5 to c9 by their limits: the feasible set is the same,
the values to model are not; these are the raw ones. Some bound x7 by [4.9, 5.9]. We know
[Lemonge2010] through codes that cite it, BoTorch's among them.

References:
    [CEC2020] Kumar, Wu, Ali, Mallipeddi, Suganthan, Das: A test-suite of non-convex constrained
        optimization problems from the real-world and some baseline results. Swarm and
        Evolutionary Computation 56 (2020). Problem RC15.
    [Lemonge2010] Lemonge, Barbosa, Borges, Silva: Constrained optimization problems in mechanical
        engineering design using a real-coded steady-state genetic algorithm. Mecánica
        Computacional 29 (2010).
    [SCBO] Eriksson, Poloczek: Scalable constrained Bayesian optimization. AISTATS 2021. It names
        the problem and its source and prints neither bounds nor constants.

Version history:
    v1: First release.
"""

from __future__ import annotations

import numpy as np

from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space


class SpeedReducer(Problem):
    """The speed reducer: d = 7, m = 11."""

    id = "speed-reducer-7d-v1"
    space = Space(
        lower=np.array([2.6, 0.7, 17.0, 7.3, 7.8, 2.9, 5.0]),  # [Lemonge2010]
        upper=np.array([3.6, 0.8, 28.0, 8.3, 8.3, 3.9, 5.5]),  # [Lemonge2010]
        num_constraints=11,
    )
    best_known = BestKnown(
        objective=2996.34816496855,
        x=np.array([3.5, 0.7, 17.0, 7.3, 7.8, 3.350214666096463, 5.286683229757942]),
        source="active constraints solved with 40 digits, tests/golden/derive_witnesses.py",
    )
    feasible_fraction = 0.00187  # tests/golden/derive_feasible_fractions.py

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 7)`; all constants are from [Lemonge2010]."""
        x1, x2, x3, x4, x5, x6, x7 = x.T
        # Products instead of powers: they have the same bits on every machine, `pow` has not.
        square6, square7 = x6 * x6, x7 * x7
        cube6, cube7 = square6 * x6, square7 * x7
        face = x1 * x2 * x2
        pitch, ratio = x2 * x3, x1 / x2
        load4, load5 = 745 * x4 / pitch, 745 * x5 / pitch
        weight = (
            0.7854 * face * (3.3333 * x3 * x3 + 14.9334 * x3 - 43.0934)
            - 1.508 * x1 * (square6 + square7)
            + 7.4777 * (cube6 + cube7)
            + 0.7854 * (x4 * square6 + x5 * square7)
        )
        constraints = np.column_stack(
            (
                27 / (face * x3) - 1,
                397.5 / (face * x3 * x3) - 1,
                1.93 * x4 * x4 * x4 / (pitch * square6 * square6) - 1,
                1.93 * x5 * x5 * x5 / (pitch * square7 * square7) - 1,
                np.sqrt(load4 * load4 + 16.9e6) / (0.1 * cube6) - 1100,
                np.sqrt(load5 * load5 + 157.5e6) / (0.1 * cube7) - 850,
                pitch - 40,
                5 - ratio,
                ratio - 12,
                (1.5 * x6 + 1.9) / x4 - 1,
                (1.1 * x7 + 1.9) / x5 - 1,
            )
        )
        return Evaluation(weight, constraints)
