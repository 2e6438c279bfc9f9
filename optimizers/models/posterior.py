"""Posteriors of the objective and of all constraints given the whole history, as one batch.

`scbo.surrogate.Surrogate` fits the models; a `Posterior` is what acquisition functions need of
them: small batches of points in, all models at once, feasible where every constraint is at most
zero. Points under way can be taken to be observed at their posterior means.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from cbo_suite.optimizers.models.cholesky import Factor, Kernel, extend
from cbo_suite.optimizers.models.improvement import SMALLEST_DEVIATION
from cbo_suite.optimizers.models.kernel import covariance, scale_points
from cbo_suite.optimizers.models.surrogate import Model


class Posterior:
    """The posteriors of b functions: model 0 is the objective, all others are constraints.

    The objective is standardised. A constraint is divided by its standard deviation but keeps its
    zero, so that its sign says whether it holds. Constraints that never changed are not among the
    models.

    Attributes:
        x: Inputs in the unit cube, shape `(n, d)`.
        y: Observations in the units of the models, shape `(b, n)`.
        constant: The constant means, shape `(b,)`.
        weights: Inverse kernel matrices times `y - constant`, shape `(b, n)`.
        violated: Whether a constraint that never changed is violated.
        lengthscale: Shape `(b, d)`.
        variance: Of the signals, shape `(b,)`.
        noise: Variances of the noise, shape `(b,)`.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        factors: Sequence[Factor],
        x: Tensor,
        y: Tensor,
        constant: Tensor,
        weights: Tensor,
        violated: bool,
    ) -> None:
        """Put the models, each with its kernel and factor, into one batch; see the attributes."""
        self._kernels, self._factors = kernels, factors
        self.x, self.y, self.constant, self.weights = x, y, constant, weights
        self.violated = violated
        self.lengthscale = torch.stack([kernel.lengthscale for kernel in kernels])
        self.variance = torch.stack([kernel.variance for kernel in kernels])
        self.noise = torch.stack([kernel.noise for kernel in kernels])

    @cached_property
    def lower(self) -> Tensor:
        """Cholesky factors of the kernel matrices with noise, shape `(b, n, n)`."""
        # A copy of them all, which whoever takes the models one by one does not need.
        return torch.stack([factor.lower for factor in self._factors])

    @classmethod
    def of(cls, model: Model) -> Posterior:
        """Take over fitted models."""
        gp = model.dense
        shift = torch.as_tensor(model.offset / model.scale, dtype=gp.x.dtype, device=gp.x.device)
        shift[0] = 0.0
        return cls(
            gp.kernels,
            gp.factors,
            gp.x,
            gp.y + shift[:, None],
            gp.mean + shift,
            gp.weights,
            any(value > 0 for value in model.constants),
        )

    def prior(self, left: Tensor, right: Tensor) -> Tensor:
        """Prior covariances of points `(p, d)` and `(q, d)`, shape `(b, p, q)`."""
        return covariance(
            scale_points(left, self.lengthscale),
            scale_points(right, self.lengthscale),
            self.variance,
        )

    def whiten(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Means `(b, p)` at points `(p, d)`, and columns `(b, n, p)` that make covariances.

        The covariance of two points is their prior covariance less the inner product of their
        columns.
        """
        cross = self.prior(self.x, points)
        mean = self.constant[:, None] + (self.weights[:, None, :] @ cross)[:, 0]
        return mean, torch.linalg.solve_triangular(self.lower, cross, upper=False)

    def predict(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances of the noise-free functions at points `(p, d)`, both `(b, p)`."""
        mean, columns = self.whiten(points)
        return mean, self.left_over(columns)

    def left_over(self, columns: Tensor) -> Tensor:
        """Variances `(b, p)` of points with these columns `(b, n, p)`."""
        return (self.variance[:, None] - columns.square().sum(1)).clamp_min_(0.0)

    def log_feasibility(self, points: Tensor) -> Tensor:
        """Log of the probability that all constraints hold at points `(p, d)`, shape `(p,)`."""
        mean, variance = self.predict(points)
        deviation = variance[1:].sqrt().clamp_min(SMALLEST_DEVIATION)
        total: Tensor = torch.special.log_ndtr(-mean[1:] / deviation).sum(0)
        return total

    def believe(self, points: Tensor) -> Posterior:
        """Condition on points `(p, d)` having their posterior means: only variances change."""
        if points.shape[0] == 0:
            return self
        x = torch.cat([self.x, points])
        factors = [
            extend(kernel, factor, x)
            for kernel, factor in zip(self._kernels, self._factors, strict=True)
        ]
        mean, _ = self.whiten(points)
        # An observation that is as expected has no weight.
        weights = torch.nn.functional.pad(self.weights, (0, points.shape[0]))
        y = torch.cat([self.y, mean], dim=1)
        return Posterior(self._kernels, factors, x, y, self.constant, weights, self.violated)
