"""Predictive entropy search with constraints (PESC).

Source: Hernandez-Lobato, Gelbart, Hoffman, Adams, Ghahramani, "Predictive entropy search for
Bayesian optimization with unknown constraints", ICML 2015. It evaluates the point that is expected
to tell most about where the constrained optimum lies. The method card is docs/optimizers/pesc.md.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.models.failures import Failures, failed_rows
from cbo_suite.optimizers.models.posterior import Posterior
from cbo_suite.optimizers.pesc.expectation_propagation import Sites, optimality, propagate
from cbo_suite.optimizers.shared.global_optimizer import GlobalOptimizer, on_arrays
from cbo_suite.optimizers.shared.placing import WHOLE_CUBE, Ground
from cbo_suite.optimizers.shared.sampled_optima import sample_optima
from cbo_suite.optimizers.shared.search import (
    NEAREST,
    descend,
    maximise,
    near,
    spread_points,
    with_differences,
)
from cbo_suite.protocols import Array, Space

# Draws of functions without a feasible point are replaced so often.
ATTEMPTS = 10
# Relative to the signal variance: keeps covariances of observed values positive definite.
JITTER = 1e-8
# The difference of two values is never known better than with this variance.
SMALLEST_VARIANCE = 1e-10
# Data whose factor falls short of one by less than this are left out.
NEGLIGIBLE = 1e-9
# Points of one block of the acquisition function.
BLOCK = 256


class EntropySearch:
    """The acquisition function: expected information about the optimum.

    For every sampled optimum the posteriors are conditioned, by expectation propagation, on that
    point being feasible and on no observed point being feasible and better; then, for every point
    at which the function is evaluated, on that point not being feasible and better. The value is
    the mean fall of the entropies of the predictions, summed over the functions.
    """

    def __init__(self, posterior: Posterior, optima: Tensor, max_sites: int = 50) -> None:
        """Condition the posteriors on sampled optima `(M, d)`.

        Args:
            posterior: The posteriors.
            optima: Sampled optima in the unit cube, at least one.
            max_sites: Greatest number of observed points per optimum that it is compared with;
                those that say most about it are taken.
        """
        self._posterior = posterior
        self._points = torch.cat([posterior.x, optima])
        mean, self._columns = posterior.whiten(self._points)
        covariance = posterior.prior(self._points, self._points)
        covariance.baddbmm_(self._columns.mT, self._columns, alpha=-1.0)
        covariance.diagonal(dim1=-2, dim2=-1).add_(JITTER * posterior.variance[:, None])
        # Expectation propagation counts a constraint as satisfied where it is positive.
        mean[1:] *= -1.0
        chosen, allowed = _relevant(mean, covariance, self._points, optima.shape[0], max_sites)
        self._chosen = chosen
        means, covariances = mean[:, chosen], covariance[:, chosen[:, :, None], chosen[:, None]]
        _take_differences(means[0])
        _take_differences(covariances[0])
        _take_differences(covariances[0].mT)
        self._sites = propagate(means, covariances, allowed)
        self.sweeps = self._sites.sweeps

    def __call__(self, points: Tensor) -> Tensor:
        """Values at points `(p, d)`, shape `(p,)`."""
        return torch.cat([self._information(part) for part in torch.split(points, BLOCK)])

    def _information(self, points: Tensor) -> Tensor:
        """Values at a block of points."""
        before, after = self.variances(points)
        noise = self._posterior.noise[:, None]
        fall = (before + noise).log() - (after + noise[:, None]).log().mean(1)
        return 0.5 * fall.sum(0)

    def variances(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Variances at points `(p, d)`, shape `(b, p)`, and given each optimum, `(b, M, p)`."""
        posterior, sites = self._posterior, self._sites
        mean, columns = posterior.whiten(points)
        variance = posterior.left_over(columns)
        mean[1:] *= -1.0
        cross = posterior.prior(points, self._points).baddbmm_(columns.mT, self._columns, alpha=-1)
        # To (b, M, p, N), covariances with the functionals that have sites.
        cross = cross[:, :, self._chosen].transpose(1, 2)
        _take_differences(cross[0])
        means, variances, with_optimum = _condition(mean, variance, cross, sites)

        gap = means[0] - sites.mean[0, :, -1:]
        spread = variances[0] - 2.0 * with_optimum + sites.covariance[0, :, -1:, -1]
        found = optimality(gap, spread.clamp_min(SMALLEST_VARIANCE), means[1:], variances[1:])
        curvature = torch.cat([found.curvature[None], found.constraint_curvature])
        share = variances.clone()
        share[0] -= with_optimum
        after = variances - share.square() * curvature
        after = torch.where(after > 0, after, variances)
        # A mixture may be wider than what it is made of, but knowing more is not knowing less.
        return variance, torch.minimum(after, variance[:, None])


def _take_differences(values: Tensor) -> None:
    """Subtract the last entry of the last axis from all others, in place."""
    values[..., :-1] -= values[..., -1:]


def _relevant(
    mean: Tensor, covariance: Tensor, points: Tensor, num_optima: int, max_sites: int
) -> tuple[Tensor, Tensor]:
    """Which observed points matter for which optimum.

    Args:
        mean: Posterior means at points `(n + M, d)`, shape `(b, n + M)`.
        covariance: Posterior covariances, shape `(b, n + M, n + M)`.
        points: The data, then the optima.
        num_optima: Number M of optima.
        max_sites: Greatest number of data per optimum.

    Returns:
        Indices of points `(M, N)`, data first and the optimum last; and which of these data, shape
        `(M, N - 1)`, do matter and are not the optimum itself.
    """
    count = points.shape[0] - num_optima
    optimum = torch.arange(count, count + num_optima)
    variance = covariance.diagonal(dim1=-2, dim2=-1)
    gap = mean[0, :count] - mean[0, optimum, None]
    spread = variance[0, :count] - 2.0 * covariance[0, optimum, :count] + variance[0, optimum, None]
    log_feasible = torch.special.log_ndtr(mean[1:, :count] / variance[1:, :count].sqrt()).sum(0)
    better = torch.special.log_ndtr(-gap / spread.clamp_min(SMALLEST_VARIANCE).sqrt())
    shortfall = log_feasible + better
    distance = (points[None, :count] - points[optimum, None]).abs().amax(2)
    shortfall = torch.where(distance < NEAREST, -torch.inf, shortfall)
    matters = shortfall > np.log(NEGLIGIBLE)
    size = min(max_sites, int(matters.sum(1).max()))
    order = shortfall.argsort(dim=1, descending=True, stable=True)[:, :size]
    return torch.cat([order, optimum[:, None]], dim=1), matters.gather(1, order)


def _condition(
    mean: Tensor, variance: Tensor, cross: Tensor, sites: Sites
) -> tuple[Tensor, Tensor, Tensor]:
    """Predictions given the sites.

    Args:
        mean: Means at p points, shape `(b, p)`.
        variance: Variances, shape `(b, p)`.
        cross: Covariances with the functionals of the sites, shape `(b, M, p, N)`.
        sites: The sites.

    Returns:
        Means and variances `(b, M, p)`, the latter positive, and the covariances `(M, p)` of the
        objective there and at the optimum.
    """
    pull = sites.shift - sites.precision * sites.mean
    means = mean[:, None] + (cross @ pull[..., None])[..., 0]
    weighted = cross * sites.precision[:, :, None]
    reduced = cross - weighted @ sites.covariance
    variances = variance[:, None] - (weighted * reduced).sum(-1)
    floor = SMALLEST_VARIANCE
    variances = torch.where(variances > floor, variances, variance[:, None].clamp_min(floor))
    return means, variances, reduced[0, :, :, -1]


class PESC(GlobalOptimizer):
    """Predictive entropy search with constraints; ask and tell, one point at a time."""

    max_dim = 15
    max_batch_size = 1

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        transformed: bool = False,
        num_optima: int = 10,
        max_sites: int = 50,
        recommend_every: int = 3,
        delta: float = 0.01,
    ) -> None:
        """Set up the optimizer.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the whole run.
            batch_size: Number of points asked together.
            seed: Fixes all randomness.
            transformed: Whether the models see the Gaussian copula of the objective and the bilog
                of the constraints instead of plain values.
            num_optima: Number M of sampled optima.
            max_sites: Greatest number of observed points that an optimum is compared with.
            recommend_every: Every n-th ask is for the recommended point; 0 for never.
            delta: Accepted probability that a recommended point violates a constraint.

        Raises:
            InvalidTask: An option has a value that it cannot have.
        """
        super().__init__(
            space, budget=budget, batch_size=batch_size, seed=seed, transformed=transformed
        )
        for name, value, least in (
            ("num_optima", num_optima, 1),
            ("max_sites", max_sites, 0),
            ("recommend_every", recommend_every, 0),
        ):
            if value < least:
                raise InvalidTask(f"{name} must be at least {least}, got {value!r}")
        if not 0.0 < delta < 1.0:
            raise InvalidTask(f"delta is a probability between 0 and 1, got {delta!r}")
        self._num_optima, self._max_sites = num_optima, max_sites
        self._recommend_every, self._delta = recommend_every, delta

    def _propose(self, posterior: Posterior, n: int, generator: np.random.Generator) -> Array:
        """Choose one point of the unit cube, shape `(1, d)`."""
        under_way = self._under_way()
        posterior = posterior.believe(torch.from_numpy(under_way))
        dim, incumbent = self._space.dim, self._incumbent()[None]
        avoid = np.concatenate([self._x, under_way])
        start = self._starts(generator)
        if self._recommend_every and self._asks % self._recommend_every == 0:
            point = recommend(posterior, start, self._delta, self._ground)
            if point is not None and not near(point[None], avoid)[0]:
                self._inspection = {"recommended": True}
                return point[None]
        optima = sample_optima(
            posterior, start, self._num_optima, generator, attempts=ATTEMPTS, ground=self._ground
        )
        found = optima.found
        self._inspection = {"recommended": False, "sampled_optima": found.shape[0]}
        failures = Failures(self._x, failed_rows(self._told))
        if found.shape[0] == 0:

            def acquisition(points: Tensor) -> Tensor:
                return posterior.log_feasibility(points) + failures.log_success(points)
        else:
            entropy = EntropySearch(posterior, found, self._max_sites)
            self._inspection["sweeps"] = entropy.sweeps

            def acquisition(points: Tensor) -> Tensor:
                # An evaluation that fails tells nothing.
                return entropy(points) * failures.log_success(points).exp()

        centres = np.concatenate([incumbent, found.numpy()])
        points = spread_points(512, dim, generator, centres)
        points = self._ground.settle(points, avoid, generator, centres=centres)
        point = maximise(on_arrays(acquisition), points, avoid=avoid, ground=self._ground, starts=2)
        return point[None]


def recommend(
    posterior: Posterior, points: Array, delta: float, ground: Ground = WHOLE_CUBE
) -> Array | None:
    """The point of least posterior mean where every constraint probably holds, shape `(d,)`.

    Args:
        posterior: The posteriors.
        points: Where the search may begin, shape `(p, d)`.
        delta: Accepted probability that a constraint is violated.
        ground: Where it may go.

    Returns:
        The point; None if the constraints hold with the wanted probability at none of `points`,
        or if it promises nothing better than what was observed.
    """
    certainty = -float(ndtri(delta))

    def pessimistic(where: Array) -> Array:
        mean, variance = posterior.predict(torch.from_numpy(where))
        mean[1:] += certainty * variance[1:].sqrt()
        return mean.T.numpy()

    values = pessimistic(points)
    safe = (values[:, 1:] <= 0).all(axis=1)
    if not safe.any() or posterior.violated:
        return None
    start = points[np.where(safe, values[:, 0], np.inf).argmin()]
    end = descend(with_differences(pessimistic), start, ground=ground)
    (before, *_), (after, *excess) = pessimistic(np.stack([start, end]))
    if after >= before or max(excess, default=0.0) > 0.0:
        end, after = start, before
    feasible = (posterior.y[1:] <= 0).all(0)
    best = posterior.y[0, feasible].min().item() if feasible.any() else np.inf
    return end if after < best else None
