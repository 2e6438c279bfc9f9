"""The G problems of CEC 2006 once more, in arithmetic of 40 digits.

Nothing here is shared with `cbo_suite.problems`, as in `tests.golden.high_precision`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpmath import cos, mpf, pi, sin, sqrt

from tests.golden.high_precision import Number, Reference, Value, const


def g01(x: Sequence[Number]) -> Value:
    """Evaluate g01 at one point."""
    value = 5 * sum(x[:4]) - 5 * sum(xi**2 for xi in x[:4]) - sum(x[4:])
    return value, [
        2 * x[0] + 2 * x[1] + x[9] + x[10] - 10,
        2 * x[0] + 2 * x[2] + x[9] + x[11] - 10,
        2 * x[1] + 2 * x[2] + x[10] + x[11] - 10,
        x[9] - 8 * x[0],
        x[10] - 8 * x[1],
        x[11] - 8 * x[2],
        x[9] - 2 * x[3] - x[4],
        x[10] - 2 * x[5] - x[6],
        x[11] - 2 * x[7] - x[8],
    ]


def g02(x: Sequence[Number]) -> Value:
    """Evaluate g02 at one point other than the origin."""
    product, waves = mpf(1), mpf(1)
    for xi in x:
        product, waves = product * xi, waves * cos(xi) ** 2
    top = sum(cos(xi) ** 4 for xi in x) - 2 * waves
    bottom = sqrt(sum((i + 1) * xi**2 for i, xi in enumerate(x)))
    return -abs(top / bottom), [const("0.75") - product, sum(x) - const("7.5") * len(x)]


def g04(x: Sequence[Number]) -> Value:
    """Evaluate g04 at one point."""
    x1, x2, x3, x4, x5 = x
    u = const("85.334407") + const("0.0056858") * x2 * x5 + const("0.0006262") * x1 * x4
    u -= const("0.0022053") * x3 * x5
    v = const("80.51249") + const("0.0071317") * x2 * x5 + const("0.0029955") * x1 * x2
    v += const("0.0021813") * x3**2
    w = const("9.300961") + const("0.0047026") * x3 * x5 + const("0.0012547") * x1 * x3
    w += const("0.0019085") * x3 * x4
    value = const("5.3578547") * x3**2 + const("0.8356891") * x1 * x5
    value += const("37.293239") * x1 - const("40792.141")
    return value, [u - 92, -u, v - 110, 90 - v, w - 25, 20 - w]


def g06(x: Sequence[Number]) -> Value:
    """Evaluate g06 at one point."""
    x1, x2 = x
    return (x1 - 10) ** 3 + (x2 - 20) ** 3, [
        100 - (x1 - 5) ** 2 - (x2 - 5) ** 2,
        (x1 - 6) ** 2 + (x2 - 5) ** 2 - const("82.81"),
    ]


def g07(x: Sequence[Number]) -> Value:
    """Evaluate g07 at one point."""
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10 = x
    value = x1**2 + x2**2 + x1 * x2 - 14 * x1 - 16 * x2 + (x3 - 10) ** 2 + 4 * (x4 - 5) ** 2
    value += (x5 - 3) ** 2 + 2 * (x6 - 1) ** 2 + 5 * x7**2 + 7 * (x8 - 11) ** 2
    value += 2 * (x9 - 10) ** 2 + (x10 - 7) ** 2 + 45
    return value, [
        -105 + 4 * x1 + 5 * x2 - 3 * x7 + 9 * x8,
        10 * x1 - 8 * x2 - 17 * x7 + 2 * x8,
        -8 * x1 + 2 * x2 + 5 * x9 - 2 * x10 - 12,
        3 * (x1 - 2) ** 2 + 4 * (x2 - 3) ** 2 + 2 * x3**2 - 7 * x4 - 120,
        5 * x1**2 + 8 * x2 + (x3 - 6) ** 2 - 2 * x4 - 40,
        x1**2 + 2 * (x2 - 2) ** 2 - 2 * x1 * x2 + 14 * x5 - 6 * x6,
        (x1 - 8) ** 2 / 2 + 2 * (x2 - 4) ** 2 + 3 * x5**2 - x6 - 30,
        -3 * x1 + 6 * x2 + 12 * (x9 - 8) ** 2 - 7 * x10,
    ]


def g08(x: Sequence[Number]) -> Value:
    """Evaluate g08 at one point with x1 > 0."""
    x1, x2 = x
    value = -(sin(2 * pi * x1) ** 3) * sin(2 * pi * x2) / (x1**3 * (x1 + x2))
    return value, [x1**2 - x2 + 1, 1 - x1 + (x2 - 4) ** 2]


def g09(x: Sequence[Number]) -> Value:
    """Evaluate g09 at one point."""
    x1, x2, x3, x4, x5, x6, x7 = x
    value = (x1 - 10) ** 2 + 5 * (x2 - 12) ** 2 + x3**4 + 3 * (x4 - 11) ** 2 + 10 * x5**6
    value += 7 * x6**2 + x7**4 - 4 * x6 * x7 - 10 * x6 - 8 * x7
    return value, [
        -127 + 2 * x1**2 + 3 * x2**4 + x3 + 4 * x4**2 + 5 * x5,
        -282 + 7 * x1 + 3 * x2 + 10 * x3**2 + x4 - x5,
        -196 + 23 * x1 + x2**2 + 6 * x6**2 - 8 * x7,
        4 * x1**2 + x2**2 - 3 * x1 * x2 + 2 * x3**2 + 5 * x6 - 11 * x7,
    ]


def g10(x: Sequence[Number]) -> Value:
    """Evaluate g10 at one point."""
    x1, x2, x3, x4, x5, x6, x7, x8 = x
    return x1 + x2 + x3, [
        -1 + (x4 + x6) / 400,
        -1 + (x5 + x7 - x4) / 400,
        -1 + (x8 - x5) / 100,
        -x1 * x6 + const("833.33252") * x4 + 100 * x1 - const("83333.333"),
        -x2 * x7 + 1250 * x5 + x2 * x4 - 1250 * x4,
        -x3 * x8 + 1250000 + x3 * x5 - 2500 * x5,
    ]


def g12(x: Sequence[Number]) -> Value:
    """Evaluate g12 at one point, the constraint over all 729 balls."""
    places = range(1, 10)
    balls = [
        (x[0] - p) ** 2 + (x[1] - q) ** 2 + (x[2] - r) ** 2 - const("0.0625")
        for p in places
        for q in places
        for r in places
    ]
    return -(100 - sum((xi - 5) ** 2 for xi in x)) / 100, [min(balls)]


def g16(x: Sequence[Number]) -> Value:
    """Evaluate g16 at one point."""
    x1, x2, x3, x4, x5 = x
    y: dict[int, Number] = {1: x2 + x3 + const("41.6")}
    c: dict[int, Number] = {1: const("0.024") * x4 - const("4.62")}
    y[2] = const("12.5") / c[1] + 12
    c[2] = const("0.0003535") * x1**2 + const("0.5311") * x1 + const("0.08705") * y[2] * x1
    c[3] = const("0.052") * x1 + 78 + const("0.002377") * y[2] * x1
    y[3] = c[2] / c[3]
    y[4] = 19 * y[3]
    c[4] = const("0.04782") * (x1 - y[3]) + const("0.1956") * (x1 - y[3]) ** 2 / x2
    c[4] += const("0.6376") * y[4] + const("1.594") * y[3]
    c[5] = 100 * x2
    c[6] = x1 - y[3] - y[4]
    c[7] = const("0.950") - c[4] / c[5]
    y[5] = c[6] * c[7]
    y[6] = x1 - y[5] - y[4] - y[3]
    c[8] = (y[5] + y[4]) * const("0.995")
    y[7] = c[8] / y[1]
    y[8] = c[8] / 3798
    c[9] = y[7] - const("0.0663") * y[7] / y[8] - const("0.3153")
    y[9] = const("96.82") / c[9] + const("0.321") * y[1]
    y[10] = const("1.29") * y[5] + const("1.258") * y[4] + const("2.29") * y[3]
    y[10] += const("1.71") * y[6]
    y[11] = const("1.71") * x1 - const("0.452") * y[4] + const("0.580") * y[3]
    c[10] = const("12.3") / const("752.3")
    c[11] = const("1.75") * y[2] * const("0.995") * x1
    c[12] = const("0.995") * y[10] + 1998
    y[12] = c[10] * x1 + c[11] / c[12]
    y[13] = c[12] - const("1.75") * y[2]
    y[14] = 3623 + const("64.4") * x2 + const("58.4") * x3 + 146312 / (y[9] + x5)
    c[13] = const("0.995") * y[10] + const("60.8") * x2 + 48 * x4 - const("0.1121") * y[14] - 5095
    y[15] = y[13] / c[13]
    y[16] = 148000 - 331000 * y[15] + 40 * y[13] - 61 * y[15] * y[13]
    c[14] = 2324 * y[10] - 28740000 * y[2]
    y[17] = 14130000 - 1328 * y[10] - 531 * y[11] + c[14] / c[12]
    c[15] = y[13] / y[15] - y[13] / const("0.52")
    c[16] = const("1.104") - const("0.72") * y[15]
    c[17] = y[9] + x5
    value = const("0.000117") * y[14] + const("0.1365") + const("0.00002358") * y[13]
    value += const("0.000001502") * y[16] + const("0.0321") * y[12] + const("0.004324") * y[5]
    value += const("0.0001") * c[15] / c[16] + const("37.48") * y[2] / c[12]
    value -= const("0.0000005843") * y[17]
    limits = (
        "213.1 405.23, 17.505 1053.6667, 11.275 35.03, 214.228 665.585, 7.458 584.463, "
        "0.961 265.916, 1.612 7.046, 0.146 0.222, 107.99 273.366, 922.693 1286.105, "
        "926.832 1444.046, 18.766 537.141, 1072.163 3247.039, 8961.448 26844.086, 0.063 0.386, "
        "71084.33 140000, 2802713 12146108"
    )
    constraints = [
        const("0.28") / const("0.72") * y[5] - y[4],
        x3 - const("1.5") * x2,
        3496 * y[2] / c[12] - 21,
        const("110.6") + y[1] - 62212 / c[17],
    ]
    for i, pair in enumerate(limits.split(", "), start=1):
        low, high = map(const, pair.split())
        constraints += [low - y[i], y[i] - high]
    return value, constraints


def g18(x: Sequence[Number]) -> Value:
    """Evaluate g18 at one point."""
    x1, x2, x3, x4, x5, x6, x7, x8, x9 = x
    value = -(x1 * x4 - x2 * x3 + x3 * x9 - x5 * x9 + x5 * x8 - x6 * x7) / 2
    return value, [
        x3**2 + x4**2 - 1,
        x9**2 - 1,
        x5**2 + x6**2 - 1,
        x1**2 + (x2 - x9) ** 2 - 1,
        (x1 - x5) ** 2 + (x2 - x6) ** 2 - 1,
        (x1 - x7) ** 2 + (x2 - x8) ** 2 - 1,
        (x3 - x5) ** 2 + (x4 - x6) ** 2 - 1,
        (x3 - x7) ** 2 + (x4 - x8) ** 2 - 1,
        x7**2 + (x8 - x9) ** 2 - 1,
        x2 * x3 - x1 * x4,
        -x3 * x9,
        x5 * x9,
        x6 * x7 - x5 * x8,
    ]


def g19(x: Sequence[Number]) -> Value:
    """Evaluate g19 at one point; the tables of the report by columns."""
    a = [
        "-16 0 -3.5 0 0 2 -1 -1 1 1",
        "2 -2 0 -2 -9 0 -1 -2 2 1",
        "0 0 2 0 -2 -4 -1 -3 3 1",
        "1 0.4 0 -4 1 0 -1 -2 4 1",
        "0 2 0 -1 -2.8 0 -1 -1 5 1",
    ]
    c = [
        "30 -20 -10 32 -10",
        "-20 39 -6 -31 32",
        "-10 -6 10 -6 -10",
        "32 -31 -6 39 -20",
        "-10 32 -10 -20 30",
    ]
    b = [const(text) for text in "-40 -2 -0.25 -4 -4 -1 -40 -60 5 1".split()]
    d, e = (4, 8, 10, 6, 2), (-15, -27, -36, -18, -12)
    tail = x[10:]
    value, constraints = -sum(bi * xi for bi, xi in zip(b, x, strict=False)), []
    for j in range(5):
        mixed = sum(const(text) * tail[i] for i, text in enumerate(c[j].split()))
        value += mixed * tail[j] + 2 * d[j] * tail[j] ** 3
        linear = sum(const(text) * x[i] for i, text in enumerate(a[j].split()))
        constraints.append(linear - 2 * mixed - 3 * d[j] * tail[j] ** 2 - e[j])
    return value, constraints


def g24(x: Sequence[Number]) -> Value:
    """Evaluate g24 at one point."""
    x1, x2 = x
    return -x1 - x2, [
        -2 * x1**4 + 8 * x1**3 - 8 * x1**2 + x2 - 2,
        -4 * x1**4 + 32 * x1**3 - 88 * x1**2 + 96 * x1 + x2 - 36,
    ]


G_REFERENCES = {
    "g01-13d-v1": Reference([0.0] * 13, [1.0] * 9 + [100.0] * 3 + [1.0], g01),
    "g02-20d-v1": Reference([0.0] * 20, [10.0] * 20, g02),
    "g04-5d-v1": Reference([78.0, 33.0, 27.0, 27.0, 27.0], [102.0] + [45.0] * 4, g04),
    "g06-2d-v1": Reference([13.0, 0.0], [100.0, 100.0], g06),
    "g07-10d-v1": Reference([-10.0] * 10, [10.0] * 10, g07),
    "g08-2d-v1": Reference([0.0, 0.0], [10.0, 10.0], g08),
    "g09-7d-v1": Reference([-10.0] * 7, [10.0] * 7, g09),
    "g10-8d-v1": Reference([100.0, 1e3, 1e3] + [10.0] * 5, [1e4] * 3 + [1e3] * 5, g10),
    "g12-3d-v1": Reference([0.0] * 3, [10.0] * 3, g12),
    "g16-5d-v1": Reference(
        [704.4148, 68.6, 0.0, 193.0, 25.0], [906.3855, 288.88, 134.75, 287.0966, 84.1988], g16
    ),
    "g18-9d-v1": Reference([-10.0] * 8 + [0.0], [10.0] * 8 + [20.0], g18),
    "g19-15d-v1": Reference([0.0] * 15, [10.0] * 15, g19),
    "g24-2d-v1": Reference([0.0, 0.0], [3.0, 4.0], g24),
}
