"""The space: whole numbers, logarithmic scales, what is refused, and what stays as it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbo_suite import Space
from cbo_suite.errors import InvalidPoint, InvalidSpace
from cbo_suite.harness.design import initial_design

MIXED = Space([0.0, 1e-6, -3.0, 1.0], [2.0, 1e2, 4.0, 1000.0], 1, integer=[2, 3], log_scale=[1, 3])


@given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4))
def test_points_of_the_cube_become_points_of_the_space(unit: list[float]) -> None:
    """Every point of the unit cube is one of the space, and comes back to its own cell."""
    x = MIXED.from_unit([unit])
    MIXED.validate(x)
    back = MIXED.to_unit(x)
    assert ((back >= 0.0) & (back <= 1.0)).all()
    np.testing.assert_allclose(MIXED.from_unit(back), x, rtol=1e-12)
    np.testing.assert_allclose(back[0, :2], unit[:2], atol=1e-12)
    np.testing.assert_array_equal(MIXED.from_unit(MIXED.round_unit([unit])), x)


def test_whole_numbers_are_equally_likely() -> None:
    """Each of the eight values of a variable has an eighth of the cube."""
    space = Space([-3.0], [4.0], integer=[0])
    x = space.from_unit((np.arange(8000)[:, None] + 0.5) / 8000)
    values, counts = np.unique(x, return_counts=True)
    np.testing.assert_array_equal(values, np.arange(-3.0, 5.0))
    np.testing.assert_array_equal(counts, np.full(8, 1000))


def test_a_logarithmic_scale_is_uniform_in_the_exponent() -> None:
    """Halfway along the cube lies the geometric mean of the bounds."""
    space = Space([1e-6], [1e2], log_scale=[0])
    assert space.from_unit([[0.5]])[0, 0] == pytest.approx(1e-2, rel=1e-12)
    np.testing.assert_allclose(space.from_unit([[0.0], [1.0]]), [[1e-6], [1e2]], rtol=1e-14)


def test_a_plain_box_scales_to_the_bit_as_it_always_did() -> None:
    """Without whole numbers, logarithms and linear constraints nothing changes."""
    random = np.random.default_rng(0)
    lower, upper = np.array([-5.0, 0.05, 1e-3]), np.array([10.0, 2.0, 1e3])
    space, unit = Space(lower, upper), random.random((50, 3))
    x = np.clip(lower + unit * (upper - lower), lower, upper)
    np.testing.assert_array_equal(space.from_unit(unit), x)
    np.testing.assert_array_equal(space.place(unit), x)
    np.testing.assert_array_equal(space.to_unit(x), (x - lower) / (upper - lower))
    assert space.round_unit(unit) is unit
    np.testing.assert_array_equal(
        space.sample(5, np.random.default_rng(3)),
        space.from_unit(np.random.default_rng(3).random((5, 3))),
    )


def test_the_design_is_whole_where_it_must_be() -> None:
    """A Latin hypercube of a mixed space is in the space and uses most of its whole numbers."""
    design = MIXED.validate(initial_design("any-4d-v1", MIXED, 40, seed=0))
    assert set(design[:, 2]) == set(np.arange(-3.0, 5.0))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"integer": [2]}, "indices from 0 to 1"),
        ({"integer": [-1]}, "indices from 0 to 1"),
        ({"integer": [0.5]}, "integer must be indices"),
        ({"integer": [True]}, "integer must be indices"),
        ({"integer": [1]}, "must be whole numbers"),
        ({"log_scale": [0]}, "lower bound above 0"),
        ({"num_constraints": None}, "num_constraints"),
        ({"num_constraints": float("nan")}, "num_constraints"),
        ({"num_constraints": -1}, "num_constraints"),
        ({"num_constraints": True}, "num_constraints"),
        ({"upper": [1e308, 2.5]}, "scale your variables"),
        ({"linear": ([[1.0]], [1.0])}, "A of shape"),
        ({"linear": ([[1.0, 1.0]], [1.0, 2.0])}, "A of shape"),
        ({"linear": ([[1.0, np.nan]], [1.0])}, "finite"),
        ({"linear": [[1.0, 1.0]]}, "(A, b)"),
    ],
)
def test_what_contradicts_itself_is_refused(arguments: dict[str, object], words: str) -> None:
    """One typed error that says what was given and what is needed."""
    given_ = {"lower": [0.0, 0.5], "upper": [3.0, 2.5], **arguments}
    with pytest.raises(InvalidSpace) as caught:
        Space(**given_)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_points_that_are_not_whole_are_refused() -> None:
    """The message names the variable; rounding errors are put right by `snap`."""
    with pytest.raises(InvalidPoint, match="variable 2 takes whole numbers"):
        MIXED.validate([[1.0, 1.0, 0.5, 7.0]])
    snapped = MIXED.snap(np.array([[1.0, 1.0, 1.0 + 1e-10, 7.0]]))
    assert MIXED.validate(snapped)[0, 2] == 1.0


def test_the_digest_tells_spaces_apart() -> None:
    """It changes with everything that the space says, and with nothing else."""
    linear = ([[1.0, 1.0]], [2.0])
    spaces = [
        Space([0.0, 1.0], [2.0, 3.0]),
        Space([0.0, 1.0], [2.0, 4.0]),
        Space([0.0, 1.0], [2.0, 3.0], 1),
        Space([0.0, 1.0], [2.0, 3.0], integer=[0]),
        Space([0.0, 1.0], [2.0, 3.0], integer=[1]),
        Space([0.0, 1.0], [2.0, 3.0], log_scale=[1]),
        Space([0.0, 1.0], [2.0, 3.0], linear=linear),
    ]
    assert len({space.digest for space in spaces}) == len(set(spaces)) == len(spaces)
    same = Space([-0.0, 1], np.array([2, 3]), integer=[False, False])
    assert same.digest == spaces[0].digest
    assert same == spaces[0]


def test_a_space_cannot_be_changed() -> None:
    """Neither its attributes nor the numbers in its arrays."""
    with pytest.raises(AttributeError):
        MIXED.lower = np.zeros(4)  # type: ignore[misc]
    for name in ("lower", "upper", "integer", "log_scale", "linear_matrix", "linear_limit"):
        assert not getattr(MIXED, name).flags.writeable
