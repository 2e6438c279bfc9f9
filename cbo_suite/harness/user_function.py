"""A function of the user's own as a problem, and how a journal knows it again."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import partial
from textwrap import dedent
from typing import Any, Literal, cast

import numpy as np

from cbo_suite.errors import InvalidTask, JournalError
from cbo_suite.harness.syntax import read_syntax
from cbo_suite.journal import Header
from cbo_suite.protocols import Array, Evaluation, Space

OnChange = Literal["error", "keep", "restart"]
ON_CHANGE = ("error", "keep", "restart")
# What of a journal's facts speaks of the function.
NAME, SOURCE = "function", "function_source"


class UserProblem:
    """A function of the user's own as a problem."""

    id = "user-function-v0"

    def __init__(self, fun: Callable[[Array], Any], space: Space) -> None:
        self.space = space
        self._fun = fun

    def evaluate(self, x: Array) -> Evaluation:
        """Call the function; without constraints it may give the objective alone."""
        values = self._fun(x)
        if self.space.num_constraints == 0 and not isinstance(values, tuple):
            values = values, np.empty((len(x), 0))
        # Whether these are values is looked at where every problem's are.
        return cast(Evaluation, values)


def describe_function(fun: Callable[..., Any]) -> dict[str, str]:
    """Say by what a journal knows a function: its name, and a digest of its source if there is one.

    The digest is that of the syntax: a comment or another layout changes nothing. What the function
    calls, and the values that it has caught from outside, are not in it.
    """
    while isinstance(fun, partial):
        fun = fun.func
    named = fun if hasattr(fun, "__qualname__") else type(fun)
    facts = {NAME: f"{named.__module__}:{named.__qualname__}"}
    try:
        source = dedent(inspect.getsource(named))
    except (OSError, TypeError):
        # A function of a prompt or of a compiled library has no source.
        return facts
    try:
        facts[SOURCE] = read_syntax(source, named.__module__, is_package=False).digest
    except (SyntaxError, ValueError):
        # A lambda is found as the line that it stands in, which may be no statement.
        facts[SOURCE] = hashlib.sha256(source.encode()).hexdigest()
    return facts


def find_change(header: Header, facts: dict[str, str]) -> str:
    """Say how a function differs from the one that a journal was made with, "" if it does not."""
    before = {name: header.facts.get(name, "") for name in (NAME, SOURCE)}
    if before == {NAME: "", SOURCE: ""}:
        # A journal of an earlier version does not know its function.
        return ""
    if before[NAME] != facts[NAME]:
        return f"it was made with the function {before[NAME]}, this is {facts[NAME]}"
    if before[SOURCE] != facts.get(SOURCE, ""):
        return f"the source of {facts[NAME]} has changed since"
    return ""


def refuse_change(path: object, change: str) -> JournalError:
    """Say that a journal is of another function, and how to go on."""
    return JournalError(
        f'{path}: {change}; if the values it holds are still right, pass on_change="keep"; to '
        'begin anew beside a copy of it, on_change="restart"; or choose another path'
    )


def check_on_change(value: object) -> OnChange:
    """Return what shall be done about another function, or refuse it."""
    if value not in ON_CHANGE:
        raise InvalidTask(f"on_change must be one of {', '.join(ON_CHANGE)}, got {value!r}")
    return cast(OnChange, value)
