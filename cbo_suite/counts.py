"""Whole numbers as users give them: how many points, which seed."""

from __future__ import annotations

import operator

from cbo_suite.errors import InvalidTask


def whole_number(name: str, value: object, least: int) -> int:
    """Return a whole number of at least `least` that fits 63 bits, or refuse it by its name."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if isinstance(value, bool) or not least <= number < 2**63:
        raise InvalidTask(f"{name} must be a whole number >= {least}, got {value!r}")
    return number
