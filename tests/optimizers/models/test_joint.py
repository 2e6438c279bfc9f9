"""Joint draws in blocks: the law of one joint draw, whatever the blocks and their order."""

import numpy as np
import pytest
import torch
from scipy.stats import chi2, norm

from cbo_suite.optimizers.models.batch_gp import BatchGP
from cbo_suite.optimizers.models.joint import JointDraws, certainty

pytestmark = pytest.mark.usefixtures("default_device")

DRAWS = 40_000


def model(seed: int = 0, dim: int = 2, count: int = 7) -> BatchGP:
    """A model of a few random observations."""
    generator = np.random.default_rng(seed)
    x = torch.tensor(generator.random((count, dim)))
    y = torch.tensor(generator.standard_normal((1, count)))
    parameters = torch.tensor([[0.3] * dim + [1.5, 1e-6]], dtype=torch.float64).log()
    return BatchGP(x, y, parameters)


def candidates(count: int, dim: int = 2, seed: int = 1) -> torch.Tensor:
    """Random candidates."""
    return torch.tensor(np.random.default_rng(seed).random((count, dim)))


def posterior(gp: BatchGP, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and covariance of the posterior."""
    mean, rows = gp.posterior(0, points)
    return mean, gp.kernels[0](points, points) - rows @ rows.mT


@pytest.mark.parametrize(
    "blocks", [[[0, 1, 2, 3, 4, 5]], [[4, 1], [0], [5, 3, 2]], [[5], [4], [0, 1, 2, 3]]]
)
def test_mean_and_covariance_of_draws(blocks: list[list[int]]) -> None:
    """Blocks of any size and order give the posterior's mean and covariance."""
    gp, points = model(), candidates(6)
    draws = JointDraws(gp, 0, points, DRAWS, np.random.default_rng(2), 3.0, 2.0)
    for block in blocks:
        draws.draw(torch.tensor(block))
    mean, covariance = posterior(gp, points)
    assert bool((draws.deviation == 0).all())
    # Whitened draws are standard normal: their sums of squares are chi-square.
    white = torch.linalg.solve_triangular(
        torch.linalg.cholesky(covariance), ((draws.value - 3.0) / 2.0 - mean[:, None]), upper=False
    )
    error = (white @ white.mT / DRAWS - torch.eye(6, dtype=torch.float64)).abs().max()
    assert float(error) < 5.0 * (2.0 / DRAWS) ** 0.5
    assert float(white.mean(1).abs().max()) < 5.0 / DRAWS**0.5
    total = float(white.square().sum())
    assert abs(norm.ppf(chi2.cdf(total, 6 * DRAWS))) < 4.0


def test_conditional_mean_and_deviation() -> None:
    """What is not drawn knows its law given what is drawn, in each draw."""
    gp, points = model(), candidates(9)
    draws = JointDraws(gp, 0, points, 3, np.random.default_rng(5), -1.0, 0.5)
    drawn, rest = torch.tensor([2, 7, 3, 4]), torch.tensor([0, 1, 5, 6, 8])
    draws.draw(drawn[:2])
    draws.draw(drawn[2:])
    draws.refresh(rest)
    mean, covariance = posterior(gp, points)
    gain = torch.linalg.solve(covariance[drawn][:, drawn], covariance[drawn][:, rest]).mT
    standard = (draws.value + 1.0) / 0.5
    expected = mean[rest, None] + gain @ (standard[drawn] - mean[drawn, None])
    variance = (covariance[rest][:, rest] - gain @ covariance[drawn][:, rest]).diagonal()
    torch.testing.assert_close(standard[rest], expected, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(draws.deviation[rest], 0.5 * variance.sqrt(), rtol=1e-6, atol=1e-9)


def test_late_refresh_equals_early_refresh() -> None:
    """A candidate may be brought up to date after each block or after all of them."""
    results = []
    for early in (True, False):
        draws = JointDraws(model(), 0, candidates(12), 2, np.random.default_rng(3))
        for block in ([0, 1], [2], [3, 4, 5]):
            draws.draw(torch.tensor(block))
            if early:
                draws.refresh(torch.arange(6, 12))
        draws.refresh(torch.arange(6, 12))
        results.append((draws.value.clone(), draws.deviation.clone()))
    for first, second in zip(*results, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-10, atol=1e-10)


def test_equal_candidates_get_equal_values() -> None:
    """A duplicate is determined by its twin: no failure, no second value."""
    points = candidates(5).repeat(3, 1)
    draws = JointDraws(model(), 0, points, 4, np.random.default_rng(0))
    draws.draw(torch.arange(5))
    draws.draw(torch.arange(15))
    torch.testing.assert_close(draws.value[:5], draws.value[5:10], rtol=1e-4, atol=1e-4)
    assert bool((draws.deviation == 0).all())


def test_a_candidate_on_a_datum_has_its_value() -> None:
    """Where the function was observed without noise, every draw agrees with the observation."""
    gp = model()
    draws = JointDraws(gp, 0, gp.x, 8, np.random.default_rng(0))
    draws.draw(torch.arange(len(gp.x)))
    assert float((draws.value - gp.y[0][:, None]).abs().max()) < 0.02


def test_drawing_twice_changes_nothing() -> None:
    """A value that is known stays."""
    draws = JointDraws(model(), 0, candidates(4), 2, np.random.default_rng(0))
    draws.draw(torch.arange(4))
    before = draws.value.clone()
    draws.draw(torch.arange(4))
    draws.refresh(torch.arange(4))
    torch.testing.assert_close(draws.value, before)


def test_certainty_bounds_the_sum_of_errors() -> None:
    """All one-sided tests together err with probability 1e-9 at most."""
    for tests in (1, 6000, 10_000_000):
        assert tests * norm.sf(certainty(tests)) == pytest.approx(1e-9, rel=1e-6)
