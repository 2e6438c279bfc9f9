"""Posteriors of small problems, for tests of acquisition functions."""

from __future__ import annotations

import numpy as np
import torch

from cbo_suite.optimizers.models.fit import NOISE_FREE
from cbo_suite.optimizers.models.posterior import Posterior
from cbo_suite.optimizers.models.surrogate import Surrogate, Transform


def data(
    count: int, num_constraints: int, dim: int = 2, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of the unit cube, a wavy objective and constraints that half of them satisfy."""
    x = np.random.default_rng(seed).random((count, dim))
    objective = np.sin(5 * x[:, 0]) + ((x - 0.4) ** 2).sum(axis=1)
    constraints = [
        np.cos(4 * x[:, 0] + k) + x[:, -1] * (k + 1) - 0.6 for k in range(num_constraints)
    ]
    return x, objective, np.array(constraints).reshape(num_constraints, count).T


def fit_posterior(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> Posterior:
    """Fit models to data without transforms."""
    like = torch.zeros((), dtype=torch.float64)
    surrogate = Surrogate(
        x.shape[1], constraints.shape[1], NOISE_FREE, Transform(False, False), like
    )
    return Posterior.of(surrogate.update(x, objective, constraints))


def random_points(count: int, dim: int = 2, seed: int = 1) -> torch.Tensor:
    """Points of the unit cube."""
    return torch.from_numpy(np.random.default_rng(seed).random((count, dim)))
