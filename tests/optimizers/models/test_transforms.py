"""The transforms of observations: values, order, and what happens to values that are not finite."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from cbo_suite.optimizers.models.transforms import (
    SMALLEST_SCALE,
    bilog,
    copula,
    finite_constraints,
    finite_objective,
    standardize,
)
from cbo_suite.protocols import Array

finite = st.floats(-1e6, 1e6, allow_subnormal=False)


def test_bilog_of_known_values() -> None:
    """Zero stays, e - 1 becomes 1, signs stay."""
    values = bilog(np.array([0.0, np.e - 1.0, 1.0 - np.e]))
    np.testing.assert_allclose(values, [0.0, 1.0, -1.0], rtol=1e-15)


@given(arrays(float, 12, elements=finite))
def test_bilog_keeps_feasibility_and_order(values: np.ndarray) -> None:
    """Signs do not change, larger values do not become smaller."""
    transformed = bilog(values)
    assert np.array_equal(transformed <= 0.0, values <= 0.0)
    assert (np.diff(transformed[np.argsort(values)]) >= 0.0).all()


def test_copula_of_known_values() -> None:
    """The ranks 1, 2, 3 become the quantiles of 1/6, 1/2 and 5/6."""
    expected = norm.ppf([5 / 6, 1 / 6, 1 / 2])
    np.testing.assert_allclose(copula(np.array([1e9, -3.0, 0.0])), expected, rtol=1e-12)


def test_copula_ties_share_a_value() -> None:
    """Equal observations become equal; the others keep their places."""
    transformed = copula(np.array([2.0, 1.0, 2.0, 5.0]))
    assert transformed[0] == transformed[2] == 0.0
    assert transformed[1] < 0.0 < transformed[3]


@given(arrays(np.int64, st.integers(1, 30), elements=st.integers(-1000, 1000)))
def test_copula_depends_on_the_order_only(values: np.ndarray) -> None:
    """A strictly increasing function before it changes nothing; all values are finite."""
    transformed = copula(values.astype(float))
    assert np.isfinite(transformed).all()
    np.testing.assert_array_equal(transformed, copula(values.astype(float) ** 3 - 5.0))


def test_objective_that_is_not_finite_counts_as_worst() -> None:
    """NaN and both infinities take the largest finite value."""
    cleaned = finite_objective(np.array([1.0, np.nan, 7.0, np.inf, -np.inf]))
    np.testing.assert_array_equal(cleaned, [1.0, 7.0, 7.0, 7.0, 7.0])


def test_constraint_that_is_not_finite_counts_as_violated() -> None:
    """By the largest magnitude that the constraint has had, whatever its unit."""
    values = np.array([[np.nan, -5e-4, 0.0], [-2.0, np.inf, np.nan], [9.0, -1e-4, 0.0]])
    np.testing.assert_array_equal(
        finite_constraints(values), [[9.0, -5e-4, 0.0], [-2.0, 5e-4, 1.0], [9.0, -1e-4, 0.0]]
    )


@pytest.mark.parametrize("clean", [finite_objective, lambda v: finite_constraints(v[:, None])])
def test_nothing_finite_at_all(clean: Callable[[Array], Array]) -> None:
    """Then every value is the same finite number."""
    cleaned = clean(np.array([np.nan, np.inf, -np.inf]))
    assert np.isfinite(cleaned).all()
    assert np.ptp(cleaned) == 0.0


def test_standardize_and_back() -> None:
    """Mean zero, variance one, and the original by offset and scale."""
    values = np.random.default_rng(0).normal(3.0, 5.0, (40, 2))
    result = standardize(values)
    np.testing.assert_allclose(result.values.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(result.values.std(axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(result.mean + result.scale * result.values, values, rtol=1e-12)
    assert not result.constant.any()


def test_standardize_a_constant_series() -> None:
    """It is named as constant, becomes zero, and its scale is not zero."""
    result = standardize(np.full((5, 1), 0.3))
    assert result.constant.tolist() == [True]
    assert result.scale.tolist() == [SMALLEST_SCALE]
    np.testing.assert_allclose(result.values, 0.0, atol=1e-9)
