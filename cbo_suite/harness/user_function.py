"""A function of the user's own as a problem, and how a journal knows it again."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from textwrap import dedent
from typing import Any, Literal, cast

import numpy as np

from cbo_suite.errors import (
    InvalidTask,
    JournalError,
    MalformedEvaluation,
    PartialEvaluation,
)
from cbo_suite.harness.evaluate import check_values
from cbo_suite.harness.syntax import read_syntax
from cbo_suite.journal import Header
from cbo_suite.protocols import Array, Evaluation, Space

OnChange = Literal["error", "keep", "restart"]
ON_CHANGE = ("error", "keep", "restart")
# What of a journal's facts speaks of the function, and of the order of its constraints.
NAME, SOURCE, ORDER = "function", "function_source", "constraint_names"


class UserProblem:
    """A function of the user's own as a problem."""

    id = "user-function-v0"
    called = "the function"

    def __init__(
        self,
        fun: Callable[[Array], Any],
        space: Space,
        *,
        vectorized: bool = True,
        constraint_names: Sequence[str] | None = None,
    ) -> None:
        """Keep the function.

        Args:
            fun: The function.
            space: Where its points may lie, and its number of constraints.
            vectorized: Whether it takes points `(n, d)` rather than one point `(d,)`.
            constraint_names: The order of constraints that it gives by name, None if it must not.
        """
        self.space = space
        self._fun, self._vectorized, self._names = fun, vectorized, constraint_names
        self._is_known = False

    def evaluate(self, x: Array) -> Evaluation:
        """Call the function for points `(n, d)`.

        Raises:
            PartialEvaluation: It takes single points and raised at some of several.
            MalformedEvaluation: It gave something that is no values.
        """
        if self._vectorized:
            if self._is_known or len(x) != self.space.dim or len(x) == 1:
                return self._evaluate_many(x)
            # In a square rows look like columns: a function of one point would go unnoticed.
            m = self.space.num_constraints
            one, others = (
                check_values(self._evaluate_many(part), len(part), m) for part in (x[:1], x[1:])
            )
            self._is_known = True
            return Evaluation(*map(np.concatenate, zip(one, others, strict=True)))
        if len(x) == 1:
            return self._evaluate_one(x[0])
        m = self.space.num_constraints
        evaluation = Evaluation(np.full(len(x), np.nan), np.full((len(x), m), np.nan))
        failures: dict[int, Exception] = {}
        for row, point in enumerate(x):
            try:
                one = self._evaluate_one(point)
            except Exception as error:  # it costs this point only
                failures[row] = error
            else:
                evaluation.objective[row] = one.objective[0]
                evaluation.constraints[row] = one.constraints[0]
        if failures:
            raise PartialEvaluation(f"{len(failures)} points failed", evaluation, failures)
        return evaluation

    def _evaluate_many(self, x: Array) -> Evaluation:
        """Call the function for all points `(n, d)` together."""
        objective, constraints = self._parts(self._fun(x), np.empty((len(x), 0)))
        self._check_count(constraints, axes=2)
        if np.ndim(objective) == 0:
            raise MalformedEvaluation(
                f"objective must have shape ({len(x)},), got (): if the function takes one "
                "point of shape (d,) at a time, pass vectorized=False"
            )
        # Whether these are values is looked at where every problem's are.
        return Evaluation(objective, constraints)

    def _evaluate_one(self, point: Array) -> Evaluation:
        """Call the function for one point `(d,)`; a single constraint may be a number."""
        objective, constraints = self._parts(self._fun(point), np.empty(0))
        constraints = np.atleast_1d(constraints)
        self._check_count(constraints, axes=1)
        return check_values(
            (np.atleast_1d(objective), constraints[None]), 1, self.space.num_constraints
        )

    def _check_count(self, constraints: Any, axes: int) -> None:
        """Refuse another number of constraints than was said, on the last of so many axes."""
        wanted, shape = self.space.num_constraints, np.shape(constraints)
        if len(shape) == axes and shape[-1] != wanted:
            raise MalformedEvaluation(
                f"num_constraints is {wanted}, but the function gives {shape[-1]}: pass "
                f"num_constraints={shape[-1]}"
            )

    def _parts(self, values: Any, nothing: Array) -> tuple[Any, Any]:
        """Take apart what the function gave: a pair, a mapping, or the objective alone.

        Args:
            values: What it gave.
            nothing: What stands for constraints where there are none.
        """
        if isinstance(values, Mapping):
            unknown = set(values) - {"objective", "constraints"}
            if unknown or "objective" not in values:
                raise MalformedEvaluation(
                    'a result must have the keys "objective" and "constraints", got '
                    f"{list(values)!r:.200}"
                )
            values = values["objective"], values.get("constraints", {})
        elif self.space.num_constraints == 0 and not isinstance(values, tuple):
            return values, nothing
        try:
            objective, constraints = values
        except (TypeError, ValueError) as error:
            raise MalformedEvaluation(
                f"the function must give (objective, constraints), got {type(values).__name__}"
            ) from error
        if isinstance(constraints, Mapping):
            constraints = self._in_order(constraints) if constraints else nothing
        return objective, constraints

    def _in_order(self, constraints: Mapping[str, Any]) -> Array:
        """Put constraints that are told by name into their order, on the last axis."""
        if self._names is None:
            raise MalformedEvaluation(
                "constraints are told by name, but their order is not known: pass "
                f"constraint_names={list(constraints)!r:.500}"
            )
        if set(constraints) != set(self._names):
            raise MalformedEvaluation(
                f"constraints must be named {list(self._names)!r:.500}, got "
                f"{list(constraints)!r:.500}"
            )
        return np.stack([np.asarray(constraints[name]) for name in self._names], axis=-1)


def describe_function(
    fun: Callable[..., Any], constraint_names: Sequence[str] | None = None
) -> dict[str, str]:
    """Say by what a journal knows a function: its name, and a digest of its source if there is one.

    The digest is that of the syntax: a comment or another layout changes nothing. What the function
    calls, and the values that it has caught from outside, are not in it.

    Args:
        fun: The function.
        constraint_names: The order of its constraints, where they have names.
    """
    while isinstance(fun, partial):
        fun = fun.func
    named = fun if hasattr(fun, "__qualname__") else type(fun)
    facts = {NAME: f"{named.__module__}:{named.__qualname__}"}
    if constraint_names is not None:
        facts[ORDER] = json.dumps(list(constraint_names), ensure_ascii=False)
    try:
        source = dedent(inspect.getsource(named))
    except (OSError, TypeError):
        # A function of a prompt or of a compiled library has no source.
        return facts
    try:
        if named.__qualname__.endswith("<lambda>"):
            source = _lambdas(source)
        facts[SOURCE] = read_syntax(source, named.__module__, is_package=False).digest
    except (SyntaxError, ValueError):
        # A lambda is found as the line that it stands in, which may be no statement.
        facts[SOURCE] = hashlib.sha256(source.encode()).hexdigest()
    return facts


def _lambdas(statement: str) -> str:
    """Return the lambdas of a statement alone: what else stands in it may change."""
    nodes = ast.walk(ast.parse(statement))
    return "\n".join(ast.unparse(node) for node in nodes if isinstance(node, ast.Lambda))


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


def refuse_other_order(path: object, header: Header, facts: dict[str, str]) -> None:
    """Refuse constraints in another order than that of the values on record.

    Other names are no contradiction: values have an order, not names.

    Raises:
        JournalError: The names are those of then, in another order.
    """
    before, now = (json.loads(known.get(ORDER, "[]")) for known in (header.facts, facts))
    if before != now and sorted(before) == sorted(now):
        raise JournalError(
            f"{path}: constraint_names were {before} then, and its values are in that order; now "
            f"they are {now}: pass them as they were, or choose another path"
        )


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
