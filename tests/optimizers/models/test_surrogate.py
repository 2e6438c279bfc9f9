"""When and how the models of all functions are fitted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from cbo_suite.optimizers.models import surrogate
from cbo_suite.optimizers.models.fit import NOISE_FREE, default_parameters, expected_curvature, fit
from cbo_suite.optimizers.models.surrogate import Surrogate, Transform

DIM, COUNT = 5, 80


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_first_fit_in_few_steps_comes_near_the_maximum(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    """By the steps with half of the data: those with all of them are too few alone."""
    monkeypatch.setattr(surrogate, "EXPENSIVE", 0.0)
    x = np.random.default_rng(1).random((COUNT, DIM))
    objective = np.sin(3.0 * x[:, 0]) + x[:, 1] ** 2
    constraints = np.column_stack([np.cos(2.0 * x[:, 2]) * x[:, 3], np.exp(x[:, 4])])
    bounds, like = NOISE_FREE.at_precision(dtype), torch.zeros(0, dtype=dtype)
    models = Surrogate(DIM, 2, bounds, Transform(use_copula=False, use_bilog=True), like)
    gp = models.update(x, objective, constraints).dense
    found = torch.stack([torch.hstack([*kernel]).log() for kernel in gp.kernels])

    def reached(begin: Tensor, steps: int) -> Tensor:
        curvature = expected_curvature(COUNT, DIM)
        return fit(gp.x, gp.y, begin, bounds, steps=steps, tolerance=1e-3, curvature=curvature)[1]

    start = default_parameters(3, DIM, bounds, like)
    first, best = reached(start, 0), reached(start, 200)
    short = (reached(found, 0) - best) / (first - best)
    alone = (reached(start, surrogate.FINAL_STEPS) - best) / (first - best)
    assert float(short.mean()) < 0.05
    assert float(alone.mean()) > 2.0 * float(short.mean())
