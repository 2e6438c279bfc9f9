"""What the user hands to `minimize`, checked before the first evaluation and put into our words."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cbo_suite.errors import CboError, InvalidData, InvalidPoint, InvalidSpace, InvalidTask
from cbo_suite.journal import Given
from cbo_suite.protocols import Array, Evaluation, Space, whole_number

# Heads of columns in exported tables, which no variable and no constraint may have.
RESERVED = ("evaluation", "objective", "violation", "feasible", "status", "message")


class Data(NamedTuple):
    """Results that are known: every value is a finite number.

    Attributes:
        x: Points, shape `(k, d)`.
        objective: Objective values, shape `(k,)`.
        constraints: Constraint values, shape `(k, m)`.
    """

    x: Array
    objective: Array
    constraints: Array

    @property
    def evaluation(self) -> Evaluation:
        """Objective and constraints."""
        return Evaluation(self.objective, self.constraints)


class Names(NamedTuple):
    """What variables and constraints are called, "x[0]" and "c[0]" where nothing was said.

    Attributes:
        variables: One name for each of d variables.
        constraints: One name for each of m constraints.
    """

    variables: tuple[str, ...]
    constraints: tuple[str, ...]

    @classmethod
    def of(
        cls,
        dim: int,
        num_constraints: int,
        variables: Sequence[str] | None,
        constraints: Sequence[str] | None,
    ) -> Names:
        """Check the names that were given and make up the others.

        Raises:
            InvalidSpace: They are too few or too many, doubled, or no names.
        """
        names = cls(
            _named("names", variables, dim, "x", "variables"),
            _named("constraint_names", constraints, num_constraints, "c", "constraints"),
        )
        every = [*names.variables, *names.constraints]
        for name in every:
            if name in RESERVED or every.count(name) > 1:
                reason = "is the head of a column of ours" if name in RESERVED else "is there twice"
                raise InvalidSpace(f"names must differ from each other, but {name!r} {reason}")
        return names


def _named(
    argument: str, names: Sequence[str] | None, count: int, letter: str, what: str
) -> tuple[str, ...]:
    """Return names of `count` things, or refuse them."""
    if names is None:
        return tuple(f"{letter}[{i}]" for i in range(count))
    listed = None if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if listed is None or not all(isinstance(n, str) and n.strip() for n in listed):
        raise InvalidSpace(f"{argument} must be a list of words, got {names!r}")
    if len(listed) != count:
        raise InvalidSpace(f"{argument} must name all {count} {what}, got {len(listed)}: {listed}")
    return tuple(str(name) for name in listed)


def count_constraints(num_constraints: int, names: Sequence[str] | None) -> int:
    """Return the number of constraints: that of their names where only these were given.

    Raises:
        InvalidSpace: The names are no list, or an iterator, which could be read only once.
    """
    if names is None:
        return num_constraints
    if isinstance(names, str) or not isinstance(names, Collection):
        raise InvalidSpace(f"constraint_names must be a list of words, got {names!r}")
    return len(names) if num_constraints == 0 else num_constraints


def make_space(
    box: Space, names: Names, integer: Any, log_scale: Any, linear: tuple[Any, ArrayLike] | None
) -> Space:
    """Return a box with kinds of variables and linear constraints, told by index or by name.

    Args:
        box: The bounds and the number of constraints.
        names: The names of its variables.
        integer: Indices or names of the variables that are whole numbers, or a mask.
        log_scale: The same for those on a logarithmic scale.
        linear: A and b of A x <= b; a row of A may be a mapping of names or indices to
            coefficients.

    Raises:
        InvalidSpace: Something contradicts something else, or a name is unknown.
    """
    if linear is not None:
        try:
            matrix, limit = linear
            rows = [_row(row, names) for row in matrix]
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidSpace):
                raise
            raise InvalidSpace(f"linear must be (A, b) for A x <= b: {error}") from error
        linear = (np.empty((0, box.dim)) if len(rows) == 0 else rows, limit)
    return Space(
        box.lower,
        box.upper,
        box.num_constraints,
        integer=_indices("integer", integer, names),
        log_scale=_indices("log_scale", log_scale, names),
        linear=linear,
    )


def _indices(argument: str, values: Any, names: Names) -> Any:
    """Put indices in the place of names; anything else is left to `Space` to judge."""
    if values is None:
        return ()
    if isinstance(values, np.ndarray):
        # An array of numbers or a mask stays one.
        values = values.tolist() if values.dtype.kind in "UO" else values
    listed = [values] if isinstance(values, str) else values
    if isinstance(listed, np.ndarray) or not isinstance(listed, Iterable):
        return listed
    return [
        find_variable(argument, value, names.variables) if isinstance(value, str) else value
        for value in listed
    ]


def find_variable(
    argument: str, variable: Any, names: Sequence[str], kind: type[CboError] = InvalidSpace
) -> int:
    """Return the index of a variable that is told by its name or its index.

    Args:
        argument: Where it is told, for the message.
        variable: The name or the index.
        names: Names of all variables.
        kind: The error to raise.

    Raises:
        InvalidSpace: There is no such variable, or it is told otherwise; or another error, `kind`.
    """
    there = f"there are {', '.join(names[:20])}"
    if isinstance(variable, str):
        if variable in names:
            return names.index(variable)
        near = get_close_matches(variable, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else there
        raise kind(f"{argument}: no variable is named {variable!r}; {hint}")
    try:
        index = -1 if isinstance(variable, bool) else operator.index(variable)
    except TypeError:
        index = -1
    if not 0 <= index < len(names):
        raise kind(
            f"{argument}: a variable is told by its name or its index from 0 to {len(names) - 1}, "
            f"got {variable!r}; {there}"
        )
    return int(index)


def _row(row: Any, names: Names) -> Any:
    """Return a row of A: a mapping of names or indices to coefficients becomes a list."""
    if not isinstance(row, Mapping):
        return row
    coefficients = [0.0] * len(names.variables)
    for variable, value in row.items():
        coefficients[find_variable("linear", variable, names.variables)] += float(value)
    return coefficients


def make_given(data: Any, x0: ArrayLike | None, space: Space, names: Names) -> Given:
    """Check known results and first points.

    Raises:
        InvalidData: The results are not (X, F, C) of fitting shapes, or not finite.
        InvalidPoint: A point leaves the space.
    """
    known = None if data is None else check_data(data, space, names)
    first = np.empty((0, space.dim)) if x0 is None else check_points("x0", x0, space, names)
    if known is None or len(known.x) == 0:
        return Given(first=first.tolist())
    return Given(
        known.x.tolist(), known.objective.tolist(), known.constraints.tolist(), first.tolist()
    )


def check_data(data: Any, space: Space, names: Names) -> Data:
    """Check known results: (X, F, C), or (X, F) if there are no constraints."""
    m = space.num_constraints
    needed = f"(X, F, C) of shapes (n, {space.dim}), (n,) and (n, {m})"
    if not isinstance(data, tuple | list) or not 2 + (m > 0) <= len(data) <= 3:
        got = f"{len(data)} parts" if isinstance(data, tuple | list) else type(data).__name__
        raise InvalidData(f"data must be {needed}, got {got}")
    x = check_points("X of data", data[0], space, names)
    parts = [np.empty((len(x), 0))] if len(data) == 2 else []
    for name, values, shape in zip("FC", data[1:], ((len(x),), (len(x), m)), strict=False):
        try:
            numbers = _floats(values)
        except (TypeError, ValueError) as error:
            raise InvalidData(f"{name} of data must be numbers: {error}") from error
        if numbers.shape != shape:
            raise InvalidData(
                f"{name} of data must have shape {shape} for {len(x)} points and {m} constraints, "
                f"got {numbers.shape}"
            )
        bad = ~np.isfinite(numbers).all(axis=tuple(range(1, numbers.ndim)))
        if bad.any():
            row = int(bad.argmax())
            raise InvalidData(
                f"{name} of data must be finite, got {numbers[row].tolist()!r} in row {row}: leave "
                f"out the {int(bad.sum())} rows without values"
            )
        parts.insert(name == "C", numbers)
    return Data(x, parts[0], parts[1])


def _floats(values: Any) -> Array:
    """Return numbers as a new array; what a mask hides is NaN."""
    array: Array = np.ma.filled(np.ma.array(values, dtype=float), np.nan)
    return array


def check_points(what: str, x: Any, space: Space, names: Names) -> Array:
    """Return one point `(d,)` or several `(n, d)` as an array `(n, d)`, or refuse them."""
    try:
        points = _floats(x)
    except (TypeError, ValueError) as error:
        raise InvalidPoint(f"{what} must be points of numbers: {error}") from error
    if points.shape == (space.dim,):
        points = points[None, :]
    if points.ndim != 2 or points.shape[1] != space.dim:
        raise InvalidPoint(
            f"{what} must be points of {space.dim} coordinates, shape (n, {space.dim}), got shape "
            f"{points.shape}"
        )
    points = space.snap(points)
    outside = ~((points >= space.lower) & (points <= space.upper))
    if outside.any():
        row, column = (int(i) for i in np.argwhere(outside)[0])
        count = int(outside.any(axis=1).sum())
        raise InvalidPoint(
            f"{what} must lie inside the box, got {names.variables[column]} = "
            f"{points[row, column]:g} in row {row}, outside [{space.lower[column]:g}, "
            f"{space.upper[column]:g}] ({count} of {len(points)} points are): leave them out, or "
            "widen the bounds"
        )
    try:
        return space.validate(points)
    except InvalidPoint as error:
        raise InvalidPoint(f"{what}: {error}") from error


def choose_n_init(n_init: int | None, budget: int, dim: int, given: Given) -> int:
    """Return the number of points of the design, those of the user's own among them.

    By default it is twice the dimension, at least 10 and at most half the budget; results that are
    known stand in for points of it.

    Raises:
        InvalidTask: There are more points of the user's own than the design or the budget allows.
    """
    own = len(given.first)
    if own > budget:
        raise InvalidTask(f"x0 has {own} points, more than the budget of {budget}: raise it")
    if n_init is None:
        default = max(1, min(max(10, 2 * dim), budget // 2))
        return max(own, default - len(given.x))
    n_init = whole_number("n_init", n_init, 0)
    if n_init < own:
        raise InvalidTask(
            f"x0 has {own} points, which are part of the design of n_init={n_init} points: ask for "
            f"{own} or more"
        )
    return n_init
