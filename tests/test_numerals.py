"""Numbers in tables: short, but different ones look different and intervals hold their value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbo_suite.numerals import apart, measured, number, row_texts
from cbo_suite.ranking import make_board
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
    """Whatever ten digits can tell apart, and no text is farther off than four digits."""
    texts = apart(values)
    assert len(set(texts.values())) == len(set(values))
    for value, text in texts.items():
        assert float(text) == pytest.approx(value, rel=6e-4)


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
