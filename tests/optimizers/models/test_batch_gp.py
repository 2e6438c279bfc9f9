"""The batched Gaussian processes against GPyTorch on the same hyperparameters, to 1e-8."""

import math
import warnings
from contextlib import AbstractContextManager

import numpy as np
import pytest
import torch

from cbo_suite.optimizers.models.batch_gp import BatchGP
from cbo_suite.optimizers.models.likelihood import horseshoe, negative_log_posterior

with warnings.catch_warnings():
    # GPyTorch is made with torch.jit.script, which PyTorch calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import gpytorch

DOUBLE = torch.float64


def data(models: int, count: int, dim: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Inputs, outputs and log hyperparameters of several models."""
    generator = np.random.default_rng(seed)
    x = torch.tensor(generator.random((count, dim)))
    y = torch.tensor(generator.standard_normal((models, count)))
    parameters = torch.tensor(generator.uniform(-1.5, 0.7, (models, dim + 2)))
    parameters[:, -1] = torch.tensor(generator.uniform(math.log(1e-6), math.log(1e-2), models))
    return x, y, parameters


class Reference(gpytorch.models.ExactGP):  # type: ignore[misc]
    """One exact GP of GPyTorch with given hyperparameters."""

    def __init__(
        self, x: torch.Tensor, y: torch.Tensor, row: torch.Tensor, mean: torch.Tensor
    ) -> None:
        """Set the hyperparameters of `row` (d + 2,) and the constant mean."""
        free = gpytorch.constraints.GreaterThan(1e-12)
        likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=free)
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        matern = gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=x.shape[1])
        self.covar_module = gpytorch.kernels.ScaleKernel(matern)
        self.to(DOUBLE)
        matern.lengthscale = row[:-2].exp()
        self.covar_module.outputscale = row[-2].exp()
        likelihood.noise = row[-1].exp()
        self.mean_module.constant.data.fill_(float(mean))

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        """The prior at `x`."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def exact() -> AbstractContextManager[None]:
    """Settings under which GPyTorch uses Cholesky factors without approximations."""
    settings: AbstractContextManager[None] = gpytorch.settings.fast_computations(
        False, False, False
    )
    return settings


def references(
    x: torch.Tensor, y: torch.Tensor, parameters: torch.Tensor, gp: BatchGP
) -> list[Reference]:
    """The same models in GPyTorch."""
    return [
        Reference(x, row, theta, mean)
        for row, theta, mean in zip(y, parameters, gp.mean, strict=True)
    ]


@pytest.mark.parametrize(("count", "dim"), [(1, 1), (12, 3), (60, 10)])
def test_log_likelihood_agrees_with_gpytorch(count: int, dim: int) -> None:
    """The log marginal likelihood at the most likely constant mean."""
    x, y, parameters = data(3, count, dim)
    gp = BatchGP(x, y, parameters)
    with exact():
        expected = [
            float(model.likelihood(model.forward(x)).log_prob(row).detach())
            for model, row in zip(references(x, y, parameters, gp), y, strict=True)
        ]
    np.testing.assert_allclose(gp.log_likelihood().numpy(), expected, rtol=1e-8, atol=1e-8)


def test_constant_mean_is_the_most_likely_one() -> None:
    """The derivative of GPyTorch's likelihood by the constant mean vanishes there."""
    x, y, parameters = data(2, 25, 4)
    gp = BatchGP(x, y, parameters)
    for model, row in zip(references(x, y, parameters, gp), y, strict=True):
        with exact():
            model.likelihood(model.forward(x)).log_prob(row).backward()
        assert abs(float(model.mean_module.constant.grad)) < 1e-6


def test_gradient_agrees_with_gpytorch() -> None:
    """Closed-form derivatives by all log hyperparameters, the prior on the noise included."""
    x, y, parameters = data(3, 40, 6)
    value, gradient = negative_log_posterior(parameters, x, y)
    gp = BatchGP(x, y, parameters)
    for index, model in enumerate(references(x, y, parameters, gp)):
        with exact():
            objective = -model.likelihood(model.forward(x)).log_prob(y[index])
        prior = gpytorch.priors.HorseshoePrior(torch.tensor(0.1, dtype=DOUBLE))
        objective = objective - prior.log_prob(model.likelihood.noise).sum()
        kernel, noise = model.covar_module, model.likelihood.noise_covar
        by_log = []
        for owner, name in (
            (kernel.base_kernel, "lengthscale"),
            (kernel, "outputscale"),
            (noise, "noise"),
        ):
            raw, scale = getattr(owner, f"raw_{name}"), getattr(owner, name)
            (by_raw,) = torch.autograd.grad(objective, raw, retain_graph=True)
            (stretch,) = torch.autograd.grad(scale.sum(), raw)
            by_log.append((by_raw / stretch * scale).detach().reshape(-1))
        np.testing.assert_allclose(float(value[index]), float(objective.detach()), rtol=1e-8)
        np.testing.assert_allclose(
            gradient[index].numpy(), torch.cat(by_log).numpy(), rtol=1e-8, atol=1e-8
        )


def test_prediction_agrees_with_gpytorch() -> None:
    """Posterior mean and variance of the noise-free functions, also close to the data."""
    x, y, parameters = data(3, 50, 5)
    gp = BatchGP(x, y, parameters)
    points = torch.cat([torch.tensor(np.random.default_rng(1).random((200, 5))), x[:10] + 1e-3])
    mean, variance = gp.predict(points)
    for index, model in enumerate(references(x, y, parameters, gp)):
        model.eval()
        with exact(), torch.no_grad():
            posterior = model(points)
        np.testing.assert_allclose(mean[index], posterior.mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(variance[index], posterior.variance, rtol=1e-8, atol=1e-8)


def test_prediction_in_chunks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks bound the memory and change nothing."""
    x, y, parameters = data(2, 30, 3)
    gp = BatchGP(x, y, parameters)
    points = torch.tensor(np.random.default_rng(2).random((50, 3)))
    whole = gp.predict(points)
    monkeypatch.setattr("cbo_suite.optimizers.models.batch_gp.CHUNK_ELEMENTS", 7 * 30)
    for part, expected in zip(gp.predict(points), whole, strict=True):
        torch.testing.assert_close(part, expected, rtol=1e-12, atol=1e-12)


def test_posterior_rows_make_covariances() -> None:
    """Prior covariance less inner products of rows is GPyTorch's posterior covariance."""
    x, y, parameters = data(1, 20, 2)
    gp = BatchGP(x, y, parameters)
    points = torch.tensor(np.random.default_rng(3).random((15, 2)))
    _, rows = gp.posterior(0, points)
    covariance = gp.kernels[0](points, points) - rows @ rows.mT
    model = references(x, y, parameters, gp)[0]
    model.eval()
    with exact(), torch.no_grad():
        expected = model(points).covariance_matrix
    np.testing.assert_allclose(covariance, expected, rtol=1e-8, atol=1e-8)


def test_horseshoe_agrees_with_gpytorch() -> None:
    """Log density up to GPyTorch's own constant, and its derivative by log noise."""
    noise = torch.tensor([1e-8, 1e-4, 0.03, 1.0, 20.0], dtype=DOUBLE)
    prior = gpytorch.priors.HorseshoePrior(torch.tensor(0.1, dtype=DOUBLE))
    value, slope = horseshoe(noise)
    np.testing.assert_allclose(value, prior.log_prob(noise), rtol=1e-12)
    step = 1e-6
    above, below = (horseshoe(noise * math.exp(sign * step))[0] for sign in (1, -1))
    np.testing.assert_allclose(slope, (above - below) / (2 * step), rtol=1e-6)


def test_float32_is_close() -> None:
    """Single precision works and agrees to what it can hold."""
    x, y, parameters = data(2, 30, 3)
    parameters[:, -1] = math.log(1e-2)
    single = BatchGP(x.float(), y.float(), parameters.float()).predict(x[:5].float() + 0.01)
    double = BatchGP(x, y, parameters).predict(x[:5] + 0.01)
    for part, expected in zip(single, double, strict=True):
        assert part.dtype == torch.float32
        np.testing.assert_allclose(part, expected, atol=2e-3)
