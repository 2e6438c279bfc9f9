"""Candidate points: scrambled Sobol points, mixed with the centre of the trust region."""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from cbo_suite.protocols import Array, BoolArray

# Every candidate differs from the centre in about this many variables.
PERTURBED_VARIABLES = 20.0


def candidate_count(dim: int) -> int:
    """Number r of candidates of the paper."""
    return min(200 * dim, 5000)


def sobol(count: int, dim: int, generator: np.random.Generator) -> Array:
    """The first `count` points of a newly scrambled Sobol sequence in the unit cube."""
    engine = qmc.Sobol(dim, scramble=True, rng=generator)
    # A whole power of two keeps the sequence balanced, and SciPy quiet.
    points: Array = engine.random_base2(max(0, (count - 1).bit_length()))[:count]
    return points


def perturbation_mask(
    count: int, dim: int, probability: float, generator: np.random.Generator
) -> BoolArray:
    """Which variables of which candidate leave the centre, shape `(count, dim)`.

    Every candidate leaves it in at least one variable, and every variable can be that one.
    """
    if probability >= 1.0:
        return np.ones((count, dim), dtype=bool)
    mask: BoolArray = generator.random((count, dim)) < probability
    still = np.flatnonzero(~mask.any(axis=1))
    mask[still, generator.integers(dim, size=still.size)] = True
    return mask


def candidates(
    count: int,
    centre: Array,
    lower: Array,
    upper: Array,
    generator: np.random.Generator,
    probability: float,
) -> Array:
    """Candidates `(count, d)` in the box from `lower` to `upper` around `centre`, all `(d,)`.

    Each variable of a candidate is that of a Sobol point with the given probability, else that
    of the centre.
    """
    points = lower + (upper - lower) * sobol(count, centre.size, generator)
    mask = perturbation_mask(count, centre.size, probability, generator)
    mixed: Array = np.where(mask, points, centre)
    return mixed
