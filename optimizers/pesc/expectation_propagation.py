"""Expectation propagation for "this point is the constrained minimum", vectorised.

Source: Hernandez-Lobato, Gelbart, Hoffman, Adams, Ghahramani, "Predictive entropy search for
Bayesian optimization with unknown constraints", ICML 2015, and the article of 2016 (JMLR 17).

Given an optimum x*, the objective f and the constraints g_k (here feasible where g_k >= 0) satisfy
g_k(x*) >= 0, and every other point x either violates a constraint or has f(x) >= f(x*). The second
factor sees the objective through the difference f(x) - f(x*) alone. Therefore its Gaussian
approximation, a matrix of 2 x 2 on (f(x), f(x*)) in the article, always has rank one: it is a
number on the difference. So each site here is a precision and a shift on one linear functional,
the differences f(x_i) - f(x*) for the objective and the values g_k(x_i), g_k(x*) for the
constraints, and all sites of all functions and of all sampled optima are updated at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Sweeps end when no mean and no covariance changes by more.
TOLERANCE = 1e-4
MOST_SWEEPS = 50
# Damping shrinks by this factor in every sweep, and by half when a sweep fails.
COOLING = 0.99
LEAST_DAMPING = 1e-5
# Shares of the largest variance that are added to a diagonal until a matrix has a factor.
JITTERS = (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)


class Slopes(NamedTuple):
    """Derivatives of the log of a factor's mean by the means of the Gaussians it is averaged over.

    A Gaussian quantity whose covariance with an argument is q has, after the factor, a mean that
    is larger by q times the slope and a variance that is smaller by q squared times the curvature.

    Attributes:
        log_mean: Log of the mean of the factor, any shape `(...)`.
        slope: By the mean of the difference, shape `(...)`.
        curvature: Minus the second derivative by it, shape `(...)`.
        constraint_slope: By the means of the constraints, shape `(k, ...)`.
        constraint_curvature: Minus the second derivatives by them, shape `(k, ...)`.
    """

    log_mean: Tensor
    slope: Tensor
    curvature: Tensor
    constraint_slope: Tensor
    constraint_curvature: Tensor


def _log_density(values: Tensor) -> Tensor:
    """Log density of the standard normal law."""
    return -0.5 * values.square() - _LOG_ROOT_TWO_PI


def _log_infeasible(alphas: Tensor, log_feasible: Tensor) -> Tensor:
    """Log probability that a constraint is violated.

    Args:
        alphas: Means over deviations of k constraints, shape `(k, ...)`.
        log_feasible: Log probability that none is, shape `(...)`.
    """
    # Next to zero the complement of a probability is the sum of its parts, which has more digits.
    parts = torch.logsumexp(torch.special.log_ndtr(-alphas), 0)
    return torch.where(log_feasible > -1e-8, parts, torch.log(-torch.expm1(log_feasible)))


def optimality(mean: Tensor, variance: Tensor, means: Tensor, variances: Tensor) -> Slopes:
    """The factor "infeasible, or not better than the optimum", averaged.

    Args:
        mean: Mean of the difference f(x) - f(x*), shape `(...)`.
        variance: Its variance, positive.
        means: Means of g_k(x), shape `(k, ...)`, k possibly 0.
        variances: Their variances, positive.
    """
    deviation, deviations = variance.sqrt(), variances.sqrt()
    alpha, alphas = mean / deviation, means / deviations
    log_feasible = torch.special.log_ndtr(alphas)
    log_all = log_feasible.sum(0)
    log_mean = torch.logaddexp(
        log_all + torch.special.log_ndtr(alpha), _log_infeasible(alphas, log_all)
    )
    ratio = torch.exp(log_all + _log_density(alpha) - log_mean)
    # The factor's mean falls short of one by the probability of being feasible and better.
    shortfall = log_all + torch.special.log_ndtr(-alpha) - log_mean
    ratios = -torch.exp(_log_density(alphas) - log_feasible + shortfall)
    return Slopes(
        log_mean,
        ratio / deviation,
        ratio * (ratio + alpha) / variance,
        ratios / deviations,
        ratios * (ratios + alphas) / variances,
    )


def positivity(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Slope and curvature of the factor g >= 0 for Gaussians of any shape."""
    deviation = variance.sqrt()
    alpha = mean / deviation
    ratio = torch.exp(_log_density(alpha) - torch.special.log_ndtr(alpha))
    return ratio / deviation, ratio * (ratio + alpha) / variance


class Sites(NamedTuple):
    """Gaussians that stand for the factors, with the marginals that they lead to.

    One row for each of b functions and M optima: functional i < N - 1 is the difference
    f(x_i) - f(x*) for the objective (row 0) and g_k(x_i) for a constraint; the last is f(x*),
    which has no site of its own, and g_k(x*).

    Attributes:
        precision: Shape `(b, M, N)`.
        shift: Precision times mean, shape `(b, M, N)`.
        mean: Marginal means of the functionals, shape `(b, M, N)`.
        covariance: Marginal covariances, shape `(b, M, N, N)`.
        sweeps: Number of sweeps that were made.
    """

    precision: Tensor
    shift: Tensor
    mean: Tensor
    covariance: Tensor
    sweeps: int


def propagate(mean: Tensor, covariance: Tensor, allowed: Tensor) -> Sites:
    """Run expectation propagation on the functionals described in `Sites`.

    Args:
        mean: Means before the factors are known, shape `(b, M, N)`.
        covariance: Covariances, positive definite, shape `(b, M, N, N)`.
        allowed: Which of the first N - 1 functionals have a factor, shape `(M, N - 1)`.
    """
    factor = _factorise(covariance)
    zero = torch.zeros_like(mean)
    sites = Sites(zero, zero, mean, covariance, 0)
    damping = torch.ones_like(mean[0, :, 0])
    for sweep in range(MOST_SWEEPS):
        precision, shift = _proposal(sites, allowed)
        step = damping[:, None]
        precision = sites.precision + step * (precision - sites.precision)
        shift = sites.shift + step * (shift - sites.shift)
        new_mean, new_covariance, proper = _marginals(mean, factor, precision, shift)
        # Other optima go on where the approximation of one is no longer a Gaussian.
        proper = proper.all(0)
        change = torch.maximum(
            (new_mean - sites.mean).abs().amax((0, 2)),
            (new_covariance - sites.covariance).abs().amax((0, 2, 3)),
        )
        take = proper[:, None]
        sites = Sites(
            torch.where(take, precision, sites.precision),
            torch.where(take, shift, sites.shift),
            torch.where(take, new_mean, sites.mean),
            torch.where(take[..., None], new_covariance, sites.covariance),
            sweep + 1,
        )
        damping = damping * torch.where(proper, COOLING, 0.5)
        done = proper & (change < TOLERANCE) | (damping < LEAST_DAMPING)
        if sweep >= 2 and bool(done.all()):
            break
    return sites


def _factorise(covariance: Tensor) -> Tensor:
    """Cholesky factors of matrices `(..., N, N)` that rounding may have left singular."""
    diagonal = covariance.diagonal(dim1=-2, dim2=-1)
    factor: Tensor = covariance
    for jitter in JITTERS:
        addition = torch.diag_embed(jitter * diagonal.amax(-1, keepdim=True).expand_as(diagonal))
        factor, failed = torch.linalg.cholesky_ex(covariance + addition)
        if not failed.any():
            break
    return factor


def _proposal(sites: Sites, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Precisions and shifts of all sites, each from the marginals without itself."""
    variance = sites.covariance.diagonal(dim1=-2, dim2=-1)
    rest = 1.0 - variance * sites.precision
    usable = rest > 0
    rest = torch.where(usable, rest, 1.0)
    cavity_variance = variance / rest
    cavity_mean = (sites.mean - variance * sites.shift) / rest
    slope, curvature = torch.zeros_like(rest), torch.zeros_like(rest)
    found = optimality(
        cavity_mean[0, :, :-1],
        cavity_variance[0, :, :-1],
        cavity_mean[1:, :, :-1],
        cavity_variance[1:, :, :-1],
    )
    slope[0, :, :-1], curvature[0, :, :-1] = found.slope, found.curvature
    slope[1:, :, :-1], curvature[1:, :, :-1] = found.constraint_slope, found.constraint_curvature
    slope[:, :, :-1] *= allowed
    curvature[:, :, :-1] *= allowed
    slope[1:, :, -1], curvature[1:, :, -1] = positivity(
        cavity_mean[1:, :, -1], cavity_variance[1:, :, -1]
    )
    left = 1.0 - cavity_variance * curvature
    precision = curvature / left
    shift = (slope + cavity_mean * curvature) / left
    # A factor speaks of all its arguments at once: where one has no cavity, the old sites stay.
    usable = usable & (left > 0) & precision.isfinite() & shift.isfinite()
    usable = usable.all(0)
    return torch.where(usable, precision, sites.precision), torch.where(usable, shift, sites.shift)


def _marginals(
    mean: Tensor, factor: Tensor, precision: Tensor, shift: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Means, covariances, and which of them belong to a Gaussian, shape `(b, M)`."""
    identity = torch.eye(factor.shape[-1], dtype=factor.dtype)
    inner, failed = torch.linalg.cholesky_ex(identity + factor.mT @ (precision[..., None] * factor))
    root = torch.linalg.solve_triangular(inner, factor.mT, upper=False)
    covariance = root.mT @ root
    pull = (shift - precision * mean)[..., None]
    new_mean = mean + (covariance @ pull)[..., 0]
    proper = (failed == 0) & covariance.isfinite().all(-1).all(-1) & new_mean.isfinite().all(-1)
    return new_mean, covariance, proper
