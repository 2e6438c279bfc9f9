"""What an optimizer was told, what it asked and was not told yet, and which region it was for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cbo_suite.errors import InvalidTask
from cbo_suite.protocols import Array, Evaluation, Space


class Asked(NamedTuple):
    """A point under way.

    Attributes:
        x: The point in the box, as plain numbers.
        region: Number of the trust region that asked for it.
        from_model: Whether the models chose it, so that it counts as success or failure.
    """

    x: list[float]
    region: int
    from_model: bool


class Archive:
    """All results in the order they came, and the points still under way.

    Attributes:
        told: Points as they were told, shape `(n, d)`.
        x: Points scaled to the unit cube, shape `(n, d)`.
        objective: Shape `(n,)`.
        constraints: Shape `(n, m)`.
        pending: Points asked and not told.
    """

    def __init__(self, space: Space) -> None:
        """Begin empty."""
        self._space = space
        self.told: Array = np.empty((0, space.dim))
        self.x: Array = np.empty((0, space.dim))
        self.objective: Array = np.empty(0)
        self.constraints: Array = np.empty((0, space.num_constraints))
        self.pending: list[Asked] = []

    def __len__(self) -> int:
        """Number of results."""
        return len(self.objective)

    def ask(self, x: Array, region: int, from_model: bool) -> None:
        """Remember that points `(n, d)` of the box are under way."""
        self.pending.extend(Asked(row, region, from_model) for row in x.tolist())

    def known(self) -> Array:
        """Points told and under way, scaled to the unit cube, shape `(k, d)`."""
        pending = np.array([asked.x for asked in self.pending]).reshape(-1, self._space.dim)
        return np.concatenate([self.x, np.clip(self._space.to_unit(pending), 0.0, 1.0)])

    def tell(self, x: Array, evaluation: Evaluation) -> list[Asked | None]:
        """Take in results and say of each what was asked, None if it never was.

        Raises:
            InvalidTask: Shapes do not fit, or a point is not made of finite numbers; nothing is
                taken in then.
        """
        x = np.array(x, dtype=float)
        objective = np.asarray(evaluation.objective, dtype=float)
        constraints = np.asarray(evaluation.constraints, dtype=float)
        shapes, count = (x.shape, objective.shape, constraints.shape), len(x)
        needed = (count, self._space.dim), (count,), (count, self._space.num_constraints)
        if shapes != needed:
            raise InvalidTask(
                "tell needs points, objective and constraints of shapes "
                f"(n, {self._space.dim}), (n,) and (n, {self._space.num_constraints}), "
                f"got {', '.join(map(str, shapes))}"
            )
        if not np.isfinite(x).all():
            row = x[~np.isfinite(x).all(axis=1)][0]
            raise InvalidTask(f"tell needs points of finite numbers, got {row.tolist()}")
        self.told = np.concatenate([self.told, x])
        self.x = np.concatenate([self.x, np.clip(self._space.to_unit(x), 0.0, 1.0)])
        self.objective = np.concatenate([self.objective, objective])
        self.constraints = np.concatenate([self.constraints, constraints])
        return [self._take(row) for row in x.tolist()]

    def _take(self, x: list[float]) -> Asked | None:
        """Remove a point from those under way."""
        for position, asked in enumerate(self.pending):
            if asked.x == x:
                return self.pending.pop(position)
        return None

    def get_state(self) -> list[list[Any]]:
        """The points under way as plain JSON."""
        return [list(asked) for asked in self.pending]

    def set_state(self, state: list[list[Any]]) -> None:
        """Replace the points under way."""
        self.pending = [Asked(*row) for row in state]


def to_ranges(indices: list[int]) -> list[list[int]]:
    """Write sorted indices as ranges [start, stop), which is short when they follow each other."""
    ranges: list[list[int]] = []
    for index in indices:
        if ranges and ranges[-1][1] == index:
            ranges[-1][1] = index + 1
        else:
            ranges.append([index, index + 1])
    return ranges


def from_ranges(ranges: list[list[int]]) -> list[int]:
    """Read what `to_ranges` wrote."""
    return [index for start, stop in ranges for index in range(start, stop)]
