"""Constrained expected improvement: accurate far into the tails, and in batches."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from cbo_suite.optimizers.models.batch_gp import BatchGP
from cbo_suite.optimizers.models.improvement import log_improvement
from cbo_suite.optimizers.models.joint import JointDraws
from cbo_suite.optimizers.scbo.improvement import log_score, select


def posterior(index: int, draws: int = 1) -> JointDraws:
    """A posterior over 60 candidates in two variables."""
    generator = np.random.default_rng(0)
    x = torch.tensor(generator.random((8, 2)))
    y = torch.tensor(generator.standard_normal((2, 8)))
    parameters = torch.tensor([[0.4, 0.4, 1.0, 1e-6]] * 2, dtype=torch.float64).log()
    candidates = torch.tensor(generator.random((60, 2)))
    return JointDraws(BatchGP(x, y, parameters), index, candidates, draws, None)


@pytest.mark.parametrize("u", [-30.0, -8.0, -3.0, -1.0001, -0.9999, 0.0, 2.0, 12.0])
def test_log_improvement_against_numerical_integration(u: float) -> None:
    """The mean of max(u - z, 0) over standard normal z, also where it is 1e-200."""
    shift = min(u, 0.0)
    # The factor exp(-shift^2 / 2) is taken out, so that the integral does not underflow.
    integral, _ = quad(
        lambda t: t * math.exp(-0.5 * (u - t) ** 2 + 0.5 * shift**2),
        0.0,
        60.0,
        epsabs=0,
        limit=500,
        points=[max(u, 0.0), max(u, 0.0) + 1.0, 10.0],
    )
    expected = math.log(integral) - 0.5 * shift**2 - 0.5 * math.log(2.0 * math.pi)
    result = float(log_improvement(torch.tensor([u], dtype=torch.float64)))
    assert result == pytest.approx(expected, abs=1e-7)


def test_log_improvement_is_finite_and_increasing() -> None:
    """No gap and no bump from -1e8 deviations on."""
    grid = -torch.logspace(8, -3, 400, dtype=torch.float64)
    values = log_improvement(grid)
    assert bool(values.isfinite().all())
    assert bool((values.diff() > 0).all())


def test_score_multiplies_improvement_and_feasibility() -> None:
    """Log of EI times the probabilities that the constraints hold."""
    objective, constraint = posterior(0), posterior(1)
    mean, deviation = objective.value[:, 0].numpy(), objective.deviation.numpy()
    gap = (0.3 - mean) / deviation
    improvement = deviation * (gap * norm.cdf(gap) + norm.pdf(gap))
    feasible = norm.cdf(-constraint.value[:, 0].numpy() / constraint.deviation.numpy())
    score = log_score(objective, [constraint], 0.3)
    np.testing.assert_allclose(score, np.log(improvement * feasible), rtol=1e-8)


def test_without_a_feasible_value_feasibility_decides() -> None:
    """The most probably feasible candidate is chosen."""
    constraint = posterior(1)
    feasible = norm.cdf(-constraint.value[:, 0].numpy() / constraint.deviation.numpy())
    assert int(select(posterior(0), [constraint], None, 1)[0]) == int(feasible.argmax())


def test_batch_is_greedy_with_believed_means() -> None:
    """Each further choice is the best after the others were observed at their means."""
    chosen = select(posterior(0), [posterior(1)], 0.0, 5).tolist()
    assert len(set(chosen)) == 5
    objective, constraint = posterior(0), posterior(1)
    for position, index in enumerate(chosen):
        score = log_score(objective, [constraint], 0.0)
        score[chosen[:position]] = -torch.inf
        assert int(score.argmax()) == index
        for one in (objective, constraint):
            one.draw(torch.tensor([index]))
            one.refresh(torch.arange(60))


def test_more_points_than_have_a_finite_score() -> None:
    """Candidates are different even where every score is minus infinity."""
    flat = posterior(0)
    flat.value = torch.full_like(flat.value, torch.inf)
    assert len(set(select(flat, [], 0.0, 4).tolist())) == 4
