"""Candidate points: inside the box, mixed with the centre, every variable reachable."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbo_suite.optimizers.scbo.candidates import (
    candidate_count,
    candidates,
    perturbation_mask,
    sobol,
)


@pytest.mark.parametrize(("dim", "count"), [(1, 200), (10, 2000), (25, 5000), (124, 5000)])
def test_count_of_the_paper(dim: int, count: int) -> None:
    """min(200 d, 5000)."""
    assert candidate_count(dim) == count


@given(st.integers(1, 40), st.integers(1, 70), st.integers(0, 9))
def test_sobol_prefix(dim: int, count: int, seed: int) -> None:
    """The same generator gives the same sequence, however long a part of it is drawn."""
    points = sobol(count, dim, np.random.default_rng(seed))
    longer = sobol(count + 9, dim, np.random.default_rng(seed))
    assert points.shape == (count, dim)
    assert ((points >= 0.0) & (points < 1.0)).all()
    np.testing.assert_array_equal(points, longer[:count])


@given(st.integers(1, 60), st.floats(0.0, 1.0), st.integers(0, 9))
def test_every_candidate_leaves_the_centre(dim: int, probability: float, seed: int) -> None:
    """Whatever the probability, no row of the mask is empty."""
    mask = perturbation_mask(50, dim, probability, np.random.default_rng(seed))
    assert mask.shape == (50, dim)
    assert mask.any(axis=1).all()


def test_every_variable_can_be_the_only_one() -> None:
    """With probability zero each row has one variable, and all variables occur, the last too."""
    mask = perturbation_mask(2000, 8, 0.0, np.random.default_rng(0))
    assert (mask.sum(axis=1) == 1).all()
    counts = mask.sum(axis=0)
    assert counts.min() > 180  # expected 250 each
    assert counts.max() < 320


def test_share_of_perturbed_variables() -> None:
    """About 20 of 124 variables of a candidate leave the centre."""
    mask = perturbation_mask(5000, 124, 20 / 124, np.random.default_rng(1))
    assert mask.sum(axis=1).mean() == pytest.approx(20.0, rel=0.02)


@given(st.integers(1, 30), st.integers(0, 9))
def test_candidates_stay_in_the_box(dim: int, seed: int) -> None:
    """Each coordinate is the centre's or lies between the corners."""
    generator = np.random.default_rng(seed)
    lower = generator.random(dim) * 0.5
    upper = lower + 0.3
    centre = lower + 0.3 * generator.random(dim)
    points = candidates(64, centre, lower, upper, generator, min(1.0, 5 / dim))
    assert points.shape == (64, dim)
    assert ((points >= lower) & (points <= upper)).all()
    assert (points != centre).any(axis=1).all()


def test_without_perturbation_every_coordinate_moves() -> None:
    """Probability one takes the Sobol points as they are."""
    centre = np.full(3, 0.5)
    points = candidates(
        128, centre, np.zeros(3), np.ones(3), np.random.default_rng(0), probability=1.0
    )
    assert (points != centre).all()
