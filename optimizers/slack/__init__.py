"""Bayesian optimization of a slack-variable augmented Lagrangian (SLACK).

Source: Picheny, Gramacy, Wild and Le Digabel, "Bayesian optimization under mixed constraints with a
slack-variable augmented Lagrangian", NeurIPS 2016. The method card is docs/optimizers/slack.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from scipy.stats import qmc
from torch import Tensor

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.models.posterior import Posterior
from cbo_suite.optimizers.models.transforms import standardize
from cbo_suite.optimizers.shared.augmented_lagrangian import Multipliers
from cbo_suite.optimizers.shared.global_optimizer import GlobalOptimizer, on_arrays
from cbo_suite.optimizers.shared.search import maximise, spread_points
from cbo_suite.optimizers.slack.improvement import (
    exact_expected_improvement,
    log_expected_improvement,
)
from cbo_suite.protocols import Array, Space

# Points all over the cube where the search begins.
NUM_CANDIDATES = 512
# Binary logarithm of the number of quasi-Monte Carlo draws.
LOG_DRAWS = 8
# Expected improvement below this is not told apart by the exact form.
SMALLEST_IMPROVEMENT = 1e-12


class Slack(GlobalOptimizer):
    """Expected improvement of the augmented Lagrangian; ask and tell, one point at a time."""

    max_dim = 15
    max_batch_size = 1

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        transformed: bool = False,
        ei: str = "qmc",
        slack: str = "draw",
    ) -> None:
        """Set up the optimizer.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the whole run.
            batch_size: Number of points asked together.
            seed: Fixes all randomness.
            transformed: Whether the models see the Gaussian copula of the objective and the bilog
                of the constraints instead of plain values.
            ei: How expected improvement is computed: "qmc" or "exact".
            slack: The slack of a point: the best one of each "draw" of the constraints, or of
                their "mean" as in the article.

        Raises:
            InvalidTask: An option has a value that it cannot have.
        """
        for name, value, known in (
            ("ei", ei, ("qmc", "exact")),
            ("slack", slack, ("draw", "mean")),
        ):
            if value not in known:
                raise InvalidTask(f"{name} must be one of {', '.join(known)}, got {value!r}")
        super().__init__(
            space, budget=budget, batch_size=batch_size, seed=seed, transformed=transformed
        )
        self._exact, self._mean_slack = ei == "exact", slack == "mean"
        # Units of objective and constraints, and multipliers after this number of results.
        self._units: Array | None = None
        self._multipliers = Multipliers(np.ones(space.num_constraints), 0.5)
        self._updated_at = 0

    def inspect(self) -> dict[str, Any]:
        """The multipliers and the penalty parameter of the last ask, as plain JSON."""
        return {
            "multipliers": self._multipliers.weights.tolist(),
            "penalty": self._multipliers.penalty,
        }

    def get_state(self) -> dict[str, Any]:
        """All but the told data, as plain JSON."""
        return {
            **super().get_state(),
            **self.inspect(),
            "units": None if self._units is None else self._units.tolist(),
            "updated_at": self._updated_at,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` told, after all data of that time were told."""
        super().set_state(state)
        self._multipliers = Multipliers(np.array(state["multipliers"]), state["penalty"])
        self._units = None if state["units"] is None else np.array(state["units"])
        self._updated_at = state["updated_at"]

    def _propose(self, posterior: Posterior, n: int, generator: np.random.Generator) -> Array:
        """Choose one point of the unit cube, shape `(1, d)`."""
        plain = np.column_stack(
            [
                self._transform.objective(self._told.objective),
                self._transform.constraints(self._told.constraints),
            ]
        )
        if self._units is None:
            self._units = natural_units(plain)
        values = plain / self._units
        self._follow(values[:, 0], values[:, 1:])

        # Constraints that never changed have no model, and shift all values alike.
        series = standardize(plain)
        varying = np.flatnonzero(~series.constant[1:]) + 1
        modelled = np.concatenate([[0], varying])
        multipliers = Multipliers(self._multipliers.weights[varying - 1], self._multipliers.penalty)
        offset = np.zeros(len(modelled))
        offset[0] = series.mean[0] / self._units[0]
        acquisition = Acquisition(
            posterior,
            offset,
            series.scale[modelled] / self._units[modelled],
            multipliers,
            None if self._exact else _normals(len(varying), generator),
            self._mean_slack,
        )
        lagrangian = multipliers.lagrangian(values[:, 0], values[:, varying])
        acquisition.best = float(lagrangian.min())
        under_way = self._under_way()
        acquisition.believe(torch.from_numpy(under_way))
        centres = np.stack([self._incumbent(), self._x[int(lagrangian.argmin())]])
        avoid = np.concatenate([self._x, under_way])
        points = spread_points(NUM_CANDIDATES, self._space.dim, generator, centres)
        points = self._ground.settle(points, avoid, generator, centres=centres)
        point = maximise(on_arrays(acquisition), points, avoid=avoid, ground=self._ground)
        return point[None]

    def _follow(self, objective: Array, constraints: Array) -> None:
        """Update the multipliers if results came in since the last ask."""
        if self._updated_at == 0:
            self._multipliers = Multipliers.first(objective, constraints)
        elif self._updated_at < len(objective):
            self._multipliers = self._multipliers.updated(objective, constraints)
        self._updated_at = len(objective)


class Acquisition:
    """Log of the expected improvement of the augmented Lagrangian.

    Attributes:
        best: The augmented Lagrangian to improve on.
    """

    def __init__(
        self,
        posterior: Posterior,
        offset: Array,
        scale: Array,
        multipliers: Multipliers,
        normals: Tensor | None,
        mean_slack: bool,
    ) -> None:
        """Take the models and the multipliers.

        Args:
            posterior: Models of the objective and of m constraints.
            offset: What is added to their predictions after scaling, shape `(1 + m,)`.
            scale: Their units in units of the augmented Lagrangian, shape `(1 + m,)`.
            multipliers: Of the m constraints.
            normals: Common random numbers `(k, m)`, None for the exact form.
            mean_slack: Whether the slack is that of the mean instead of each draw's own.
        """
        self.best = np.inf
        self._posterior, self._multipliers = posterior, multipliers
        self._offset, self._scale = torch.from_numpy(offset), torch.from_numpy(scale)
        self._normals, self._mean_slack = normals, mean_slack

    def __call__(self, points: Tensor) -> Tensor:
        """Values at points `(p, d)`, shape `(p,)`."""
        mean, deviation = self._predict(points)
        if self._normals is None:
            exact = exact_expected_improvement(
                mean.numpy(),
                deviation.numpy(),
                self._multipliers,
                self.best,
                mean_slack=self._mean_slack,
            )
            return torch.from_numpy(np.log(np.maximum(exact, SMALLEST_IMPROVEMENT)))
        return log_expected_improvement(
            mean,
            deviation,
            self._multipliers,
            self.best,
            self._normals,
            mean_slack=self._mean_slack,
        )

    def believe(self, points: Tensor) -> None:
        """Take points `(p, d)` under way to be observed at their posterior means."""
        if points.shape[0] == 0:
            return
        mean = self._predict(points)[0].numpy()
        expected = self._multipliers.lagrangian(mean[0], mean[1:].T)
        self.best = min(self.best, float(expected.min()))
        self._posterior = self._posterior.believe(points)

    def _predict(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Means and deviations `(1 + m, p)` in units of the augmented Lagrangian."""
        mean, variance = self._posterior.predict(points)
        scale = self._scale[:, None]
        return self._offset[:, None] + scale * mean, scale * variance.sqrt()


def natural_units(values: Array) -> Array:
    """A unit for each column of `(n, k)`: its standard deviation, its magnitude if constant."""
    deviation, magnitude = values.std(axis=0), np.abs(values).max(axis=0)
    units = np.where(np.ptp(values, axis=0) > 0.0, deviation, magnitude)
    return np.where(units > 0.0, units, 1.0)


def _normals(dim: int, generator: np.random.Generator) -> Tensor:
    """Quasi-random draws of the standard normal law, shape `(k, dim)`."""
    engine = qmc.Sobol(max(1, dim), scramble=True, rng=generator)
    uniform = engine.random_base2(LOG_DRAWS)[:, :dim]
    # The sequence may contain zero, whose quantile is minus infinity.
    return torch.from_numpy(ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12)))
