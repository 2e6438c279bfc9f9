"""The G problems: thirteen formulas of CEC 2006 whose constraints are all inequalities.

Evolutionary computation has compared methods on them since the nineties. The definitions are those
of [Liang2006], in its order of the constraints, signs and scaling; we know it through public codes
that cite it, pymoo's among them, and through the optima that they print. The eleven problems with
equality constraints are left out, since the suite knows inequalities only.

Best known. best_known.json has a point of each problem that is feasible to the last bit, both in
float64 and in exact arithmetic, derived by tests/golden/derive_g_best_known.py. The optima agree
with the published ones in all ten decimals, to one unit of the last.

Feasible fractions. tests/golden/derive_feasible_fractions.py, from 4e7 random points each, in a
smaller box that holds the feasible set where it is tiny. Papers print larger ones for some; that of
g01 cannot exceed 0.000027, because its last three constraints keep x10, x11 and x12 below 3 of 100.

Where public versions disagree.
- g02 is Keane's bump function in 20 dimensions (cbo_suite.problems.keane), with the same guard at
  the origin; pymoo moves the lower bound to 1e-16.
- g04 has pairs of constraints, one for each end of an interval: upper ends first here, as in
  most codes, lower ends first in pymoo. Others have 0.00026 instead of 0.0006262 in the first
  pair, with another optimum.
- g08 is 0 / 0 where x1 = 0, which belongs to the box. Here sin(2 pi x1) / x1 has its limit there,
  and the origin the value 0; pymoo moves the lower bounds to 1e-5.
- g12 asks for a point in one of 729 balls. Its constraint is the least of 729 quadratic functions,
  which is that of the nearest centre.
- g18 has a set of optima, not a point: hexagons of unit diameter, turned. Ours is the rhombus
  with a corner at (1, 0).

References:
    [Liang2006] Liang, Runarsson, Mezura-Montes, Clerc, Suganthan, Coello Coello, Deb: Problem
        definitions and evaluation criteria for the CEC 2006 special session on constrained
        real-parameter optimization. Technical report, 2006.

Version history:
    v1: First release.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from cbo_suite.problems.base import Problem
from cbo_suite.problems.keane import Keane
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space


@cache
def _best_points() -> dict[str, Any]:
    """Read the best known points by id."""
    return dict(json.loads(files(__package__).joinpath("best_known.json").read_text("utf-8")))


class GProblem(Problem):
    """A G problem, whose best known point is in best_known.json."""

    def __init__(self) -> None:
        """Look up the best known point."""
        known = _best_points()[self.id]
        self.best_known = BestKnown(known["objective"], np.array(known["x"]), known["source"])


def _box(lower: Sequence[float], upper: Sequence[float], num_constraints: int) -> Space:
    """Make the space of a problem."""
    return Space(np.array(lower, dtype=float), np.array(upper, dtype=float), num_constraints)


# Products instead of powers below: they have the same bits on every machine, `pow` has not.


class G01(GProblem):
    """Quadratic objective, linear constraints: d = 13, m = 9.

    f = 5 (x1 + ... + x4) - 5 (x1² + ... + x4²) - (x5 + ... + x13); the constraints are in the code.
    """

    id = "g01-13d-v1"
    space = _box([0] * 13, [1] * 9 + [100] * 3 + [1], 9)
    feasible_fraction = 2.367e-6

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 13)`."""
        x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, _ = x.T
        head = x[:, :4]
        objective = 5 * (head - head * head).sum(axis=1) - x[:, 4:].sum(axis=1)
        constraints = np.column_stack(
            (
                2 * x1 + 2 * x2 + x10 + x11 - 10,
                2 * x1 + 2 * x3 + x10 + x12 - 10,
                2 * x2 + 2 * x3 + x11 + x12 - 10,
                -8 * x1 + x10,
                -8 * x2 + x11,
                -8 * x3 + x12,
                -2 * x4 - x5 + x10,
                -2 * x6 - x7 + x11,
                -2 * x8 - x9 + x12,
            )
        )
        return Evaluation(objective, constraints)


class G02(Keane):
    """Keane's bump function, with all its local optima: d = 20, m = 2."""

    def __init__(self) -> None:
        """Set up Keane's function in 20 dimensions."""
        super().__init__(dim=20)
        self.id = "g02-20d-v1"


class G04(GProblem):
    """Himmelblau's problem, quadratic: d = 5, m = 6.

    f = 5.3578547 x3² + 0.8356891 x1 x5 + 37.293239 x1 - 40792.141, and three quadratic functions
    within [0, 92], [90, 110] and [20, 25].
    """

    id = "g04-5d-v1"
    space = _box([78, 33, 27, 27, 27], [102, 45, 45, 45, 45], 6)
    feasible_fraction = 0.2695

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 5)`."""
        x1, x2, x3, x4, x5 = x.T
        first = 85.334407 + 0.0056858 * x2 * x5 + 0.0006262 * x1 * x4 - 0.0022053 * x3 * x5
        second = 80.51249 + 0.0071317 * x2 * x5 + 0.0029955 * x1 * x2 + 0.0021813 * x3 * x3
        third = 9.300961 + 0.0047026 * x3 * x5 + 0.0012547 * x1 * x3 + 0.0019085 * x3 * x4
        constraints = np.column_stack(
            (first - 92, -first, second - 110, 90 - second, third - 25, 20 - third)
        )
        objective = 5.3578547 * x3 * x3 + 0.8356891 * x1 * x5 + 37.293239 * x1 - 40792.141
        return Evaluation(objective, constraints)


class G06(GProblem):
    """A cubic function on a sliver between two circles: d = 2, m = 2.

    f = (x1 - 10)³ + (x2 - 20)³; at least 10 from (5, 5), at most 9.1 from (6, 5).
    """

    id = "g06-2d-v1"
    space = _box([13, 0], [100, 100], 2)
    feasible_fraction = 6.589e-5

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 2)`."""
        x1, x2 = x.T
        a, b = x1 - 10, x2 - 20
        across = np.square(x2 - 5)
        constraints = np.column_stack(
            (100 - np.square(x1 - 5) - across, np.square(x1 - 6) + across - 82.81)
        )
        return Evaluation(a * a * a + b * b * b, constraints)


class G07(GProblem):
    """Quadratic objective and constraints, six of eight active: d = 10, m = 8."""

    id = "g07-10d-v1"
    space = _box([-10] * 10, [10] * 10, 8)
    feasible_fraction = 1.08e-6

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 10)`."""
        x1, x2, x3, x4, x5, x6, x7, x8, x9, x10 = x.T
        square = np.square
        objective = (
            x1 * x1
            + x2 * x2
            + x1 * x2
            - 14 * x1
            - 16 * x2
            + square(x3 - 10)
            + 4 * square(x4 - 5)
            + square(x5 - 3)
            + 2 * square(x6 - 1)
            + 5 * x7 * x7
            + 7 * square(x8 - 11)
            + 2 * square(x9 - 10)
            + square(x10 - 7)
            + 45
        )
        constraints = np.column_stack(
            (
                4 * x1 + 5 * x2 - 3 * x7 + 9 * x8 - 105,
                10 * x1 - 8 * x2 - 17 * x7 + 2 * x8,
                -8 * x1 + 2 * x2 + 5 * x9 - 2 * x10 - 12,
                3 * square(x1 - 2) + 4 * square(x2 - 3) + 2 * x3 * x3 - 7 * x4 - 120,
                5 * x1 * x1 + 8 * x2 + square(x3 - 6) - 2 * x4 - 40,
                x1 * x1 + 2 * square(x2 - 2) - 2 * x1 * x2 + 14 * x5 - 6 * x6,
                0.5 * square(x1 - 8) + 2 * square(x2 - 4) + 3 * x5 * x5 - x6 - 30,
                -3 * x1 + 6 * x2 + 12 * square(x9 - 8) - 7 * x10,
            )
        )
        return Evaluation(objective, constraints)


class G08(GProblem):
    """A wavy function with its optimum inside the feasible set: d = 2, m = 2.

    f = -sin³(2 pi x1) sin(2 pi x2) / (x1³ (x1 + x2)).
    """

    id = "g08-2d-v1"
    space = _box([0, 0], [10, 10], 2)
    feasible_fraction = 0.008608

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 2)`."""
        x1, x2 = x.T
        total = x1 + x2
        ratio = 2 * np.pi * np.sinc(2 * x1)  # sin(2 pi x1) / x1, also at zero
        wave = np.sin(2 * np.pi * x2) / np.where(total == 0, 1.0, total)
        constraints = np.column_stack((x1 * x1 - x2 + 1, 1 - x1 + np.square(x2 - 4)))
        return Evaluation(-ratio * ratio * ratio * wave, constraints)


class G09(GProblem):
    """Powers up to the sixth: d = 7, m = 4."""

    id = "g09-7d-v1"
    space = _box([-10] * 7, [10] * 7, 4)
    feasible_fraction = 0.00525

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 7)`."""
        x1, x2, x3, x4, x5, x6, x7 = x.T
        s1, s2, s3, s4, s5, s6, s7 = (x * x).T
        objective = (
            np.square(x1 - 10)
            + 5 * np.square(x2 - 12)
            + s3 * s3
            + 3 * np.square(x4 - 11)
            + 10 * s5 * s5 * s5
            + 7 * s6
            + s7 * s7
            - 4 * x6 * x7
            - 10 * x6
            - 8 * x7
        )
        constraints = np.column_stack(
            (
                2 * s1 + 3 * s2 * s2 + x3 + 4 * s4 + 5 * x5 - 127,
                7 * x1 + 3 * x2 + 10 * s3 + x4 - x5 - 282,
                23 * x1 + s2 + 6 * s6 - 8 * x7 - 196,
                4 * s1 + s2 - 3 * x1 * x2 + 2 * s3 + 5 * x6 - 11 * x7,
            )
        )
        return Evaluation(objective, constraints)


class G10(GProblem):
    """A heat exchanger: linear objective, constraints of very different scales: d = 8, m = 6."""

    id = "g10-8d-v1"
    space = _box([100, 1000, 1000] + [10] * 5, [10000] * 3 + [1000] * 5, 6)
    feasible_fraction = 5.5e-6

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 8)`."""
        x1, x2, x3, x4, x5, x6, x7, x8 = x.T
        constraints = np.column_stack(
            (
                0.0025 * (x4 + x6) - 1,
                0.0025 * (x5 + x7 - x4) - 1,
                0.01 * (x8 - x5) - 1,
                -x1 * x6 + 833.33252 * x4 + 100 * x1 - 83333.333,
                -x2 * x7 + 1250 * x5 + x2 * x4 - 1250 * x4,
                -x3 * x8 + 1250000 + x3 * x5 - 2500 * x5,
            )
        )
        return Evaluation(x1 + x2 + x3, constraints)


class G12(GProblem):
    """A feasible set of 729 balls: d = 3, m = 1.

    f = (|x - (5, 5, 5)|² - 100) / 100, within 0.25 of a point with coordinates from 1 to 9.
    """

    id = "g12-3d-v1"
    space = _box([0] * 3, [10] * 3, 1)
    feasible_fraction = 0.0477

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 3)`."""
        objective = (np.square(x - 5).sum(axis=1) - 100) / 100
        nearest = np.clip(np.rint(x), 1, 9)
        return Evaluation(objective, np.square(x - nearest).sum(axis=1, keepdims=True) - 0.0625)


class G18(GProblem):
    """The largest hexagon of unit diameter: d = 9, m = 13.

    Its corners are the origin, (0, x9), and four more; f is minus its area.
    """

    id = "g18-9d-v1"
    space = _box([-10] * 8 + [0], [10] * 8 + [20], 13)
    feasible_fraction = 6.42e-13

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 9)`."""
        x1, x2, x3, x4, x5, x6, x7, x8, x9 = x.T
        square = np.square
        area = x1 * x4 - x2 * x3 + x3 * x9 - x5 * x9 + x5 * x8 - x6 * x7
        constraints = np.column_stack(
            (
                x3 * x3 + x4 * x4 - 1,
                x9 * x9 - 1,
                x5 * x5 + x6 * x6 - 1,
                x1 * x1 + square(x2 - x9) - 1,
                square(x1 - x5) + square(x2 - x6) - 1,
                square(x1 - x7) + square(x2 - x8) - 1,
                square(x3 - x5) + square(x4 - x6) - 1,
                square(x3 - x7) + square(x4 - x8) - 1,
                x7 * x7 + square(x8 - x9) - 1,
                x2 * x3 - x1 * x4,
                -x3 * x9,
                x5 * x9,
                x6 * x7 - x5 * x8,
            )
        )
        return Evaluation(-0.5 * area, constraints)


class G24(GProblem):
    """A linear objective on two disconnected pieces: d = 2, m = 2.

    f = -x1 - x2, below two polynomials of the fourth degree.
    """

    id = "g24-2d-v1"
    space = _box([0, 0], [3, 4], 2)
    feasible_fraction = 0.4420

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 2)`."""
        x1, x2 = x.T
        square, cube = x1 * x1, x1 * x1 * x1
        constraints = np.column_stack(
            (
                -2 * cube * x1 + 8 * cube - 8 * square + x2 - 2,
                -4 * cube * x1 + 32 * cube - 88 * square + 96 * x1 + x2 - 36,
            )
        )
        return Evaluation(-x1 - x2, constraints)
