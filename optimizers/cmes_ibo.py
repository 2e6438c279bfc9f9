"""Constrained max-value entropy search by an information lower bound (CMES-IBO).

Source: Takeno, Tamura, Shitara, Karasuyama, "Sequential and parallel constrained max-value entropy
search via information lower bound", ICML 2022. It evaluates the point that tells most about the
value of the constrained optimum, by a lower bound in closed form. The method card is
docs/optimizers/cmes-ibo.md.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.models.improvement import SMALLEST_DEVIATION
from cbo_suite.optimizers.models.posterior import Posterior
from cbo_suite.optimizers.shared.global_optimizer import GlobalOptimizer, on_arrays
from cbo_suite.optimizers.shared.sampled_optima import SampledOptima, sample_optima
from cbo_suite.optimizers.shared.search import maximise, spread_points
from cbo_suite.protocols import Array, Space

# Keeps the information finite where a point is sure to be feasible and better than the optimum.
LARGEST_LOG_PROBABILITY = -1e-12
# Points of one block of the acquisition function.
BLOCK = 1024


class LowerBound:
    """The acquisition function: a lower bound of the information about the optimal value.

    If the optimal value is known, no point is feasible and better; so learning that an optimal
    value has been drawn tells -log(1 - p) at a point where that had probability p. The value is
    the mean over the draws. Points under way count as known, to every draw with its own values
    there: what is left is the information beyond theirs.
    """

    def __init__(self, posterior: Posterior, optima: SampledOptima, under_way: Tensor) -> None:
        """Condition on points under way.

        Args:
            posterior: The posteriors given the data.
            optima: M sampled optima with the functions they belong to.
            under_way: Points of the unit cube whose values are not known yet, shape `(p, d)`.
        """
        self._objective = optima.objective
        values = optima.functions.values(optima.functions.basis(under_way), optima.coefficients)
        self._posterior = posterior.believe(under_way)
        mean, _ = posterior.whiten(under_way)
        surprise = torch.nn.functional.pad(
            values - mean[:, :, None], (0, 0, posterior.x.shape[0], 0)
        )
        self._weights = torch.cholesky_solve(surprise, self._posterior.lower)

    def __call__(self, points: Tensor) -> Tensor:
        """Values at points `(p, d)`, shape `(p,)`."""
        return torch.cat([self._information(part) for part in torch.split(points, BLOCK)])

    def _information(self, points: Tensor) -> Tensor:
        """Values at a block of points."""
        posterior = self._posterior
        mean, columns = posterior.whiten(points)
        deviation = posterior.left_over(columns).sqrt().clamp_min(SMALLEST_DEVIATION)[:, :, None]
        # Each draw has means of its own, (b, p, M), by its values at the points under way.
        means = mean[:, :, None] + posterior.prior(points, posterior.x) @ self._weights
        below = torch.special.log_ndtr((self._objective - means[0]) / deviation[0])
        feasible = torch.special.log_ndtr(-means[1:] / deviation[1:]).sum(0)
        log_probability = (below + feasible).clamp_max(LARGEST_LOG_PROBABILITY)
        return -torch.log(-torch.expm1(log_probability)).mean(1)


class CMESIBO(GlobalOptimizer):
    """Constrained max-value entropy search; ask and tell, one point or a batch."""

    max_dim = 15

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        transformed: bool = False,
        num_optima: int = 10,
    ) -> None:
        """Set up the optimizer.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the whole run.
            batch_size: Number of points asked together.
            seed: Fixes all randomness.
            transformed: Whether the models see the Gaussian copula of the objective and the bilog
                of the constraints instead of plain values.
            num_optima: Number M of sampled optimal values.

        Raises:
            InvalidTask: An option has a value that it cannot have.
        """
        if num_optima < 1:
            raise InvalidTask(f"num_optima must be at least 1, got {num_optima!r}")
        super().__init__(
            space, budget=budget, batch_size=batch_size, seed=seed, transformed=transformed
        )
        self._num_optima = num_optima

    def _propose(self, posterior: Posterior, n: int, generator: np.random.Generator) -> Array:
        """Choose `n` points of the unit cube one after another, shape `(n, d)`."""
        dim, incumbent = self._space.dim, self._incumbent()[None]
        start = self._starts(generator)
        optima = sample_optima(posterior, start, self._num_optima, generator, ground=self._ground)
        # Where next to nothing is left to learn the bound does not vanish: it has no scale. So a
        # point counts as better than an optimum if it is by more than the noise.
        optima = optima._replace(objective=optima.objective - posterior.noise[0].sqrt())
        centres = np.concatenate([incumbent, optima.found.numpy()])
        self._inspection = {"sampled_optima": len(centres) - 1}
        under_way = self._under_way()
        for _ in range(n):
            avoid = np.concatenate([self._x, under_way])
            points = spread_points(512, dim, generator, centres)
            point = maximise(
                on_arrays(LowerBound(posterior, optima, torch.from_numpy(under_way))),
                self._ground.settle(points, avoid, generator, centres=centres),
                avoid=avoid,
                ground=self._ground,
                starts=2,
            )
            under_way = np.concatenate([under_way, point[None]])
        chosen: Array = under_way[-n:]
        return chosen
