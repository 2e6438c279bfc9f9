"""Search without a model: uniform random points, and scrambled Sobol points.

Method card: the baseline "RS" of the SCBO paper draws every point uniformly from the box,
whatever was observed. `sobol-search` draws them from a scrambled Sobol sequence instead, which
covers the box more evenly. Both can be asked for any number of points at any time. Where linear
constraints are known, the points are uniform among those allowed; those of the sequence that are
not allowed are replaced by such ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import qmc

from cbo_suite.protocols import Array, Evaluation, Space


class RandomSearch:
    """Uniform random points of the box."""

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Prepare the generator; budget and batch size make no difference to it."""
        self._space = space
        self._random = np.random.default_rng(seed)

    def ask(self, n: int = 1) -> Array:
        """Draw `n` points, shape `(n, d)`."""
        return self._space.sample(n, self._random)

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results, which change nothing."""


class SobolSearch:
    """Points of a scrambled Sobol sequence, in its order."""

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Prepare the sequence; budget and batch size make no difference to it."""
        self._space, self._seed = space, seed
        self._sequence = qmc.Sobol(space.dim, scramble=True, rng=np.random.default_rng(seed))
        self._asked = 0

    def ask(self, n: int = 1) -> Array:
        """Draw the next `n` points, shape `(n, d)`."""
        # The sequence is only balanced in powers of two, which qmc.Sobol.random warns about;
        # drawing one point at a time is silent and gives the same points.
        points = np.concatenate([self._sequence.random(1) for _ in range(n)])
        # A generator of its own for each ask: the state needs none.
        generator = np.random.default_rng([self._seed, self._asked])
        self._asked += n
        return self._space.redraw(self._space.from_unit(points), generator)

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results, which change nothing."""

    def get_state(self) -> dict[str, Any]:
        """Return how many points of the sequence were handed out."""
        return {"asked": self._asked}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go to the place in the sequence that `get_state` told."""
        self._sequence.reset()
        self._asked = state["asked"]
        # Zero steps forward is an error for SciPy.
        if self._asked:
            self._sequence.fast_forward(self._asked)
