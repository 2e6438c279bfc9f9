"""Derive the best known points of the G problems and write problems/g_problems/best_known.json.

Run from the root of the repository, half a minute:

    python -m tests.golden.derive_g_best_known

The constraints and bounds that are active at the points of the report turn them into the KKT
equations, which are solved with 40 digits from the report's points, rounded; no multiplier may be
negative. The active constraints are tightened until the rounded point is feasible in exact
arithmetic and in float64, as `tests.golden.derive_witnesses` does it. Three optima have a closed
form: that of g01 is all whole numbers, that of g12 is the centre of the box, and that of g18 is the
rhombus of two triangles.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpmath import diff, findroot, matrix, mpf, norm, nstr, sqrt

from cbo_suite.problems import PROBLEMS
from cbo_suite.problems.base import Problem
from tests.golden.g_formulas import G_REFERENCES
from tests.golden.high_precision import Number, Reference

TARGET = Path(__file__).parents[2] / "problems" / "g_problems" / "best_known.json"


class Start(NamedTuple):
    """Where the equations are solved from.

    Attributes:
        x: The point of the report, rounded.
        active: The constraints that are active there, counted from 1.
        bounds: The variables that are at a bound there, counted from 1.
    """

    x: list[float]
    active: tuple[int, ...] = ()
    bounds: tuple[int, ...] = ()


STARTS = {
    "g04-5d-v1": Start([78, 33, 29.995, 45, 36.776], (1, 6), (1, 2, 4)),
    "g06-2d-v1": Start([14.095, 0.843], (1, 2)),
    "g07-10d-v1": Start(
        [2.172, 2.3637, 8.7739, 5.096, 0.9907, 1.4306, 1.3216, 9.8287, 8.2801, 8.3759],
        (1, 2, 3, 4, 5, 6),
    ),
    "g08-2d-v1": Start([1.228, 4.2454]),
    "g09-7d-v1": Start([2.3305, 1.9514, -0.4775, 4.3657, -0.6245, 1.0381, 1.5942], (1, 4)),
    "g10-8d-v1": Start(
        [579.307, 1359.971, 5109.971, 182.018, 295.601, 217.982, 286.417, 395.601],
        (1, 2, 3, 4, 5, 6),
    ),
    # x2 is at its bound too, which follows from c2 and c5: x3 <= 1.5 x2 and x2 + x3 >= 171.5.
    "g16-5d-v1": Start([705.17454, 68.6, 102.9, 282.32493, 37.58412], (2, 3, 4, 5, 36)),
    "g19-15d-v1": Start(
        [0, 0, 3.946, 0, 3.2832, 10, 0, 0, 0, 0, 0.3708, 0.2785, 0.5238, 0.3886, 0.2982],
        (1, 2, 3, 4, 5),
        (1, 2, 4, 6, 7, 8, 9, 10),
    ),
    "g24-2d-v1": Start([2.3295, 3.1785], (1, 2)),
}
CLOSED = {
    "g01-13d-v1": [mpf(1)] * 9 + [mpf(3)] * 3 + [mpf(1)],
    "g12-3d-v1": [mpf(5)] * 3,
    "g18-9d-v1": [1, 0, mpf("0.5"), sqrt(3) / 2, 1, 0, mpf("0.5"), sqrt(3) / 2, 0],
}


def make(problem_id: str) -> Problem:
    """Make a problem whose best known point need not be written down yet."""
    module, attribute = PROBLEMS[problem_id].target.split(":")
    problem: Problem = object.__new__(getattr(import_module(module), attribute))
    return problem


class Kkt:
    """The KKT equations of one problem."""

    def __init__(self, reference: Reference, start: Start) -> None:
        """Gather what is free, and sizes and multipliers of what is active."""
        self.reference = reference
        self.fixed = {i - 1: mpf(start.x[i - 1]) for i in start.bounds}
        self.free = [i for i in range(len(start.x)) if i not in self.fixed]
        self.active = [j - 1 for j in start.active]
        self.start = [mpf(start.x[i]) for i in self.free]
        point = self.point(self.start)
        self.sizes = [self.size(point, j) for j in self.active]
        self.multipliers = self.fit_multipliers(point)

    def point(self, free: list[Number]) -> list[Number]:
        """Put the free variables beside those at their bounds."""
        values = dict(zip(self.free, free, strict=True)) | self.fixed
        return [values[i] for i in range(len(values))]

    def slope(self, point: list[Number], i: int, j: int | None) -> Number:
        """Differentiate the objective (None) or a constraint j along variable i."""

        def along(value: Number) -> Number:
            objective, constraints = self.reference.evaluate([*point[:i], value, *point[i + 1 :]])
            return objective if j is None else constraints[j]

        return diff(along, point[i])

    def size(self, point: list[Number], j: int) -> Number:
        """How much a constraint moves when every variable moves by its own size."""
        slopes = [self.slope(point, i, j) for i in range(len(point))]
        return sum(abs(x * slope) for x, slope in zip(point, slopes, strict=True)) + mpf("1e-12")

    def fit_multipliers(self, point: list[Number]) -> list[Number]:
        """Fit the multipliers by least squares in double precision."""
        jacobian = [[float(self.slope(point, i, j)) for j in self.active] for i in self.free]
        gradient = [float(self.slope(point, i, None)) for i in self.free]
        if not self.active:
            return []
        fitted = np.linalg.lstsq(np.array(jacobian), -np.array(gradient), rcond=None)[0]
        return [mpf(float(value)) for value in fitted]

    def solve(self, margin: Number) -> list[Number]:
        """Solve with the active constraints below zero by a share of their size."""
        count = len(self.free)

        def equations(*unknown: Number) -> list[Number]:
            point, multipliers = self.point(list(unknown[:count])), unknown[count:]
            constraints = self.reference.evaluate(point)[1]
            tight = [
                constraints[j] / size + margin
                for j, size in zip(self.active, self.sizes, strict=True)
            ]
            if count == len(self.active):
                # A corner: the constraints alone fix it.
                return [
                    *tight,
                    *(m - m0 for m, m0 in zip(multipliers, self.multipliers, strict=True)),
                ]
            slopes = [
                self.slope(point, i, None)
                + sum(
                    m * self.slope(point, i, j)
                    for m, j in zip(multipliers, self.active, strict=True)
                )
                for i in self.free
            ]
            return [*slopes, *tight]

        found = findroot(equations, [*self.start, *self.multipliers], tol=mpf("1e-40"))
        point = self.point(list(found)[:count])
        assert norm(matrix(equations(*found))) < mpf("1e-30")
        assert min(self.fit_multipliers(point), default=0) >= 0
        return point


def derive(problem_id: str) -> dict[str, Any]:
    """Derive the entry of one problem."""
    problem, reference = make(problem_id), G_REFERENCES[problem_id]
    source = "closed form"
    kkt = None
    if problem_id in STARTS:
        kkt = Kkt(reference, STARTS[problem_id])
        source = f"{len(kkt.active)} active constraints, KKT solved with 40 digits"
    exact = CLOSED[problem_id] if kkt is None else kkt.solve(mpf(0))
    optimum = reference.evaluate(exact)[0]
    for exponent in range(-46, -30):
        solved = exact if kkt is None else kkt.solve(mpf(2) ** exponent)
        x = np.array([float(value) for value in solved])
        x = np.clip(x, problem.space.lower, problem.space.upper)
        values = problem.evaluate(x[None])
        if values.feasible[0] and max(reference.evaluate([mpf(v) for v in x])[1]) <= 0:
            break
    else:
        raise RuntimeError(f"{problem_id}: no margin makes the rounded optimum feasible")
    print(problem_id, source, nstr(optimum, 16), float(values.objective[0]), f"2^{exponent}")
    return {
        "objective": float(values.objective[0]),
        "x": x.tolist(),
        "optimum": nstr(optimum, 20),
        "source": f"{source}, tests/golden/derive_g_best_known.py",
    }


def main() -> None:
    """Derive every point but that of g02, which is Keane's."""
    known = {id_: derive(id_) for id_ in G_REFERENCES if id_ in STARTS or id_ in CLOSED}
    TARGET.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
