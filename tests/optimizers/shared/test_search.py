"""The search for maxima of acquisition functions and for constrained minima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbo_suite.optimizers.shared.search import (
    descend,
    maximise,
    near,
    spread_points,
    with_differences,
)

NOWHERE = np.empty((0, 3))


@settings(deadline=None, max_examples=25)
@given(
    count=st.integers(1, 70),
    dim=st.integers(1, 6),
    num_centres=st.integers(0, 3),
    seed=st.integers(0, 100),
)
def test_spread_points_fill_the_cube(count: int, dim: int, num_centres: int, seed: int) -> None:
    """All points lie in the cube, the centres are among them, neighbours are close to them."""
    generator = np.random.default_rng(seed)
    centres = generator.integers(0, 2, size=(num_centres, dim)).astype(float)
    points = spread_points(count, dim, generator, centres)
    assert points.shape[1] == dim
    assert (points >= 0).all()
    assert (points <= 1).all()
    assert near(centres, points).all()
    for centre, around in zip(
        centres, np.array_split(points[count:], num_centres or 1), strict=False
    ):
        assert np.median(np.abs(around - centre)) < 0.05


@pytest.mark.parametrize("peak", [[0.2, 0.5, 0.9], [0.0, 0.31, 1.0], [-0.2, 0.4, 1.4]])
def test_maximise_finds_a_peak(peak: list[float]) -> None:
    """The peak of a bowl, inside or beyond the edge of the cube, is found to 1e-5."""
    points = spread_points(64, 3, np.random.default_rng(0))
    found = maximise(lambda x: -((x - peak) ** 2).sum(axis=1), points, avoid=NOWHERE)
    np.testing.assert_allclose(found, np.clip(peak, 0, 1), atol=1e-5)


def test_maximise_takes_the_higher_of_two_peaks() -> None:
    """Improved from several starts, the narrow and higher peak wins."""

    def score(x: np.ndarray) -> np.ndarray:
        low = np.exp(-8 * ((x - 0.7) ** 2).sum(axis=1))
        high = 2 * np.exp(-40 * ((x - 0.2) ** 2).sum(axis=1))
        value: np.ndarray = np.maximum(low, high)
        return value

    points = spread_points(256, 3, np.random.default_rng(1))
    np.testing.assert_allclose(maximise(score, points, avoid=NOWHERE), 0.2, atol=1e-4)


def test_maximise_avoids_points() -> None:
    """A peak that is to be avoided is not returned, nor one of the points that are."""
    peak = np.full(3, 0.5)
    points = np.vstack([peak, spread_points(16, 3, np.random.default_rng(0))])
    found = maximise(lambda x: -np.abs(x - peak).sum(axis=1), points, avoid=peak[None], steps=200)
    assert not near(found[None], peak[None])[0]


@pytest.mark.parametrize("value", [0.0, -np.inf])
def test_maximise_of_a_constant(value: float) -> None:
    """Where all points are equally good, any of them will do."""
    points = spread_points(16, 3, np.random.default_rng(0))
    found = maximise(lambda x: np.full(len(x), value), points, avoid=points[:3])
    assert near(found[None], points[3:])[0]


def circle(x: np.ndarray) -> np.ndarray:
    """Minimise x1 + x2 inside a circle around (0.5, 0.5): the solution is on its rim."""
    return np.column_stack([x.sum(axis=1), ((x - 0.5) ** 2).sum(axis=1) - 0.09])


def test_descend_reaches_an_active_constraint() -> None:
    """The rim of a circle is found to 1e-5, with finite differences."""
    found = descend(with_differences(circle), np.array([0.6, 0.4]))
    np.testing.assert_allclose(found, 0.5 - 0.3 / np.sqrt(2), atol=1e-5)


def test_descend_reads_gradients_of_any_memory_layout() -> None:
    """Gradients that are not stored row by row make no difference."""

    def exact(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return circle(x[None])[0], np.array([np.ones(2), 2 * (x - 0.5)])

    def by_columns(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, gradients = exact(x)
        return values, np.asfortranarray(gradients)

    start = np.array([0.6, 0.45])
    np.testing.assert_array_equal(descend(exact, start), descend(by_columns, start))


def test_descend_without_constraints_stops_at_the_edge() -> None:
    """An objective that falls towards a corner ends there."""
    found = descend(with_differences(lambda x: x.sum(axis=1)[:, None]), np.array([0.6, 0.4]))
    np.testing.assert_allclose(found, 0.0, atol=1e-9)


def test_descend_survives_values_that_are_not_numbers() -> None:
    """If the function ends in NaN, the start is returned or a point of the cube."""

    def broken(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(2, np.nan), np.full((2, 2), np.nan)

    found = descend(broken, np.array([0.6, 0.4]))
    assert ((found >= 0) & (found <= 1)).all()
