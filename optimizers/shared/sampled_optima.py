"""Constrained minima of random functions from the posteriors: draws of the unknown optimum.

Every draw of objective and constraints is minimised over a set of points where all its constraints
hold, then from the best of them by sequential quadratic programming with exact gradients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cbo_suite.optimizers.models.posterior import Posterior
from cbo_suite.optimizers.models.random_functions import RandomFunctions
from cbo_suite.optimizers.shared.placing import WHOLE_CUBE, Ground
from cbo_suite.optimizers.shared.search import descend
from cbo_suite.protocols import Array

# Shares of the way that the local search went, tried where its end is not feasible.
SHARES = np.array([1.0, 1.0 - 1e-4, 1.0 - 1e-3, 1.0 - 1e-2, 0.9, 0.5])


class SampledOptima(NamedTuple):
    """Minima of M draws.

    Attributes:
        x: Points of the unit cube, shape `(M, d)`, meaningless where there is no minimum.
        objective: Values of the sampled objectives, shape `(M,)`, infinite where no point of the
            set was sampled feasible.
        functions: The basis of the draws.
        coefficients: The draws, shape `(b, 2 F + n, M)`.
    """

    x: Tensor
    objective: Tensor
    functions: RandomFunctions
    coefficients: Tensor

    @property
    def found(self) -> Tensor:
        """The minima that exist, shape `(k, d)`."""
        return self.x[self.objective.isfinite()]


def sample_optima(
    posterior: Posterior,
    points: Array,
    count: int,
    generator: np.random.Generator,
    *,
    attempts: int = 1,
    ground: Ground = WHOLE_CUBE,
) -> SampledOptima:
    """Draw functions and minimise them.

    Args:
        posterior: The posteriors.
        points: Points of the unit cube where a search may begin, shape `(p, d)`.
        count: Number M of draws.
        generator: Source of randomness.
        attempts: How often a draw without a feasible point is replaced by another.
        ground: Where a search may go.
    """
    functions = RandomFunctions(posterior, generator)
    start = torch.as_tensor(points, dtype=posterior.x.dtype)
    basis = functions.basis(start)
    coefficients = functions.draw(count, generator)
    best, objective = _least(functions.values(basis, coefficients), posterior.violated)
    for _ in range(attempts - 1):
        missing = objective.isinf().nonzero()[:, 0]
        if missing.numel() == 0 or posterior.violated:
            break
        coefficients[:, :, missing] = functions.draw(missing.numel(), generator)
        found = _least(functions.values(basis, coefficients[:, :, missing]), False)
        best[missing], objective[missing] = found
    x = start[best]
    for column in objective.isfinite().nonzero()[:, 0].tolist():
        x[column], objective[column] = _improve(
            functions, coefficients[:, :, column], x[column], objective[column], ground
        )
    return SampledOptima(x, objective, functions, coefficients)


def _least(values: Tensor, violated: bool) -> tuple[Tensor, Tensor]:
    """Where each draw of `(b, p, k)` is least among feasible points, and its value there."""
    feasible = (values[1:] <= 0).all(0)
    objective = torch.where(feasible, values[0], torch.inf)
    if violated:
        objective = torch.full_like(objective, torch.inf)
    least, index = objective.min(0)
    return index, least


def _improve(
    functions: RandomFunctions, coefficients: Tensor, start: Tensor, value: Tensor, ground: Ground
) -> tuple[Tensor, Tensor]:
    """Minimise one draw `(b, 2 F + n)` locally from a feasible point `(d,)` of this value."""

    def evaluate(point: Array) -> tuple[Array, Array]:
        both = functions.value_and_gradient(torch.from_numpy(point), coefficients)
        return both[0].numpy(), both[1].numpy()

    end = torch.from_numpy(descend(evaluate, start.numpy(), ground=ground))
    share = torch.from_numpy(SHARES)[:, None]
    way = torch.cat([start[None], start + share * (end - start)])
    values = functions.values(functions.basis(way), coefficients[:, :, None])
    index, least = _least(values, False)
    # The start is feasible, but perhaps no longer to the last bit.
    return (way[index[0]], least[0]) if least[0] < value else (start, value)
