"""Kernels, likelihood, conditioning and draws on every device: shapes, places and values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from cbo_suite.optimizers.models.batch_gp import BatchGP
from cbo_suite.optimizers.models.cholesky import extend, factorise
from cbo_suite.optimizers.models.fit import (
    NOISE_FREE,
    default_parameters,
    restart_parameters,
    revive,
)
from cbo_suite.optimizers.models.joint import JointDraws
from cbo_suite.optimizers.models.kernel import covariance, scale_points
from cbo_suite.optimizers.models.likelihood import negative_log_posterior
from cbo_suite.optimizers.models.pathwise import PathwiseDraws
from cbo_suite.optimizers.models.posterior import Posterior
from cbo_suite.optimizers.models.random_functions import RandomFunctions
from cbo_suite.optimizers.models.surrogate import Model
from cbo_suite.optimizers.shared.believer import Beliefs, log_constrained_improvement
from cbo_suite.protocols import Array
from tests.optimizers.devices import Card

MODELS, DATA, DIM, POINTS = 3, 12, 2, 40


class Arrays(NamedTuple):
    """Data of three models in two variables."""

    x: Array
    y: Array
    parameters: Array
    points: Array


def arrays() -> Arrays:
    """Some data, log hyperparameters and further points."""
    generator = np.random.default_rng(5)
    parameters = np.log([[0.4, 0.7, 1.5, 1e-2], [0.9, 0.3, 0.8, 1e-3], [0.5, 0.5, 1.0, 0.1]])
    return Arrays(
        generator.random((DATA, DIM)),
        generator.standard_normal((MODELS, DATA)),
        parameters,
        generator.random((POINTS, DIM)),
    )


def tensors(device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same on a device."""
    x, y, parameters, points = (torch.as_tensor(part, device=device) for part in arrays())
    return x, y, parameters, points


def matern(left: Array, right: Array, parameters: Array) -> Array:
    """Covariances of one model, by differences of all pairs of points."""
    difference = (left[:, None] - right[None]) / np.exp(parameters[:-2])
    t = np.sqrt(5.0 * (difference**2).sum(axis=2))
    result: Array = np.exp(parameters[-2]) * (1.0 + t + t**2 / 3.0) * np.exp(-t)
    return result


def exact(parameters: Array, y: Array) -> tuple[float, Array, Array, float]:
    """Mean, posterior means and variances at the points, and log likelihood of one model."""
    data = arrays()
    matrix = matern(data.x, data.x, parameters) + np.exp(parameters[-1]) * np.eye(DATA)
    inverse = np.linalg.inv(matrix)
    mean = float((inverse @ y).sum() / inverse.sum())
    cross = matern(data.x, data.points, parameters)
    variance = np.exp(parameters[-2]) - np.einsum("np,nm,mp->p", cross, inverse, cross)
    likelihood = multivariate_normal.logpdf(y - mean, cov=matrix)
    return mean, mean + cross.T @ inverse @ (y - mean), variance, float(likelihood)


def penalised(parameters: Array, y: Array) -> float:
    """What a fit minimises for one model, with the bounds of the horseshoe written out."""
    ratio = (0.1 / np.exp(parameters[-1])) ** 2
    constant = 1.0 / np.sqrt(2.0 * np.pi**3)
    lower, upper = constant / 2.0 * np.log1p(4.0 * ratio), constant * np.log1p(2.0 * ratio)
    return -exact(parameters, y)[3] - float(np.log((lower + upper) / 2.0))


def assert_is(found: Tensor, device: str, expected: Array, tolerance: float = 1e-8) -> None:
    """Check the place and the shape of a tensor, and its values if it has any."""
    assert found.device.type == device
    assert tuple(found.shape) == np.shape(expected)
    if device != "meta":
        np.testing.assert_allclose(found.cpu().numpy(), expected, tolerance, tolerance)


def test_kernels(device: str) -> None:
    """A batch of kernel matrices is that of all pairs of points."""
    x, _, parameters, points = tensors(device)
    scale = parameters[:, :DIM].exp()
    scaled = scale_points(x, scale), scale_points(points, scale)
    data = arrays()
    expected = np.stack([matern(data.x, data.points, row) for row in data.parameters])
    assert_is(covariance(*scaled, parameters[:, DIM].exp()), device, expected)


def test_likelihood_and_gradient(device: str) -> None:
    """The value is that of SciPy's normal law; the gradient is that of its differences."""
    x, y, parameters, _ = tensors(device)
    found = negative_log_posterior(parameters, x, y)
    data, width = arrays(), 1e-5
    rows = list(zip(data.parameters, data.y, strict=True))
    steps = width * np.eye(DIM + 2)
    gradient = [
        [(penalised(row + step, y) - penalised(row - step, y)) / (2 * width) for step in steps]
        for row, y in rows
    ]
    assert_is(found.value, device, np.array([penalised(*row) for row in rows]))
    assert_is(found.gradient, device, np.array(gradient), 1e-5)
    value_only = negative_log_posterior(parameters, x, y, value_only=True)
    assert_is(value_only.value, device, np.array([penalised(*row) for row in rows]))


def test_conditioning(device: str) -> None:
    """Means, variances and likelihood follow from the inverse kernel matrix."""
    x, y, parameters, points = tensors(device)
    gp = BatchGP(x, y, parameters)
    data = arrays()
    expected = [exact(*row) for row in zip(data.parameters, data.y, strict=True)]
    constants, means, variances, likelihoods = (
        np.stack(part) for part in zip(*expected, strict=True)
    )
    mean, variance = gp.predict(points)
    assert_is(gp.mean, device, constants)
    assert_is(mean, device, means)
    assert_is(variance, device, variances)
    assert_is(gp.log_likelihood(), device, likelihoods)
    assert_is(gp.part(np.arange(4)).x, device, data.x[:4])


def test_factors_grow(device: str) -> None:
    """A factor that was extended is that of all data."""
    x, _, parameters, _ = tensors(device)
    kernel = BatchGP(x, x.new_zeros(MODELS, DATA), parameters).kernels[0]
    data = arrays()
    row = data.parameters[0]
    matrix = matern(data.x, data.x, row) + np.exp(row[-1]) * np.eye(DATA)
    grown = extend(kernel, factorise(kernel, x[:7]), x)
    assert_is(grown.lower, device, np.linalg.cholesky(matrix))


@pytest.mark.parametrize("kind", [JointDraws, PathwiseDraws])
def test_draws(device: str, kind: type[JointDraws] | type[PathwiseDraws]) -> None:
    """Values and deviations of all candidates are on the device; what was drawn is known."""
    x, y, parameters, points = tensors(device)
    draws = kind(BatchGP(x, y, parameters), 1, points, 4, np.random.default_rng(0), 2.0, 3.0)
    ids = torch.arange(10, 20, device=device)
    draws.draw(ids)
    draws.refresh(torch.arange(POINTS, device=device))
    assert draws.value.device.type == draws.deviation.device.type == device
    assert (draws.value.shape, draws.deviation.shape) == ((POINTS, 4), (POINTS,))
    assert_is(draws.deviation[ids], device, np.zeros(10))


def test_random_functions(device: str) -> None:
    """A draw agrees with a posterior that has next to no noise at the data."""
    x, y, parameters, points = tensors(device)
    parameters[:, -1] = float(np.log(1e-8))
    model = Model(BatchGP(x, y, parameters), np.zeros(MODELS), np.ones(MODELS), [])
    posterior = Posterior.of(model)
    functions = RandomFunctions(posterior, np.random.default_rng(0))
    coefficients = functions.draw(5, np.random.default_rng(1))
    values = functions.values(functions.basis(x), coefficients)
    assert_is(values, device, np.repeat(arrays().y[:, :, None], 5, axis=2), 0.01)
    value, gradient = functions.value_and_gradient(x[0], coefficients[:, :, 0])
    assert_is(value, device, arrays().y[:, 0], 0.01)
    assert (gradient.device.type, gradient.shape) == (device, (MODELS, DIM))
    believed = posterior.believe(points[:3])
    assert_is(believed.y[:, :DATA], device, arrays().y)


def test_acquisition(device: str) -> None:
    """The acquisition function of believed posteriors is on their device."""
    x, y, parameters, points = tensors(device)
    model = Model(BatchGP(x, y, parameters), np.zeros(MODELS), np.ones(MODELS), [])
    beliefs = Beliefs(model, points)
    data = arrays()
    expected = [exact(*row) for row in zip(data.parameters, data.y, strict=True)]
    assert_is(beliefs.mean, device, np.stack([mean for _, mean, _, _ in expected]))
    deviation = np.sqrt(np.stack([variance for _, _, variance, _ in expected]))
    assert_is(beliefs.deviation, device, deviation, 1e-6)
    score = log_constrained_improvement(beliefs.mean, beliefs.deviation, -0.5)
    assert (score.device.type, score.shape) == (device, (POINTS,))


def test_where_fits_begin(device: str) -> None:
    """Bounds and the hyperparameters that fits begin with are on the device."""
    x, _, parameters, _ = tensors(device)
    lower, upper = NOISE_FREE.tensors(x, DIM)
    assert_is(lower, device, np.log([0.005, 0.005, 0.05, 1e-8]))
    assert_is(upper, device, np.log([4.0, 4.0, 20.0, 1e-3]))
    default = default_parameters(MODELS, DIM, NOISE_FREE, x)
    assert_is(default, device, np.log([[0.5, 0.5, 1.0, 10**-5.5]] * MODELS))
    for begin in (revive(parameters, x), restart_parameters(parameters, NOISE_FREE)):
        assert (begin.device.type, begin.shape) == (device, (MODELS, DIM + 2))


@pytest.mark.filterwarnings("ignore:a kernel matrix has no Cholesky factor")
def test_what_has_no_factor_stays_on_the_card(card: Card) -> None:
    """What takes the place of a broken factor is on the device too."""
    with card.use():
        x, y, parameters, _ = tensors("cuda")
        parameters[0] = torch.nan
        found = negative_log_posterior(parameters, x, y)
        assert found.value.isinf().tolist() == [True, False, False]
        gp = BatchGP(x, y, parameters)
        assert {factor.lower.device.type for factor in gp.factors} == {"cuda"}
