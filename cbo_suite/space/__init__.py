"""Where points may lie: a box, variables that are whole numbers or logarithmic, known limits.

Optimizers work in the unit cube and come back with `from_unit`, so that scales and whole numbers
are the business of this room alone. A space without them behaves as the box does.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbo_suite.errors import InvalidPoint, InvalidSpace

if TYPE_CHECKING:
    from cbo_suite.space.polytope import Polytope

Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Beyond this a width, a square or a sum of bounds may overflow.
LARGEST_BOUND = 1e150
# Whole numbers beyond this are not all doubles.
LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True, eq=False, init=False)
class Space:
    """All that an optimizer may know of a problem: where points may lie, and how many constraints.

    Attributes:
        lower: Lower bounds, shape `(d,)`, read-only.
        upper: Upper bounds, shape `(d,)`, read-only, each above its lower bound.
        num_constraints: Number of constraints m that an evaluation gives, possibly 0.
        integer: Which variables are whole numbers, shape `(d,)`, read-only.
        log_scale: Which variables are on a logarithmic scale, shape `(d,)`, read-only.
        linear_matrix: A of the known linear constraints A x <= b, shape `(k, d)`, read-only; k is 0
            where there are none.
        linear_limit: b of these constraints, shape `(k,)`, read-only.
    """

    lower: Array
    upper: Array
    num_constraints: int
    integer: BoolArray
    log_scale: BoolArray
    linear_matrix: Array
    linear_limit: Array

    def __init__(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        num_constraints: int = 0,
        *,
        integer: ArrayLike = (),
        log_scale: ArrayLike = (),
        linear: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        """Check everything and keep read-only copies.

        Args:
            lower: Lower bounds, shape `(d,)`.
            upper: Upper bounds, shape `(d,)`.
            num_constraints: Number of constraints m that an evaluation gives.
            integer: Indices of the variables that are whole numbers, or a mask of shape `(d,)`.
            log_scale: Indices of the variables on a logarithmic scale, or a mask of shape `(d,)`.
            linear: A of shape `(k, d)` and b of shape `(k,)`: points have A x <= b.

        Raises:
            InvalidSpace: Something contradicts something else; no point has A x <= b.
        """
        low, high = _bound(lower, "lower"), _bound(upper, "upper")
        if low.shape != high.shape:
            raise InvalidSpace(
                f"lower and upper need the same length, got {low.size} and {high.size}"
            )
        if not (low < high).all():
            first = int(np.argmin(low < high))
            raise InvalidSpace(
                f"every lower bound must be below its upper bound, got lower[{first}]="
                f"{low[first]} and upper[{first}]={high[first]}: did you swap the two?"
            )
        matrix, limit = _linear(linear, low.size)
        values = {
            "lower": low,
            "upper": high,
            "num_constraints": _count(num_constraints),
            "integer": _mask(integer, low.size, "integer"),
            "log_scale": _mask(log_scale, low.size, "log_scale"),
            "linear_matrix": matrix,
            "linear_limit": limit,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_scales()
        if len(limit):
            self.polytope.refuse_empty()

    def _check_scales(self) -> None:
        """Refuse bounds that whole numbers or a logarithm cannot have."""
        for i in np.flatnonzero(self.integer):
            ends = self.lower[i], self.upper[i]
            if any(end != round(end) or abs(end) > LARGEST_WHOLE for end in ends):
                raise InvalidSpace(
                    f"bounds of a whole-number variable must be whole numbers within 2**53, got "
                    f"lower[{i}]={ends[0]} and upper[{i}]={ends[1]}"
                )
        for i in np.flatnonzero(self.log_scale):
            if self.lower[i] <= 0:
                raise InvalidSpace(
                    f"a variable on a logarithmic scale needs a lower bound above 0, got "
                    f"lower[{i}]={self.lower[i]}"
                )

    def __eq__(self, other: object) -> bool:
        """Tell whether both spaces have the same points and number of constraints."""
        return self.digest == other.digest if isinstance(other, Space) else NotImplemented

    def __hash__(self) -> int:
        """Hash by content, in step with `__eq__`."""
        return hash(self.digest)

    @property
    def dim(self) -> int:
        """Number of variables d."""
        return int(self.lower.size)

    @cached_property
    def digest(self) -> str:
        """Fingerprint of all that the space says, as SHA-256 in hexadecimal digits.

        It is made of d, m and k as little-endian 64-bit integers, then of lower, upper, the two
        masks, A and b as little-endian doubles, row by row.
        """
        total = hashlib.sha256()
        for number in (self.dim, self.num_constraints, len(self.linear_limit)):
            total.update(number.to_bytes(8, "little"))
        for values in (
            self.lower,
            self.upper,
            self.integer,
            self.log_scale,
            self.linear_matrix,
            self.linear_limit,
        ):
            # Minus zero is zero.
            total.update(np.ascontiguousarray(values + 0.0, dtype="<f8").tobytes())
        return total.hexdigest()

    @cached_property
    def polytope(self) -> Polytope:
        """The points of the box with A x <= b, without regard to whole numbers of variables."""
        # Imported on use: it needs SciPy's solvers, and few spaces need it.
        from cbo_suite.space.polytope import Polytope

        return Polytope(self)

    @cached_property
    def _plain(self) -> bool:
        """Whether the unit cube is the box scaled, and nothing else."""
        return not (self.integer.any() or self.log_scale.any())

    @cached_property
    def _edges(self) -> tuple[Array, Array]:
        """Where the unit cube begins and ends, each `(d,)`, logarithms where these are the scale.

        Whole numbers have a cell of width one each, so that all are equally likely.
        """
        low = np.where(self.integer, self.lower - 0.5, self.lower)
        high = np.where(self.integer, self.upper + 0.5, self.upper)
        log = self.log_scale
        return np.log(low, where=log, out=low), np.log(high, where=log, out=high)

    def to_unit(self, x: ArrayLike) -> Array:
        """Scale points `(n, d)` of the space to the unit cube."""
        points = np.asarray(x, dtype=float)
        if self._plain:
            unit: Array = (points - self.lower) / (self.upper - self.lower)
            return unit
        low, high = self._edges
        scaled = np.log(points, where=self.log_scale, out=points.copy())
        unit = (scaled - low) / (high - low)
        return unit

    def from_unit(self, unit: ArrayLike) -> Array:
        """Scale points `(n, d)` of the unit cube to the box, never past its edge by rounding.

        Whole-number variables become the nearest whole number. Linear constraints are not looked
        at: see `place`.
        """
        cube = np.asarray(unit, dtype=float)
        if self._plain:
            scaled = self.lower + cube * (self.upper - self.lower)
        else:
            low, high = self._edges
            scaled = low + cube * (high - low)
            np.exp(scaled, where=self.log_scale, out=scaled)
            np.rint(scaled, where=self.integer, out=scaled)
        clipped: Array = np.clip(scaled, self.lower, self.upper)
        return clipped

    def round_unit(self, unit: ArrayLike) -> Array:
        """Move points `(n, d)` of the unit cube to where whole numbers lie: what is evaluated."""
        cube = np.asarray(unit, dtype=float)
        if not self.integer.any():
            return cube
        rounded: Array = np.where(self.integer, self.to_unit(self.from_unit(cube)), cube)
        return rounded

    @cached_property
    def _rounding(self) -> Array:
        """What rounding can make of each of A x - b, in any order of summation, shape `(k,)`."""
        largest = np.maximum(np.abs(self.lower), np.abs(self.upper))
        sums = np.abs(self.linear_matrix) @ largest + np.abs(self.linear_limit)
        return np.asarray(4.0 * (self.dim + 2) * np.finfo(float).eps * sums)

    def allows(self, x: ArrayLike) -> BoolArray:
        """Tell which points `(n, d)` of the box may be proposed by A x <= b, shape `(n,)`.

        They keep a distance from faces that continuous variables can reach, so that everybody who
        computes A x, in whatever order, finds them allowed. Whole numbers may lie on a face.
        """
        points = np.asarray(x, dtype=float)
        if not len(self.linear_limit):
            return np.ones(len(points), dtype=bool)
        reachable = (self.linear_matrix[:, ~self.integer] != 0.0).any(axis=1)
        limit = self.linear_limit + np.where(reachable, -self._rounding, self._rounding)
        return np.asarray((points @ self.linear_matrix.T <= limit).all(axis=1))

    def place(self, unit: ArrayLike) -> Array:
        """Scale points `(n, d)` of the unit cube to points that may be evaluated.

        What breaks a linear constraint is moved to the nearest point that does not.
        """
        return self.project(self.from_unit(unit))

    def project(self, x: Array) -> Array:
        """Move points `(n, d)` of the box that break a linear constraint to the nearest allowed."""
        outside = ~self.allows(x)
        if not outside.any():
            return x
        moved = x.copy()
        moved[outside] = [self.polytope.nearest(point) for point in x[outside]]
        return moved

    def sample(self, n: int, random: np.random.Generator) -> Array:
        """Draw points of the space at random, uniform on the scales of its variables: `(n, d)`."""
        return self.redraw(self.from_unit(random.random((n, self.dim))), random)

    def redraw(self, x: Array, random: np.random.Generator) -> Array:
        """Draw points `(n, d)` of the box that break a linear constraint anew, as `sample` does."""
        outside = ~self.allows(x)
        if not outside.any():
            return x
        drawn = x.copy()
        drawn[outside] = self.polytope.sample(int(outside.sum()), random)
        return drawn

    def snap(self, x: Array) -> Array:
        """Put points `(n, d)` that rounding has put outside onto the edge; leave all others.

        Rounding is what lies within a billionth of the box's width, or of a whole number.
        """
        margin = 1e-9 * (self.upper - self.lower)
        near = (x >= self.lower - margin) & (x <= self.upper + margin)
        snapped: Array = np.where(near, np.clip(x, self.lower, self.upper), x)
        if self.integer.any():
            whole = np.round(snapped)
            close = self.integer & (np.abs(snapped - whole) <= margin)
            snapped = np.where(close, whole, snapped)
        return snapped

    def validate(self, x: ArrayLike) -> Array:
        """Return `x` as a float64 array of shape `(n, d)` inside the space, or refuse it.

        Raises:
            InvalidPoint: `x` has another shape or type, is not finite, leaves the box, is not whole
                where it must be, or breaks a linear constraint.
        """
        points = self._as_points(x)
        inside = (points >= self.lower) & (points <= self.upper)
        if not inside.all():
            row, column = (int(i) for i in np.argwhere(~inside)[0])
            raise InvalidPoint(
                f"points must be finite and inside the box, got x[{row}, {column}]="
                f"{points[row, column]!r} outside [{self.lower[column]}, {self.upper[column]}]"
            )
        broken = self.integer & (points != np.round(points))
        if broken.any():
            row, column = (int(i) for i in np.argwhere(broken)[0])
            raise InvalidPoint(
                f"variable {column} takes whole numbers, got x[{row}, {column}]="
                f"{points[row, column]!r}"
            )
        excess = points @ self.linear_matrix.T - self.linear_limit
        outside = excess > self._rounding
        if outside.any():
            row, face = (int(i) for i in np.argwhere(outside)[0])
            raise InvalidPoint(
                f"points must have A x <= b, got x[{row}] which exceeds b[{face}] by "
                f"{excess[row, face]:.3g}"
            )
        return points

    def _as_points(self, x: ArrayLike) -> Array:
        """Return `x` as numbers of shape `(n, d)`, or refuse it."""
        if np.ma.isMaskedArray(x) and np.ma.getmaskarray(x).any():
            raise InvalidPoint("points must be real numbers, got a masked array that hides some")
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
        numbers: Array = points
        return numbers


def _bound(values: ArrayLike, name: str) -> Array:
    """Return one bound as a read-only float64 vector, or refuse it."""
    try:
        bound = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidSpace(f"{name} must be a vector of numbers, got {values!r}") from error
    if bound.ndim != 1 or bound.size == 0 or not np.isfinite(bound).all():
        raise InvalidSpace(f"{name} must be a vector of finite numbers, got {values!r}")
    if np.abs(bound).max() > LARGEST_BOUND:
        raise InvalidSpace(
            f"{name} must lie within {LARGEST_BOUND:g}, got {np.abs(bound).max():g}: scale your "
            "variables"
        )
    bound.setflags(write=False)
    return bound


def _count(value: object) -> int:
    """Return a number of constraints, or refuse it."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 0 <= int(value) < 2**31:  # type: ignore[call-overload]
        raise InvalidSpace(f"num_constraints must be a whole number >= 0, got {value!r}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def _mask(values: ArrayLike, dim: int, name: str) -> BoolArray:
    """Return indices or a mask as a read-only mask of shape `(d,)`, or refuse them."""
    given = np.asarray(values)
    mask = np.zeros(dim, dtype=bool)
    if given.dtype.kind == "b" and given.shape == (dim,):
        mask[:] = given
    elif given.size:
        if given.dtype.kind not in "iu" or given.ndim != 1:
            raise InvalidSpace(
                f"{name} must be indices of variables, or true and false for each, got {values!r}"
            )
        if given.min() < 0 or given.max() >= dim:
            raise InvalidSpace(
                f"{name} must be indices from 0 to {dim - 1}, got {values!r}: there are {dim} "
                "variables"
            )
        mask[given] = True
    mask.setflags(write=False)
    return mask


def _linear(linear: tuple[ArrayLike, ArrayLike] | None, dim: int) -> tuple[Array, Array]:
    """Return A `(k, d)` and b `(k,)` as read-only arrays, or refuse them."""
    if linear is None:
        matrix, limit = np.empty((0, dim)), np.empty(0)
    else:
        try:
            given_matrix, given_limit = linear
            matrix, limit = np.array(given_matrix, dtype=float), np.array(given_limit, dtype=float)
        except (TypeError, ValueError) as error:
            raise InvalidSpace(f"linear must be (A, b) for A x <= b: {error}") from error
        if matrix.ndim != 2 or matrix.shape[1] != dim or limit.shape != (len(matrix),):
            raise InvalidSpace(
                f"linear needs A of shape (k, {dim}) and b of shape (k,), got {matrix.shape} and "
                f"{limit.shape}"
            )
        size = max(np.abs(matrix).max(initial=0.0), np.abs(limit).max(initial=0.0))
        if not size <= LARGEST_BOUND:
            raise InvalidSpace(f"linear needs finite numbers within {LARGEST_BOUND:g}")
    matrix.setflags(write=False)
    limit.setflags(write=False)
    return matrix, limit
