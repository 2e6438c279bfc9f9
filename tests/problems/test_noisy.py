"""The noisy wrapper: reproducible, of the right size, and a problem like any other."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from cbo_suite.checks import check_problem
from cbo_suite.errors import InvalidTask
from cbo_suite.problems.ackley import Ackley
from cbo_suite.problems.noisy import Noisy
from cbo_suite.problems.toy import Toy


def points(count: int, dim: int, seed: int = 0) -> np.ndarray:
    """Random points of Ackley's box."""
    return Ackley(dim).space.from_unit(np.random.default_rng(seed).random((count, dim)))


def test_it_is_a_problem() -> None:
    """It keeps the contract, equal values for equal points among it."""
    check_problem(Noisy(Toy(), objective_noise=0.1, constraint_noise=[0.1, 0.2]))


def test_noise_is_standard_normal_in_its_unit() -> None:
    """Differences to the exact values, over their deviations, are standard normal."""
    problem = Noisy(Ackley(3), objective_noise=0.5, constraint_noise=[2.0, 0.1], seed=1)
    x = points(3000, 3)
    exact, seen = problem.noise_free.evaluate(x), problem.evaluate(x)
    noise = [
        (seen.objective - exact.objective) / 0.5,
        *((seen.constraints - exact.constraints) / [2.0, 0.1]).T,
    ]
    for values in noise:
        assert kstest(values, "norm").pvalue > 1e-3
    assert np.abs(np.corrcoef(noise) - np.eye(3)).max() < 0.08


def test_noise_depends_on_the_point_and_the_seed_only() -> None:
    """Neither order nor batches matter, another seed does."""
    x = points(6, 3)
    problem = Noisy(Ackley(3), objective_noise=1.0, seed=4)
    together = problem.evaluate(x).objective
    alone = [problem.evaluate(row[None]).objective[0] for row in x[::-1]]
    np.testing.assert_array_equal(together, alone[::-1])
    other = Noisy(Ackley(3), objective_noise=1.0, seed=5).evaluate(x).objective
    assert (together != other).all()


def test_both_zeros_are_one_point() -> None:
    """The sign of zero is no difference."""
    problem = Noisy(Ackley(2), objective_noise=1.0)
    first, second = (problem.evaluate(np.array([[zero, 1.0]])) for zero in (0.0, -0.0))
    assert first.objective[0] == second.objective[0]


def test_no_noise_changes_nothing() -> None:
    """Zero deviations give the exact values."""
    x = points(5, 3)
    problem = Noisy(Ackley(3), objective_noise=0.0)
    np.testing.assert_array_equal(
        problem.evaluate(x).constraints, Ackley(3).evaluate(x).constraints
    )


@pytest.mark.parametrize(
    "options",
    [
        {"objective_noise": -1.0},
        {"objective_noise": np.nan},
        {"objective_noise": 1.0, "constraint_noise": [0.1, 0.2, 0.3]},
        {"objective_noise": 1.0, "constraint_noise": "much"},
    ],
)
def test_what_is_no_deviation_is_refused(options: dict[str, Any]) -> None:
    """Negative, not finite, too many, or no number."""
    with pytest.raises(InvalidTask):
        Noisy(Toy(), **options)
