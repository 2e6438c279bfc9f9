"""Expectation propagation against Monte Carlo, derivatives and exact moments."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import truncnorm

from cbo_suite.optimizers.pesc.expectation_propagation import optimality, positivity, propagate

SAMPLES = 2_000_000


def random_covariance(generator: np.random.Generator, size: int) -> np.ndarray:
    """Draw a covariance matrix with variances around one."""
    root = generator.normal(size=(size, size + 1)) / np.sqrt(size + 1)
    covariance: np.ndarray = root @ root.T + 0.2 * np.eye(size)
    return covariance


@pytest.mark.slow
@pytest.mark.parametrize("num_constraints", [0, 1, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_moments_of_a_factor_match_monte_carlo(num_constraints: int, seed: int) -> None:
    """Mean of the factor within 0.002; means, 2 x 2 covariance and variances within 0.008."""
    generator = np.random.default_rng([seed, num_constraints])
    mean, covariance = generator.normal(size=2), random_covariance(generator, 2)
    means = generator.normal(0.5, 0.5, size=num_constraints)
    variances = generator.uniform(0.5, 1.5, size=num_constraints)

    pair = generator.multivariate_normal(mean, covariance, SAMPLES)
    others = means + np.sqrt(variances) * generator.normal(size=(SAMPLES, num_constraints))
    kept = (pair[:, 0] >= pair[:, 1]) | (others < 0).any(axis=1)

    direction = np.array([1.0, -1.0])
    slopes = optimality(
        torch.tensor(direction @ mean),
        torch.tensor(direction @ covariance @ direction),
        torch.from_numpy(means),
        torch.from_numpy(variances),
    )
    shared = covariance @ direction
    got_mean = mean + shared * slopes.slope.item()
    got_covariance = covariance - np.outer(shared, shared) * slopes.curvature.item()
    assert slopes.log_mean.exp().item() == pytest.approx(kept.mean(), abs=0.002)
    np.testing.assert_allclose(got_mean, pair[kept].mean(axis=0), atol=0.008)
    np.testing.assert_allclose(got_covariance, np.cov(pair[kept].T), atol=0.008)
    np.testing.assert_allclose(
        means + variances * slopes.constraint_slope.numpy(),
        others[kept].mean(axis=0),
        atol=0.008,
    )
    np.testing.assert_allclose(
        variances - variances**2 * slopes.constraint_curvature.numpy(),
        others[kept].var(axis=0),
        atol=0.008,
    )


@settings(deadline=None)
@given(
    alpha=st.floats(-8, 8),
    deviation=st.floats(0.01, 10),
    alphas=st.lists(st.floats(-8, 8), max_size=4),
)
def test_slopes_are_derivatives_of_the_log_mean(
    alpha: float, deviation: float, alphas: list[float]
) -> None:
    """First and second derivatives agree with automatic differentiation to 1e-6."""
    variance = torch.tensor(deviation**2, dtype=torch.float64)
    mean = torch.tensor(alpha * deviation, dtype=torch.float64, requires_grad=True)
    means = torch.tensor(alphas, dtype=torch.float64, requires_grad=True)
    found = optimality(mean, variance, means, torch.ones(len(alphas), dtype=torch.float64))
    slope, *others = torch.autograd.grad(
        found.log_mean, [mean, means], create_graph=True, allow_unused=True
    )
    assert found.slope.item() == pytest.approx(slope.item(), rel=1e-6, abs=1e-9)
    (second,) = torch.autograd.grad(slope, mean, retain_graph=True)
    assert found.curvature.item() == pytest.approx(-second.item(), rel=1e-5, abs=1e-6)
    if alphas:
        np.testing.assert_allclose(
            found.constraint_slope.detach(), others[0].detach(), rtol=1e-6, atol=1e-9
        )
        for k in range(len(alphas)):
            (row,) = torch.autograd.grad(others[0][k], means, retain_graph=True)
            got = found.constraint_curvature[k].item()
            assert got == pytest.approx(-row[k].item(), rel=1e-5, abs=1e-6)


def test_slopes_stay_finite_far_out() -> None:
    """Arguments of a hundred deviations give numbers, in every combination of signs."""
    far = torch.tensor([-100.0, -40.0, 0.0, 40.0, 100.0], dtype=torch.float64)
    mean, first, second = (part.flatten() for part in torch.meshgrid(far, far, far, indexing="ij"))
    one = torch.ones_like(mean)
    found = optimality(mean, one, torch.stack([first, second]), torch.stack([one, one]))
    for part in found:
        assert part.isfinite().all()
    for part in positivity(far, torch.ones_like(far)):
        assert part.isfinite().all()


def test_positivity_is_a_truncated_normal() -> None:
    """Mean and variance of a Gaussian above zero, against SciPy to 1e-9."""
    mean = np.array([-3.0, -0.5, 0.0, 1.0, 4.0])
    variance = np.array([0.3, 1.0, 2.0, 0.5, 1.5])
    deviation = np.sqrt(variance)
    exact = truncnorm(-mean / deviation, np.inf, loc=mean, scale=deviation)
    slope, curvature = positivity(torch.from_numpy(mean), torch.from_numpy(variance))
    np.testing.assert_allclose(mean + variance * slope.numpy(), exact.mean(), rtol=1e-9)
    np.testing.assert_allclose(variance - variance**2 * curvature.numpy(), exact.var(), rtol=1e-8)


def test_a_site_on_the_difference_is_the_site_on_the_pair() -> None:
    """The 2 x 2 site of the article is the scalar site times (1, -1)(1, -1)', to 1e-9."""
    generator = np.random.default_rng(4)
    direction = np.array([1.0, -1.0])
    for _ in range(20):
        mean, covariance = generator.normal(size=2), random_covariance(generator, 2)
        gap, spread = direction @ mean, direction @ covariance @ direction
        found = optimality(
            torch.tensor(gap),
            torch.tensor(spread),
            torch.tensor([generator.normal()]),
            torch.ones(1, dtype=torch.float64),
        )
        slope, curvature = found.slope.item(), found.curvature.item()
        shared = covariance @ direction
        after = covariance - np.outer(shared, shared) * curvature
        precision = np.linalg.inv(after) - np.linalg.inv(covariance)
        shift = np.linalg.solve(after, mean + shared * slope) - np.linalg.solve(covariance, mean)
        left = 1.0 - spread * curvature
        np.testing.assert_allclose(
            precision, curvature / left * np.outer(direction, direction), atol=1e-9
        )
        np.testing.assert_allclose(shift, (slope + gap * curvature) / left * direction, atol=1e-9)


def problem(
    seed: int, num_constraints: int, num_optima: int, size: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw means and covariances of functionals, and let all have factors."""
    generator = np.random.default_rng(seed)
    shape = (num_constraints + 1, num_optima)
    covariance = np.array(
        [[random_covariance(generator, size) for _ in range(shape[1])] for _ in range(shape[0])]
    )
    mean = generator.normal(0.5, size=(*shape, size))
    allowed = torch.ones(num_optima, size - 1, dtype=torch.bool)
    return torch.from_numpy(mean), torch.from_numpy(covariance), allowed


def test_without_data_the_constraints_are_truncated() -> None:
    """One factor per constraint makes the approximation exact, to 1e-9; f(x*) is untouched."""
    mean, covariance, allowed = problem(0, 2, 3, 1)
    sites = propagate(mean, covariance, allowed)
    deviation = covariance[1:, :, 0, 0].sqrt().numpy()
    centre = mean[1:, :, 0].numpy()
    exact = truncnorm(-centre / deviation, np.inf, loc=centre, scale=deviation)
    np.testing.assert_allclose(sites.mean[1:, :, 0], exact.mean(), rtol=1e-9)
    np.testing.assert_allclose(sites.covariance[1:, :, 0, 0], exact.var(), rtol=1e-8)
    assert torch.equal(sites.mean[0], mean[0])


@pytest.mark.parametrize("num_constraints", [0, 2])
def test_marginals_match_monte_carlo(num_constraints: int) -> None:
    """Means and variances given all factors together, within 0.1 of a deviation.

    The factors are not Gaussian, so expectation propagation is not exact.
    """
    mean, covariance, allowed = problem(2, num_constraints, 1, 4)
    # Mostly true, so that enough draws are left.
    mean = mean.abs()
    sites = propagate(mean, covariance, allowed)
    generator = np.random.default_rng(1)
    draws = np.array(
        [
            generator.multivariate_normal(
                mean[t, 0].numpy(), covariance[t, 0].numpy(), SAMPLES // 2
            )
            for t in range(num_constraints + 1)
        ]
    )
    better = (draws[0, :, :-1] < 0) & (draws[1:, :, :-1] >= 0).all(axis=0)
    kept = draws[:, ~better.any(axis=1) & (draws[1:, :, -1] >= 0).all(axis=0)]
    assert kept.shape[1] > 10_000
    np.testing.assert_allclose(sites.mean[:, 0], kept.mean(axis=1), atol=0.1)
    variance = sites.covariance[:, 0].diagonal(dim1=-2, dim2=-1)
    np.testing.assert_allclose(variance, kept.var(axis=1), atol=0.1)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 8), num_constraints=st.integers(0, 4))
def test_covariances_stay_positive_definite(seed: int, size: int, num_constraints: int) -> None:
    """Whatever the factors, the marginals are Gaussians."""
    sites = propagate(*problem(seed, num_constraints, 3, size))
    assert (torch.linalg.eigvalsh(sites.covariance) > 0).all()
    assert sites.mean.isfinite().all()


def test_singular_covariances_are_repaired() -> None:
    """Functionals that are copies of each other get the same marginals, to 1e-3."""
    mean, covariance, allowed = problem(3, 1, 2, 4)
    mean[..., 1], covariance[..., 1, :] = mean[..., 0], covariance[..., 0, :]
    covariance[..., :, 1] = covariance[..., :, 0]
    assert (torch.linalg.cholesky_ex(covariance).info != 0).any()
    sites = propagate(mean, covariance, allowed)
    np.testing.assert_allclose(sites.mean[..., 1], sites.mean[..., 0], atol=1e-3)


def test_points_without_a_factor_have_no_site() -> None:
    """What is not allowed keeps its sites at zero."""
    mean, covariance, allowed = problem(3, 1, 2, 4)
    allowed[0, 1] = False
    sites = propagate(mean, covariance, allowed)
    assert (sites.precision[:, 0, 1] == 0).all()
    assert (sites.shift[:, 0, 1] == 0).all()
    assert (sites.precision[0, 0, [0, 2]] != 0).all()
