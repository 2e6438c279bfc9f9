"""Draw the maps that problem pages show, from the problems themselves.

    python -m tests.site.make_sketches

The drawings are part of the package, because the site is built from scores alone and does not make
problems. A test draws them again and compares.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np

import cbo_suite as cbo
from cbo_suite.problems.base import Problem
from cbo_suite.problems.rover import Rover
from cbo_suite.protocols import Array
from tests.site.engineering_sketches import engineering_sketches
from tests.site.plane_sketches import (
    Plane,
    best_point,
    dot,
    draw_plane,
    evaluate_plane,
    feasible_set,
    frame,
    line,
)

FOLDER = Path(__file__).parents[2] / "cbo_suite" / "site" / "sketches"
TOY = "toy-2d-v1"
# Shown as a plane through the best known point: all variables but two are those of the point.
PLANES = ("rosenbrock-5d-v1", "ackley-10d-v1", "keane-30d-v1")
ROVERS = ("rover-60d-v1", "rover-60d-alt-v1")


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
    _, worst = evaluate_plane(problem, Plane(), len(side))
    levels = [
        np.array([[max(0.0, f - 1), min(1.0, f)], [min(1.0, f), max(0.0, f - 1)]])
        for f in np.arange(0.2, 2.0, 0.2)
    ]
    return frame(
        "The feasible set (shaded), lines of equal objective, and the optimum (dot).",
        [
            *feasible_set(side, worst),
            *(f'<path class="contour" stroke-width="0.002" d="{line(ends)}"/>' for ends in levels),
            dot(best_point(problem)),
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


def g_problems() -> list[str]:
    """Name the G problems of CEC 2006."""
    return [row.id for row in cbo.list_problems() if row.id.startswith("g") and row.id[1].isdigit()]


def sketches() -> dict[str, str]:
    """Draw all of them, by file name."""
    drawn = {f"{id_}.svg": draw_rover(id_) for id_ in ROVERS}
    planes = {f"{id_}.svg": draw_plane(id_, Plane()) for id_ in PLANES}
    planes |= {f"{id_}.svg": draw_plane(id_) for id_ in g_problems()}
    return {f"{TOY}.svg": draw_toy(), **drawn, **planes, **engineering_sketches()}


def main() -> None:
    """Write the drawings into the package."""
    for name, text in sketches().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
