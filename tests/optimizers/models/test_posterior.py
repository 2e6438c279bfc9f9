"""Posteriors of objective and constraints as one batch."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import norm

from tests.optimizers.surrogates import data, fit_posterior, random_points


def test_signs_and_values_are_those_of_the_data() -> None:
    """At the data a constraint has the observed sign, and its value up to a positive factor."""
    x, objective, constraints = data(25, 3)
    posterior = fit_posterior(x, objective, constraints)
    mean, variance = posterior.predict(posterior.x)
    scaled = constraints.T / constraints.std(axis=0)[:, None]
    np.testing.assert_allclose(posterior.y[1:], scaled, atol=1e-9)
    np.testing.assert_allclose(mean[1:], scaled, atol=0.05)
    standardised = (objective - objective.mean()) / objective.std()
    np.testing.assert_allclose(posterior.y[0], standardised, atol=1e-9)
    assert (variance < 1e-3 * posterior.variance[:, None]).all()


def test_prediction_is_that_of_dense_algebra() -> None:
    """Means and variances agree with the textbook formulas to 1e-6."""
    posterior = fit_posterior(*data(15, 2))
    points = random_points(7)
    mean, variance = posterior.predict(points)
    for t in range(3):
        noisy = posterior.prior(posterior.x, posterior.x)[t] + posterior.noise[t] * torch.eye(15)
        cross = posterior.prior(points, posterior.x)[t]
        right = posterior.y[t] - posterior.constant[t]
        np.testing.assert_allclose(
            mean[t], posterior.constant[t] + cross @ torch.linalg.solve(noisy, right), atol=1e-6
        )
        explained = (cross * torch.linalg.solve(noisy, cross.T).T).sum(1)
        np.testing.assert_allclose(variance[t], posterior.variance[t] - explained, atol=1e-6)


def test_believing_changes_variances_only() -> None:
    """Means stay to 1e-9; variances fall everywhere and vanish at the believed points."""
    posterior = fit_posterior(*data(15, 2))
    believed = random_points(2, seed=5)
    after = posterior.believe(believed)
    points = random_points(30)
    (mean, variance), (mean_after, variance_after) = (
        posterior.predict(points),
        after.predict(points),
    )
    np.testing.assert_allclose(mean_after, mean, atol=1e-9)
    assert (variance_after <= variance + 1e-9).all()
    assert (variance_after < 0.9 * variance).any()
    assert (after.predict(believed)[1] < 2 * posterior.noise[:, None] + 1e-9).all()
    np.testing.assert_allclose(
        torch.cholesky_solve((after.y - after.constant[:, None])[..., None], after.lower)[..., 0],
        after.weights,
        atol=1e-3,
    )
    assert posterior.believe(believed[:0]) is posterior


def test_feasibility_is_a_product_of_probabilities() -> None:
    """The log probability of feasibility agrees with SciPy; without constraints it is zero."""
    posterior = fit_posterior(*data(15, 2))
    points = random_points(9)
    mean, variance = (part.numpy() for part in posterior.predict(points))
    expected = norm.logcdf(-mean[1:] / np.sqrt(variance[1:])).sum(axis=0)
    np.testing.assert_allclose(posterior.log_feasibility(points), expected, rtol=1e-6)
    assert (fit_posterior(*data(15, 0)).log_feasibility(points) == 0).all()


def test_constant_constraints_are_no_models() -> None:
    """A constraint with one value is left out; it is remembered if it is violated."""
    x, objective, _ = data(10, 0)
    for value in (-2.0, 3.0):
        posterior = fit_posterior(x, objective, np.full((10, 1), value))
        assert len(posterior.variance) == 1
        assert posterior.violated == (value > 0)
