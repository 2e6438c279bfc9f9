"""Random functions from the posteriors, and their constrained minima."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cbo_suite.optimizers.models.random_functions import RandomFunctions
from cbo_suite.optimizers.shared.sampled_optima import SampledOptima, sample_optima
from cbo_suite.optimizers.shared.search import spread_points
from tests.optimizers.surrogates import data, fit_posterior, random_points


def test_gradients_are_those_of_the_values() -> None:
    """Values at a point agree with those of the basis, gradients with differences to 1e-5."""
    posterior = fit_posterior(*data(20, 2, dim=3))
    generator = np.random.default_rng(0)
    functions = RandomFunctions(posterior, generator)
    coefficients = functions.draw(2, generator)
    point, width = random_points(1, dim=3)[0], 1e-5
    steps = torch.cat([point[None], point + width * torch.eye(3), point - width * torch.eye(3)])
    values = functions.values(functions.basis(steps), coefficients)
    for k in range(2):
        value, gradient = functions.value_and_gradient(point, coefficients[:, :, k])
        np.testing.assert_allclose(value, values[:, 0, k], rtol=1e-9, atol=1e-9)
        differences = (values[:, 1:4, k] - values[:, 4:, k]) / (2 * width)
        np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-5)


def test_draws_have_the_law_of_the_posterior() -> None:
    """Mean and covariance at four points within 0.06 signal variances, from 6000 draws."""
    posterior = fit_posterior(*data(8, 1))
    points = random_points(4)
    generator = np.random.default_rng(3)
    draws = []
    # Frequencies are shared by the draws of one basis, so many bases are needed.
    for _ in range(60):
        functions = RandomFunctions(posterior, generator, num_frequencies=200)
        draws.append(functions.values(functions.basis(points), functions.draw(100, generator)))
    values = torch.cat(draws, dim=2)
    mean, columns = posterior.whiten(points)
    covariance = posterior.prior(points, points) - columns.mT @ columns
    for t in range(2):
        scale = posterior.variance[t].item()
        np.testing.assert_allclose(values[t].mean(1), mean[t], atol=0.06 * scale**0.5)
        np.testing.assert_allclose(torch.cov(values[t]), covariance[t], atol=0.06 * scale)


def test_draws_pass_through_the_data() -> None:
    """At the data all draws agree with the observations up to the noise."""
    posterior = fit_posterior(*data(12, 1))
    generator = np.random.default_rng(0)
    functions = RandomFunctions(posterior, generator)
    values = functions.values(functions.basis(posterior.x), functions.draw(20, generator))
    deviation = posterior.noise.sqrt()[:, None, None]
    assert ((values - posterior.y[:, :, None]).abs() <= 6 * deviation + 1e-4).all()


def optima_of(num_constraints: int, seed: int = 0, attempts: int = 1) -> SampledOptima:
    """Sample eight optima given twelve data."""
    posterior = fit_posterior(*data(12, num_constraints, seed=seed))
    generator = np.random.default_rng(seed)
    points = spread_points(128, 2, generator)
    return sample_optima(posterior, points, 8, generator, attempts=attempts)


@pytest.mark.parametrize("num_constraints", [0, 1, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_optima_are_feasible_and_best_under_their_functions(
    num_constraints: int, seed: int
) -> None:
    """Every optimum satisfies its constraints, and no feasible point of a fine set is far better.

    The search is local from 128 points, so 0.05 of a deviation of the objective is left open.
    """
    optima = optima_of(num_constraints, seed)
    there = optima.functions.values(optima.functions.basis(optima.x), optima.coefficients)
    fine = random_points(2000, seed=9)
    everywhere = optima.functions.values(optima.functions.basis(fine), optima.coefficients)
    assert optima.objective.isfinite().any()
    for k in optima.objective.isfinite().nonzero()[:, 0].tolist():
        assert (there[1:, k, k] <= 1e-9).all()
        assert there[0, k, k].item() == pytest.approx(optima.objective[k].item(), abs=1e-8)
        feasible = (everywhere[1:, :, k] <= 0).all(0)
        assert (everywhere[0, feasible, k] >= optima.objective[k] - 0.05).all()
    assert ((optima.x >= 0) & (optima.x <= 1)).all()


def test_the_local_search_improves_on_the_points() -> None:
    """Optima are strictly better than the points that the search began with."""
    posterior = fit_posterior(*data(12, 1))
    points = spread_points(64, 2, np.random.default_rng(0))
    optima = sample_optima(posterior, points, 8, np.random.default_rng(0))
    values = optima.functions.values(
        optima.functions.basis(torch.from_numpy(points)), optima.coefficients
    )
    coarse = torch.where(values[1] <= 0, values[0], torch.inf).amin(0)
    found = optima.objective.isfinite()
    assert found.any()
    assert (optima.objective[found] <= coarse[found]).all()
    assert (optima.objective[found] < coarse[found] - 1e-4).any()


def test_draws_without_a_feasible_point_have_no_optimum() -> None:
    """Where constraints hold nowhere the value is infinite; redrawing cannot help."""
    x, objective, constraints = data(12, 1)
    posterior = fit_posterior(x, objective, constraints + 50.0)
    generator = np.random.default_rng(0)
    optima = sample_optima(posterior, x, 5, generator, attempts=3)
    assert optima.objective.isinf().all()
    assert optima.found.shape == (0, 2)


def test_draws_without_a_feasible_point_are_replaced() -> None:
    """With more attempts more draws have an optimum."""
    x, objective, constraints = data(6, 1)
    posterior = fit_posterior(x, objective, constraints - constraints.min() + 0.1)
    points = random_points(64).numpy()
    counts = [
        len(sample_optima(posterior, points, 20, np.random.default_rng(0), attempts=attempts).found)
        for attempts in (1, 10)
    ]
    assert counts[0] < counts[1]


def test_a_violated_constant_leaves_no_optimum() -> None:
    """A constraint that was violated by the same value everywhere holds nowhere."""
    x, objective, _ = data(12, 0)
    posterior = fit_posterior(x, objective, np.ones((12, 1)))
    optima = sample_optima(posterior, x, 5, np.random.default_rng(0), attempts=3)
    assert optima.objective.isinf().all()
