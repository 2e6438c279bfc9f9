"""One curve for a suite: by hand, from records and from a board, and what it leaves out."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cbo_suite.protocols import Array
from cbo_suite.records import Record
from cbo_suite.scoring import make_board
from cbo_suite.scoring.aggregate import (
    NUM_POINTS,
    Course,
    aggregate,
    courses_of_board,
    courses_of_records,
)
from cbo_suite.scoring.runs import best_so_far, family, targets_reached
from tests.make_records import make, make_reference

REFERENCE = make_reference(budget=4, n_init=0)


def course(dim: int, **reached: list[float]) -> Course:
    """Make a course with a value after every evaluation."""
    values = {name: np.array(shares) for name, shares in reached.items()}
    return Course(dim, np.arange(1.0, len(next(iter(values.values()))) + 1), values)


def test_problems_count_alike_over_evaluations_per_variable() -> None:
    """By hand: 2 evaluations in 1 dimension, 4 in 2; a run that has ended keeps what it has."""
    together = aggregate(
        {"b": course(1, x=[0.0, 1.0]), "a": course(2, x=[0.2, 0.4, 0.6, 0.8], y=[1.0] * 4)}
    )
    assert together.problems == ["a", "b"]
    assert together.partial == ["y"]
    assert list(together.reached) == ["x"]
    grid, share = together.evaluations, together.reached["x"]
    assert len(grid) == NUM_POINTS
    assert (grid[0], grid[-1]) == pytest.approx((0.5, 2.0))
    assert share[0] == pytest.approx((0.0 + 0.2) / 2)
    assert share[-1] == pytest.approx((1.0 + 0.8) / 2)
    just_above_one = int(np.argmax(grid >= 1.0))
    assert share[just_above_one] == pytest.approx((0.0 + 0.4) / 2)


def test_a_shorter_problem_keeps_its_end_and_who_ends_highest_is_first() -> None:
    """Order by the end, then by name."""
    together = aggregate(
        {
            "a": course(1, worse=[0.1, 0.2], same=[0.3, 0.5], also=[0.0, 0.5]),
            "b": course(1, worse=[0.1] * 8, same=[0.5] * 8, also=[0.5] * 8),
        }
    )
    assert list(together.reached) == ["also", "same", "worse"]
    assert together.reached["worse"][-1] == pytest.approx((0.2 + 0.1) / 2)


def test_nothing_gives_nothing() -> None:
    """Neither problems nor optimizers."""
    nothing = aggregate({})
    assert (nothing.problems, nothing.reached, len(nothing.evaluations)) == ([], {}, 0)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 40),
            arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1)).map(np.sort),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_curves_rise_from_at_least_zero_to_the_mean_of_the_ends(
    problems: list[tuple[int, Array]],
) -> None:
    """Whatever the sizes: monotone, within the shares, and at the end the mean of the ends."""
    courses = {
        str(i): Course(dim, np.arange(1.0, len(shares) + 1), {"x": shares})
        for i, (dim, shares) in enumerate(problems)
    }
    share = aggregate(courses).reached["x"]
    assert (np.diff(share) >= 0).all()
    assert share[0] >= 0
    assert share[-1] == pytest.approx(np.mean([shares[-1] for _, shares in problems]))


def some_records() -> list[Record]:
    """Make two seeds of two optimizers on one problem, and one run on a problem that has none."""
    return [
        make([None, 9.0, 3.0, 0.5], problem="one-1d-v1", optimizer="a"),
        make([8.0, 7.0, 7.0, 0.001], problem="one-1d-v1", optimizer="a", seed=1),
        make([None, None, None, 1.0], problem="one-1d-v1", optimizer="b"),
        make([1.0, 1.0, 1.0, 1.0], problem="two-1d-v1", optimizer="a"),
    ]


def test_records_and_board_give_the_same() -> None:
    """Each is the mean over the seeds of the share of targets; without references there is none."""
    records, references = some_records(), {"one-1d-v1": REFERENCE}
    courses = courses_of_records(records, references)
    assert list(courses) == ["one-1d-v1"]
    expected = np.mean([targets_reached(best_so_far(r), REFERENCE) for r in records[:2]], axis=0)
    assert np.allclose(courses["one-1d-v1"].reached["a"], expected)
    board = make_board(records, references)
    (of_board,) = courses_of_board(board.problems, ["one-1d-v1", "two-1d-v1"]).values()
    assert of_board.dim == courses["one-1d-v1"].dim == 1
    for name in ("a", "b"):
        assert np.allclose(of_board.reached[name], courses["one-1d-v1"].reached[name], atol=1e-6)
    assert courses_of_board(board.problems, []) == {}


def test_a_shorter_run_keeps_what_it_reached() -> None:
    """Runs of another budget may be put together too."""
    shorter = make([None, 5.0], problem="one-1d-v1", optimizer="c")
    reached = courses_of_records([*some_records(), shorter], {"one-1d-v1": REFERENCE})
    share = reached["one-1d-v1"].reached["c"]
    assert len(share) == 4
    assert share[1] == share[3] > 0


def test_one_more_problem_moves_no_score() -> None:
    """What is put together is beside the scores: a board has the same numbers without it."""
    references = {"one-1d-v1": REFERENCE, "two-1d-v1": REFERENCE}
    with_it, without = (
        make_board([record for record in some_records() if record.task.problem in ids], references)
        for ids in (("one-1d-v1", "two-1d-v1"), ("one-1d-v1",))
    )
    assert msgspec.json.encode(with_it.problems[0]) == msgspec.json.encode(without.problems[0])
    assert with_it.tracks == without.tracks
    assert with_it.overall == without.overall


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        ("bbob-constrained-f12-40d-i3-v1", "bbob-constrained"),
        ("g19-15d-v1", "g19"),
        ("failing-g19-15d-v1", "failing-g19"),
        ("rover-60d-alt-v1", "rover"),
        ("lunar-lander-m10-v1", "lunar-lander"),
        ("mopta08-124d-v1", "mopta08"),
    ],
)
def test_families_are_named_without_function_size_and_instance(problem: str, name: str) -> None:
    """The rest of the id is the family."""
    assert family(problem) == name
