"""Candidates are what may be evaluated, and new; on a box nothing happens to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbo_suite.optimizers.shared.placing import Ground, new_points
from cbo_suite.optimizers.shared.search import descend, maximise
from cbo_suite.protocols import Array, Space

SPACES = {
    "whole": Space([0, -3, 0], [6, 4, 1], 1, integer=[0, 1]),
    "linear": Space([0] * 3, [1, 2, 3], 1, linear=([[1, 1, 1]], [1.0])),
    "thin": Space([0] * 6, [1] * 6, 1, linear=([[1] * 6, [-1] * 6], [0.35, -0.3])),
    "simplex": Space([0] * 3, [10] * 3, 1, integer=[0, 1, 2], linear=([[1, 1, 1]], [4])),
    "all": Space(
        [0, -3, 1e-3, 0, 1],
        [6, 4, 10, 1, 64],
        2,
        integer=[0, 1, 4],
        log_scale=[2, 4],
        linear=(np.array([[1, 1, 0, 2, 0], [0, 0, 1, 0, 0.1]]), [5.0, 5.0]),
    ),
}


def near_points(space: Space, random: np.random.Generator, spread: float) -> tuple[Array, Array]:
    """An allowed centre `(d,)` in the unit cube, and points around it that may not be allowed."""
    (centre,) = space.to_unit(space.sample(1, random))
    steps = spread * random.standard_normal((60, space.dim))
    return centre, np.clip(centre + steps, 0.0, 1.0)


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from([1e-9, 0.03, 0.5]))
@pytest.mark.parametrize("name", SPACES)
def test_settled_points_may_be_evaluated_and_are_new(name: str, seed: int, spread: float) -> None:
    """Allowed, whole, none twice, none known, and where they will be evaluated."""
    space, random = SPACES[name], np.random.default_rng(seed)
    centre, points = near_points(space, random, spread)
    known = np.concatenate([centre[None], space.to_unit(space.sample(3, random))])
    ground = Ground(space)
    for found in (
        ground.settle(points, known, random, centres=centre[None], least=4),
        ground.renew(points[:6], known, random),
    ):
        x = space.from_unit(found)
        space.validate(x)
        assert space.allows(x).all()
        np.testing.assert_allclose(space.to_unit(x), found, atol=1e-9)
        assert len(new_points(found, known)) == len(found) >= 4


def test_a_box_is_left_alone() -> None:
    """The same arrays come back, logarithmic or not, and no random number is drawn."""
    random = np.random.default_rng(0)
    points = random.random((9, 2))
    for space in (Space([1, 2], [3, 4]), Space([1, 2], [3, 4], log_scale=[1])):
        ground, before = Ground(space), random.bit_generator.state
        assert ground.settle(points, points, random, centres=points[:1]) is points
        assert ground.renew(points, points, random) is points
        start, end, corner = points[:3]
        widened = ground.widen(start, end, corner)
        assert widened[0] is end
        assert widened[1] is corner
        assert ground.back(start, end) is end
        assert random.bit_generator.state == before


def test_a_small_region_reaches_the_whole_numbers_next_to_its_centre() -> None:
    """And no others; continuous variables keep their sides."""
    space = Space([0, 0, 1], [9, 1, 64], integer=[0, 2], log_scale=[2])
    centre = space.to_unit([0.0, 0.5, 8.0])
    lower, upper = Ground(space).widen(centre, centre - 1e-4, centre + 1e-4)
    corners = space.from_unit(np.clip([lower, upper], 0.0, 1.0))
    np.testing.assert_allclose(corners, [[0, 0.4999, 7], [1, 0.5001, 9]])


def test_neighbours_in_one_whole_number_are_among_the_candidates() -> None:
    """Even if every candidate is rounded to the centre."""
    space = Space([0, 0], [9, 1], integer=[0])
    centre = space.to_unit([4.0, 0.25])
    found = Ground(space).settle(
        centre[None], centre[None], np.random.default_rng(0), centres=centre[None]
    )
    np.testing.assert_allclose(space.from_unit(found), [[5, 0.25], [3, 0.25]])


def test_a_grid_is_used_up_to_its_last_point() -> None:
    """Then known points come, and allowed ones."""
    space = Space([0, 0], [3, 3], integer=[0, 1], linear=([[1, 1]], [3]))
    ground, random = Ground(space), np.random.default_rng(0)
    known = np.empty((0, 2))
    for _ in range(10):
        known = np.concatenate([known, ground.renew(np.full((1, 2), 0.9), known, random)])
    assert len(np.unique(known, axis=0)) == 10
    again = ground.settle(np.full((5, 2), 0.1), known, random, centres=known[:1])
    assert len(again) > 0
    assert space.allows(space.from_unit(again)).all()


@pytest.mark.parametrize("name", SPACES)
def test_local_searches_end_where_they_may(name: str) -> None:
    """The end is allowed, keeps the whole numbers of the start and is no worse than it."""
    space, random = SPACES[name], np.random.default_rng(1)
    ground = Ground(space)

    def score(points: Array) -> Array:
        value: Array = -((points - 0.8) ** 2).sum(axis=1)
        return value

    points = space.to_unit(space.sample(20, random))
    found = maximise(score, points, avoid=points[:3], ground=ground)
    assert space.allows(space.from_unit(found[None]))[0]
    assert score(found[None])[0] >= score(points[3:]).max()
    end = descend(
        lambda point: (-score(point[None]), 2 * (point - 0.8)[None]), points[0], ground=ground
    )
    np.testing.assert_array_equal(end[space.integer], points[0][space.integer])
    assert space.allows(space.from_unit(end[None]))[0]


def test_a_search_slides_along_a_known_face() -> None:
    """It finds the nearest point of the polytope, on a plain and on a logarithmic scale."""
    space = Space([0, 1e-2], [1, 1], linear=([[1.0, 1.0]], [1.0]), log_scale=[1])
    start = space.to_unit([0.1, 0.05])

    def distance(point: Array) -> tuple[Array, Array]:
        return ((point - 1.0) ** 2).sum()[None], 2.0 * (point - 1.0)[None]

    (end,) = space.from_unit(descend(distance, start, ground=Ground(space))[None])
    line = np.linspace(0.0, 0.99, 100001)
    face = np.column_stack([line, 1.0 - line])
    best = face[((space.to_unit(face) - 1.0) ** 2).sum(axis=1).argmin()]
    np.testing.assert_allclose(end, best, atol=1e-3)
