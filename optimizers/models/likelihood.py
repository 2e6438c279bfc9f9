"""The penalised marginal likelihood of a batch of Gaussian processes, with its gradient.

One row of parameters per model: the logarithms of d length scales, of the signal variance and of
the noise variance. The constant mean has a closed-form optimum, so it is not a parameter. The
gradient is in closed form: with `W = K^-1 - a a'`, `a = K^-1 (y - mean)`, the derivative by a
parameter is half the sum of `W` times the derivative of `K`, and for all length scales together
this takes two matrix products.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from cbo_suite.optimizers.models.kernel import (
    correlation_and_slope_,
    scale_points,
    square_distance,
)

# Scale of the horseshoe prior on the noise variance of standardised data.
HORSESHOE_SCALE = 0.1
_HORSESHOE_K = 1.0 / math.sqrt(2.0 * math.pi**3)


class Objective(NamedTuple):
    """Value and gradient of the negative penalised log likelihood.

    Attributes:
        value: Shape `(b,)`, infinite where a kernel matrix has no Cholesky factor.
        gradient: By the parameters, shape `(b, d + 2)`, meaningless where the value is infinite.
    """

    value: Tensor
    gradient: Tensor


def horseshoe(noise: Tensor, scale: float = HORSESHOE_SCALE) -> tuple[Tensor, Tensor]:
    """Log density at noise variances `(b,)` up to a constant, and its derivative by log noise.

    The horseshoe has no closed form; this is the mean of its two bounds by Carvalho, Polson and
    Scott ("Handling sparsity via the horseshoe", AISTATS 2009).
    """
    ratio = (scale / noise).square()
    lower = 0.5 * _HORSESHOE_K * torch.log1p(4.0 * ratio)
    upper = _HORSESHOE_K * torch.log1p(2.0 * ratio)
    slope_lower = -_HORSESHOE_K * 4.0 * ratio / (1.0 + 4.0 * ratio)
    slope_upper = -2.0 * _HORSESHOE_K * 2.0 * ratio / (1.0 + 2.0 * ratio)
    total = lower + upper
    return torch.log(total / 2.0), (slope_lower + slope_upper) / total


def profiled_mean(solved_ones: Tensor, solved_y: Tensor) -> Tensor:
    """Most likely constant mean `(b,)` from `K^-1 1` and `K^-1 y`, both `(b, n)`."""
    return solved_y.sum(-1) / solved_ones.sum(-1)


def negative_log_posterior(
    parameters: Tensor, x: Tensor, y: Tensor, *, value_only: bool = False
) -> Objective:
    """Evaluate the objective to minimise over hyperparameters.

    Args:
        parameters: Log hyperparameters, shape `(b, d + 2)`.
        x: Inputs shared by all models, shape `(n, d)`.
        y: Standardised outputs, shape `(b, n)`.
        value_only: Whether the gradient, more than half of the work, may be anything.
    """
    dim, count = x.shape[1], x.shape[0]
    lengthscale = parameters[:, :dim].exp()
    variance, noise = parameters[:, dim].exp(), parameters[:, dim + 1].exp()
    scaled = scale_points(x, lengthscale)
    kernel, slope = correlation_and_slope_(square_distance(scaled, scaled))
    kernel.mul_(variance[:, None, None])
    kernel.diagonal(dim1=-2, dim2=-1).copy_((variance + noise)[:, None].expand(-1, count))
    factor, failed = torch.linalg.cholesky_ex(kernel)
    if bool(failed.any()):
        # What follows must not stumble over a broken factor; its value is infinite in the end.
        identity = torch.eye(count, dtype=factor.dtype, device=factor.device)
        factor = torch.where((failed > 0)[:, None, None], identity, factor)
    right = torch.stack([torch.ones_like(y), y], dim=-1)
    solved = torch.cholesky_solve(right, factor)
    mean = profiled_mean(solved[..., 0], solved[..., 1])
    weights = solved[..., 1] - mean[:, None] * solved[..., 0]
    fit = ((y - mean[:, None]) * weights).sum(-1)
    log_determinant = 2.0 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    prior, prior_slope = horseshoe(noise)
    value = 0.5 * (fit + log_determinant + count * math.log(2.0 * math.pi)) - prior
    if value_only:
        usable = (failed == 0) & value.isfinite()
        return Objective(torch.where(usable, value, torch.inf), torch.zeros_like(parameters))

    # W replaces the inverse, then W times the slope replaces W: no further n x n matrices.
    matrix = torch.cholesky_inverse(factor)
    matrix.baddbmm_(weights[:, :, None], weights[:, None, :], alpha=-1.0)
    trace = matrix.diagonal(dim1=-2, dim2=-1).sum(-1)
    matrix.mul_(slope)
    row_sums = matrix.sum(-1, keepdim=True)
    by_lengthscale = (scaled * (row_sums * scaled - matrix @ scaled)).sum(-2)
    by_noise = 0.5 * noise * trace
    # The sum of W times K is n - (y - mean)' a; what is not noise in it is the signal.
    by_variance = 0.5 * (count - fit) - by_noise
    gradient = torch.cat(
        [
            by_lengthscale * variance[:, None],
            by_variance[:, None],
            (by_noise - prior_slope)[:, None],
        ],
        dim=1,
    )
    usable = (failed == 0) & value.isfinite() & gradient.isfinite().all(-1)
    return Objective(torch.where(usable, value, torch.inf), gradient)
