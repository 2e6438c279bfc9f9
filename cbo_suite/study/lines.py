"""The lines of a study: what is searched, what was asked, what was told, and a larger budget."""

from __future__ import annotations

import math
import operator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from cbo_suite.errors import InvalidResult, one_line
from cbo_suite.journal import Number, Status, to_json_numbers
from cbo_suite.protocols import Array, Space

SCHEMA = 1


class SpaceLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A space as plain JSON, in the words of `Space`.

    Attributes:
        lower: Lower bounds.
        upper: Upper bounds.
        num_constraints: Number of constraints.
        integer: Indices of the variables that are whole numbers.
        log_scale: Indices of the variables on a logarithmic scale.
        linear: A and b of the known linear constraints A x <= b, None for none.
    """

    lower: list[float]
    upper: list[float]
    num_constraints: int = 0
    integer: list[int] = []
    log_scale: list[int] = []
    linear: tuple[list[list[float]], list[float]] | None = None

    @classmethod
    def of(cls, space: Space) -> SpaceLine:
        """Write down a space."""
        linear = space.linear_matrix.tolist(), space.linear_limit.tolist()
        return cls(
            space.lower.tolist(),
            space.upper.tolist(),
            space.num_constraints,
            np.flatnonzero(space.integer).tolist(),
            np.flatnonzero(space.log_scale).tolist(),
            linear if linear[1] else None,
        )

    def space(self) -> Space:
        """Make the space.

        Raises:
            InvalidSpace: Something contradicts something else.
        """
        return Space(
            self.lower,
            self.upper,
            self.num_constraints,
            integer=self.integer,
            log_scale=self.log_scale,
            linear=self.linear,
        )


class Beginning(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="study"):
    """The first line: what is searched, and how.

    Attributes:
        schema: Version of the format.
        optimizer: Id of the optimizer; "module:name" of a class that has none.
        options: Options of the optimizer, plain JSON.
        budget: Number of points that may be asked.
        batch_size: Number of points that are usually under way.
        n_init: Number of points of the initial design.
        seed: Fixes the design and the optimizer.
        space: Where points may lie.
        versions: Package name to version of what began it.
    """

    schema: int
    optimizer: str
    options: dict[str, Any]
    budget: int
    batch_size: int
    n_init: int
    seed: int
    space: SpaceLine
    versions: dict[str, str]


class Asked(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="asked"
):
    """Points that were asked; what is told before this line was known to the optimizer.

    Attributes:
        first: Number of the first point; points are numbered from 1 in the order asked.
        x: The points, shape `(k, d)`.
        wanted: Number of points that the optimizer was asked for, 0 for points of the design.
        seconds: Time spent in the optimizer.
        state: State of the optimizer after this, None if it offers none.
    """

    first: int
    x: list[list[float]]
    wanted: int
    seconds: float
    state: dict[str, Any] | None = None


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The result of one point.

    Attributes:
        objective: Value to minimise.
        constraints: Constraint values, m of them; at most zero is feasible.
        status: "ok", "nonfinite" or "failed".
        id: Number of the point that was asked, None for one that was not.
        x: Coordinates of a point that was not asked, None for one that was.
        message: Why it failed.
    """

    objective: Number
    constraints: list[Number]
    status: Status
    id: int | None = None
    x: list[float] | None = None
    message: str = ""

    @classmethod
    def of(
        cls,
        objective: object,
        constraints: ArrayLike,
        *,
        id: int | None = None,
        x: ArrayLike | None = None,
    ) -> Result:
        """Take values as they come from a simulator.

        Raises:
            InvalidResult: They are no numbers.
        """
        what = "a known point" if id is None else f"point {id}"
        try:
            # One value, also as an array of one; NumPy would take None for NaN.
            (value,) = np.array([] if objective is None else objective, dtype=float).reshape(-1)
            values = np.array(constraints, dtype=float).reshape(-1)
            point = None if x is None else np.array(x, dtype=float).reshape(-1).tolist()
        except (TypeError, ValueError) as error:
            raise InvalidResult(
                f"objective and constraints of {what} must be numbers: {error}"
            ) from error
        finite = math.isfinite(value) and bool(np.isfinite(values).all())
        (number,) = to_json_numbers(np.array([value]))
        status: Status = "ok" if finite else "nonfinite"
        return cls(number, to_json_numbers(values), status, _number_of(id), point)

    @classmethod
    def failure(cls, id: int, reason: str, num_constraints: int) -> Result:
        """Say that a point could not be evaluated, and why."""
        nothing: list[Number] = ["nan"] * num_constraints
        return cls(
            "nan", nothing, "failed", _number_of(id), None, one_line(reason) or "no reason given"
        )

    @property
    def shown(self) -> str:
        """Its values in one line, or why there are none."""
        if self.status == "failed":
            return f"failed ({self.message})"
        return " ".join(str(value) for value in (self.objective, *self.constraints))


def known_results(
    x: Array, objective: ArrayLike, constraints: ArrayLike, num_constraints: int
) -> list[Result]:
    """Take results of points that were not asked.

    Args:
        x: The points, shape `(n, d)`.
        objective: Their values, shape `(n,)`.
        constraints: Their constraint values, shape `(n, m)`; `(n,)` or `(m,)` if the other is 1.
        num_constraints: Number of constraints m.

    Raises:
        InvalidResult: The sizes are wrong, or these are no numbers.
    """
    n, m = len(x), num_constraints
    try:
        values, rows = np.asarray(objective).reshape(-1), np.asarray(constraints)
    except ValueError as error:
        raise InvalidResult(f"values of known points must be numbers: {error}") from error
    if len(values) != n:
        raise InvalidResult(f"{n} points need as many values, got {len(values)}")
    one_row = rows.ndim < 2 and 1 in (n, m)
    if rows.size != n * m or not (rows.size == 0 or one_row or rows.shape == (n, m)):
        raise InvalidResult(
            f"constraints of {n} points must have shape ({n}, {m}), got {rows.shape}"
        )
    rows = rows.reshape(n, m)
    return [Result.of(f, c, x=point) for point, f, c in zip(x, values, rows, strict=True)]


def _number_of(id: object) -> int | None:
    """Return the number of a point as Python's own; None for a point that was not asked.

    Raises:
        InvalidResult: It is no number.
    """
    if id is None:
        return None
    try:
        return operator.index(id)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidResult(f"the id of a point is a whole number, got {id!r}") from None


class Told(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="told"):
    """Results that were told together.

    Attributes:
        results: The results, at least one.
    """

    results: list[Result]


class Raised(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="budget"):
    """A larger budget from here on.

    Attributes:
        budget: Number of points that may be asked.
    """

    budget: int


Event = Asked | Told | Raised
StudyLine = Beginning | Asked | Told | Raised
