"""Initial designs and their values: evaluated once per problem and seed, whatever the files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from cbo_suite.harness.design import initial_design
from cbo_suite.harness.evaluate import evaluate_points
from cbo_suite.protocols import Array, ConstrainedProblem, Evaluation


class Design(NamedTuple):
    """An initial design.

    Attributes:
        x: Its points, shape `(n, d)`.
        evaluation: What the problem gives for them here.
    """

    x: Array
    evaluation: Evaluation


class Scale(NamedTuple):
    """How large the values of a problem typically are.

    Attributes:
        objective: Of the objective, a number or one for each of some points, shape `(k,)`.
        constraints: Of each constraint, shape `(m,)` or `(k, m)`.
    """

    objective: float | Array
    constraints: Array


class Designs:
    """Remembers the designs of the files that are verified together."""

    def __init__(self) -> None:
        """Start with none."""
        self._points: dict[tuple[str, int, int], Array] = {}
        self._values: dict[tuple[str, int, int], Evaluation] = {}

    def points(self, problem: ConstrainedProblem, n_init: int, seed: int) -> Array:
        """Return the points of the design of a seed, shape `(n_init, d)`."""
        key = problem.id, n_init, seed
        if key not in self._points:
            self._points[key] = initial_design(problem.id, problem.space, n_init, seed)
        return self._points[key]

    def evaluated(
        self, problem: ConstrainedProblem, n_init: int, seeds: Iterable[int]
    ) -> dict[int, Design]:
        """Return the designs of some seeds, evaluating all that are new in one call."""
        keys = {seed: (problem.id, n_init, seed) for seed in seeds}
        x = {seed: self.points(problem, n_init, seed) for seed in keys}
        new = [seed for seed, key in keys.items() if key not in self._values]
        if new:
            values = evaluate_points(problem, np.concatenate([x[seed] for seed in new])).evaluation
            for place, seed in enumerate(new):
                rows = slice(place * n_init, (place + 1) * n_init)
                part = Evaluation(values.objective[rows], values.constraints[rows])
                self._values[keys[seed]] = part
        return {seed: Design(x[seed], self._values[key]) for seed, key in keys.items()}

    def scale(self, problem: ConstrainedProblem, n_init: int) -> Scale:
        """Return the typical size of a problem's values: the medians over the design of seed 0.

        It follows from the problem alone, so no author of a file has a say in it.
        """
        _, (objective, constraints) = self.evaluated(problem, n_init, [0])[0]
        return Scale(
            float(_typical(objective[:, None])[0]),
            _typical(constraints),
        )


def _typical(values: Array) -> Array:
    """Return the median size of the finite values in each column, 0 if there are none."""
    return np.array(
        [
            np.median(np.abs(column[np.isfinite(column)])) if np.isfinite(column).any() else 0.0
            for column in values.T
        ]
    )
