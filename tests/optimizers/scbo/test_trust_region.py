"""The trust region's state machine: counters, sizes, restart, and what counts as better."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbo_suite.optimizers.scbo.trust_region import (
    INITIAL_LENGTH,
    LARGEST_LENGTH,
    SMALLEST_LENGTH,
    TrustRegion,
    best_index,
    improves,
    side_weights,
)

INF = float("inf")


@pytest.mark.parametrize(
    ("dim", "batch_size", "success", "failure"),
    [(2, 1, 3, 2), (10, 1, 3, 10), (30, 50, 3, 1), (60, 100, 6, 1), (124, 10, 13, 13)],
)
def test_tolerances_of_the_paper(dim: int, batch_size: int, success: int, failure: int) -> None:
    """The paper's problems have these tolerances: max(3, ceil(d/10)) and ceil(d/q)."""
    region = TrustRegion(dim, batch_size)
    assert (region.success_tolerance, region.failure_tolerance) == (success, failure)


def test_successes_double_the_length() -> None:
    """Three successes double it, up to the largest length; the counters begin again."""
    region = TrustRegion(10, 1)
    for _ in range(2):
        region.update(True)
    assert (region.length, region.successes) == (INITIAL_LENGTH, 2)
    region.update(True)
    assert (region.length, region.successes, region.failures) == (LARGEST_LENGTH, 0, 0)
    for _ in range(3):
        region.update(True)
    assert region.length == LARGEST_LENGTH


def test_failures_halve_the_length() -> None:
    """As many failures as variables halve it; the counters begin again."""
    region = TrustRegion(4, 1)
    for _ in range(4):
        region.update(False)
    assert (region.length, region.successes, region.failures) == (INITIAL_LENGTH / 2, 0, 0)


def test_a_success_ends_a_row_of_failures_and_the_reverse() -> None:
    """Only batches in a row count."""
    region = TrustRegion(4, 1)
    for success in (False, False, False, True, True, False, True, True):
        region.update(success)
    assert (region.length, region.successes, region.failures) == (INITIAL_LENGTH, 2, 0)


def test_seven_halvings_end_a_region() -> None:
    """0.8 / 128 is the first length below 1 / 128."""
    region = TrustRegion(2, 1)
    batches = 0
    while not region.finished:
        region.update(False)
        batches += 1
    assert batches == 7 * 2
    assert region.length < SMALLEST_LENGTH <= 2 * region.length


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 40), st.integers(1, 40))
def test_counters_stay_below_their_tolerances(
    history: list[bool], dim: int, batch_size: int
) -> None:
    """After any history one counter is zero, the other below its tolerance, the size bounded."""
    region = TrustRegion(dim, batch_size)
    for success in history:
        region.update(success)
    assert min(region.successes, region.failures) == 0
    assert region.successes < region.success_tolerance
    assert region.failures < region.failure_tolerance
    assert 0.0 < region.length <= LARGEST_LENGTH


def test_box_stays_in_the_unit_cube() -> None:
    """The box is centred where there is room and clipped where there is not."""
    lower, upper = TrustRegion(3, 1, length=0.4).box(np.array([0.5, 0.1, 1.0]))
    np.testing.assert_allclose(lower, [0.3, 0.0, 0.8])
    np.testing.assert_allclose(upper, [0.7, 0.3, 1.0])


@given(st.lists(st.floats(0.005, 4.0), min_size=1, max_size=20), st.floats(1e-3, 1e-2))
def test_weighted_sides_follow_the_length_scales(scales: list[float], length: float) -> None:
    """In proportion, with the volume of the hypercube."""
    weights = side_weights(np.array(scales))
    np.testing.assert_allclose(weights / weights[0], np.array(scales) / scales[0])
    np.testing.assert_allclose(weights.prod(), 1.0)
    region = TrustRegion(len(scales), 1, length)
    lower, upper = region.box(np.full(len(scales), 0.5), weights)
    np.testing.assert_allclose(upper - lower, np.minimum(length * weights, 1.0))


def test_best_is_feasible_first_then_violation_then_objective() -> None:
    """The three rules, one after another; the earliest of equals."""
    objective = np.array([1.0, 5.0, 4.0, 4.0])
    assert best_index(objective, np.array([0.1, 0.0, 0.0, 0.0])) == 2
    assert best_index(objective, np.array([0.3, 0.2, 0.2, 0.4])) == 2
    assert best_index(objective, np.array([0.2, 0.2, 0.2, 0.4])) == 0


def test_best_of_values_that_are_not_finite() -> None:
    """NaN is worse than every number."""
    assert best_index(np.array([np.nan, 3.0]), np.zeros(2)) == 1
    assert best_index(np.array([np.nan, np.nan]), np.array([INF, INF])) == 0


@pytest.mark.parametrize(
    ("new", "old", "success"),
    [
        ((9.0, 0.0), (1.0, 0.5), True),  # the first feasible point
        ((0.0, 0.5), (1.0, 0.0), False),  # infeasible against feasible
        ((0.5, 0.0), (1.0, 0.0), True),
        ((0.9995, 0.0), (1.0, 0.0), False),  # less than a thousandth
        ((-1.002, 0.0), (-1.0, 0.0), True),  # relative to the size, not to the sign
        ((-1.0005, 0.0), (-1.0, 0.0), False),
        ((-1e-12, 0.0), (0.0, 0.0), True),
        ((5.0, 0.4), (1.0, 0.5), True),
        ((0.0, 0.4999), (1.0, 0.5), False),
        ((0.0, 3.0), (np.nan, INF), True),  # the first result at all
        ((np.nan, INF), (np.nan, INF), False),
        ((np.nan, INF), (1.0, 0.5), False),
    ],
)
def test_success(new: tuple[float, float], old: tuple[float, float], success: bool) -> None:
    """A success must gain more than a thousandth, in the objective or in the violation."""
    assert improves(*new, *old) is success


def test_success_by_an_absolute_gain() -> None:
    """Posterior means are compared on a fixed scale."""
    assert improves(-0.002, 0.0, 0.0, 0.0, 1e-3)
    assert not improves(-0.0005, 0.0, 0.0, 0.0, 1e-3)
