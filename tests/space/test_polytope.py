"""Known linear constraints: nothing outside is drawn, projected or let through."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import kstest

from cbo_suite import Space
from cbo_suite.errors import InvalidPoint, InvalidSpace
from cbo_suite.harness.design import initial_design

# Ten shares that sum to at most one: 1 of 10! points of the cube.
SHARES = Space(np.zeros(10), np.ones(10), linear=(np.ones((1, 10)), [1.0]))


def random_space(seed: int, dim: int, rows: int, whole: int) -> Space:
    """A space whose linear constraints hold in the middle of a cell near its centre."""
    random = np.random.default_rng(seed)
    lower = np.round(random.uniform(-5.0, 5.0, dim))
    upper = lower + random.integers(2, 12, dim)
    matrix = random.standard_normal((rows, dim))
    inside = np.round((lower + upper) / 2.0)
    return Space(
        lower,
        upper,
        integer=np.arange(whole),
        linear=(matrix, matrix @ inside + random.uniform(0.05, 1.0, rows)),
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4), st.data())
def test_nothing_outside_is_ever_given(seed: int, dim: int, rows: int, data: st.DataObject) -> None:
    """Designs, draws and projections have A x <= b, and whole numbers where they must."""
    space = random_space(seed, dim, rows, data.draw(st.integers(0, dim)))
    random = np.random.default_rng(seed)
    space.validate(initial_design("any-1d-v1", space, 7, seed))
    space.validate(space.sample(7, random))
    space.validate(space.place(random.random((7, dim))))
    allowed = space.sample(7, random)
    np.testing.assert_array_equal(space.project(allowed), allowed)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_projection_is_the_nearest_point(seed: int) -> None:
    """A general solver finds no allowed point that is nearer, in widths of the box."""
    space = random_space(seed, 3, 2, 0)
    width = space.upper - space.lower
    target = space.from_unit(np.random.default_rng(seed).random((1, 3)))
    found = space.project(target)
    distance = float(np.linalg.norm((found - target) / width))
    rival = minimize(  # type: ignore[call-overload]
        lambda x: float(np.sum(((x - target[0]) / width) ** 2)),
        found[0],
        method="SLSQP",
        bounds=list(zip(space.lower, space.upper, strict=True)),
        constraints={
            "type": "ineq",
            "fun": lambda x: space.linear_limit - space.linear_matrix @ x,
        },
    )
    assert distance <= np.sqrt(max(rival.fun, 0.0)) + 1e-6


def test_draws_where_rejection_is_hopeless_are_uniform() -> None:
    """The sum of ten shares that sum to at most one has the law of u ** (1 / 10)."""
    x = SHARES.validate(SHARES.sample(400, np.random.default_rng(0)))
    assert kstest(x.sum(axis=1) ** 10, "uniform").pvalue > 0.01
    assert kstest(1.0 - (1.0 - x[:, 3]) ** 10, "uniform").pvalue > 0.01


def test_a_logarithmic_variable_is_drawn_on_its_scale() -> None:
    """A constraint on another variable leaves the law of the exponent alone."""
    matrix = np.zeros((1, 12))
    matrix[0, 1:] = 1.0
    space = Space(np.full(12, 1e-3), np.ones(12), log_scale=[0], linear=(matrix, [0.8]))
    x = space.validate(space.sample(300, np.random.default_rng(0)))
    assert kstest(space.to_unit(x)[:, 0], "uniform").pvalue > 0.01


def test_pulled_points_are_allowed_and_others_stay() -> None:
    """Points go along the line to an allowed one, no further than they must."""
    random = np.random.default_rng(0)
    x, inside = random.random((200, 10)), np.full(10, 0.05)
    pulled = SHARES.polytope.pull(x, inside)
    assert SHARES.allows(pulled).all()
    np.testing.assert_allclose(pulled.sum(axis=1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(SHARES.polytope.pull(pulled, inside), pulled)


@pytest.mark.parametrize(
    ("linear", "integer", "words"),
    [
        (([[1.0, 1.0]], [-1.0]), [], "no point of the box"),
        (([[1.0, 0.0], [-1.0, 0.0]], [0.5, -0.5]), [], "leaves no room"),
        (([[1.0, 0.0], [-1.0, 0.0]], [0.6, -0.4]), [0], "no point of the box"),
    ],
)
def test_sets_without_points_are_refused_at_once(
    linear: tuple[list[list[float]], list[float]], integer: list[int], words: str
) -> None:
    """Empty, flat, and empty because of whole numbers."""
    with pytest.raises(InvalidSpace, match=words):
        Space([0.0, 0.0], [1.0, 1.0], linear=linear, integer=integer)


def test_whole_numbers_may_lie_on_a_face() -> None:
    """X + y = 5 in whole numbers is a set of six points, all of which are drawn."""
    line = np.array([[1.0, 1.0], [-1.0, -1.0]])
    space = Space([0.0, 0.0], [9.0, 9.0], integer=[0, 1], linear=(line, [5.0, -5.0]))
    x = space.validate(space.sample(200, np.random.default_rng(0)))
    assert {tuple(row) for row in x.tolist()} == {(float(i), 5.0 - i) for i in range(6)}


def test_points_outside_are_refused_with_the_constraint() -> None:
    """The message says which constraint is exceeded and by how much."""
    with pytest.raises(InvalidPoint, match=r"exceeds b\[0\] by 1"):
        SHARES.validate([np.full(10, 0.2)])
