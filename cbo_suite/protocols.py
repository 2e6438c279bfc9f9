"""The contracts: what a problem is, what an optimizer is, and what they exchange.

Everything is minimised; a point is feasible when every constraint value is at most zero; points
are always float64 arrays of shape `(n, d)`. One-letter names follow the mathematics: `x` points,
`n` points, `d` dimensions, `m` constraints.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbo_suite.errors import InvalidPoint, InvalidSpace, InvalidTask

Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Space:
    """The box and the number of constraints: all that an optimizer may know of a problem.

    Attributes:
        lower: Lower bounds, shape `(d,)`, read-only.
        upper: Upper bounds, shape `(d,)`, read-only, each above its lower bound.
        num_constraints: Number of constraints m, possibly 0.
    """

    lower: Array
    upper: Array
    num_constraints: int = 0

    def __post_init__(self) -> None:
        """Check the bounds and keep read-only copies of them."""
        lower, upper = _bound(self.lower, "lower"), _bound(self.upper, "upper")
        if lower.shape != upper.shape:
            raise InvalidSpace(
                f"lower and upper need the same length, got {lower.size} and {upper.size}"
            )
        if not (lower < upper).all():
            first = int(np.argmin(lower < upper))
            raise InvalidSpace(
                f"every lower bound must be below its upper bound, got lower[{first}]="
                f"{lower[first]} and upper[{first}]={upper[first]}: did you swap the two?"
            )
        if int(self.num_constraints) != self.num_constraints or self.num_constraints < 0:
            raise InvalidSpace(
                f"num_constraints must be a whole number >= 0, got {self.num_constraints!r}"
            )
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "num_constraints", int(self.num_constraints))

    def __eq__(self, other: object) -> bool:
        """Tell whether both spaces have the same bounds and number of constraints."""
        if not isinstance(other, Space):
            return NotImplemented
        return (
            self.num_constraints == other.num_constraints
            and np.array_equal(self.lower, other.lower)
            and np.array_equal(self.upper, other.upper)
        )

    def __hash__(self) -> int:
        """Hash by content, in step with `__eq__`."""
        return hash((self.num_constraints, self.lower.tobytes(), self.upper.tobytes()))

    @property
    def dim(self) -> int:
        """Number of variables d."""
        return int(self.lower.size)

    def to_unit(self, x: ArrayLike) -> Array:
        """Scale points `(n, d)` of the box to the unit cube."""
        unit: Array = (np.asarray(x, dtype=float) - self.lower) / (self.upper - self.lower)
        return unit

    def from_unit(self, unit: ArrayLike) -> Array:
        """Scale points `(n, d)` of the unit cube to the box, never past its edge by rounding."""
        scaled = self.lower + np.asarray(unit, dtype=float) * (self.upper - self.lower)
        clipped: Array = np.clip(scaled, self.lower, self.upper)
        return clipped

    def snap(self, x: Array) -> Array:
        """Put points `(n, d)` that rounding has put outside onto the edge; leave all others.

        Rounding is what lies within a billionth of the box's width.
        """
        margin = 1e-9 * (self.upper - self.lower)
        near = (x >= self.lower - margin) & (x <= self.upper + margin)
        snapped: Array = np.where(near, np.clip(x, self.lower, self.upper), x)
        return snapped

    def validate(self, x: ArrayLike) -> Array:
        """Return `x` as a float64 array of shape `(n, d)` inside the box, or refuse it.

        Raises:
            InvalidPoint: `x` has another shape or type, is not finite or leaves the box.
        """
        try:
            points = np.asarray(x)
            if points.dtype.kind not in "fiub":
                raise TypeError(f"dtype {points.dtype}")
            # Row by row in memory, because sums over a row round by the order they are made in.
            points = points.astype(float, order="C")
        except (TypeError, ValueError) as error:
            raise InvalidPoint(f"points must be real numbers, got {error}") from error
        if points.ndim != 2 or points.shape[1] != self.dim:
            hint = " (one point? pass x[None, :])" if points.shape == (self.dim,) else ""
            raise InvalidPoint(f"points must have shape (n, {self.dim}), got {points.shape}{hint}")
        inside = (points >= self.lower) & (points <= self.upper)
        if not inside.all():
            row, column = (int(i) for i in np.argwhere(~inside)[0])
            raise InvalidPoint(
                f"points must be finite and inside the box, got x[{row}, {column}]="
                f"{points[row, column]!r} outside [{self.lower[column]}, {self.upper[column]}]"
            )
        return points


def _bound(values: ArrayLike, name: str) -> Array:
    """Return one bound as a read-only float64 vector, or refuse it."""
    try:
        bound = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidSpace(f"{name} must be a vector of numbers, got {values!r}") from error
    if bound.ndim != 1 or bound.size == 0 or not np.isfinite(bound).all():
        raise InvalidSpace(f"{name} must be a vector of finite numbers, got {values!r}")
    bound.setflags(write=False)
    return bound


def whole_number(name: str, value: object, least: int) -> int:
    """Return a whole number of at least `least` that fits 63 bits, or refuse it by its name."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if isinstance(value, bool) or not least <= number < 2**63:
        raise InvalidTask(f"{name} must be a whole number >= {least}, got {value!r}")
    return number


class Evaluation(NamedTuple):
    """What one call of a problem gives for n points; feasible iff every constraint <= 0.

    Attributes:
        objective: Values to minimise, shape `(n,)`.
        constraints: Constraint values, shape `(n, m)`.
    """

    objective: Array
    constraints: Array

    @property
    def violation(self) -> Array:
        """Total violation, the sum of max(0, c) over the constraints, shape `(n,)`.

        It is infinite where the objective, a constraint or the sum is not finite.
        """
        finite = np.isfinite(self.objective) & np.isfinite(self.constraints).all(axis=1)
        excess = np.maximum(np.where(finite[:, None], self.constraints, 0.0), 0.0)
        with np.errstate(over="ignore"):
            total: Array = np.where(finite, excess.sum(axis=1), np.inf)
        return total

    @property
    def feasible(self) -> BoolArray:
        """Which points are feasible: all values finite, every constraint <= 0; shape `(n,)`."""
        mask: BoolArray = self.violation == 0.0
        return mask

    def best(self) -> int:
        """Index of the best point: feasible first, then least violation, then least objective.

        Ties go to the earliest point. At least one point is needed.
        """
        objective = np.where(np.isnan(self.objective), np.inf, self.objective)
        return int(np.lexsort((objective, self.violation))[0])


@dataclass(frozen=True, eq=False)
class BestKnown:
    """The best feasible point that is known of a problem.

    Attributes:
        objective: Its objective value.
        x: The point, shape `(d,)`, read-only, which evaluates to that value and is feasible.
        source: Where it comes from.
    """

    objective: float
    x: Array
    source: str

    def __post_init__(self) -> None:
        """Keep a read-only copy of the point."""
        point = np.array(self.x, dtype=float)
        point.setflags(write=False)
        object.__setattr__(self, "x", point)


@runtime_checkable
class ConstrainedProblem(Protocol):
    """A function on a box: minimise the objective where every constraint is <= 0."""

    @property
    def id(self) -> str:
        """Frozen, versioned name such as "ackley-10d-v1"."""

    @property
    def space(self) -> Space:
        """The box and the number of constraints."""

    def evaluate(self, x: Array) -> Evaluation:
        """Evaluate points of shape `(n, d)`; one call gives objective and constraints."""


@runtime_checkable
class Optimizer(Protocol):
    """Ask and tell.

    The factory is the class itself, called as
    `(space, *, budget, batch_size, seed, **options)`. An optimizer is a function of these and of
    the told data. Before the first ask it is told an initial design that it did not ask for.

    An optimizer may also offer `get_state() -> dict` and `set_state(dict)` with plain JSON. To
    resume, the harness tells the recorded data to a fresh optimizer, then calls `set_state`: the
    state replaces whatever the tells left behind, so it need not contain the data.

    It may offer `inspect() -> dict` (plain JSON: what it did last, kept in the journal),
    `recommend()` (the point, shape `(d,)`, that it would choose at the end) and `close()` (called
    once when the run ends, however it ends).

    Limits are declared as class attributes: `sequential = True` (one point at a time, however
    many workers there are), `max_dim`, `max_batch_size`; and `deterministic_search = True` if the
    seed makes no difference.
    """

    def ask(self, n: int = 1) -> Array:
        """Propose between 1 and `n` points, shape `(k, d)`, inside the box."""

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results: any subset, in any order, also points that were never asked."""


class ProblemEntry(NamedTuple):
    """A row of the table of problems: enough to list the problem without importing it.

    Attributes:
        target: "module:attribute" of the class or factory.
        dim: Number of variables.
        num_constraints: Number of constraints.
        title: One line that says what it is.
        extra: The optional extra it needs, "" for none.
        options: Keyword arguments for the factory.
    """

    target: str
    dim: int
    num_constraints: int
    title: str
    extra: str = ""
    options: Mapping[str, Any] = {}


class OptimizerEntry(NamedTuple):
    """A row of the table of optimizers.

    Attributes:
        target: "module:attribute" of the class or factory.
        title: One line that says what it is.
        extra: The optional extra it needs, "" for none.
        options: Keyword arguments for the factory, before the user's own.
    """

    target: str
    title: str
    extra: str = ""
    options: Mapping[str, Any] = {}
