"""Hyperparameters of a batch of Gaussian processes by maximum marginal likelihood.

A quasi-Newton method with bounds (projected BFGS with a dense inverse Hessian) runs on all models
at once: every model has its own direction, step length and end, and a model that is done no longer
costs anything. Likelihoods are computed on the models' device, the small matrices of the method in
NumPy, whose calls cost less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbo_suite.optimizers.models.likelihood import negative_log_posterior
from cbo_suite.protocols import Array

# Elements of one n x n matrix per model that a chunk of models may have: they stay in the cache.
CHUNK_ELEMENTS = 1 << 20
# No parameter (a logarithm) moves further than this in one step.
LARGEST_MOVE = 2.0
MOST_HALVINGS = 8
# Share of the differences between length scales that a later fit begins with.
KEPT_SPREAD = 0.2
SUFFICIENT_DECREASE = 1e-4
# Length scales as short as this share of the distance between neighbours still let them correlate:
# by 0.14 if all scales are equal.
NEIGHBOUR_SHARE = 0.5
# How much less than the signal variance a length scale bends the likelihood, about. Of 4, 16 and
# 64, this one came nearest to the maximum in eight steps, with 500 data of Keane 30D and of the
# vehicle in 124-D.
SOFTER_LENGTHSCALES = 16.0

Rows = NDArray[np.intp]
# (parameters (k, p), rows (k,), values only) -> values (k,) and gradients (k, p) of these models.
Evaluate = Callable[[Array, Rows, bool], tuple[Array, Array]]


@dataclass(frozen=True)
class Bounds:
    """Bounds of the hyperparameters, for inputs in the unit cube and standardised outputs.

    Attributes:
        lengthscale: 4 lets a variable without influence switch itself off.
        variance: Of the signal.
        noise: Variance of the noise. Noise-free problems need a tight upper bound: what the model
            may call noise, it does not have to explain.
        noise_start: Where a fit begins, None for the middle on a logarithmic scale.
    """

    lengthscale: tuple[float, float] = (0.005, 4.0)
    variance: tuple[float, float] = (0.05, 20.0)
    noise: tuple[float, float] = (1e-8, 1e-3)
    noise_start: float | None = None

    @property
    def first_noise(self) -> float:
        """The noise variance that a fit begins with."""
        low, high = self.noise
        return self.noise_start or (low * high) ** 0.5

    def tensors(self, like: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds of the log parameters, each of shape `(d + 2,)`."""
        rows = [self.lengthscale] * dim + [self.variance, self.noise]
        lower, upper = torch.tensor(rows, dtype=like.dtype, device=like.device).log().T
        return lower, upper

    def at_precision(self, dtype: torch.dtype) -> Bounds:
        """The bounds with as much noise as this precision needs for Cholesky factors to exist."""
        least = 100.0 * torch.finfo(dtype).eps
        start = self.noise_start if (self.noise_start or 0.0) >= least else None
        noise = max(self.noise[0], least), max(self.noise[1], 100.0 * least)
        return replace(self, noise=noise, noise_start=start)


# The likelihood of exact data hardly knows their noise, which often ends about where it begins, at
# 3e-6. To begin at the least, or to fit twenty times as exactly, made no difference to SCBO that 20
# paired runs of the speed reducer and 18 of Ackley's function could show (p > 0.1).
NOISE_FREE = Bounds()
# A fit that begins with far less noise than the data have falls thousands of nats in a few steps
# along the noise alone, and ends before any length scale has moved.
NOISY = Bounds(noise=(1e-6, 1.0), noise_start=0.1)


def first_lengthscale(dim: int) -> float:
    """The length scale a fit begins with: distances grow with the root of the dimension.

    With 0.5 in 124 dimensions no two points are correlated, and the likelihood is flat.
    """
    return 0.5 * max(1.0, math.sqrt(dim / 10.0))


def default_parameters(num_models: int, dim: int, bounds: Bounds, like: Tensor) -> Tensor:
    """Where a fit begins that knows nothing: log parameters, shape `(b, d + 2)`."""
    row = [first_lengthscale(dim)] * dim + [1.0, bounds.first_noise]
    return torch.tensor(row, dtype=like.dtype, device=like.device).log().expand(num_models, -1)


def revive(parameters: Tensor, x: Tensor) -> Tensor:
    """Lengthen the scales of models that have collapsed: log parameters, shape `(b, d + 2)`.

    A model whose length scales are far shorter than the distances of its data `(n, d)` takes them
    for independent. Its likelihood is flat there, so a fit that begins there learns nothing from
    new data. So the median scale of every model becomes at least `NEIGHBOUR_SHARE` of the median
    distance to the nearest neighbour, if the default is not shorter.
    """
    distance = torch.cdist(x, x)
    distance.fill_diagonal_(torch.inf)
    nearest = float(distance.amin(dim=1).median())
    shortest = min(NEIGHBOUR_SHARE * nearest, first_lengthscale(x.shape[1]))
    lengthscale = parameters[:, :-2]
    middle = lengthscale.median(dim=1, keepdim=True).values
    # Data that all coincide have no distance, and their models stay as they are.
    missing = (math.log(max(shortest, 1e-300)) - middle).clamp_min(0.0)
    return torch.cat([lengthscale + missing, parameters[:, -2:]], dim=1)


def restart_parameters(parameters: Tensor, bounds: Bounds) -> Tensor:
    """Where a fit begins that follows an earlier one: close to it, but in no dead end.

    A length scale that has grown long hardly changes the likelihood any more, so a fit that begins
    there keeps it long whatever the new data say, and noise at its lower bound stays there. So all
    length scales move most of the way to their median (bounded), and the noise to where it began.
    """
    lengthscale = parameters[:, :-2]
    longest = math.log(2.0 * first_lengthscale(lengthscale.shape[1]))
    middle = lengthscale.clamp_max(longest).median(dim=1, keepdim=True).values
    noise = torch.full_like(middle, math.log(bounds.first_noise))
    moved = middle + KEPT_SPREAD * (lengthscale - middle)
    return torch.cat([moved, parameters[:, -2:-1], noise], dim=1)


def expected_curvature(count: int, dim: int) -> Array:
    """About the second derivative of a fit's objective by each log parameter, shape `(d + 2,)`.

    The likelihood of n data without noise bends by n / 2 along the log signal variance. A fit that
    does not know it spends its first steps there, before any length scale moves.
    """
    signal = count / 2.0
    return np.array([signal / SOFTER_LENGTHSCALES] * dim + [signal, 1.0])


def fit(
    x: Tensor,
    y: Tensor,
    start: Tensor,
    bounds: Bounds,
    *,
    steps: int,
    tolerance: float = 1e-2,
    curvature: Array | None = None,
) -> tuple[Tensor, Tensor]:
    """Maximise the penalised marginal likelihood of every model.

    Args:
        x: Inputs shared by all models, shape `(n, d)`.
        y: Standardised outputs, shape `(b, n)`.
        start: Log hyperparameters to begin with, shape `(b, d + 2)`.
        bounds: Bounds of the hyperparameters.
        steps: Most steps of a model.
        tolerance: A model is done when two steps in a row gain less than this many nats each, or
            when no derivative exceeds it.
        curvature: A first guess of the second derivatives, shape `(d + 2,)`: with
            `expected_curvature` half as many steps do. By default all are equal.

    Returns:
        Log hyperparameters `(b, d + 2)` and the negative penalised log likelihoods `(b,)`,
        infinite where even the start has no Cholesky factor.
    """
    lower, upper = (part.cpu().numpy().astype(float) for part in bounds.tensors(y, x.shape[1]))
    size = max(1, CHUNK_ELEMENTS // max(1, x.shape[0] ** 2))
    begin = np.clip(start.cpu().numpy().astype(float), lower, upper)
    guess = np.ones(x.shape[1] + 2) if curvature is None else curvature
    results = []
    for first in range(0, y.shape[0], size):
        part = y[first : first + size]

        def evaluate(
            parameters: Array, rows: Rows, value_only: bool, part: Tensor = part
        ) -> tuple[Array, Array]:
            tensor = torch.as_tensor(parameters, dtype=y.dtype, device=y.device)
            chosen = torch.as_tensor(rows, device=y.device)
            own = part if len(rows) == part.shape[0] else part[chosen]
            value, gradient = negative_log_posterior(tensor, x, own, value_only=value_only)
            return value.cpu().numpy().astype(float), gradient.cpu().numpy().astype(float)

        own_start = begin[first : first + size]
        results.append(_minimise(evaluate, own_start, lower, upper, guess, steps, tolerance))
    best, values = (np.concatenate(parts) for parts in zip(*results, strict=True))
    return torch.as_tensor(best).to(y), torch.as_tensor(values).to(y)


def _minimise(
    evaluate: Evaluate,
    start: Array,
    lower: Array,
    upper: Array,
    curvature: Array,
    steps: int,
    tolerance: float,
) -> tuple[Array, Array]:
    """Minimise every row of `start` `(b, p)` inside the bounds; `curvature` `(p,)` is a guess."""
    batch = start.shape[0]
    parameters = start.copy()
    values, gradients = evaluate(parameters, np.arange(batch), steps == 0)
    metric = 1.0 / curvature
    inverse_hessian = np.tile(np.diag(metric), (batch, 1, 1))
    fresh = np.ones(batch, dtype=bool)
    slow = np.zeros(batch, dtype=int)
    rows = np.flatnonzero(np.isfinite(values))
    for step in range(steps):
        at, slope = parameters[rows], gradients[rows]
        free = ~((at <= lower) & (slope > 0) | (at >= upper) & (slope < 0))
        slope = slope * free
        going = np.abs(slope).max(axis=1) > tolerance
        rows, at, slope, free = rows[going], at[going], slope[going], free[going]
        if rows.size == 0:
            break
        direction = -np.matmul(inverse_hessian[rows], slope[:, :, None])[:, :, 0] * free
        uphill = (direction * slope).sum(axis=1) >= 0
        direction[uphill] = -slope[uphill] * metric
        fresh[rows[uphill]] = True
        # A step that knows no curvature moves no parameter by more than one.
        most = np.where(fresh[rows], 1.0, LARGEST_MOVE)
        length = most / np.maximum(np.abs(direction).max(axis=1), most)
        # Nobody asks for the slope after the last step.
        last = step == steps - 1
        new, new_values, new_gradients = _search(
            evaluate, last, rows, at, values[rows], slope, direction, length, lower, upper
        )
        gain = values[rows] - new_values
        moved = gain > 0
        accepted = rows[moved]
        parameters[accepted], values[accepted] = new[moved], new_values[moved]
        if last:
            break
        bend = new_gradients[moved] - gradients[accepted]
        _update(inverse_hessian, accepted, new[moved] - at[moved], bend, metric, fresh)
        gradients[accepted] = new_gradients[moved]
        slow[rows] = np.where(gain > tolerance, 0, slow[rows] + 1)
        rows = rows[(slow[rows] < 2) & moved]
    return parameters, values


def _search(
    evaluate: Evaluate,
    value_only: bool,
    rows: Rows,
    at: Array,
    values: Array,
    slope: Array,
    direction: Array,
    length: Array,
    lower: Array,
    upper: Array,
) -> tuple[Array, Array, Array]:
    """Halve the step of each row until the value falls enough; a row that fails stays."""
    new, new_values, new_gradients = at.copy(), values.copy(), slope.copy()
    todo = np.arange(rows.size)
    for _ in range(MOST_HALVINGS):
        trial = np.clip(at[todo] + length[todo, None] * direction[todo], lower, upper)
        value, gradient = evaluate(trial, rows[todo], value_only)
        promised = (slope[todo] * (trial - at[todo])).sum(axis=1)
        good = value <= values[todo] + SUFFICIENT_DECREASE * promised
        done = todo[good]
        new[done], new_values[done], new_gradients[done] = trial[good], value[good], gradient[good]
        todo = todo[~good]
        if todo.size == 0:
            break
        length[todo] *= 0.5
    return new, new_values, new_gradients


def _update(
    inverse_hessian: Array,
    rows: Rows,
    change: Array,
    bend: Array,
    metric: Array,
    fresh: NDArray[np.bool_],
) -> None:
    """Give the inverse Hessians of `rows` the curvature seen along their last steps, in place.

    Those of `fresh` rows become the `metric` `(p,)`, scaled to this curvature, before.
    """
    curvature = (change * bend).sum(axis=1)
    square = (bend * bend * metric).sum(axis=1)
    convex = curvature > 1e-10 * square
    rows, change, bend = rows[convex], change[convex], bend[convex]
    curvature, square = curvature[convex], square[convex]
    if rows.size == 0:
        return
    first = rows[fresh[rows]]
    scale = (curvature / square)[fresh[rows]]
    inverse_hessian[first] = scale[:, None, None] * np.diag(metric)
    fresh[first] = False
    matrix = inverse_hessian[rows]
    image = np.matmul(matrix, bend[:, :, None])[:, :, 0]
    weight = (1.0 + (bend * image).sum(axis=1) / curvature) / curvature
    cross = image[:, :, None] * (change / curvature[:, None])[:, None, :]
    outer = (weight[:, None] * change)[:, :, None] * change[:, None, :]
    inverse_hessian[rows] = matrix + outer - cross - cross.transpose(0, 2, 1)
