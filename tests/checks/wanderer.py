"""A well-behaved optimizer, which the tests of the rules spoil in one way each."""

from __future__ import annotations

from typing import Any

import numpy as np

from cbo_suite.protocols import Array, Evaluation, Space


class Wanderer:
    """A well-behaved optimizer: random steps from the best point it was told."""

    sequential = False

    def __init__(self, space: Space, *, budget: int, batch_size: int, seed: int) -> None:
        """Start with nothing."""
        self.space, self.batch_size = space, batch_size
        self.random = np.random.default_rng(seed)
        self.x = np.empty((0, space.dim))
        self.evaluation = Evaluation(np.empty(0), np.empty((0, space.num_constraints)))

    def ask(self, n: int = 1) -> Array:
        """Step away from the best point."""
        centre = np.full(self.space.dim, 0.5)
        if len(self.x):
            centre = self.space.to_unit(self.x[self.evaluation.best()])
        steps = 0.1 * self.random.standard_normal((n, self.space.dim))
        return self.space.place(np.clip(centre + steps, 0.0, 1.0))

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Keep the data."""
        self.x = np.concatenate([self.x, x])
        self.evaluation = Evaluation(
            np.concatenate([self.evaluation.objective, evaluation.objective]),
            np.concatenate([self.evaluation.constraints, evaluation.constraints]),
        )

    def get_state(self) -> dict[str, Any]:
        """Return the state of the generator."""
        return {"random": self.random.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over the state of a generator."""
        self.random.bit_generator.state = state["random"]

    def inspect(self) -> dict[str, Any]:
        """Say how much was told."""
        return {"told": len(self.x)}

    def recommend(self) -> Array:
        """Return the best point, shape `(d,)`."""
        best: Array = self.x[self.evaluation.best()]
        return best
