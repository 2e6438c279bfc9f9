"""Numbers as tables write them: short, but never so short that they hide what they tell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from cbo_suite.scoring.board import ProblemBoard

MOST_DIGITS = 10


class RowTexts(NamedTuple):
    """The values of one optimizer on a problem as text.

    Attributes:
        paper: Final mean under the paper's rule.
        error: Its standard error, "" if there is none.
        best: Best final value.
        median: Median final value.
        worst: Worst final value.
    """

    paper: str
    error: str
    best: str
    median: str
    worst: str


def number(value: float | None, digits: int = 4) -> str:
    """Write a number with `digits` digits (whole ones are kept), and what is missing as NA.

    A larger number never looks smaller: an interval written so contains what it contained.
    """
    if value is None or math.isnan(value):
        return "NA"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e6:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:.{max(0, digits - 1 - _magnitude(value))}f}"


def fixed(value: float | None, digits: int) -> str:
    """Write a number with this many decimals, and what is missing as NA."""
    return "NA" if value is None else f"{value:.{digits}f}"


def whole_share(share: float) -> str:
    """Write a share as percent; only all of it is 100 %, and only nothing 0 %."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{math.floor(1000 * share + 1e-9) / 10:g} %"


def measured(mean: float | None, error: float | None) -> str:
    """Write a mean down to the second digit of its standard error, without one six digits."""
    if not mean or not error:
        return number(mean, 6)
    digits = _magnitude(mean) - _magnitude(error) + 2
    return number(mean, min(max(digits, 1), MOST_DIGITS))


def apart(*columns: Iterable[float | None]) -> dict[float | None, str]:
    """Write the numbers of some columns so that different ones of a column look different.

    All have the same number of decimals, so that right-aligned ones can be compared at a glance.
    Where that would take too many digits, each has four, or as many more as it needs.
    """
    groups = [set(column) for column in columns]
    every = set().union(*groups)
    for decimals in _numbers_of_decimals(every):
        texts = {
            value: number(value) if value is None or math.isinf(value) else f"{value:.{decimals}f}"
            for value in every
        }
        if all(len({texts[value] for value in group}) == len(group) for group in groups):
            return texts
    return _apart_by_digits(every)


def _numbers_of_decimals(values: Iterable[float | None]) -> range:
    """Return the numbers of decimals that give each value two digits or more, and none too many."""
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if not sizes or min(sizes) < 1e-3 or max(sizes) >= 1e6:
        return range(0)
    largest = _magnitude(max(sizes))
    fewest = max(0, 1 - _magnitude(min(sizes)), 3 - largest)
    return range(fewest, MOST_DIGITS - max(0, largest))


def _apart_by_digits(values: Iterable[float | None]) -> dict[float | None, str]:
    """Write numbers with four digits, or with as many more as tell different ones apart."""
    left = set(values)
    texts: dict[float | None, str] = {}
    for digits in range(4, MOST_DIGITS + 1):
        written = {value: number(value, digits) for value in left}
        shared = Counter(written.values())
        alone = {value: text for value, text in written.items() if shared[text] == 1}
        texts |= written if digits == MOST_DIGITS else alone
        left -= texts.keys()
    return texts


def true_error(mean: float | None, error: float | None) -> float | None:
    """Take for 0 what is no more than the rounding of a mean of equal values."""
    return 0.0 if mean and error and error < 1e-13 * abs(mean) else error


def row_texts(problem: ProblemBoard) -> dict[str, RowTexts]:
    """Write the values of each optimizer on a problem, so that different ones look different."""
    rows = problem.rows
    finals = apart(
        [row.best for row in rows], [row.median for row in rows], [row.worst for row in rows]
    )
    means = apart(row.paper_mean for row in rows)
    errors = {row.optimizer: true_error(row.paper_mean, row.paper_error) for row in rows}
    return {
        row.optimizer: RowTexts(
            paper=(
                measured(row.paper_mean, error)
                if (error := errors[row.optimizer])
                else means[row.paper_mean]
            ),
            error="" if error is None else number(error, 2),
            best=finals[row.best],
            median=finals[row.median],
            worst=finals[row.worst],
        )
        for row in rows
    }


def _magnitude(value: float) -> int:
    """Return the place of a number's first digit: 0 for ones, -1 for tenths."""
    return math.floor(math.log10(abs(value)))
