"""Planes through the best known points of problems, for the maps that their pages show."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, pairwise
from typing import NamedTuple, cast

import numpy as np
from contourpy import contour_generator

import cbo_suite as cbo
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array

# Of a plane so much should be feasible: then both sides of the border are to be seen.
CLEAR_SHARE, LEAST_SHARE = 0.35, 0.1
# Halvings of the sides, where hardly a point of a whole plane is feasible.
MOST_HALVINGS = 6


class Plane(NamedTuple):
    """A part of the plane of two variables, in units of the box.

    Attributes:
        pair: The two variables, from 0.
        lower: Its lower left corner.
        side: Its length of each side.
    """

    pair: tuple[int, int] = (0, 1)
    lower: tuple[float, float] = (0.0, 0.0)
    side: float = 1.0

    def in_words(self, dim: int) -> str:
        """What it is, with the numbers from 1 that people use."""
        one, other = self.pair
        if dim == 2:
            what = "Both variables, with the best known point (dot)"
        elif self.pair == (0, 1):
            what = "The plane of the first two variables through the best known point (dot)"
        else:
            what = (
                f"The plane of variables {one + 1} and {other + 1} through the best known point "
                "(dot)"
            )
        return (
            what if self.side == 1.0 else f"{what}, 1/{round(1 / self.side)} of the range of each"
        )


def frame(title: str, parts: Iterable[str]) -> str:
    """Put parts drawn on the unit square, its origin at the lower left, into a picture."""
    body = "\n".join(parts)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-0.01 -0.01 1.02 1.02" role="img">\n'
        f'<title>{title}</title>\n<g transform="matrix(1 0 0 -1 0 1)">\n{body}\n</g>\n</svg>\n'
    )


def line(points: Array, closed: bool = False) -> str:
    """Write points `(n, 2)` as the data of a path."""
    return "M" + " ".join(f"{x:.4f},{y:.4f}" for x, y in points) + ("Z" if closed else "")


def dot(point: Array) -> str:
    """Mark a point."""
    return f'<circle class="mark" cx="{point[0]:.4f}" cy="{point[1]:.4f}" r="0.014"/>'


def best_point(problem: Problem) -> Array:
    """Return the best known point of a problem that has one."""
    assert problem.best_known is not None
    return problem.best_known.x


def evaluate_plane(problem: Problem, plane: Plane, count: int) -> tuple[Array, Array]:
    """Objective and largest constraint value on a grid, each `(count, count)`."""
    space, side = problem.space, np.linspace(0.0, 1.0, count)
    x, y = np.meshgrid(side, side)
    points = np.repeat(space.to_unit(best_point(problem)[None]), x.size, axis=0)
    for variable, low, grid in zip(plane.pair, plane.lower, (x, y), strict=True):
        points[:, variable] = low + plane.side * grid.ravel()
    values = problem.evaluate(space.from_unit(points))
    return values.objective.reshape(x.shape), values.constraints.max(axis=1).reshape(x.shape)


def clear_plane(problem: Problem) -> Plane:
    """Choose the plane that shows most: the pair of variables, and how close it is looked at."""
    best = problem.space.to_unit(best_point(problem)[None])[0]
    for halvings in range(MOST_HALVINGS + 1):
        side = 0.5**halvings
        planes = []
        for pair in combinations(range(problem.space.dim), 2):
            low, high = (min(max(float(best[i]) - side / 2, 0.0), 1.0 - side) for i in pair)
            planes.append(Plane(pair, (low, high), side))
        shares = [float((evaluate_plane(problem, plane, 41)[1] <= 0.0).mean()) for plane in planes]
        place = int(np.argmin(np.abs(np.array(shares) - CLEAR_SHARE)))
        if shares[place] >= LEAST_SHARE:
            break
    return planes[place]


def feasible_set(side: Array, worst: Array) -> list[str]:
    """Draw where the largest constraint value `(n, n)` on the grid of `side` is at most zero."""
    generator = contour_generator(side, side, worst, name="serial", fill_type="OuterOffset")
    filled = cast(tuple[list[Array], list[list[int]]], generator.filled(-1e300, 0.0))
    rings = [
        line(polygon[start:end], closed=True)
        for polygon, offsets in zip(*filled, strict=True)
        for start, end in pairwise(offsets)
    ]
    return [
        '<rect class="blocked" width="1" height="1"/>',
        f'<path class="free" fill-rule="evenodd" d="{"".join(rings)}"/>',
    ]


def draw_plane(id_: str, plane: Plane | None = None) -> str:
    """Draw feasible set and lines of equal objective in a plane, by default the clearest."""
    problem = cast(Problem, cbo.make_problem(id_))
    plane = plane or clear_plane(problem)
    side = np.linspace(0.0, 1.0, 161)
    objective, worst = evaluate_plane(problem, plane, len(side))
    fine = side
    if (worst <= 0.0).mean() < LEAST_SHARE:
        # The grid would miss where the feasible set is thin.
        fine = np.linspace(0.0, 1.0, 961)
        worst = evaluate_plane(problem, plane, len(fine))[1]
    heights = contour_generator(side, side, objective, name="serial")
    levels = np.quantile(objective, [0.03, 0.1, 0.25, 0.45, 0.65, 0.85])
    curves = [part for level in levels for part in cast(list[Array], heights.lines(level))]
    best = problem.space.to_unit(best_point(problem)[None])[0][list(plane.pair)]
    return frame(
        f"{plane.in_words(problem.space.dim)}: feasible set (shaded) and lines of equal objective.",
        [
            *feasible_set(fine, worst),
            *(
                f'<path class="contour" stroke-width="0.002" d="{line(part[::2])}"/>'
                for part in curves
                if len(part) > 8
            ),
            dot((best - plane.lower) / plane.side),
        ],
    )
