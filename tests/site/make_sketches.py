"""Draw the maps that problem pages show, from the problems themselves.

    python -m tests.site.make_sketches

The drawings are part of the package, because the site is built from scores alone and does not make
problems. A test draws them again and compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np
from contourpy import contour_generator

import cbo_suite as cbo
from cbo_suite.problems.base import Problem
from cbo_suite.problems.rover import Rover
from cbo_suite.protocols import Array
from tests.site.engineering_sketches import engineering_sketches

FOLDER = Path(__file__).parents[2] / "cbo_suite" / "site" / "sketches"
TOY = "toy-2d-v1"
# Shown as a plane through the best known point: all variables but two are those of the point.
PLANES = ("rosenbrock-5d-v1", "ackley-10d-v1", "keane-30d-v1")
ROVERS = ("rover-60d-v1", "rover-60d-alt-v1")


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


def square(name: str, centre: Array, half: float) -> str:
    """Draw a square of a class around a centre."""
    x, y = centre - half
    return (
        f'<rect class="{name}" x="{x:.4f}" y="{y:.4f}" width="{2 * half:.4f}" '
        f'height="{2 * half:.4f}"/>'
    )


def draw_toy() -> str:
    """Draw the feasible set of the toy problem, lines of equal objective and the optimum."""
    problem = cast(Problem, cbo.make_problem(TOY))
    side = np.linspace(0.0, 1.0, 121)
    x, y = np.meshgrid(side, side)
    values = problem.evaluate(np.column_stack((x.ravel(), y.ravel())))
    worst = values.constraints.max(axis=1).reshape(x.shape)
    generator = contour_generator(x, y, worst, name="serial", fill_type="OuterOffset")
    filled = cast(tuple[list[Array], list[list[int]]], generator.filled(-1e9, 0.0))
    rings = [
        line(polygon[start:end], closed=True)
        for polygon, offsets in zip(*filled, strict=True)
        for start, end in pairwise(offsets)
    ]
    levels = [
        np.array([[max(0.0, f - 1), min(1.0, f)], [min(1.0, f), max(0.0, f - 1)]])
        for f in np.arange(0.2, 2.0, 0.2)
    ]
    return frame(
        "The feasible set (shaded), lines of equal objective, and the optimum (dot).",
        [
            '<rect class="blocked" width="1" height="1"/>',
            f'<path class="free" fill-rule="evenodd" d="{"".join(rings)}"/>',
            *(f'<path class="contour" stroke-width="0.002" d="{line(ends)}"/>' for ends in levels),
            dot(best_point(problem)),
        ],
    )


def draw_plane(id_: str) -> str:
    """Draw feasible set and lines of equal objective in the first two variables."""
    problem = cast(Problem, cbo.make_problem(id_))
    best, space = best_point(problem), problem.space
    side = np.linspace(0.0, 1.0, 161)
    x, y = np.meshgrid(side, side)
    points = np.repeat(space.to_unit(best[None]), x.size, axis=0)
    points[:, 0], points[:, 1] = x.ravel(), y.ravel()
    values = problem.evaluate(space.from_unit(points))
    worst = values.constraints.max(axis=1).reshape(x.shape)
    generator = contour_generator(x, y, worst, name="serial", fill_type="OuterOffset")
    filled = cast(tuple[list[Array], list[list[int]]], generator.filled(-1e300, 0.0))
    rings = [
        line(polygon[start:end], closed=True)
        for polygon, offsets in zip(*filled, strict=True)
        for start, end in pairwise(offsets)
    ]
    objective = values.objective.reshape(x.shape)
    heights = contour_generator(x, y, objective, name="serial")
    levels = np.quantile(objective, [0.03, 0.1, 0.25, 0.45, 0.65, 0.85])
    curves = [part for level in levels for part in cast(list[Array], heights.lines(level))]
    return frame(
        "The plane of the first two variables through the best known point (dot): feasible set "
        "(shaded) and lines of equal objective.",
        [
            '<rect class="blocked" width="1" height="1"/>',
            f'<path class="free" fill-rule="evenodd" d="{"".join(rings)}"/>',
            *(
                f'<path class="contour" stroke-width="0.002" d="{line(part[::2])}"/>'
                for part in curves
                if len(part) > 8
            ),
            dot(space.to_unit(best[None])[0]),
        ],
    )


def draw_rover(id_: str) -> str:
    """Draw trees, stones and the best known path of a rover problem."""
    problem = cast(Rover, cbo.make_problem(id_))
    path = problem.trajectory(best_point(problem)[None])[0][::9]
    return frame(
        "Trees (green) cost, stones (grey) are forbidden; dashed is the best known path.",
        [
            '<rect class="free" width="1" height="1"/>',
            *(square("tree", centre, problem.tree_half_side) for centre in problem.trees),
            *(square("stone", centre, problem.stone_half_side) for centre in problem.stones),
            f'<path class="path" stroke-width="0.008" d="{line(path)}"/>',
            dot(problem.start),
            dot(problem.goal),
        ],
    )


def sketches() -> dict[str, str]:
    """Draw all of them, by file name."""
    drawn = {f"{id_}.svg": draw_rover(id_) for id_ in ROVERS}
    planes = {f"{id_}.svg": draw_plane(id_) for id_ in PLANES}
    return {f"{TOY}.svg": draw_toy(), **drawn, **planes, **engineering_sketches()}


def main() -> None:
    """Write the drawings into the package."""
    for name, text in sketches().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
