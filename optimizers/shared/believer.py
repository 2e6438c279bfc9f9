"""Constrained expected improvement, and batches that take their own points as observed.

A batch is built greedily. Each chosen point, like every point under way, is taken to be observed
at its posterior means (the "kriging believer" of Ginsbourger, Le Riche and Carraro, 2010): the
means of all other points stay, their variances shrink by one more row of the Cholesky factor with
the hyperparameters fixed, and if the point is then feasible its value counts as the best one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cbo_suite.optimizers.models.improvement import SMALLEST_DEVIATION, log_improvement
from cbo_suite.optimizers.models.joint import JointDraws
from cbo_suite.optimizers.models.surrogate import Model

# Numbers that the Cholesky rows of all models at all candidates may take, 1 GB of float64.
MOST_ELEMENTS = 1 << 27


def log_constrained_improvement(mean: Tensor, deviation: Tensor, best: float | None) -> Tensor:
    """Log of expected improvement times probability of feasibility, shape `(p,)`.

    The logarithms of the probabilities of m constraints are added up, so that not even hundreds of
    small ones underflow.

    Args:
        mean: Posterior means of the objective and of the constraints, shape `(1 + m, p)`.
        deviation: Posterior standard deviations, shape `(1 + m, p)`.
        best: Least objective of a feasible point, None if there is none: then the probability of
            feasibility alone.
    """
    deviation = deviation.clamp_min(SMALLEST_DEVIATION)
    score: Tensor = torch.special.log_ndtr(-mean[1:] / deviation[1:]).sum(0)
    if best is not None:
        score = score + log_improvement((best - mean[0]) / deviation[0]) + deviation[0].log()
    return score


def believed_best(best: float | None, mean: Tensor, violated: bool) -> float | None:
    """The best feasible objective if points are observed at their means.

    Args:
        best: Least objective of a feasible observation, None if there is none.
        mean: Posterior means of the objective and of the constraints, shape `(1 + m, p)`.
        violated: Whether a constraint without a model is violated everywhere.
    """
    feasible = [] if violated else mean[0, (mean[1:] <= 0).all(0)].tolist()
    return min(feasible if best is None else [best, *feasible], default=None)


def shortlist(model: Model, candidates: Tensor, best: float | None, least: int) -> Tensor:
    """Indices of as many of the best candidates `(r, d)` as memory has room for, ascending.

    There are at least `least` of them.
    """
    room = max(least, MOST_ELEMENTS // (len(model.scale) * model.gp.x.shape[0]))
    everything = torch.arange(candidates.shape[0])
    if candidates.shape[0] <= room:
        return everything
    mean, variance = model.gp.predict(candidates)
    score = log_constrained_improvement(mean + _shift(model)[:, None], variance.sqrt(), best)
    return score.argsort(descending=True, stable=True)[:room].sort().values


def choose_batch(
    model: Model, candidates: Tensor, under_way: Tensor, best: float | None, count: int
) -> Tensor:
    """Choose candidates one after another by constrained expected improvement.

    Args:
        model: Models of the objective (standardised) and of the constraints.
        candidates: Points of the unit cube, shape `(r, d)`, at least `count` of them.
        under_way: Points whose results are still to come, shape `(p, d)`.
        best: Least standardised objective of a feasible observation, None if there is none.
        count: Number of candidates to choose.

    Returns:
        Indices of the chosen candidates, shape `(count,)`.
    """
    kept = shortlist(model, candidates, best, count)
    violated = any(value > 0 for value in model.constants)
    points = torch.cat([candidates[kept], under_way])
    draws = [
        # Without a generator a draw is the mean: the point is believed.
        JointDraws(model.dense, index, points, 1, None, offset=offset)
        for index, offset in enumerate(_shift(model).tolist())
    ]
    everything = torch.arange(points.shape[0])
    free = everything < kept.numel()
    mean = torch.stack([draw.value[:, 0] for draw in draws])
    chosen, believed = [], everything[~free]
    while True:
        if believed.numel() > 0:
            best = believed_best(best, mean[:, believed], violated)
            for draw in draws:
                draw.draw(believed)
                draw.refresh(everything)
        deviation = torch.stack([draw.deviation for draw in draws])
        score = log_constrained_improvement(mean, deviation, best)
        # A floor instead of minus infinity: of candidates without hope, any is better than none.
        score = score.clamp_min(torch.finfo(score.dtype).min).masked_fill(~free, -torch.inf)
        believed = score.argmax()[None]
        free[believed] = False
        chosen.append(kept[believed])
        if len(chosen) == count:
            return torch.cat(chosen)


def _shift(model: Model) -> Tensor:
    """What brings standardised constraints back to their zero, and leaves the objective: `(b,)`."""
    shift = torch.as_tensor(model.offset / model.scale, dtype=model.gp.x.dtype)
    shift[0] = 0.0
    return shift
