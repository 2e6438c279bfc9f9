"""How far a value may be from the recorded one: what another rounding can do, and no more.

Tolerances come from the problem, never from the file that is judged.
"""

from __future__ import annotations

import numpy as np

from cbo_suite.harness.evaluate import evaluate_points
from cbo_suite.protocols import Array, ConstrainedProblem, Evaluation
from cbo_suite.verify.designs import Scale

# Another processor or library may round differently, by this part of a value's size or of the
# typical size of such values, unless the problem declares its own `rounding`: 450 units in the
# last place of 1.
ROUNDING = 1e-13
# Part of each range by which a point is moved to see how steep the problem is there.
STEP = 1e-7


def allow(now: Evaluation, scale: Scale, rounding: float = ROUNDING) -> Evaluation:
    """Return how far recorded values may be from those of now, in their shapes.

    Args:
        now: What the problem gives here.
        scale: Typical sizes, the same for all points or one for each.
        rounding: Part of a size by which another rounding may change a value.
    """
    sizes = (np.maximum(np.abs(values), size) for values, size in zip(now, scale, strict=True))
    # Nothing is near what is infinite.
    return Evaluation(*(np.where(np.isfinite(size), rounding * size, 0.0) for size in sizes))


def local_scale(problem: ConstrainedProblem, x: Array, now: Evaluation, scale: Scale) -> Scale:
    """Return the sizes of a problem's values as they are near some points.

    Products and powers are typically huge and small where it matters. What is small and flat at a
    point cannot have been rounded as what is typical: it counts as what it changes over the ranges
    at the slope that it has there, as 1 at least, and never as more than the typical size.

    Args:
        problem: The problem.
        x: The points, shape `(k, d)`.
        now: Their values.
        scale: Typical sizes.

    Returns:
        Sizes of the objective, shape `(k,)`, and of the constraints, shape `(k, m)`.
    """
    space = problem.space
    inwards = np.where(x < (space.lower + space.upper) / 2, STEP, -STEP)
    step = np.where(space.integer, 0.0, inwards * (space.upper - space.lower))
    moved = evaluate_points(problem, space.project(x + step)).evaluation
    sizes = []
    for values, other, typical in zip(now, moved, scale, strict=True):
        with np.errstate(invalid="ignore"):
            slope = np.abs(other - values) / STEP
        seen = np.where(np.isfinite(slope), np.maximum(slope, 1.0), np.inf)
        sizes.append(np.minimum(seen, typical))
    return Scale(*sizes)
