"""Cholesky factors of kernel matrices: made with as little jitter as needed, and extended.

When data are appended and the hyperparameters kept, the old factor is the top of the new one.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from cbo_suite.optimizers.models.kernel import covariance, scale_points

# Added to the diagonal, relative to the signal variance, until the factor exists.
JITTERS = (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)
# From here on the jitter changes predictions, which a person should know.
NOTABLE_JITTER = 1e-4


class Kernel(NamedTuple):
    """Hyperparameters of one model.

    Attributes:
        lengthscale: Shape `(d,)`.
        variance: Of the signal, shape `()`.
        noise: Variance of the noise, shape `()`.
    """

    lengthscale: Tensor
    variance: Tensor
    noise: Tensor

    def __call__(self, left: Tensor, right: Tensor) -> Tensor:
        """Covariances without noise between points `(n, d)` and `(p, d)`: `(n, p)`."""
        scale = self.lengthscale[None]
        scaled = scale_points(left, scale), scale_points(right, scale)
        return covariance(*scaled, self.variance[None])[0]


class Factor(NamedTuple):
    """A Cholesky factor and the jitter that made it possible.

    Attributes:
        lower: Lower triangular, shape `(n, n)`.
        jitter: What was added to the diagonal, relative to the signal variance.
    """

    lower: Tensor
    jitter: float

    def solve(self, right: Tensor) -> Tensor:
        """Solve for the kernel matrix with right-hand sides `(n, k)`."""
        # Not `cholesky_solve`, which copies the factor: for few sides that is most of the time.
        half = torch.linalg.solve_triangular(self.lower, right, upper=False)
        solution: Tensor = torch.linalg.solve_triangular(self.lower.mT, half, upper=True)
        return solution


def factorise(kernel: Kernel, x: Tensor) -> Factor:
    """Factorise the kernel matrix with noise at inputs `(n, d)`."""
    matrix = kernel(x, x)
    for jitter in JITTERS:
        matrix.diagonal().fill_(float(kernel.variance * (1.0 + jitter) + kernel.noise))
        lower, failed = torch.linalg.cholesky_ex(matrix)
        if not _is_broken(lower, failed):
            if jitter >= NOTABLE_JITTER:
                warnings.warn(
                    "a kernel matrix is close to singular: "
                    f"{jitter:g} of the signal variance was added to its diagonal",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return Factor(lower, jitter)
    warnings.warn(
        "a kernel matrix has no Cholesky factor, so a model ignores its data: are there inputs or "
        "hyperparameters that are not finite?",
        RuntimeWarning,
        stacklevel=2,
    )
    # Observations with such noise say nothing.
    return Factor(1e6 * torch.eye(x.shape[0], dtype=x.dtype, device=x.device), JITTERS[-1])


def extend(kernel: Kernel, factor: Factor, x: Tensor) -> Factor:
    """Factor of the kernel matrix at inputs `(n, d)`, of which `factor` has the first ones."""
    old = factor.lower.shape[0]
    if old == x.shape[0]:
        return factor
    cross = torch.linalg.solve_triangular(factor.lower, kernel(x[:old], x[old:]), upper=False)
    corner = kernel(x[old:], x[old:])
    corner.diagonal().fill_(float(kernel.variance * (1.0 + factor.jitter) + kernel.noise))
    corner.addmm_(cross.mT, cross, alpha=-1.0)
    lower, failed = torch.linalg.cholesky_ex(corner)
    if _is_broken(lower, failed):
        return factorise(kernel, x)
    whole = factor.lower.new_zeros(x.shape[0], x.shape[0])
    whole[:old, :old] = factor.lower
    whole[old:, :old] = cross.mT
    whole[old:, old:] = lower
    return Factor(whole, factor.jitter)


def _is_broken(lower: Tensor, failed: Tensor) -> bool:
    """Whether what `cholesky_ex` gave is no factor."""
    # One question to the device: each waits for all that it still has to do.
    return bool((failed != 0) | ~lower.diagonal().isfinite().all())
