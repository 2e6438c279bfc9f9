"""Expected improvement in logarithms."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# Keeps divisions by the deviation of an observed point finite.
SMALLEST_DEVIATION = 1e-9
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def log_improvement(standardised: Tensor) -> Tensor:
    """Log of phi(u) + u Phi(u), the expected improvement in deviations, without underflow."""
    u = standardised
    near = u.clamp_min(-1.0)
    density = torch.exp(-0.5 * near.square() - _LOG_ROOT_TWO_PI)
    direct = torch.log(density + near * torch.special.ndtr(near))
    far = u.clamp_max(-1.0)
    # phi(u) (1 - |u| Phi(u) / phi(u)), with the ratio from the scaled complementary error function.
    ratio = math.sqrt(0.5 * math.pi) * torch.special.erfcx(-far / math.sqrt(2.0))
    tail = torch.log((1.0 + far * ratio).clamp_min(0.0))
    # Beyond rounding the asymptotic series 1 - |u| ratio = 1 / u^2 + ... takes over.
    tail = torch.where(far < -1e4, -2.0 * torch.log(-far), tail)
    return torch.where(u > -1.0, direct, -0.5 * far.square() - _LOG_ROOT_TWO_PI + tail)
