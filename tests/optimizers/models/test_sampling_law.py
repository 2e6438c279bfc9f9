"""Full joint draws, draws that end early and random functions select with the same law.

The law of a selection is compared by what it decides: which candidate is chosen, its sampled
objective, its posterior mean and deviation, and how many candidates were sampled feasible. The
problems have two and ten variables, the trust regions are large and small.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy.stats import chi2_contingency, ks_2samp

from cbo_suite.optimizers.models.batch_gp import BatchGP
from cbo_suite.optimizers.models.joint import JointDraws, certainty
from cbo_suite.optimizers.models.pathwise import NUM_FREQUENCIES, PathwiseDraws, frequencies
from cbo_suite.optimizers.scbo.candidates import sobol
from cbo_suite.optimizers.scbo.thompson import Draws, select

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("default_device")]

SELECTIONS = 600
# Selections by draws that share one set of random features, as those of a batch do.
SHARED = 4000
# (number, dimension, generator) -> frequencies and weights
Spectrum = Callable[[int, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]
CANDIDATES = 150
# None of a hundred tests may fall below this; by chance one does in 100 choices of all seeds.
LEAST_PROBABILITY = 1e-4


class Setting(NamedTuple):
    """Models of an objective and a constraint, and candidates in a trust region."""

    gp: BatchGP
    candidates: torch.Tensor


class Choices(NamedTuple):
    """What many selections chose."""

    chosen: np.ndarray
    objective: np.ndarray
    feasible: np.ndarray


def setting(dim: int, length: float) -> Setting:
    """Data spread over the cube and around the centre, as a trust region gathers them."""
    generator = np.random.default_rng(dim)
    spread = generator.random((5 * dim, dim))
    near = 0.5 + 0.3 * (generator.random((5 * dim, dim)) - 0.5)
    x = np.vstack([spread, near])
    objective = np.sin(3.0 * x).sum(axis=1)
    constraint = np.cos(5.0 * x[:, 0]) + x[:, 1:].mean(axis=1) - 0.6
    y = np.stack([objective, constraint])
    y = (y - y.mean(axis=1, keepdims=True)) / y.std(axis=1, keepdims=True)
    row = [0.25 * dim**0.5] * dim + [1.5, 1e-7]
    gp = BatchGP(torch.tensor(x), torch.tensor(y), torch.tensor([row, row]).double().log())
    centre = x[np.argmin(y[0] + 10.0 * np.maximum(y[1], 0.0))]
    lower, upper = np.clip(centre - length / 2, 0, 1), np.clip(centre + length / 2, 0, 1)
    points = lower + (upper - lower) * sobol(CANDIDATES, dim, generator)
    return Setting(gp, torch.tensor(points))


def full_draws(now: Setting, seed: int, count: int = SELECTIONS) -> Choices:
    """The definition: a Cholesky factor of the whole posterior covariance."""
    generator = np.random.default_rng(seed)
    values = []
    for index in range(2):
        mean, rows = now.gp.posterior(index, now.candidates)
        covariance = now.gp.kernels[index](now.candidates, now.candidates) - rows @ rows.mT
        covariance.diagonal().add_(1e-10)
        normals = torch.tensor(generator.standard_normal((CANDIDATES, count)))
        values.append((mean[:, None] + torch.linalg.cholesky(covariance) @ normals).cpu().numpy())
    return by_the_rule(*values)


def by_the_rule(objective: np.ndarray, constraint: np.ndarray) -> Choices:
    """What draws `(r, k)` select, each on its own."""
    violation = np.maximum(constraint, 0.0)
    best = [int(np.lexsort((f, v))[0]) for f, v in zip(objective.T, violation.T, strict=True)]
    return Choices(
        np.array(best),
        objective[best, np.arange(len(best))],
        (violation == 0).sum(axis=0).astype(float),
    )


def shared_features(
    now: Setting, seed: int, number: int = NUM_FREQUENCIES, draw: Spectrum = frequencies
) -> Choices:
    """Selections by many random functions of the same features, which all models share."""
    generator = np.random.default_rng([8, seed])
    spectrum = draw(number, now.candidates.shape[1], generator)
    values = []
    for index in range(2):
        own = now.gp, index, now.candidates, SHARED, generator
        draws = PathwiseDraws(*own, spectrum=spectrum)
        draws.draw(torch.arange(CANDIDATES))
        values.append(draws.value.cpu().numpy())
    return by_the_rule(*values)


def repeated(now: Setting, make: Callable[[int, np.random.Generator], Draws]) -> Choices:
    """Selections one at a time, each with draws of its own."""
    rows = []
    for number in range(SELECTIONS):
        generator = np.random.default_rng([7, number])
        objective, constraint = make(0, generator), make(1, generator)
        selection = select(objective, [constraint], certainty(2 * CANDIDATES))
        index = int(selection.chosen[0])
        objective.draw(torch.tensor([index]))
        rows.append((index, float(objective.value[index, 0]), float(selection.feasible[0])))
    return Choices(*(np.array(column) for column in zip(*rows, strict=True)))


def probabilities(now: Setting, one: Choices, other: Choices) -> dict[str, float]:
    """Probability of differences as large as these if both had the same law."""
    mean, variance = (part[0].cpu().numpy() for part in now.gp.predict(now.candidates))
    counts = np.array([np.bincount(c.chosen, minlength=CANDIDATES) for c in (one, other)])
    order = np.argsort(-counts.sum(axis=0))
    often = order[counts[:, order].sum(axis=0) >= 20]
    table = np.column_stack([counts[:, often], len(one.chosen) - counts[:, often].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return {
        "candidate": chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0,
        "objective": ks_2samp(one.objective, other.objective).pvalue,
        "mean": ks_2samp(mean[one.chosen], mean[other.chosen]).pvalue,
        "deviation": ks_2samp(variance[one.chosen], variance[other.chosen]).pvalue,
        "feasible": ks_2samp(one.feasible, other.feasible).pvalue,
    }


REGIONS = [(2, 0.8), (2, 0.05), (10, 0.8), (10, 0.05)]


@pytest.mark.parametrize(("dim", "length"), REGIONS)
def test_draws_that_end_early_have_the_law_of_full_draws(dim: int, length: float) -> None:
    """Blocked draws against the definition."""
    now = setting(dim, length)

    def make(index: int, generator: np.random.Generator) -> Draws:
        return JointDraws(now.gp, index, now.candidates, 1, generator)

    result = probabilities(now, full_draws(now, 1), repeated(now, make))
    assert min(result.values()) > LEAST_PROBABILITY, result


@pytest.mark.parametrize(("dim", "length"), REGIONS)
def test_random_functions_have_the_law_of_full_draws(dim: int, length: float) -> None:
    """Pathwise draws with the default number of frequencies against the definition."""
    now = setting(dim, length)

    def make(index: int, generator: np.random.Generator) -> Draws:
        return PathwiseDraws(now.gp, index, now.candidates, 1, generator)

    result = probabilities(now, full_draws(now, 2), repeated(now, make))
    assert min(result.values()) > LEAST_PROBABILITY, result


@pytest.mark.parametrize(("dim", "length"), REGIONS)
def test_one_set_of_features_has_the_law_of_full_draws(dim: int, length: float) -> None:
    """No set is so poor that thousands of draws from it alone could be told from exact ones."""
    now = setting(dim, length)
    exact = full_draws(now, 3, SHARED)
    for seed in range(3):
        result = probabilities(now, exact, shared_features(now, seed))
        assert min(result.values()) > LEAST_PROBABILITY, (seed, result)


@pytest.mark.parametrize(("dim", "length"), [(2, 0.05), (10, 0.05)])
def test_plain_features_are_refused(dim: int, length: float) -> None:
    """The same comparison refuses 256 frequencies as they are usually drawn."""

    def plain(
        count: int, dim: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        gamma = generator.gamma(2.5, 1.0 / 2.5, (count, 1))
        return generator.standard_normal((count, dim)) / np.sqrt(gamma), np.ones(count)

    now = setting(dim, length)
    sets = [shared_features(now, seed, 256, plain) for seed in range(3)]
    exact = full_draws(now, 3, SHARED)
    assert min(min(probabilities(now, exact, one).values()) for one in sets) < LEAST_PROBABILITY


def test_weighted_frequencies_give_the_kernel() -> None:
    """The mean of weighted cosines is the Matern-5/2 correlation, near and far."""
    waves, weights = frequencies(200_000, 3, np.random.default_rng(0))
    assert weights.mean() == pytest.approx(1.0, abs=0.01)
    for distance in (0.05, 0.5, 1.0, 2.5):
        step = distance * np.array([2.0, -1.0, 2.0]) / 3.0
        t = 5.0**0.5 * distance
        expected = (1.0 + t + t * t / 3.0) * np.exp(-t)
        assert (weights * np.cos(waves @ step)).mean() == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(("dim", "length"), REGIONS)
def test_variance_of_random_functions(dim: int, length: float) -> None:
    """Over feature sets the posterior variance is right, and varies by less than a tenth."""
    now = setting(dim, length)
    ids = torch.arange(40)
    variances = []
    for seed in range(30):
        generator = np.random.default_rng(seed)
        spectrum = frequencies(1024, dim, generator)
        draws = PathwiseDraws(now.gp, 0, now.candidates[:40], 2000, generator, spectrum=spectrum)
        draws.draw(ids)
        variances.append(draws.value.var(dim=1).cpu().numpy())
    _, exact = now.gp.predict(now.candidates[:40])
    ratio = np.array(variances) / exact[0].cpu().numpy()
    assert np.median(np.abs(ratio.mean(axis=0) - 1.0)) < 0.05
    # Two thousand draws alone would make it vary by 0.032.
    assert np.median(ratio.std(axis=0)) < 0.12
