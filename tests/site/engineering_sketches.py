"""Drawings of the engineering problems, at their best known designs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np

import cbo_suite as cbo
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array

WIDTH = 100.0


def best_design(id_: str) -> Array:
    """Return the best known point of a problem."""
    problem = cast(Problem, cbo.make_problem(id_))
    assert problem.best_known is not None
    return problem.best_known.x


def sheet(title: str, height: float, parts: Iterable[str]) -> str:
    """Put parts drawn on a sheet, its origin at the upper left, into a picture."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}" '
        f'role="img">\n<title>{title}</title>\n{body}\n</svg>\n'
    )


def box(name: str, x: float, y: float, width: float, height: float) -> str:
    """Draw a rectangle."""
    return (
        f'<rect class="{name}" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"/>'
    )


def path(name: str, data: str, stroke: float = 0.5) -> str:
    """Draw a path."""
    return f'<path class="{name}" stroke-width="{stroke:.2f}" d="{data}"/>'


def label(text: str, x: float, y: float, anchor: str = "middle") -> str:
    """Write a text."""
    return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}">{text}</text>'


def width_of(text: str, left: float, right: float, y: float) -> str:
    """Draw a horizontal dimension with ticks at its ends."""
    line = (
        f"M{left:.2f},{y:.2f}H{right:.2f}M{left:.2f},{y - 1:.2f}v2.00M{right:.2f},{y - 1:.2f}v2.00"
    )
    return path("size", line, 0.3) + label(text, (left + right) / 2, y + 4.6)


def height_of(text: str, top: float, bottom: float, x: float) -> str:
    """Draw a vertical dimension with ticks at its ends."""
    line = (
        f"M{x:.2f},{top:.2f}V{bottom:.2f}M{x - 1:.2f},{top:.2f}h2.00M{x - 1:.2f},{bottom:.2f}h2.00"
    )
    return path("size", line, 0.3) + label(text, x + 1.8, (top + bottom) / 2 + 1.4, "start")


def draw_spring(id_: str) -> str:
    """Draw the coil spring from the side."""
    wire, coil, turns = best_design(id_)
    scale = 26 / coil
    left, middle, right = 12.0, 26.0, 82.0
    pitch = (right - left) / (turns + 2)
    # Only the strands in front, from the lower edge to the upper one.
    starts = left + pitch * np.arange(np.floor(turns + 2))
    rise = coil * scale
    line = "".join(f"M{x:.2f},{middle + rise / 2:.2f}l{pitch / 2:.2f},{-rise:.2f}" for x in starts)
    # Behind them those that lead back down, thinner.
    back = "".join(
        f"M{x + pitch / 2:.2f},{middle - rise / 2:.2f}l{pitch / 2:.2f},{rise:.2f}" for x in starts
    )
    half = coil / 2 * scale
    return sheet(
        "The spring: wire diameter x1, mean coil diameter x2, x3 active coils. Best known design.",
        52,
        [
            path("size", back, 0.5),
            path("wire", line, 0.7 * wire * scale),
            height_of("x2", middle - half, middle + half, 87),
            width_of(f"x3 = {turns:.1f} coils, wire x1", left, right, middle + half + 5),
        ],
    )


def draw_vessel(id_: str) -> str:
    """Draw the vessel in section."""
    shell, head, radius, length = best_design(id_)
    scale = 84 / (length + 2 * radius)
    r, thick, thin = radius * scale, max(shell * scale, 0.9), max(head * scale, 0.6)
    left, middle = 8 + r, 26.0
    right = left + length * scale
    dome = f"A{r:.2f},{r:.2f} 0 0"
    inner = (
        f"M{left:.2f},{middle - r:.2f}H{right:.2f}{dome} 1 {right:.2f},{middle + r:.2f}"
        f"H{left:.2f}{dome} 1 {left:.2f},{middle - r:.2f}Z"
    )
    walls = f"M{left:.2f},{middle - r:.2f}H{right:.2f}M{left:.2f},{middle + r:.2f}H{right:.2f}"
    return sheet(
        "The vessel: shell x1 and heads x2 thick, inner radius x3, length x4. Best known design.",
        52,
        [
            path("body", inner, thin),
            path("wall", walls, thick),
            height_of("x3", middle - r, middle, (left + right) / 2),
            width_of("x4", left, right, middle + r + 4),
            label("x1", left + 8, middle - r - 2.2),
            label("x2", left - r * 0.72 - 3.5, middle - r * 0.72 - 1.5),
        ],
    )


def draw_beam(id_: str) -> str:
    """Draw the beam at its wall."""
    weld, seam, depth, _ = best_design(id_)
    scale = 24 / max(depth, 1e-9)
    wall, top, tip = 20.0, 10.0, 88.0
    bottom = top + depth * scale
    leg, along = weld * scale, max(seam * scale, 6.0)
    seams = [
        f"M{wall:.2f},{y:.2f}h{along:.2f}v{sign * leg:.2f}h{-along:.2f}Z"
        for y, sign in ((top, -1), (bottom, 1))
    ]
    return sheet(
        "The beam: weld of height x1 and length x2, beam of depth x3 and thickness x4.",
        52,
        [
            box("wall-fill", 8, 2, wall - 8, 44),
            box("body", wall, top, tip - wall, bottom - top),
            path("weld", "".join(seams), 0.2),
            path("size", f"M{tip:.2f},{top - 7:.2f}v6.00m-1.20,-1.80l1.20,1.80l1.20,-1.80", 0.5),
            label("load", tip - 2.5, top - 3, "end"),
            height_of("x3", top, bottom, 91),
            width_of("x2", wall, wall + along, bottom + leg + 3),
            label("x1", wall + along + 2, top - 0.6, "start"),
            label("thickness x4", 55, (top + bottom) / 2 + 1.4),
        ],
    )


def draw_reducer(id_: str) -> str:
    """Draw the two shafts with their gears; the wheel and its ratio are no variables."""
    face, module, teeth, first, second, one, two = best_design(id_)
    scale = 4.2
    pinion, wheel = module * teeth * scale / 4, module * teeth * scale / 2
    centre, upper = 50.0, 14.0
    lower = upper + (pinion + wheel) / 2
    shafts = [(upper, first, one), (lower, second, two)]
    wide = face * scale
    parts = [
        box("body", centre - size * scale * 0.8, y - diameter * scale / 5, size * scale * 1.6,
            diameter * scale / 2.5)
        for y, size, diameter in shafts
    ]  # fmt: skip
    gears = [(upper, pinion), (lower, wheel)]
    parts += [box("gear", centre - wide / 2, y - size / 2, wide, size) for y, size in gears]
    bottom = lower + wheel / 2
    return sheet(
        "The gear box: face width x1, module x2, x3 teeth, shafts of length x4, x5 and diameter "
        "x6, x7. Not to scale.",
        round(bottom + 10),
        [
            *parts,
            width_of("x1", centre - wide / 2, centre + wide / 2, bottom + 3),
            label("x3 teeth, module x2", centre, upper - pinion / 2 - 2),
            width_of("x4", centre - first * scale * 0.8, centre - wide / 2, upper + 5),
            width_of("x5", centre - second * scale * 0.8, centre - wide / 2, lower + 7),
            label("x6", centre + first * scale * 0.8 + 2, upper + 1.4, "start"),
            label("x7", centre + second * scale * 0.8 + 2, lower + 1.4, "start"),
        ],
    )


def draw_constraints(id_: str) -> str:
    """Draw the constraints of the best known point as bars: how much of each is left."""
    problem = cast(Problem, cbo.make_problem(id_))
    values = problem.evaluate(best_design(id_)[None]).constraints[0]
    room = np.maximum(-values, 0.0)
    step = 92 / len(room)
    bars = [
        box(
            "tight" if left < 1e-3 * room.max() else "room",
            4 + i * step,
            40 - size,
            0.8 * step,
            size,
        )
        for i, (left, size) in enumerate(
            zip(room, np.maximum(34 * room / room.max(), 0.8), strict=True)
        )
    ]
    tight = int(np.sum(room < 1e-3 * room.max()))
    return sheet(
        f"The {len(room)} constraints at the best known point: what is left of each; "
        f"{tight} are used up (orange).",
        48,
        [*bars, path("size", "M3.00,40.20H97.00", 0.3), label("constraint 1", 4, 45.5, "start"),
         label(str(len(room)), 96, 45.5, "end")],
    )  # fmt: skip


def engineering_sketches() -> dict[str, str]:
    """Draw all of them, by file name."""
    drawings = {
        "tension-string-3d-v1": draw_spring,
        "pressure-vessel-4d-v1": draw_vessel,
        "welded-beam-4d-v1": draw_beam,
        "speed-reducer-7d-v1": draw_reducer,
        "vehicle-124d-v1": draw_constraints,
    }
    return {f"{id_}.svg": draw(id_) for id_, draw in drawings.items()}
