"""Numbers in tables: short, but different ones look different and intervals hold their value."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbo_suite.leaderboard.number_format import apart, measured, number, row_texts, whole_share
from cbo_suite.scoring.overall import make_board
from tests.make_records import make

numbers = st.floats(-1e9, 1e9) | st.floats(-1e-2, 1e-2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NA"),
        (float("nan"), "NA"),
        (float("inf"), "∞"),
        (0.0, "0"),
        (12.3456, "12.35"),
        (-0.0012345, "-0.001234"),
        (6059.7143, "6060"),
        (269214.5, "269214"),
        (1234567.0, "1.235e6"),
        (0.00004001, "4.001e-5"),
    ],
)
def test_numbers_have_four_digits(value: float | None, text: str) -> None:
    """Numbers are short and read well; nothing is missing silently."""
    assert number(value) == text


@given(st.lists(numbers, min_size=2, max_size=2), st.integers(1, 10))
def test_writing_keeps_the_order(values: list[float], digits: int) -> None:
    """So an interval contains on paper what it contained."""
    low, high = sorted(values)
    assert float(number(low, digits)) <= float(number(high, digits))


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (2996.348738, 7.526e-05, "2996.348738"),
        (2996.349447, 1.831e-04, "2996.34945"),
        (26926.3, 2058.7, "26926"),
        (2.912072, 0.2587, "2.91"),
        (1.2346e-7, 2.1e-9, "1.235e-7"),
        (0.001, 0.5, "0.001"),
        (0.0, 0.5, "0"),
        (0.59978805201, None, "0.599788"),
        (None, None, "NA"),
    ],
)
def test_a_mean_ends_where_its_error_begins(
    mean: float | None, error: float | None, text: str
) -> None:
    """At the second digit of the error; the rest says nothing."""
    assert measured(mean, error) == text


@given(st.lists(st.integers(1, 10**10 - 1).map(lambda whole: whole / 10**6), max_size=8))
def test_different_values_look_different(values: list[float]) -> None:
    """Whatever ten digits can tell apart, and no text is farther off than two digits."""
    texts = apart(values)
    assert len(set(texts.values())) == len(set(values))
    for value, text in texts.items():
        assert float(text) == pytest.approx(value, rel=0.05)


@pytest.mark.parametrize(
    ("columns", "texts"),
    [
        # As many decimals as the closest two of a column need, four digits at least.
        ([[0.5998211103, 0.5997950763, 0.60849]], ["0.59982", "0.59980", "0.60849"]),
        ([[6059.754628, 27400.41682, None]], ["6060", "27400", "NA"]),
        ([[6074.719403, 6074.722989], [51012.11192]], ["6074.719", "6074.723", "51012.112"]),
        # Equal values of different columns look equal.
        ([[5145.123549, 5145.2], [5145.123549]], ["5145.1", "5145.2"]),
        ([[0.05635, 86.016]], ["0.056", "86.016"]),
        # Too far apart for one number of decimals.
        ([[0.00001234, 4321.5]], ["1.234e-5", "4322"]),
        ([[1.0, 1.0 + 1e-9, 54321.0]], ["1.000000000", "1.000000001", "54321"]),
        ([[float("inf"), 2.0, 0.0]], ["∞", "2.000", "0.000"]),
    ],
)
def test_columns_have_one_number_of_decimals(
    columns: list[list[float | None]], texts: list[str]
) -> None:
    """So that right-aligned numbers can be compared at a glance, wherever that is possible."""
    found = apart(*columns)
    every = dict.fromkeys(value for column in columns for value in column)
    assert [found[value] for value in every] == texts


def test_leaders_that_are_close_do_not_look_alike() -> None:
    """Means that differ in the seventh digit, with an error, and with one run without any."""
    values = {"a": 2996.348421, "b": 2996.349447}
    for seeds in (1, 3):
        records = [
            make([value + 1e-5 * seed], optimizer=name, seed=seed)
            for name, value in values.items()
            for seed in range(seeds)
        ]
        (problem,) = make_board(records, {}).problems
        first, second = row_texts(problem).values()
        assert (first.paper, second.paper) == (
            ("2996.348", "2996.349") if seeds == 1 else ("2996.348431", "2996.349457")
        )
        assert first.best != second.best
        assert first.error == ("" if seeds == 1 else "5.8e-6")


def test_rounding_is_no_error() -> None:
    """The mean of equal values may be off by a digit that nobody means."""
    records = [
        make([313.9731693008377], optimizer=name, seed=seed)
        for name in ("one", "two")
        for seed in range(30)
    ]
    (problem,) = make_board(records, {}).problems
    noisy = msgspec.structs.replace(problem.rows[0], optimizer="noisy", paper_error=2.1e-14)
    texts = row_texts(msgspec.structs.replace(problem, rows=[noisy, *problem.rows]))
    assert texts["noisy"] == texts["one"]
    assert texts["noisy"].error == "0"


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100 %"), (0.9999, "99.9 %"), (0.081, "8.1 %"), (0.25, "25 %"), (1e-4, "< 0.1 %")],
)
def test_a_share_never_looks_larger_than_it_is(share: float, text: str) -> None:
    """Above all not like all of it."""
    assert whole_share(share) == text
