"""Efficient global optimization of egobox, as ask/tell.

Source: R. Lafage, "egobox, a Rust toolbox for efficient global optimization", JOSS 2022,
doi:10.21105/joss.04737. The method card is docs/optimizers/egobox.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cbo_suite.optimizers.shared.from_data import FromData
from cbo_suite.optimizers.shared.library import Library
from cbo_suite.protocols import Array, Space

LIBRARY = Library("egobox", "egobox", "1.0.0", "egobox")
# Values beyond this are cut off: their squares would overflow, at which the library panics.
LARGEST = 1e100


class Egobox(FromData):
    """Gaussian processes, log expected improvement where the constraints' means hold."""

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Begin without data.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the run, which makes no difference.
            batch_size: Number of points asked together, which makes no difference.
            seed: Fixes all randomness.

        Raises:
            MissingExtra: egobox is not installed.
        """
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        self._library = LIBRARY.load("egobox")

    def _propose(self, n: int, generator: np.random.Generator) -> Array:
        """Let egobox suggest `n` points of the unit cube, shape `(n, d)`."""
        values = self._values()
        y = np.clip(np.column_stack([values.objective, values.constraints]), -LARGEST, LARGEST)
        seed, believed = generator.integers(2**31, size=2).tolist()
        try:
            x, y = self._believe(self._unit, y, believed)
            points: Array = self._optimizer(n).suggest(x, y, seed=seed)
        except BaseException as error:
            # What Rust calls a panic is no Exception in Python, and its class has no public name.
            if type(error).__name__ != "PanicException":
                raise
            self._inspection = {"random_instead": n}
            return generator.random((n, self._space.dim))
        bad = ~np.isfinite(points)
        if bad.any():
            self._inspection = {"random_coordinates": int(bad.sum())}
            points = np.where(bad, generator.random(points.shape), points)
        return points

    def _optimizer(self, n: int) -> Any:
        """An optimizer of the library for the unit cube, at its own settings."""
        library = self._library
        bound = library.CstrSpec.leq(0.0, tol=0.0)
        return library.Egor(
            [[0.0, 1.0]] * self._space.dim,
            cstr_specs=[bound] * self._space.num_constraints or None,
            qei_config=library.QEiConfig(batch=n),
        )

    def _believe(self, x: Array, y: Array, seed: int) -> tuple[Array, Array]:
        """Add the points under way at their predicted values, as the library does in a batch."""
        under_way = self._under_way()
        if not len(under_way):
            return x, y
        predictions = []
        for series in y.T:
            model = self._library.Gpx.builder(seed=seed).fit(x, series[:, None])
            predictions.append(np.asarray(model.predict(under_way)).reshape(-1))
        return np.concatenate([x, under_way]), np.concatenate([y, np.column_stack(predictions)])
