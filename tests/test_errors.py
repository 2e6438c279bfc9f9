"""How an error is told in one line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cbo_suite.errors import TEXT_LENGTH, InvalidTask, describe, one_line, printable


def test_an_error_is_named_by_its_text_and_a_foreign_one_by_its_kind_too() -> None:
    """Ours are written for people; of others the kind says more than the text."""
    assert describe(InvalidTask("give\n workers")) == "give workers"
    assert describe(InvalidTask("give workers"), kind=True) == "InvalidTask: give workers"
    assert describe(KeyError("depth")) == "KeyError: 'depth'"
    assert len(describe(ValueError("a" * 10_000))) == TEXT_LENGTH


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 50))
def test_any_text_becomes_one_short_line_without_tricks(text: str, length: int) -> None:
    """No line break, control sign, lone surrogate or turn of direction is left."""
    line = one_line(text, length)
    assert len(line) <= length
    assert line.isprintable()
    assert printable(text).isprintable()
    assert printable(line) == line


def test_what_cannot_be_shown_is_spelled_out() -> None:
    """A reader sees what was there."""
    assert one_line("red \x1b[31m\ttext\u202e \ud800") == r"red \x1b[31m text\u202e \ud800"
