"""A batch of Gaussian processes over shared inputs: constant mean, Matern-5/2 ARD kernel, noise.

All models see the same inputs; each has its own outputs and hyperparameters. Hyperparameters are
fitted for all models at once (`fit`); what needs an n x n or n x r matrix per model goes model by
model, so memory does not grow with their number beyond the Cholesky factors themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbo_suite.optimizers.models.cholesky import Factor, Kernel, factorise
from cbo_suite.optimizers.models.likelihood import profiled_mean

# Elements of one model's cross-covariance that prediction handles at once.
CHUNK_ELEMENTS = 1 << 22


def kernels(parameters: Tensor) -> list[Kernel]:
    """The kernel of each model from log hyperparameters `(b, d + 2)`."""
    values = parameters.exp()
    return [Kernel(row[:-2], row[-2], row[-1]) for row in values]


class BatchGP:
    """Gaussian processes conditioned on data, with given hyperparameters.

    Attributes:
        x: Inputs in the unit cube, shape `(n, d)`.
        y: Outputs, shape `(b, n)`.
        kernels: Hyperparameters of each model.
        factors: Cholesky factor of each model's kernel matrix with noise.
        mean: Most likely constant means, shape `(b,)`.
        weights: `K^-1 (y - mean)`, shape `(b, n)`.
    """

    def __init__(
        self, x: Tensor, y: Tensor, parameters: Tensor, factors: Sequence[Factor] | None = None
    ) -> None:
        """Condition on data.

        Args:
            x: Inputs in the unit cube, shape `(n, d)`.
            y: Outputs, shape `(b, n)`.
            parameters: Logarithms of d length scales, signal and noise variance, `(b, d + 2)`.
            factors: Cholesky factors if they are known already.
        """
        self.x, self.y, self._parameters = x, y, parameters
        self.kernels = kernels(parameters)
        self.factors = factors or [factorise(kernel, x) for kernel in self.kernels]
        right = torch.stack([torch.ones_like(y), y], dim=-1)
        solved = torch.stack(
            [factor.solve(sides) for sides, factor in zip(right, self.factors, strict=True)]
        )
        self.mean = profiled_mean(solved[..., 0], solved[..., 1])
        self.weights = solved[..., 1] - self.mean[:, None] * solved[..., 0]

    def part(self, rows: NDArray[np.intp]) -> BatchGP:
        """The same models conditioned on some of the data only."""
        chosen = torch.as_tensor(rows, device=self.x.device)
        return BatchGP(self.x[chosen], self.y[:, chosen], self._parameters)

    def log_likelihood(self) -> Tensor:
        """Log marginal likelihood of each model, shape `(b,)`."""
        fit = ((self.y - self.mean[:, None]) * self.weights).sum(-1)
        root = torch.stack([factor.lower.diagonal().log().sum() for factor in self.factors])
        return -0.5 * (fit + self.x.shape[0] * math.log(2.0 * math.pi)) - root

    def posterior(self, index: int, points: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior of one model at points `(p, d)`.

        Returns:
            The mean `(p,)`, and rows `(p, n)` that make covariances: that of two points is their
            prior covariance less the inner product of their rows.
        """
        cross = self.kernels[index](self.x, points)
        mean = self.mean[index] + self.weights[index] @ cross
        lower = self.factors[index].lower
        return mean, torch.linalg.solve_triangular(lower, cross, upper=False).mT

    def predict(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and variance of the noise-free functions at `(p, d)`: both `(b, p)`."""
        rows = max(1, CHUNK_ELEMENTS // self.x.shape[0])
        means, variances = [], []
        for index, kernel in enumerate(self.kernels):
            parts = [self.posterior(index, part) for part in torch.split(points, rows)]
            means.append(torch.cat([mean for mean, _ in parts]))
            explained = torch.cat([white.square().sum(-1) for _, white in parts])
            variances.append((kernel.variance - explained).clamp_min(0.0))
        return torch.stack(means), torch.stack(variances)
