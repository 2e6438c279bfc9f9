"""Derive the best known point of every analytic problem and write witnesses.json.

Run from the root of the repository, about two minutes:

    python -m tests.golden.derive_witnesses

The active constraints of each optimum turn it into equations, solved here with 40 digits. The
solution is then rounded to double precision; since rounding may leave the feasible set, the
active constraints are tightened by a relative margin, doubled until the rounded point is feasible
twice over: in exact arithmetic, and in the float64 arithmetic of `cbo_suite.problems`. The first
margin, 2^-46, is 64 rounding errors: another order of the operations, or another library of sine
and cosine, does not make the point infeasible either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypedDict

import numpy as np
from mpmath import (
    cos,
    diff,
    findroot,
    log,
    mpf,
    nstr,
    pi,
    sin,
    sqrt,
    tan,
)
from scipy.optimize import NonlinearConstraint, minimize

from cbo_suite.problems import PROBLEMS
from cbo_suite.problems.base import Problem
from cbo_suite.problems.keane import Keane
from cbo_suite.protocols import Array
from tests.golden.high_precision import (
    REFERENCES,
    Number,
    Value,
    const,
    keane,
    rosenbrock,
    welded_beam,
)

TARGET = Path(__file__).with_name("witnesses.json")

# A margin, as a fraction of the size of each active constraint, to an optimum with 40 digits.
Solver = Callable[[Number], list[Number]]


class Witness(TypedDict):
    """One entry of the file.

    Attributes:
        x: The point in double precision.
        objective: What the problem evaluates to there.
        exact_objective: The same with 20 digits.
        margin: By how much the active constraints were tightened.
    """

    x: list[float]
    objective: float
    exact_objective: str
    margin: str


def solve_tension_string(margin: Number) -> list[Number]:
    """Solve c1 = c2 = 0 for coils and coil diameter, then minimise over the wire diameter."""

    def design(wire: Number) -> list[Number]:
        # c2 = -margin is a quadratic equation in the coil diameter; the larger root is a spring.
        scale = 12566 * wire**3 * (1 - margin - 1 / (5108 * wire**2))
        half = (wire + scale) / 8
        coil = half + sqrt(half**2 - scale * wire / 4)
        return [wire, coil, (1 + margin) * 71785 * wire**4 / coil**3]

    def weight(wire: Number) -> Number:
        _, coil, count = design(wire)
        return (count + 2) * coil * wire**2

    return design(findroot(lambda wire: diff(weight, wire), mpf("0.0517")))


def solve_pressure_vessel(margin: Number) -> list[Number]:
    """Find the best pair of plate thicknesses, then solve c1 = c3 = 0 for the other two.

    For a given radius the cost grows with both thicknesses and the length, so that the smallest
    of each that is feasible is the best: a search along one line is exhaustive.
    """
    radius = np.linspace(10.0, 50.0, 4_000_001)
    length = np.maximum(150.0, (1296000 / np.pi - 4 / 3 * radius**3) / radius**2)
    shell = np.ceil(0.0193 * radius * 16) / 16
    head = np.ceil(0.00954 * radius * 16) / 16
    cost = (
        0.6224 * shell * radius * length
        + 1.7781 * head * radius**2
        + 3.1661 * shell**2 * length
        + 19.84 * shell**2 * radius
    )
    best = int(np.argmin(np.where(length <= 200.0, cost, np.inf)))
    exact = mpf(shell[best]) * (1 - margin) / const("0.0193")
    volume = 1296000 * (1 + margin)
    return [shell[best], head[best], exact, (volume / pi - 4 * exact**3 / 3) / exact**2]


def solve_welded_beam(margin: Number) -> list[Number]:
    """Solve the four equations c1 = c2 = c3 = c4 = 0."""
    sizes = (13600, 30000, 1, 6000)

    def equations(*x: Number) -> list[Number]:
        constraints = welded_beam(x)[1]
        return [constraints[i] / size + margin for i, size in enumerate(sizes)]

    return list(findroot(equations, (mpf("0.2444"), mpf("6.2186"), mpf("8.2915"), mpf("0.2444"))))


def solve_speed_reducer(margin: Number) -> list[Number]:
    """Put five variables at their bounds or c8 = 0; c5 = 0 and c6 = 0 give the two shafts."""
    x2, x3, x4, x5 = mpf("0.7"), mpf(17), mpf("7.3"), mpf("7.8")
    bearing1 = sqrt((745 * x4 / (x2 * x3)) ** 2 + 16900000) / (110 * (1 - margin))
    bearing2 = sqrt((745 * x5 / (x2 * x3)) ** 2 + 157500000) / (85 * (1 - margin))
    return [5 * x2, x2, x3, x4, x5, bearing1 ** (mpf(1) / 3), bearing2 ** (mpf(1) / 3)]


def solve_ackley(margin: Number) -> list[Number]:
    """Return the origin, on the boundary of c1 without rounding."""
    return [mpf(0)] * 10


def solve_toy(margin: Number) -> list[Number]:
    """Solve c1 = 0 where its gradient is parallel to (1, 1), from the best point of a grid."""
    axis = np.linspace(0.0, 1.0, 2001)
    x1, x2 = np.meshgrid(axis, axis)
    c1 = 1.5 - x1 - 2 * x2 - 0.5 * np.sin(2 * np.pi * (x1**2 - 2 * x2))
    best = int(np.argmin(np.where(c1 <= 0, x1 + x2, np.inf)))

    def equations(x1: Number, x2: Number) -> list[Number]:
        angle = 2 * pi * (x1**2 - 2 * x2)
        return [
            const("1.5") * (1 + margin) - x1 - 2 * x2 - sin(angle) / 2,
            2 * pi * (1 + x1) * cos(angle) - 1,
        ]

    return list(findroot(equations, (x1.ravel()[best], x2.ravel()[best])))


def solve_rosenbrock(margin: Number) -> list[Number]:
    """Solve the KKT equations with c1 active, from the unconstrained optimum pulled inwards."""

    def equations(*unknown: Number) -> list[Number]:
        x, multiplier = list(unknown[:5]), unknown[5]

        def lagrangian(i: int, value: Number) -> Number:
            objective, constraints = rosenbrock([*x[:i], value, *x[i + 1 :]])
            return objective + multiplier * constraints[0]

        slopes = [diff(lambda v, i=i: lagrangian(i, v), x[i]) for i in range(5)]
        return [*slopes, rosenbrock(x)[1][0] / 10 + margin]

    start = [mpf(value) for value in ("0.99", "0.99", "0.98", "0.96", "0.92", "0.001")]
    return list(findroot(equations, start))[:5]


def keane_basins(dim: int) -> Iterator[Array]:
    """Yield one start per basin: how many coordinates lie near 3π, 2π, π, 1.5, and the rest.

    An optimum is sorted in decreasing order, because only the denominator depends on the order.
    The rest is equal and puts the product at 0.75.
    """
    for at_9 in range(2):
        for at_6 in range(4):
            for at_2 in range(2):
                for at_3 in range(dim - at_9 - at_6 - at_2):
                    head = [9.4] * at_9 + [6.26] * at_6 + [3.04] * at_3 + [1.5] * at_2
                    rest = dim - len(head)
                    level = float((0.75 / np.prod(head)) ** (1 / rest))
                    if 0.2 <= level <= 1.0:
                        yield np.array(head + [level] * rest)


def keane_value(x: Array) -> tuple[float, Array]:
    """Return value and gradient of Keane's function where its numerator is positive."""
    weights = np.arange(1, x.size + 1)
    cosine = np.cos(x)
    product = np.prod(cosine**2)
    numerator = np.sum(cosine**4) - 2 * product
    norm = np.sqrt(np.sum(weights * x**2))
    slope = 4 * np.tan(x) * (product - cosine**4)
    return -numerator / norm, -slope / norm + numerator * weights * x / norm**3


def search_keane(dim: int) -> Array:
    """Descend from every basin and return the best point, sorted in decreasing order."""
    level = np.log(0.75)
    product = NonlinearConstraint(lambda x: np.log(x).sum(), level, level, jac=lambda x: 1 / x)
    best, where = 0.0, np.ones(dim)
    for start in keane_basins(dim):
        found = minimize(
            keane_value,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0.05, 10.0)] * dim,
            constraints=[product],
            options={"maxiter": 300, "ftol": 1e-13},
        )
        if found.success and found.fun < best:
            best, where = found.fun, np.sort(found.x)[::-1]
    return where


def keane_solver(dim: int) -> Solver:
    """Return the solver of the KKT equations with c1 active, in the best basin."""
    start = [mpf(value) for value in search_keane(dim)]

    def slopes(x: Sequence[Number]) -> list[Number]:
        """Return the slopes of log(-f) along every log(xi), all equal at an optimum."""
        product = mpf(1)
        for xi in x:
            product *= cos(xi) ** 2
        numerator = sum(cos(xi) ** 4 for xi in x) - 2 * product
        square = sum(i * xi**2 for i, xi in enumerate(x, start=1))
        return [
            xi * 4 * tan(xi) * (product - cos(xi) ** 4) / numerator - i * xi**2 / square
            for i, xi in enumerate(x, start=1)
        ]

    def solve(margin: Number) -> list[Number]:
        def equations(*x: Number) -> list[Number]:
            along = slopes(x)
            excess = sum(log(xi) for xi in x) - log(const("0.75")) - margin
            return [*(slope - along[0] for slope in along[1:]), excess]

        return list(findroot(equations, start))

    return solve


def witness(
    problem: Problem, reference: Callable[[Sequence[Number]], Value], solve: Solver
) -> Witness:
    """Round an optimum to doubles, with the smallest margin that leaves it feasible."""
    for exponent in range(-46, -30):
        x = np.array([float(value) for value in solve(mpf(2) ** exponent)])
        x = np.clip(x, problem.space.lower, problem.space.upper)
        exact, constraints = reference([mpf(value) for value in x])
        evaluation = problem.evaluate(x[None, :])
        if evaluation.feasible[0] and max(constraints) <= 0:
            return Witness(
                x=x.tolist(),
                objective=float(evaluation.objective[0]),
                exact_objective=nstr(exact, 20),
                margin=f"2^{exponent}",
            )
    raise RuntimeError(f"{problem.id}: no margin below 2^-30 makes the rounded optimum feasible")


def main() -> None:
    """Derive every witness and write the file."""
    solvers: dict[str, Solver] = {
        "tension-string-3d-v1": solve_tension_string,
        "pressure-vessel-4d-v1": solve_pressure_vessel,
        "welded-beam-4d-v1": solve_welded_beam,
        "speed-reducer-7d-v1": solve_speed_reducer,
        "ackley-10d-v1": solve_ackley,
        "toy-2d-v1": solve_toy,
        "rosenbrock-5d-v1": solve_rosenbrock,
    }
    witnesses: dict[str, Witness] = {}
    for problem_id, solve in solvers.items():
        module, attribute = PROBLEMS[problem_id].target.split(":")
        problem = getattr(import_module(module), attribute)()
        witnesses[problem_id] = witness(problem, REFERENCES[problem_id].evaluate, solve)
    for dim in (10, 20, 30, 50):
        problem = Keane(dim=dim)
        witnesses[problem.id] = witness(problem, keane, keane_solver(dim))
    TARGET.write_text(json.dumps(witnesses, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
