"""The logarithm of expected improvement: accurate far into the tails."""

import math

import pytest
import torch
from scipy.integrate import quad

from cbo_suite.optimizers.models.improvement import log_improvement


@pytest.mark.parametrize("u", [-30.0, -8.0, -3.0, -1.0001, -0.9999, 0.0, 2.0, 12.0])
def test_log_improvement_against_numerical_integration(u: float) -> None:
    """The mean of max(u - z, 0) over standard normal z, also where it is 1e-200."""
    shift = min(u, 0.0)
    # The factor exp(-shift^2 / 2) is taken out, so that the integral does not underflow.
    integral, _ = quad(
        lambda t: t * math.exp(-0.5 * (u - t) ** 2 + 0.5 * shift**2),
        0.0,
        60.0,
        epsabs=0,
        limit=500,
        points=[max(u, 0.0), max(u, 0.0) + 1.0, 10.0],
    )
    expected = math.log(integral) - 0.5 * shift**2 - 0.5 * math.log(2.0 * math.pi)
    result = float(log_improvement(torch.tensor([u], dtype=torch.float64)))
    assert result == pytest.approx(expected, abs=1e-7)


def test_log_improvement_is_finite_and_increasing() -> None:
    """No gap and no bump from -1e8 deviations on."""
    grid = -torch.logspace(8, -3, 400, dtype=torch.float64)
    values = log_improvement(grid)
    assert bool(values.isfinite().all())
    assert bool((values.diff() > 0).all())
