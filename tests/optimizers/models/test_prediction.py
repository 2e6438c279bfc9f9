"""The way back from transformed values, and what models say about points they have not seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import cbo_suite as cbo
from cbo_suite.optimizers.models.prediction import _band
from cbo_suite.optimizers.models.transforms import bilog, bilog_back, copula, copula_back
from cbo_suite.protocols import Array

FINITE = st.floats(-1e6, 1e6)


@given(FINITE)
def test_the_bilog_goes_back(value: float) -> None:
    """Up to rounding, on both sides of zero."""
    back = bilog_back(bilog(np.array([value])))
    np.testing.assert_allclose(back, value, rtol=1e-12, atol=1e-12)


def test_the_bilog_of_no_number_goes_back_to_a_number() -> None:
    """What a very vague model may say overflows to nothing."""
    assert np.isfinite(bilog_back(np.array([-1e4, 1e4]))).all()


@given(arrays(float, st.integers(1, 30), elements=FINITE))
def test_the_copula_goes_back_and_is_monotone(values: Array) -> None:
    """At the data it gives the data, ties too, and beyond them it goes on."""
    np.testing.assert_allclose(copula_back(copula(values), values), values, atol=1e-6)
    back = copula_back(np.linspace(-6.0, 6.0, 200), values)
    assert (np.diff(back) >= -1e-6).all()
    if np.ptp(values) > 1e-3:
        assert back[0] < values.min()
        assert back[-1] > values.max()


def test_the_copula_goes_on_with_the_slope_of_a_unit() -> None:
    """Normal quantiles of normal data lie on a line, which goes on."""
    values = 3.0 + 2.0 * copula(np.arange(100.0))
    np.testing.assert_allclose(copula_back(np.array([-4.0, 4.0]), values), [-5.0, 11.0])


def test_means_and_deviations_behind_a_transform() -> None:
    """Those of the log-normal law are known."""
    mean, deviation = np.array([0.3, -1.0]), np.array([0.5, 0.9])
    band = _band(mean, deviation, np.exp)
    expected = np.exp(mean + deviation**2 / 2)
    np.testing.assert_allclose(band.mean, expected, rtol=1e-9)
    spread = expected * np.sqrt(np.expm1(deviation**2))
    np.testing.assert_allclose(band.deviation, spread, rtol=1e-6)
    np.testing.assert_allclose(band.median, np.exp(mean))
    np.testing.assert_allclose(band.upper, np.exp(mean + 1.6448536269514722 * deviation))
    np.testing.assert_allclose(band.lower, np.exp(mean - 1.6448536269514722 * deviation))


@pytest.mark.parametrize("optimizer", ["scbo", "cei"])
@pytest.mark.parametrize(("problem", "count"), [("toy-2d-v1", 30), ("pressure-vessel-4d-v1", 50)])
def test_predictions_are_calibrated(optimizer: str, problem: str, count: int) -> None:
    """Of held-out values 90 % should lie inside; feasibility is known better than its share."""
    function = cbo.make_problem(problem)
    space, random = function.space, np.random.default_rng(0)
    made = cbo.make_optimizer(optimizer, space, budget=100, batch_size=1, seed=0)
    x = space.from_unit(random.random((count, space.dim)))
    made.tell(x, function.evaluate(x))
    held_out = space.from_unit(random.random((400, space.dim)))
    truth = function.evaluate(held_out)
    found = made.predict(held_out)  # type: ignore[attr-defined]
    for band, values in (
        (found.objective, truth.objective),
        (found.constraints, truth.constraints),
    ):
        inside = ((band.lower <= values) & (values <= band.upper)).mean(axis=0)
        assert (inside >= 0.75).all(), inside
        assert ((band.lower <= band.median) & (band.median <= band.upper)).all()
    share = truth.feasible.mean()
    assert np.square(found.feasible - truth.feasible).mean() < 0.5 * share * (1.0 - share)
