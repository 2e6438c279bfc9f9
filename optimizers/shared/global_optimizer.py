"""What optimizers with one global model have in common: data, points under way, model, state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cbo_suite.optimizers.models.device import sample_tensor
from cbo_suite.optimizers.models.fit import NOISE_FREE
from cbo_suite.optimizers.models.posterior import Posterior
from cbo_suite.optimizers.models.prediction import predict
from cbo_suite.optimizers.models.surrogate import Surrogate, Transform
from cbo_suite.optimizers.shared.placing import Ground
from cbo_suite.optimizers.shared.search import spread_points
from cbo_suite.protocols import Array, Evaluation, Prediction, Space

# Points all over the cube where optima are looked for.
NUM_STARTS = 512


def on_arrays(
    function: Callable[[Tensor], Tensor], tensor: Callable[[Array], Tensor] = torch.from_numpy
) -> Callable[[Array], Array]:
    """Let a function of tensors, as `tensor` makes them, take arrays, and give them."""

    def wrapped(points: Array) -> Array:
        values: Array = function(tensor(points)).cpu().numpy()
        return values

    return wrapped


class GlobalOptimizer(ABC):
    """Ask and tell around an acquisition function of Gaussian process models of all data."""

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        transformed: bool = False,
        device: str = "cpu",
    ) -> None:
        """Begin without data.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the whole run, which makes no difference.
            batch_size: Number of points asked together, which makes no difference.
            seed: Fixes all randomness.
            transformed: Whether the models see the Gaussian copula of the objective and the bilog
                of the constraints instead of plain values.
            device: Device of the models, such as "cpu" or "cuda".
        """
        self._space, self._seed = space, seed
        self._ground = Ground(space)
        self._transform = Transform(transformed, transformed)
        self._surrogate = Surrogate(
            space.dim,
            space.num_constraints,
            NOISE_FREE,
            self._transform,
            sample_tensor(device),
        )
        self._x = np.empty((0, space.dim))
        self._told = Evaluation(np.empty(0), np.empty((0, space.num_constraints)))
        # Points of the box that were asked and not told.
        self._pending: list[list[float]] = []
        self._asks = 0
        self._inspection: dict[str, Any] = {}

    def ask(self, n: int = 1) -> Array:
        """Propose up to `n` points, shape `(k, d)`."""
        self._asks += 1
        # A generator of its own for each ask: the state needs no generator.
        generator = np.random.default_rng([self._seed, self._asks])
        if len(self._x) == 0:
            points = generator.random((n, self._space.dim))
            points = self._ground.renew(points, self._under_way(), generator)
        else:
            with torch.inference_mode():
                model = self._surrogate.update(self._x, *self._told)
                points = self._propose(Posterior.of(model), n, generator)
        x = self._space.place(points)
        self._pending.extend(x.tolist())
        return x

    @abstractmethod
    def _propose(self, posterior: Posterior, n: int, generator: np.random.Generator) -> Array:
        """Choose up to `n` points of the unit cube, shape `(k, d)`, by models of all data."""

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results; models are fitted when points are asked for."""
        for row in np.asarray(x, dtype=float).tolist():
            if row in self._pending:
                self._pending.remove(row)
        self._x = np.concatenate([self._x, np.clip(self._space.to_unit(x), 0.0, 1.0)])
        self._told = Evaluation(
            np.concatenate([self._told.objective, evaluation.objective]),
            np.concatenate([self._told.constraints, evaluation.constraints]),
        )

    def predict(self, x: Array) -> Prediction:
        """What the models of all results say about points `(p, d)` of the box.

        Raises:
            InvalidTask: Nothing was told yet.
            InvalidPoint: The points have the wrong shape or leave the box.
        """
        surrogate = self._surrogate.copy()
        return predict(self._space, x, surrogate, self._transform, self._x, self._told)

    def inspect(self) -> dict[str, Any]:
        """What the last ask did, as plain JSON."""
        return dict(self._inspection)

    def get_state(self) -> dict[str, Any]:
        """All but the told data, as plain JSON."""
        return {
            "asks": self._asks,
            "pending": [list(row) for row in self._pending],
            "surrogate": self._surrogate.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` told, after all data of that time were told."""
        self._asks = state["asks"]
        self._pending = [list(row) for row in state["pending"]]
        self._surrogate.set_state(state["surrogate"])

    def _incumbent(self) -> Array:
        """The best told point in the unit cube, shape `(d,)`."""
        best: Array = self._x[self._told.best()]
        return best

    def _starts(self, generator: np.random.Generator) -> Array:
        """Points of the unit cube where optima are looked for, the told ones last: `(p, d)`."""
        incumbent = self._incumbent()[None]
        spread = spread_points(NUM_STARTS, self._space.dim, generator, incumbent)
        points = np.concatenate([spread, self._x])
        return self._ground.settle(points, points[:0], generator, centres=incumbent)

    def _under_way(self) -> Array:
        """The points asked and not told, in the unit cube, shape `(p, d)`."""
        pending = np.array(self._pending).reshape(-1, self._space.dim)
        points: Array = np.clip(self._space.to_unit(pending), 0.0, 1.0)
        return points
