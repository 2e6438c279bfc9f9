"""Optimizers led by hand over small problems: told a design, then asked and told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cbo_suite import Evaluation, Space
from cbo_suite.protocols import Array

Problem = Callable[[Array], Evaluation]
SQUARE = Space([-2.0, -2.0], [2.0, 2.0], 2)


def corner(x: Array) -> Evaluation:
    """The example of bayesqp's documentation: the minimum is 0.5, at (0.5, 0.5)."""
    constraints = np.column_stack([1.0 - x.sum(axis=1), x[:, 0] - 0.5])
    return Evaluation((x**2).sum(axis=1), constraints)


def advance(optimizer: Any, problem: Problem, design: Array, rounds: int, n: int = 1) -> Array:
    """Tell a design, then ask and tell; return all points in order, the design first."""
    optimizer.tell(design, problem(design))
    points = [design]
    for _ in range(rounds):
        points.append(optimizer.ask(n))
        optimizer.tell(points[-1], problem(points[-1]))
    return np.vstack(points)


def least(problem: Problem, points: Array) -> float:
    """The least objective of the feasible points."""
    values = problem(points)
    return float(values.objective.min(where=values.feasible, initial=np.inf))


def draw(space: Space, count: int) -> Array:
    """Some points of a space."""
    return space.sample(count, np.random.default_rng(3))
