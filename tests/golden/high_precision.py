"""The eight analytic problems once more, in arithmetic of 40 digits.

Nothing here is shared with `cbo_suite.problems`: no import, no array, no rewritten formula. The
formulas are typed from the same sources, one point at a time, so that an error in one of the two
implementations shows as a difference between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mpmath import cos, e, exp, mp, mpf, nint, pi, sin, sqrt

mp.dps = 40

# mpmath has no type stubs, so that a number of 40 digits can have no better name for the checker.
Number = Any
Value = tuple[Number, list[Number]]


class Reference(NamedTuple):
    """One problem.

    Attributes:
        lower: Lower bounds.
        upper: Upper bounds.
        evaluate: One point to its objective and its list of constraint values.
    """

    lower: list[float]
    upper: list[float]
    evaluate: Callable[[Sequence[Number]], Value]


def const(text: str) -> Number:
    """Return the decimal number itself, not the double next to it."""
    return mpf(text)


def tension_string(x: Sequence[Number]) -> Value:
    """Evaluate the tension-compression string at one point."""
    d, D, N = x
    c2 = (4 * D**2 - d * D) / (12566 * (D * d**3 - d**4)) + 1 / (5108 * d**2) - 1
    return (N + 2) * D * d**2, [
        1 - D**3 * N / (71785 * d**4),
        c2,
        1 - const("140.45") * d / (D**2 * N),
        (d + D) / const("1.5") - 1,
    ]


def pressure_vessel(x: Sequence[Number]) -> Value:
    """Evaluate the pressure vessel at one point."""
    shell, head = (nint(thickness * 16) / 16 for thickness in x[:2])
    radius, length = x[2:]
    cost = (
        const("0.6224") * shell * radius * length
        + const("1.7781") * head * radius**2
        + const("3.1661") * shell**2 * length
        + const("19.84") * shell**2 * radius
    )
    return cost, [
        const("0.0193") * radius - shell,
        const("0.00954") * radius - head,
        1296000 - (pi * radius**2 * length + 4 * pi * radius**3 / 3),
        length - 240,
    ]


def welded_beam(x: Sequence[Number]) -> Value:
    """Evaluate the welded beam at one point."""
    h, length, t, b = x
    radius = sqrt((length**2 + (h + t) ** 2) / 4)
    polar_moment = 2 * const("0.707") * h * length * (length**2 / 12 + (h + t) ** 2 / 4)
    shear = 6000 / (sqrt(2) * h * length)
    torsion = 6000 * (14 + length / 2) * radius / polar_moment
    stress = sqrt(shear**2 + torsion**2 + length * shear * torsion / radius)
    buckling_load = const("64746.022") * (1 - const("0.0282346") * t) * t * b**3
    return const("1.10471") * h**2 * length + const("0.04811") * t * b * (14 + length), [
        stress - 13600,
        504000 / (t**2 * b) - 30000,
        h - b,
        6000 - buckling_load,
        const("2.1952") / (t**3 * b) - const("0.25"),
    ]


def speed_reducer(x: Sequence[Number]) -> Value:
    """Evaluate the speed reducer at one point."""
    x1, x2, x3, x4, x5, x6, x7 = x
    gear = x1 * x2**2 * (const("3.3333") * x3**2 + const("14.9334") * x3 - const("43.0934"))
    weight = (
        const("0.7854") * gear
        - const("1.508") * x1 * (x6**2 + x7**2)
        + const("7.4777") * (x6**3 + x7**3)
        + const("0.7854") * (x4 * x6**2 + x5 * x7**2)
    )
    return weight, [
        27 / (x1 * x2**2 * x3) - 1,
        const("397.5") / (x1 * x2**2 * x3**2) - 1,
        const("1.93") * x4**3 / (x2 * x3 * x6**4) - 1,
        const("1.93") * x5**3 / (x2 * x3 * x7**4) - 1,
        sqrt((745 * x4 / (x2 * x3)) ** 2 + 16900000) / (x6**3 / 10) - 1100,
        sqrt((745 * x5 / (x2 * x3)) ** 2 + 157500000) / (x7**3 / 10) - 850,
        x2 * x3 - 40,
        5 - x1 / x2,
        x1 / x2 - 12,
        (const("1.5") * x6 + const("1.9")) / x4 - 1,
        (const("1.1") * x7 + const("1.9")) / x5 - 1,
    ]


def ackley(x: Sequence[Number]) -> Value:
    """Evaluate Ackley's function with two constraints at one point."""
    d = len(x)
    squares = sum(xi**2 for xi in x)
    waves = sum(cos(2 * pi * xi) for xi in x)
    value = -20 * exp(-sqrt(squares / d) / 5) - exp(waves / d) + 20 + e
    return value, [sum(x), sqrt(squares) - 5]


def keane(x: Sequence[Number]) -> Value:
    """Evaluate Keane's bump function at one point other than the origin."""
    product, cosines = mpf(1), mpf(1)
    for xi in x:
        product *= xi
        cosines *= cos(xi) ** 2
    numerator = sum(cos(xi) ** 4 for xi in x) - 2 * cosines
    denominator = sqrt(sum(i * xi**2 for i, xi in enumerate(x, start=1)))
    return -abs(numerator / denominator), [
        const("0.75") - product,
        sum(x) - const("7.5") * len(x),
    ]


def toy(x: Sequence[Number]) -> Value:
    """Evaluate the toy problem at one point."""
    x1, x2 = x
    return x1 + x2, [
        const("1.5") - x1 - 2 * x2 - sin(2 * pi * (x1**2 - 2 * x2)) / 2,
        x1**2 + x2**2 - const("1.5"),
    ]


def rosenbrock(x: Sequence[Number]) -> Value:
    """Evaluate Rosenbrock's function with two constraints at one point."""
    d = len(x)
    value = sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (x[i] - 1) ** 2 for i in range(d - 1))
    dixon_price = (x[0] - 1) ** 2
    for i in range(2, d + 1):
        dixon_price += i * (2 * x[i - 1] ** 2 - x[i - 2]) ** 2
    w = [1 + (xi - 1) / 4 for xi in x]
    levy = sin(pi * w[0]) ** 2
    for wi in w[:-1]:
        levy += (wi - 1) ** 2 * (1 + 10 * sin(pi * wi + 1) ** 2)
    levy += (w[-1] - 1) ** 2 * (1 + sin(2 * pi * w[-1]) ** 2)
    return value, [dixon_price - 10, levy - 10]


REFERENCES = {
    "tension-string-3d-v1": Reference([0.05, 0.25, 2.0], [2.0, 1.3, 15.0], tension_string),
    "pressure-vessel-4d-v1": Reference(
        [0.0, 0.0, 10.0, 150.0], [10.0, 10.0, 50.0, 200.0], pressure_vessel
    ),
    "welded-beam-4d-v1": Reference([0.125, 0.1, 0.1, 0.1], [10.0] * 4, welded_beam),
    "speed-reducer-7d-v1": Reference(
        [2.6, 0.7, 17.0, 7.3, 7.8, 2.9, 5.0], [3.6, 0.8, 28.0, 8.3, 8.3, 3.9, 5.5], speed_reducer
    ),
    "ackley-10d-v1": Reference([-5.0] * 10, [10.0] * 10, ackley),
    "keane-30d-v1": Reference([0.0] * 30, [10.0] * 30, keane),
    "toy-2d-v1": Reference([0.0] * 2, [1.0] * 2, toy),
    "rosenbrock-5d-v1": Reference([-3.0] * 5, [5.0] * 5, rosenbrock),
}
