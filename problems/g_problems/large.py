"""The two G problems with tables of constants, g16 and g19; all of them as in [Liang2006]."""

from __future__ import annotations

import numpy as np

from cbo_suite.problems.g_problems import GProblem
from cbo_suite.protocols import Array, Evaluation, Space

# Of g16: the ends of the intervals that y1 to y17 must lie in.
LOWEST = (
    213.1, 17.505, 11.275, 214.228, 7.458, 0.961, 1.612, 0.146, 107.99, 922.693, 926.832, 18.766,
    1072.163, 8961.448, 0.063, 71084.33, 2802713.0,
)  # fmt: skip
HIGHEST = (
    405.23, 1053.6667, 35.03, 665.585, 584.463, 265.916, 7.046, 0.222, 273.366, 1286.105, 1444.046,
    537.141, 3247.039, 26844.086, 0.386, 140000.0, 12146108.0,
)  # fmt: skip

# Of g19.
A = np.array(
    [
        [-16.0, 2.0, 0.0, 1.0, 0.0],
        [0.0, -2.0, 0.0, 0.4, 2.0],
        [-3.5, 0.0, 2.0, 0.0, 0.0],
        [0.0, -2.0, 0.0, -4.0, -1.0],
        [0.0, -9.0, -2.0, 1.0, -2.8],
        [2.0, 0.0, -4.0, 0.0, 0.0],
        [-1.0, -1.0, -1.0, -1.0, -1.0],
        [-1.0, -2.0, -3.0, -2.0, -1.0],
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [1.0, 1.0, 1.0, 1.0, 1.0],
    ]
)
B = np.array([-40.0, -2.0, -0.25, -4.0, -4.0, -1.0, -40.0, -60.0, 5.0, 1.0])
C = np.array(
    [
        [30.0, -20.0, -10.0, 32.0, -10.0],
        [-20.0, 39.0, -6.0, -31.0, 32.0],
        [-10.0, -6.0, 10.0, -6.0, -10.0],
        [32.0, -31.0, -6.0, 39.0, -20.0],
        [-10.0, 32.0, -10.0, -20.0, 30.0],
    ]
)
D = np.array([4.0, 8.0, 10.0, 6.0, 2.0])
E = np.array([-15.0, -27.0, -36.0, -18.0, -12.0])


class G16(GProblem):
    """A chemical plant, whose seventeen quantities are bounded on both sides: d = 5, m = 38."""

    id = "g16-5d-v1"
    space = Space(
        np.array([704.4148, 68.6, 0.0, 193.0, 25.0]),
        np.array([906.3855, 288.88, 134.75, 287.0966, 84.1988]),
        num_constraints=38,
    )
    feasible_fraction = 0.000197

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 5)`; names as in the report."""
        x1, x2, x3, x4, x5 = x.T
        y1 = x2 + x3 + 41.6
        y2 = 12.5 / (0.024 * x4 - 4.62) + 12
        c2 = 0.0003535 * x1 * x1 + 0.5311 * x1 + 0.08705 * y2 * x1
        c3 = 0.052 * x1 + 78 + 0.002377 * y2 * x1
        y3 = c2 / c3
        y4 = 19 * y3
        rest = x1 - y3
        c4 = 0.04782 * rest + 0.1956 * rest * rest / x2 + 0.6376 * y4 + 1.594 * y3
        c7 = 0.95 - c4 / (100 * x2)
        y5 = (rest - y4) * c7
        y6 = x1 - y5 - y4 - y3
        c8 = (y5 + y4) * 0.995
        y7 = c8 / y1
        y8 = c8 / 3798
        c9 = y7 - 0.0663 * y7 / y8 - 0.3153
        y9 = 96.82 / c9 + 0.321 * y1
        y10 = 1.29 * y5 + 1.258 * y4 + 2.29 * y3 + 1.71 * y6
        y11 = 1.71 * x1 - 0.452 * y4 + 0.58 * y3
        c11 = 1.75 * y2 * (0.995 * x1)
        c12 = 0.995 * y10 + 1998
        y12 = 12.3 / 752.3 * x1 + c11 / c12
        y13 = c12 - 1.75 * y2
        c17 = y9 + x5
        y14 = 3623 + 64.4 * x2 + 58.4 * x3 + 146312 / c17
        c13 = 0.995 * y10 + 60.8 * x2 + 48 * x4 - 0.1121 * y14 - 5095
        y15 = y13 / c13
        y16 = 148000 - 331000 * y15 + 40 * y13 - 61 * y15 * y13
        c14 = 2324 * y10 - 28740000 * y2
        y17 = 14130000 - 1328 * y10 - 531 * y11 + c14 / c12
        c15 = y13 / y15 - y13 / 0.52
        c16 = 1.104 - 0.72 * y15
        objective = (
            0.000117 * y14
            + 0.1365
            + 0.00002358 * y13
            + 0.000001502 * y16
            + 0.0321 * y12
            + 0.004324 * y5
            + 0.0001 * c15 / c16
            + 37.48 * y2 / c12
            - 0.0000005843 * y17
        )
        balances = [
            0.28 / 0.72 * y5 - y4,
            x3 - 1.5 * x2,
            3496 * y2 / c12 - 21,
            110.6 + y1 - 62212 / c17,
        ]
        quantities = (
            y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15, y16, y17,
        )  # fmt: skip
        for y, low, high in zip(quantities, LOWEST, HIGHEST, strict=True):
            balances += [low - y, y - high]
        return Evaluation(objective, np.column_stack(balances))


class G19(GProblem):
    """A cubic programme, dual to one of Colville's: d = 15, m = 5.

    f = -sum_i b_i x_i + sum_ij c_ij z_i z_j + 2 sum_j d_j z_j³ with z = (x11, ..., x15), and for
    j = 1..5   sum_i a_ij x_i - 2 sum_i c_ij z_i - 3 d_j z_j² - e_j <= 0.
    """

    id = "g19-15d-v1"
    space = Space(np.zeros(15), np.full(15, 10.0), num_constraints=5)
    feasible_fraction = 0.3346

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, 15)`."""
        head, tail = x[:, :10], x[:, 10:]
        # Sums over an axis, since a matrix product may round differently for another batch.
        mixed = (C * tail[:, None, :]).sum(axis=2)
        cubes = (D * tail * tail * tail).sum(axis=1)
        objective = (tail * mixed).sum(axis=1) + 2 * cubes - (B * head).sum(axis=1)
        linear = (A.T * head[:, None, :]).sum(axis=2)
        return Evaluation(objective, linear - 2 * mixed - 3 * D * tail * tail - E)
