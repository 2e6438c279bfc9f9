"""The design of a new trust region: Sobol points, away from where evaluations have failed.

A region begins without data. But that evaluations failed is not a value to be modelled anew: points
that are not clearly nearer to a result that worked, of any region, than to one that failed are
passed over.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from cbo_suite.optimizers.scbo.candidates import sobol
from cbo_suite.protocols import Array, BoolArray

# Later points of the sequence, spread over the cube, that may stand in for a point.
ALTERNATIVES = 8
# A point is clearly nearer if its distance is at most this share of the other.
CLEARLY = 0.5


def design_points(
    start: int,
    stop: int,
    size: int,
    generator: np.random.Generator,
    known: Array,
    failed: BoolArray,
) -> Array:
    """Points `start` to `stop` of a design in the unit cube, shape `(stop - start, d)`.

    Args:
        start: Number of points asked before.
        stop: Number of points asked then; more than `size` if nothing was told meanwhile.
        size: Number of points of the design.
        generator: Of this design: each call has the same one, from its beginning.
        known: Results of all regions in the unit cube, shape `(n, d)`.
        failed: Which of them failed, shape `(n,)`.
    """
    if not failed.any() or failed.all():
        return sobol(stop, known.shape[1], generator)[start:]
    sequence = sobol(max(size * (1 + ALTERNATIVES), stop), known.shape[1], generator)
    points = sequence[start:stop].copy()
    for row, number in enumerate(range(start, min(stop, size))):
        later = size + number * ALTERNATIVES
        options = np.concatenate([points[row : row + 1], sequence[later : later + ALTERNATIVES]])
        share = _nearest(options, known[~failed]) / _nearest(options, known[failed])
        # The first one that is clear, else the clearest.
        points[row] = options[int(np.maximum(share, CLEARLY).argmin())]
    return points


def _nearest(points: Array, known: Array) -> Array:
    """Distance of points `(p, d)` to the nearest of those known, positive, shape `(p,)`."""
    distance: Array = np.maximum(cdist(points, known).min(axis=1), 1e-12)
    return distance
