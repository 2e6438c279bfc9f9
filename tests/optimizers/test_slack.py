"""SLACK: the augmented Lagrangian, its multipliers and expected improvement, and runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar
from scipy.special import ndtri
from scipy.stats import norm, qmc

import cbo_suite as cbo
from cbo_suite.errors import InvalidTask, UnsupportedTask
from cbo_suite.optimizers.shared.augmented_lagrangian import Multipliers, automatic_penalty
from cbo_suite.optimizers.slack import Slack, natural_units
from cbo_suite.optimizers.slack.improvement import (
    exact_expected_improvement,
    log_expected_improvement,
)
from cbo_suite.protocols import Array, Evaluation, Space

# (m, seed) of random cases; 11 constraints are those of the speed reducer.
CASES = [(1, 0), (1, 1), (2, 2), (3, 3), (5, 4), (11, 5)]


class Case:
    """Gaussian objective and constraints at one point, multipliers, and a value to improve on."""

    def __init__(self, m: int, seed: int, count: int = 2_000_000) -> None:
        """Draw the case and `count` values of objective and constraints."""
        random = np.random.default_rng(seed)
        self.mean = random.normal(size=(1 + m, 1))
        self.deviation = np.exp(random.normal(-0.5, 0.7, size=(1 + m, 1)))
        self.multipliers = Multipliers(random.exponential(size=m), float(np.exp(random.normal())))
        draws = self.mean.T + self.deviation.T * random.standard_normal((count, 1 + m))
        self.objective, self.constraints = draws[:, 0], draws[:, 1:]

    def lagrangian(self, mean_slack: bool) -> Array:
        """The augmented Lagrangian of every draw, from its definition."""
        weights, penalty = self.multipliers.weights, self.multipliers.penalty
        source = self.mean[1:].T if mean_slack else self.constraints
        moved = self.constraints + np.maximum(0.0, -weights * penalty - source)
        total: Array = self.objective + (weights * moved + moved**2 / (2 * penalty)).sum(axis=1)
        return total

    def exact(self, best: float, mean_slack: bool) -> float:
        """Expected improvement by the cosine series."""
        values = exact_expected_improvement(
            self.mean, self.deviation, self.multipliers, best, mean_slack=mean_slack
        )
        return float(values[0])

    def quasi(self, best: float, mean_slack: bool, log_draws: int) -> float:
        """Expected improvement by quasi-Monte Carlo."""
        m = len(self.multipliers.weights)
        uniform = qmc.Sobol(m, rng=np.random.default_rng(0)).random_base2(log_draws)
        value = log_expected_improvement(
            torch.from_numpy(self.mean),
            torch.from_numpy(self.deviation),
            self.multipliers,
            best,
            torch.from_numpy(ndtri(uniform)),
            mean_slack=mean_slack,
        )
        return float(value.exp()[0])


@pytest.mark.slow
@pytest.mark.parametrize("mean_slack", [False, True])
@pytest.mark.parametrize(("m", "seed"), CASES)
def test_exact_improvement_agrees_with_monte_carlo(m: int, seed: int, mean_slack: bool) -> None:
    """The cosine series is within 4 standard errors of two million draws."""
    case = Case(m, seed)
    values = case.lagrangian(mean_slack)
    for level in (0.05, 0.3, 0.9):
        best = float(np.quantile(values, level))
        gain = np.maximum(best - values, 0.0)
        error = gain.std() / np.sqrt(len(gain))
        assert abs(case.exact(best, mean_slack) - gain.mean()) < 4.0 * error
        assert error < 0.01 * gain.mean()


@pytest.mark.parametrize("mean_slack", [False, True])
@pytest.mark.parametrize(("m", "seed"), CASES)
def test_quasi_monte_carlo_agrees_with_exact_form(m: int, seed: int, mean_slack: bool) -> None:
    """256 draws, those of a run, are within 10 %, and 16384 draws within 1 %."""
    case = Case(m, seed, count=20_000)
    best = float(np.quantile(case.lagrangian(mean_slack), 0.2))
    exact = case.exact(best, mean_slack)
    assert case.quasi(best, mean_slack, 8) == pytest.approx(exact, rel=0.1)
    assert case.quasi(best, mean_slack, 14) == pytest.approx(exact, rel=0.01)


def test_improvement_without_constraints_has_a_closed_form() -> None:
    """With m = 0 both forms are plain expected improvement, the series to 1e-9."""
    mean, deviation = np.array([[0.4, -1.0]]), np.array([[0.3, 2.0]])
    multipliers, best = Multipliers(np.empty(0), 0.5), 0.1
    u = (best - mean[0]) / deviation[0]
    expected = deviation[0] * (norm.pdf(u) + u * norm.cdf(u))
    exact = exact_expected_improvement(mean, deviation, multipliers, best)
    np.testing.assert_allclose(exact, expected, rtol=0, atol=1e-9)
    quasi = log_expected_improvement(
        torch.from_numpy(mean), torch.from_numpy(deviation), multipliers, best, torch.zeros(4, 0)
    )
    np.testing.assert_allclose(quasi.exp().numpy(), expected, rtol=1e-12)


def test_best_value_beyond_the_series_counts() -> None:
    """Where improvement is certain it is the distance to the mean of the Lagrangian."""
    case = Case(2, 0, count=20_000)
    far = 1e4
    expected = far - case.lagrangian(False).mean()
    assert case.exact(far, False) == pytest.approx(expected, rel=1e-4)
    assert case.exact(-far, False) == 0.0


def test_quasi_monte_carlo_is_finite_where_improvement_is_hopeless() -> None:
    """The logarithm still tells points apart that no draw improves."""
    mean = torch.tensor([[0.0, 0.0], [50.0, 40.0]], dtype=torch.float64)
    multipliers = Multipliers(np.ones(1), 1e-3)
    normals = torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)
    value = log_expected_improvement(mean, torch.ones_like(mean), multipliers, -1.0, normals)
    assert value.isfinite().all()
    assert value[1] > value[0]


@given(
    arrays(float, 3, elements=st.floats(-5, 5)),
    arrays(float, 3, elements=st.floats(0, 5)),
    st.floats(0.01, 10),
)
def test_slack_minimises_the_lagrangian(constraints: Array, weights: Array, penalty: float) -> None:
    """The closed form has the slacks, and the value, of a numerical minimum over each slack."""
    multipliers = Multipliers(weights, penalty)
    total = 1.25
    for value, weight, slack in zip(
        constraints, weights, multipliers.slack(constraints), strict=True
    ):

        def cost(s: float, value: float = value, weight: float = weight) -> float:
            return float(weight * (value + s) + (value + s) ** 2 / (2 * penalty))

        numeric = minimize_scalar(cost, bounds=(0.0, 100.0), method="bounded")
        assert slack >= 0.0
        assert cost(slack) <= numeric.fun + 1e-9 * (1.0 + abs(numeric.fun))
        total += cost(slack)
    found = multipliers.lagrangian(np.array([1.25]), constraints[None])[0]
    assert found == pytest.approx(total, rel=1e-9, abs=1e-9)


def test_first_penalty_by_hand() -> None:
    """Least squared violation 0.2^2 + 0.4^2 = 0.2; best feasible value of the first points 4."""
    objective = np.array([9.0, 4.0, -50.0, 1.0])
    constraints = np.array([[-1.0, -2.0], [-3.0, 0.0], [0.2, 0.4], [3.0, -1.0]])
    assert automatic_penalty(objective, constraints) == pytest.approx(0.2 / (2 * 4.0))
    first = Multipliers.first(objective, constraints)
    assert first.penalty == pytest.approx(0.025)
    assert first.weights.tolist() == [1.0, 1.0]


def test_first_penalty_without_feasible_or_infeasible_points() -> None:
    """The median of the objective stands in for a feasible value; 1/2 where all is feasible."""
    objective = np.array([1.0, -6.0, -8.0])
    constraints = np.array([[2.0], [1.0], [3.0]])
    assert automatic_penalty(objective, constraints) == pytest.approx(1.0 / (2 * 6.0))
    assert automatic_penalty(objective, -constraints) == 0.5
    # A feasible value beyond the first ten points does not count.
    late = np.concatenate([np.full(10, 2.0), [-5.0]])
    violated = np.concatenate([np.ones(10), [-1.0]])[:, None]
    assert automatic_penalty(late, violated) == pytest.approx(1.0 / (2 * 2.0))


@pytest.mark.parametrize(
    ("violation", "expected"),
    [
        (0.1, 0.5),  # 0.01 / 2 = 0.005 is below half of 1
        (1.2, 0.72),  # 1.44 / 2 lies between
        (3.0, 0.9),  # 9 / 2 = 4.5 is above nine tenths of 1
    ],
)
def test_update_without_a_feasible_point_by_hand(violation: float, expected: float) -> None:
    """Weights are zero, and the penalty parameter falls within its limits."""
    old = Multipliers(np.array([3.0]), 1.0)
    new = old.updated(np.array([1.0, 1.0]), np.array([[violation], [7.0]]))
    assert new.weights.tolist() == [0.0]
    assert new.penalty == pytest.approx(expected)


def test_update_at_a_feasible_best_point_by_hand() -> None:
    """The second point is best: f + sum_j (max(0, l + c / r)^2 - l^2) r / 2 = 1 - 0.75."""
    old = Multipliers(np.array([1.0, 2.0]), 0.5)
    objective = np.array([5.0, 1.0])
    constraints = np.array([[-1.0, -1.0], [-0.25, -0.25]])
    # Of the second point: (0.5^2 - 1) / 4 + (1.5^2 - 4) / 4 = -0.625.
    assert old.lagrangian(objective, constraints)[1] == pytest.approx(0.375)
    new = old.updated(objective, constraints)
    # l + max(c, -l r) / r: 1 - 0.25 / 0.5 and 2 - 0.25 / 0.5.
    assert new.weights.tolist() == [0.5, 1.5]
    assert new.penalty == 0.5


def test_update_where_slack_takes_a_weight_to_zero_by_hand() -> None:
    """A constraint far inside is stopped by its slack: the weight falls to zero, not below."""
    new = Multipliers(np.array([1.0]), 0.5).updated(np.array([1.0]), np.array([[-9.0]]))
    assert new.weights.tolist() == [0.0]
    assert new.penalty == 0.5


def test_update_at_a_violating_best_point_by_hand() -> None:
    """The weight grows by c / r and the penalty parameter is halved."""
    old = Multipliers(np.array([1.0]), 2.0)
    objective, constraints = np.array([10.0, 0.0]), np.array([[-1.0], [0.5]])
    # 10 + (0.5^2 - 1) = 9.25 against (1.25^2 - 1) = 0.5625.
    np.testing.assert_allclose(old.lagrangian(objective, constraints), [9.25, 0.5625])
    new = old.updated(objective, constraints)
    assert new.weights.tolist() == [1.25]
    assert new.penalty == 1.0


def test_units() -> None:
    """Standard deviations, magnitudes of constant series, and one where all is zero."""
    values = np.array([[1.0, -4.0, 0.0], [3.0, -4.0, 0.0]])
    assert natural_units(values).tolist() == [1.0, 4.0, 1.0]


def test_units_do_not_matter() -> None:
    """The same run in other units of objective and constraints: exact for powers of two."""
    asked = []
    for factor in (1.0, 4096.0):
        optimizer = Slack(Space(np.zeros(2), np.ones(2), 2), budget=20, seed=0)
        x = np.random.default_rng(0).random((8, 2))

        def evaluate(points: Array, factor: float = factor) -> Evaluation:
            objective = points.sum(axis=1)
            constraints = 0.8 - points * np.array([1.0, 1.5])
            return Evaluation(factor * objective, constraints * np.array([factor, 1 / factor]))

        optimizer.tell(x, evaluate(x))
        for _ in range(2):
            asked.append(optimizer.ask())
            optimizer.tell(asked[-1], evaluate(asked[-1]))
    np.testing.assert_allclose(asked[:2], asked[2:], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"ei": "exact"}, {"slack": "mean"}])
def test_options_are_other_ways_to_similar_proposals(options: dict[str, Any]) -> None:
    """The exact form and the article's slack run, and find the feasible corner as well."""
    space = Space(np.zeros(2), np.ones(2), 1)
    optimizer = Slack(space, budget=20, seed=0, **options)
    x = np.random.default_rng(0).random((6, 2))

    def evaluate(points: Array) -> Evaluation:
        return Evaluation(points.sum(axis=1), 0.6 - points[:, :1])

    told = [evaluate(x)]
    optimizer.tell(x, told[0])
    for _ in range(6):
        asked = optimizer.ask()
        told.append(evaluate(asked))
        optimizer.tell(asked, told[-1])
    feasible = [float(part.objective[part.feasible].min(initial=np.inf)) for part in told]
    assert min(feasible[1:]) < feasible[0]
    assert min(feasible) < 0.65  # the optimum is 0.6


@pytest.mark.parametrize("options", [{"ei": "monte-carlo"}, {"slack": "none"}])
def test_unknown_options_are_refused(options: dict[str, Any]) -> None:
    """The message names the option and what it may be."""
    (name,) = options
    with pytest.raises(InvalidTask, match=f"{name} must be one of"):
        Slack(Space(np.zeros(2), np.ones(2), 1), budget=20, **options)


@pytest.mark.parametrize(("problem", "batch_size"), [("keane-30d-v1", 1), ("toy-2d-v1", 4)])
def test_harness_declines_what_is_too_large(problem: str, batch_size: int) -> None:
    """More than 15 variables, or batches, are declared to be beyond it."""
    with pytest.raises(UnsupportedTask):
        cbo.run(problem, "slack", budget=30, batch_size=batch_size, n_init=10)


@pytest.mark.slow
def test_toy_problem_is_solved() -> None:
    """The toy problem's 0.605 is reached within 60 evaluations; the optimum is 0.59979."""
    run = cbo.run("toy-2d-v1", "slack", budget=60, n_init=10, batch_size=1, seed=0)
    assert run.best_objective < 0.605
