"""The Matern-5/2 kernel with one length scale per variable, for a batch of models.

With `t = sqrt(5) |x - x'| / l` the kernel is `s2 (1 + t + t^2/3) exp(-t)`. Points are first
scaled by `sqrt(5) / l`, so that `t` is a plain distance.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# Elements handled at once by elementwise steps: two such blocks of float64 fit in a core's cache.
BLOCK = 1 << 16


def scale_points(x: Tensor, lengthscale: Tensor) -> Tensor:
    """Scale points `(n, d)` by `sqrt(5) / l` for each model of `l` `(b, d)`: `(b, n, d)`."""
    # Distances do not change under a shift, and small coordinates lose fewer digits.
    return (x - 0.5) * (math.sqrt(5.0) / lengthscale)[..., None, :]


def square_distance(left: Tensor, right: Tensor) -> Tensor:
    """Squared distances of scaled points `(b, n, d)` and `(b, p, d)`: `(b, n, p)`."""
    norms = left.square().sum(-1, keepdim=True) + right.square().sum(-1, keepdim=True).mT
    return norms.baddbmm_(left, right.mT, alpha=-2.0).clamp_min_(0.0)


def correlation_(square: Tensor) -> Tensor:
    """Turn squared scaled distances into correlations, in place and block by block."""
    flat = square.view(-1)
    for start in range(0, flat.numel(), BLOCK):
        part = flat[start : start + BLOCK]
        distance = part.sqrt()
        part.div_(3.0).add_(distance).add_(1.0).mul_(distance.neg_().exp_())
    return square


def correlation_and_slope_(square: Tensor) -> tuple[Tensor, Tensor]:
    """Turn squared scaled distances into correlations and `(1 + t) exp(-t) / 3`.

    The second is minus the derivative of the correlation by half the squared distance: its
    product with `(x_k - x'_k)^2` is the derivative by the log of length scale k.
    """
    slope = torch.empty_like(square)
    flat, slope_flat = square.view(-1), slope.view(-1)
    for start in range(0, flat.numel(), BLOCK):
        part, slope_part = flat[start : start + BLOCK], slope_flat[start : start + BLOCK]
        distance = part.sqrt()
        decay = distance.neg().exp_().div_(3.0)
        torch.add(distance, 1.0, out=slope_part)
        part.add_(slope_part, alpha=3.0).mul_(decay)
        slope_part.mul_(decay)
    return square, slope


def covariance(left: Tensor, right: Tensor, variance: Tensor) -> Tensor:
    """Kernel matrices `(b, n, p)` of scaled points, `variance` of shape `(b,)`."""
    return correlation_(square_distance(left, right)).mul_(variance[:, None, None])
