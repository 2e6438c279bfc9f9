"""Optimizers that are a function of the told data, the points under way and the number of asks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from cbo_suite.optimizers.models.transforms import finite_constraints, finite_objective
from cbo_suite.protocols import Array, Evaluation, Space


class FromData(ABC):
    """Ask and tell around a library that proposes points for given data.

    Every ask has random numbers of its own, so that the state is the number of asks and the points
    under way. While too few different points were told, it proposes random ones.
    """

    FEWEST_DATA: ClassVar[int] = 2

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Begin without data.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the run, which makes no difference.
            batch_size: Number of points asked together, which makes no difference.
            seed: Fixes all randomness.
        """
        self._space, self._seed = space, seed
        self._asks = 0
        self._unit = np.empty((0, space.dim))
        self._told = Evaluation(np.empty(0), np.empty((0, space.num_constraints)))
        # Points of the space that were asked and not told.
        self._pending: list[list[float]] = []
        self._inspection: dict[str, Any] = {}

    @abstractmethod
    def _propose(self, n: int, generator: np.random.Generator) -> Array:
        """Propose up to `n` points of the unit cube, shape `(k, d)`, for the data so far."""

    def ask(self, n: int = 1) -> Array:
        """Propose up to `n` points, shape `(k, d)`."""
        self._asks += 1
        generator = np.random.default_rng([self._seed, self._asks])
        self._inspection = {}
        if len(np.unique(self._unit, axis=0)) < self.FEWEST_DATA:
            x = self._space.sample(n, generator)
        else:
            x = self._space.place(np.clip(self._propose(n, generator), 0.0, 1.0))
        # A second copy of a point under way would be worth nothing.
        for row in range(len(x)):
            if x[row].tolist() in self._pending:
                x[row] = self._space.sample(1, generator)[0]
            self._pending.append(x[row].tolist())
        return x

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results for points `(n, d)`, asked or not."""
        x = np.asarray(x, dtype=float)
        for row in x.tolist():
            if row in self._pending:
                self._pending.remove(row)
        self._unit = np.concatenate([self._unit, np.clip(self._space.to_unit(x), 0.0, 1.0)])
        self._told = Evaluation(
            np.concatenate([self._told.objective, evaluation.objective]),
            np.concatenate([self._told.constraints, evaluation.constraints]),
        )

    def inspect(self) -> dict[str, Any]:
        """What the last ask did, as plain JSON."""
        return dict(self._inspection)

    def get_state(self) -> dict[str, Any]:
        """All but the told data, as plain JSON."""
        return {"asks": self._asks, "pending": [list(row) for row in self._pending]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` told, after all data of that time were told."""
        self._asks = state["asks"]
        self._pending = [list(row) for row in state["pending"]]

    def _values(self) -> Evaluation:
        """What was told, as finite numbers: what is not counts as worst, and as a violation."""
        return Evaluation(
            finite_objective(self._told.objective), finite_constraints(self._told.constraints)
        )

    def _under_way(self) -> Array:
        """The points asked and not told, in the unit cube, shape `(p, d)`."""
        pending = np.array(self._pending).reshape(-1, self._space.dim)
        points: Array = np.clip(self._space.to_unit(pending), 0.0, 1.0)
        return points
