"""Constrained expected improvement, and batches that take their own points as observed.

A batch is built greedily. Each chosen point, like every point under way, is taken to be observed
at its posterior means (the "kriging believer" of Ginsbourger, Le Riche and Carraro, 2010): the
means of all other points stay, their variances shrink by one more row of the Cholesky factor with
the hyperparameters fixed, and if the point is then feasible its value may count as the best one.

Candidates are sieved: with many data by a posterior of some of them, then by the posterior of all,
and a batch is built of what is left, whose covariances with each other are computed once. So to
believe a point costs nothing that grows with the data or with the number of all candidates.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cbo_suite.optimizers.models.batch_gp import BatchGP
from cbo_suite.optimizers.models.improvement import SMALLEST_DEVIATION, log_improvement
from cbo_suite.optimizers.models.joint import RELATIVE_FLOOR
from cbo_suite.optimizers.models.surrogate import Model, fitted_part

# Multiplications for the variances of one choice, about a second of a core: models times square of
# the data times candidates.
MOST_WORK = 3e10
# At least so many candidates have exact variances, however large the models are: in all, and for
# each point of the batch.
FEWEST_EXACT, EXACT_PER_POINT = 256, 4
# Most candidates that a batch is built of, likewise.
CONTENDERS, CONTENDERS_PER_POINT = 512, 8
# Data of the posterior that sieves candidates first.
ROUGH_DATA = 256


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


def choose_batch(
    model: Model,
    candidates: Tensor,
    under_way: Tensor,
    best: float | None,
    count: int,
    *,
    trust_means: bool = True,
) -> Tensor:
    """Choose candidates one after another by constrained expected improvement.

    Args:
        model: Models of the objective (standardised) and of the constraints.
        candidates: Points of the unit cube, shape `(r, d)`, at least `count` of them.
        under_way: Points whose results are still to come, shape `(p, d)`.
        best: Least standardised objective of a feasible observation, None if there is none.
        count: Number of candidates to choose.
        trust_means: Whether a believed value may become the best one.

    Returns:
        Indices of the chosen candidates, shape `(count,)`.
    """
    kept = shortlist(model, candidates, best, count)
    beliefs = Beliefs(model, torch.cat([candidates[kept], under_way]))
    violated = any(value > 0 for value in model.constants)
    everything = torch.arange(kept.numel() + under_way.shape[0], device=candidates.device)
    free = everything < kept.numel()
    chosen, believed = [], everything[~free]
    while True:
        if trust_means:
            best = believed_best(best, beliefs.mean[:, believed], violated)
        for index in believed:
            beliefs.believe(index)
        score = log_constrained_improvement(beliefs.mean, beliefs.deviation, best)
        # A floor instead of minus infinity: of candidates without hope, any is better than none.
        score = score.clamp_min(torch.finfo(score.dtype).min).masked_fill(~free, -torch.inf)
        believed = score.argmax()[None]
        free[believed] = False
        chosen.append(kept[believed])
        if len(chosen) == count:
            return torch.cat(chosen)


class Beliefs:
    """Posteriors of all models at some points, given that some of these are as expected.

    Attributes:
        mean: Posterior means, shape `(b, p)`.
        deviation: Posterior deviations given what is believed, shape `(b, p)`.
    """

    def __init__(self, model: Model, points: Tensor) -> None:
        """Believe nothing yet at points `(p, d)`."""
        gp = model.dense
        means, covariances = [], []
        for index, kernel in enumerate(gp.kernels):
            mean, rows = gp.posterior(index, points)
            means.append(mean)
            covariances.append(kernel(points, points).addmm_(rows, rows.mT, alpha=-1.0))
        self.mean = torch.stack(means) + _shift(model)[:, None]
        self._covariance = torch.stack(covariances)
        self._least = RELATIVE_FLOOR * torch.stack([kernel.variance for kernel in gp.kernels])
        self._variance = self._covariance.diagonal(dim1=1, dim2=2).clamp_min(0.0)
        # One more row of each Cholesky factor for every believed point.
        self._rows = points.new_empty(len(means), 0, points.shape[0])

    @property
    def deviation(self) -> Tensor:
        """Posterior deviations, shape `(b, p)`."""
        return self._variance.sqrt()

    def believe(self, index: Tensor) -> None:
        """Take the point of this index, shape `()`, to be observed at its means."""
        known = (self._rows[:, :, index, None] * self._rows).sum(1)
        column = self._covariance[:, index] - known
        variance = column[:, index].clamp_min(self._least)
        row = column / variance.sqrt()[:, None]
        self._rows = torch.cat([self._rows, row[:, None]], dim=1)
        self._variance = (self._variance - row.square()).clamp_min(0.0)
        self._variance[:, index] = 0.0


def shortlist(model: Model, candidates: Tensor, best: float | None, count: int) -> Tensor:
    """Indices of the candidates `(r, d)` that a batch of `count` is built of, ascending."""
    gp = model.dense
    models, data = gp.y.shape
    kept = torch.arange(candidates.shape[0], device=candidates.device)
    room = max(FEWEST_EXACT, EXACT_PER_POINT * count, int(MOST_WORK / (models * data**2)))
    if kept.numel() > room:
        rough = gp.part(fitted_part(data, ROUGH_DATA)) if data > ROUGH_DATA else gp
        score = _scores(rough, model, candidates, best)
        kept = score.topk(room).indices.sort().values
    room = max(CONTENDERS, CONTENDERS_PER_POINT * count)
    if kept.numel() > room:
        score = _scores(gp, model, candidates[kept], best)
        kept = kept[score.topk(room).indices.sort().values]
    return kept


def _scores(gp: BatchGP, model: Model, points: Tensor, best: float | None) -> Tensor:
    """The acquisition function of posteriors in the model's units at points `(p, d)`: `(p,)`."""
    mean, variance = gp.predict(points)
    return log_constrained_improvement(mean + _shift(model)[:, None], variance.sqrt(), best)


def _shift(model: Model) -> Tensor:
    """What brings standardised constraints back to their zero, and leaves the objective: `(b,)`."""
    like = model.gp.x
    shift = torch.as_tensor(model.offset / model.scale, dtype=like.dtype, device=like.device)
    shift[0] = 0.0
    return shift
