"""Search in the unit cube: an acquisition function's maximum, or a minimum under constraints.

Many points first, then the best ones are improved. Functions take many points at a time, so that
one gradient by finite differences costs a single call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import KDTree
from scipy.stats import qmc

from cbo_suite.optimizers.shared.placing import WHOLE_CUBE, Ground, Smooth
from cbo_suite.protocols import Array, BoolArray

# From points (p, d) of the unit cube to values (p,), which may be minus infinity.
Score = Callable[[Array], Array]

# Standard deviations of the points around a centre.
SPREADS = (0.1, 0.03, 0.01, 0.003, 0.001)
# Points that are improved differ by more than this in some variable.
APART = 0.05
# Two points that differ by less in every variable are the same.
NEAREST = 1e-7
# Width of finite differences.
DIFFERENCE = 1e-6
# A minimum keeps this distance from violation.
MARGIN = 1e-7
# Stands for "worse than all others" where infinity would end a search.
REPELLENT = 1e10


def spread_points(
    count: int, dim: int, generator: np.random.Generator, centres: Array | None = None
) -> Array:
    """Points of the unit cube to begin a search with.

    Args:
        count: Number of points all over the cube, from a scrambled Sobol sequence.
        dim: Number of variables.
        generator: Source of randomness.
        centres: Points `(k, d)` that come with neighbours at every distance of `SPREADS`.

    Returns:
        Points `(p, d)`: the sequence, then each centre followed by its neighbours.
    """
    engine = qmc.Sobol(dim, scramble=True, rng=generator)
    # A whole power of two keeps the sequence balanced, and SciPy quiet.
    parts = [engine.random_base2(max(0, (count - 1).bit_length()))[:count]]
    for centre in np.empty((0, dim)) if centres is None else centres:
        parts.append(centre[None])
        for spread in SPREADS:
            steps = spread * generator.standard_normal((2 * dim + 4, dim))
            # The first d move one variable each: the others may sit at an edge for good.
            steps[:dim] *= np.eye(dim)
            parts.append(np.clip(centre + steps, 0.0, 1.0))
    return np.concatenate(parts)


def maximise(
    score: Score,
    points: Array,
    *,
    avoid: Array,
    ground: Ground = WHOLE_CUBE,
    starts: int = 3,
    steps: int = 20,
) -> Array:
    """Find a point of large score.

    Args:
        score: The acquisition function.
        points: Where it is evaluated first, shape `(p, d)`.
        avoid: Points `(n, d)` that are not to be proposed again, unless `points` has no others.
        ground: Where an improvement may go.
        starts: How many of the best points are improved.
        steps: Steps of each improvement.

    Returns:
        The best point that was seen and is none of `avoid` if possible, shape `(d,)`.
    """
    fresh = ~near(points, avoid)
    points = points[fresh] if fresh.any() else points
    values = score(points)
    order = np.argsort(-values, kind="stable")
    found, found_values = [points[order[0]]], [values[order[0]]]
    for start in _apart(points[order[np.isfinite(values[order])]], starts):
        end, value = _climb(score, start, ground, steps)
        found.append(end)
        found_values.append(value)
    fresh = ~near(np.stack(found), avoid)
    # The first is none of them if one is not, whatever its value.
    best: Array = found[int(np.where(fresh, found_values, -np.inf).argmax())]
    return best


def descend(
    evaluate: Smooth, start: Array, *, ground: Ground = WHOLE_CUBE, steps: int = 40
) -> Array:
    """Minimise an objective where all constraints are at most zero, from a point `(d,)`.

    Sequential quadratic programming inside the unit cube, on this ground: whole numbers stay. The
    end `(d,)` may violate constraints but is on the ground if the start is, and may be the start.
    """
    evaluate = ground.with_limits(evaluate)
    memory = (start.tobytes(), *evaluate(start))

    def remembered(point: Array) -> tuple[Array, Array]:
        nonlocal memory
        key = point.tobytes()
        if memory[0] != key:
            memory = (key, *evaluate(np.clip(point, 0.0, 1.0)))
        return memory[1], memory[2]

    # SciPy's compiled code reads gradients as if they lay row by row, whatever their strides.
    def objective(point: Array) -> tuple[float, Array]:
        values, gradients = remembered(point)
        return float(values[0]), np.ascontiguousarray(gradients[0])

    def room(point: Array) -> Array:
        slack: Array = -MARGIN - remembered(point)[0][1:]
        return slack

    def room_gradient(point: Array) -> Array:
        return np.ascontiguousarray(-remembered(point)[1][1:])

    # The type stubs only know constraints of one value.
    constraints: Any = {"type": "ineq", "fun": room, "jac": room_gradient}
    with warnings.catch_warnings():
        # It steps over the edge of the cube now and then and says that it goes back.
        warnings.simplefilter("ignore", RuntimeWarning)
        result = minimize(
            objective,
            start,
            method="SLSQP",
            jac=True,
            bounds=ground.bounds(start),
            constraints=constraints,
            options={"maxiter": steps, "ftol": 1e-9},
        )
    end: Array = np.clip(result.x, 0.0, 1.0)
    return ground.back(start, end) if np.isfinite(end).all() else start


def with_differences(function: Callable[[Array], Array]) -> Smooth:
    """Give a function from points `(p, d)` to values `(p, 1 + k)` its gradients, for `descend`."""

    def evaluate(point: Array) -> tuple[Array, Array]:
        width = _widths(point)
        values = function(np.concatenate([point[None], point + np.diag(width)]))
        return values[0], ((values[1:] - values[0]) / width[:, None]).T

    return evaluate


def near(points: Array, others: Array) -> BoolArray:
    """Which of points `(p, d)` are one of `others` `(n, d)`, shape `(p,)`."""
    if len(others) == 0:
        return np.zeros(len(points), dtype=bool)
    distance, _ = KDTree(others).query(points, p=np.inf, distance_upper_bound=NEAREST)
    return np.isfinite(distance)


def _apart(points: Array, count: int) -> list[Array]:
    """The first `count` of points `(p, d)` that are not close to one before."""
    chosen: list[Array] = []
    for point in points:
        if all(np.abs(point - other).max() > APART for other in chosen):
            chosen.append(point)
        if len(chosen) == count:
            break
    return chosen


def _climb(score: Score, start: Array, ground: Ground, steps: int) -> tuple[Array, float]:
    """Improve one point `(d,)` by a quasi-Newton method with bounds; also give its score."""

    def negative(point: Array) -> tuple[float, Array]:
        width = _widths(point)
        values = score(np.concatenate([point[None], point + np.diag(width)]))
        if not np.isfinite(values[0]):
            return REPELLENT, np.zeros_like(point)
        slope = (values[1:] - values[0]) / width
        return -float(values[0]), -np.where(np.isfinite(slope), slope, 0.0)

    if not ground.whole_cube:

        def one_row(point: Array) -> tuple[Array, Array]:
            value, slope = negative(point)
            return np.array([value]), slope[None]

        end = descend(one_row, start, ground=ground, steps=steps)
        return end, float(score(end[None])[0])
    result = minimize(
        negative,
        start,
        method="L-BFGS-B",
        jac=True,
        bounds=[(0.0, 1.0)] * start.size,
        options={"maxiter": steps, "maxfun": 2 * steps},
    )
    end = np.clip(result.x, 0.0, 1.0)
    return end, -float(result.fun)


def _widths(point: Array) -> Array:
    """Widths of finite differences at a point `(d,)` that stay inside the unit cube."""
    return np.where(point + DIFFERENCE <= 1.0, DIFFERENCE, -DIFFERENCE)
