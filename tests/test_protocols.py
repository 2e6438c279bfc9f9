"""Spaces and evaluations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cbo_suite import Evaluation, Space
from cbo_suite.errors import CboError, InvalidPoint, InvalidSpace

bounds = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda p: (p[0], p[0] + p[1]))


@given(st.lists(bounds, min_size=1, max_size=6), st.data())
@settings(deadline=None)
def test_the_unit_cube_maps_into_the_box(
    pairs: list[tuple[float, float]], data: st.DataObject
) -> None:
    """No rounding puts a point outside, and the way back is the same point."""
    lower, upper = np.array(pairs).T
    space = Space(lower, upper, 0)
    unit = data.draw(arrays(float, (3, len(pairs)), elements=st.floats(0, 1)))
    points = space.from_unit(unit)
    assert np.array_equal(space.validate(points), points)
    scale = np.maximum(np.abs(lower), np.abs(upper)) / (upper - lower)
    assert np.allclose(space.to_unit(points), unit, atol=1e-15 * scale.max() + 1e-12)


def test_bounds_are_read_only_copies() -> None:
    """Neither the caller's array nor the space's can change the box."""
    lower = np.zeros(2)
    space = Space(lower, np.ones(2), 1)
    lower[0] = 7.0
    assert space.lower[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        space.lower[0] = 7.0


def test_spaces_compare_by_content() -> None:
    """Equal bounds and constraints are equal spaces."""
    one, two = Space([0.0], [1.0], 2), Space(np.zeros(1), np.ones(1), 2)
    assert one == two
    assert hash(one) == hash(two)
    assert one != Space([0.0], [1.0], 3)
    assert one != "space"
    assert one.dim == 1


@pytest.mark.parametrize(
    ("lower", "upper", "m", "message"),
    [
        ([0.0, 1.0], [1.0, 0.0], 0, r"lower\[1\]=1.0 and upper\[1\]=0.0: did you swap"),
        ([0.0], [0.0], 0, "must be below"),
        ([0.0], [1.0, 2.0], 0, "same length, got 1 and 2"),
        ([0.0], [np.inf], 0, "upper must be a vector of finite numbers"),
        ([], [], 0, "lower must be a vector"),
        (["a"], [1.0], 0, "lower must be a vector of numbers"),
        ([0.0], [1.0], -1, "num_constraints must be a whole number >= 0, got -1"),
        ([0.0], [1.0], 1.5, "num_constraints must be a whole number >= 0, got 1.5"),
    ],
)
def test_what_makes_no_box_is_refused(
    lower: list[float], upper: list[float], m: int, message: str
) -> None:
    """The message says what is wrong with which bound."""
    with pytest.raises(InvalidSpace, match=message):
        Space(lower, upper, m)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([0.5, 0.5], r"shape \(n, 2\), got \(2,\) \(one point\? pass x\[None, :\]\)"),
        ([[0.5]], r"got \(1, 1\)"),
        ([[0.5, np.nan]], r"x\[0, 1\]=.*nan"),
        ([[0.5, 0.5], [0.5, 1.5]], r"x\[1, 1\]=.*1.5.* outside \[0.0, 1.0\]"),
        ([["a", "b"]], "must be real numbers"),
        ([[0.5, 0.5], [0.5]], "must be real numbers"),
        ([[0.5j, 0.5]], "must be real numbers"),
    ],
)
def test_points_that_do_not_fit_are_refused(x: list[list[float]], message: str) -> None:
    """The message says what was got."""
    with pytest.raises(InvalidPoint, match=message):
        Space([0.0, 0.0], [1.0, 1.0], 0).validate(x)


def test_violation_and_feasibility() -> None:
    """Only finite values with every constraint at most zero are feasible."""
    nan, inf = np.nan, np.inf
    evaluation = Evaluation(
        np.array([1.0, 2.0, nan, 4.0, 5.0, inf]),
        np.array([[0.0, -1.0], [2.0, 3.0], [-1.0, -1.0], [nan, -1.0], [-inf, 0.0], [-1.0, -1.0]]),
    )
    assert evaluation.violation.tolist() == [0.0, 5.0, inf, inf, inf, inf]
    assert evaluation.feasible.tolist() == [True, False, False, False, False, False]
    assert Evaluation(np.zeros(2), np.empty((2, 0))).feasible.all()


def test_the_best_point() -> None:
    """Feasible first, then least violation, then least objective, then the earliest."""
    violated = np.array([[1.0], [0.5], [0.5], [2.0]])
    assert Evaluation(np.array([0.0, 3.0, 2.0, -9.0]), violated).best() == 2
    mixed = np.array([[1.0], [-0.5], [0.0], [-2.0]])
    assert Evaluation(np.array([0.0, 3.0, 2.0, 2.0]), mixed).best() == 2
    assert Evaluation(np.array([np.nan, 1.0]), np.array([[1.0], [np.inf]])).best() == 1


def test_errors_are_ours_and_pythons() -> None:
    """Each error can be caught as ours or as the builtin, and reads as its text."""
    from cbo_suite import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    ours = [kind for kind in kinds if issubclass(kind, CboError) and kind is not CboError]
    assert len(ours) >= 12
    for kind in ours:
        assert any(base.__module__ == "builtins" for base in kind.__mro__[1:-3]), kind
    assert str(errors.UnknownId("no 'x'")) == "no 'x'"
