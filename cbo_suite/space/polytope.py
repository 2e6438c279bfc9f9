"""Points of a space with known linear constraints A x <= b: draw them, find the nearest one.

Continuous variables are measured in widths of the box, whole numbers in units, so that solvers see
numbers of one size. Whatever a solver gives is checked by `Space.allows`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp, nnls

from cbo_suite.errors import InvalidSpace

if TYPE_CHECKING:
    from cbo_suite.space import Array, Space

Indices = np.ndarray[tuple[int], np.dtype[np.intp]]

# Below this share of the box's width the allowed set has no room for continuous variables.
_LEAST_ROOM = 1e-7
# Points drawn per point wanted before rejection counts as hopeless.
_TRIES = 1000
_SWEEPS = 60
_HALVINGS = 60


class Polytope:
    """The allowed points of a space.

    Attributes:
        centre: An allowed point with the most room around it, shape `(d,)`; None if there is none.
        room: How far it is from the nearest face that continuous variables can reach, in widths.
    """

    def __init__(self, space: Space) -> None:
        """Find the point with the most room."""
        self.space = space
        self._matrix, self._limit = space.linear_matrix, space.linear_limit
        whole = space.integer
        self._unit = np.where(whole, 1.0, space.upper - space.lower)
        # A x <= b in these units, seen from the lower corner: G z <= h.
        self._rows = self._matrix * self._unit
        self._room_of_rows = self._limit - self._matrix @ space.lower
        self._high = np.where(whole, space.upper - space.lower, 1.0)
        self.centre, self.room = self._find_centre()

    def refuse_empty(self) -> None:
        """Raise where no point, or next to none, is allowed.

        Raises:
            InvalidSpace: The set is empty, or flat in its continuous variables.
        """
        if self.centre is None:
            raise InvalidSpace(
                "no point of the box has A x <= b (with whole numbers where they are asked for): "
                "check the signs of A and b; for A x >= b give -A and -b"
            )
        if self.room < _LEAST_ROOM:
            raise InvalidSpace(
                "A x <= b leaves no room inside the box for the continuous variables: it fixes a "
                "combination of them; express one variable by the others instead"
            )

    def _find_centre(self) -> tuple[Array | None, float]:
        """Maximise the distance from the faces, over points with whole numbers where asked for."""
        space, dim = self.space, self.space.dim
        continuous = ~space.integer
        # Faces that only whole numbers can reach may be touched: they have no room to keep.
        reach = np.linalg.norm(self._rows[:, continuous], axis=1)
        faces = LinearConstraint(np.column_stack([self._rows, reach]), ub=self._room_of_rows)
        box = np.eye(dim)[continuous]
        ones = np.ones((len(box), 1))
        walls = [
            LinearConstraint(np.hstack([box, ones]), ub=self._high[continuous]),
            LinearConstraint(np.hstack([-box, ones]), ub=np.zeros(len(box))),
        ]
        found = milp(
            np.append(np.zeros(dim), -1.0),
            integrality=np.append(space.integer, 0),
            bounds=Bounds(np.zeros(dim + 1), np.append(self._high, 1.0)),
            constraints=[faces, *walls],
        )
        if found.x is None:
            return None, 0.0
        centre = self._from_solver(found.x[:dim])
        room = 1.0 if space.integer.all() else float(found.x[dim])
        return (centre, room) if space.allows(centre[None])[0] else (centre, 0.0)

    def _from_solver(self, z: Array) -> Array:
        """Turn a solver's point `(d,)` into one of the box, whole where it must be."""
        space = self.space
        x = np.where(space.integer, np.round(z), z) * self._unit + space.lower
        clipped: Array = np.clip(x, space.lower, space.upper)
        return clipped

    def nearest(self, x: Array) -> Array:
        """Return the allowed point nearest to a point of the box, both of shape `(d,)`.

        Distances are Euclidean in widths of the box; with whole numbers, sums of absolute values.
        """
        if self.centre is None:
            raise InvalidSpace("no point is allowed")
        space = self.space
        found = self._nearest_mixed(x) if space.integer.any() else self._nearest_continuous(x)
        if found is None:
            return self.centre.copy()
        # Solvers are exact to some digits only: the rest of the way goes towards the centre.
        step = 1e-12
        for _ in range(_HALVINGS):
            if space.allows(found[None])[0]:
                return found
            towards = np.where(space.integer, found, found + step * (self.centre - found))
            found, step = np.clip(towards, space.lower, space.upper), min(2.0 * step, 0.5)
        return self.centre.copy()

    def _nearest_continuous(self, x: Array) -> Array:
        """Project on the polytope: a least-distance problem (Lawson, Hanson 1974, ch. 23)."""
        space = self.space
        target = (x - space.lower) / self._unit
        rows = np.vstack([-self._rows, np.eye(space.dim), -np.eye(space.dim)])
        limits = np.concatenate([-self._room_of_rows, np.zeros(space.dim), -self._high])
        # With y = z - target: minimise |y| where rows y >= limits - rows target.
        need = limits - rows @ target
        weights, _ = nnls(
            np.vstack([rows.T, need]), np.append(np.zeros(space.dim), 1.0), maxiter=100 * len(rows)
        )
        residual = np.append(rows.T @ weights, need @ weights - 1.0)
        step = -residual[:-1] / residual[-1]
        return self._from_solver(target + step)

    def _nearest_mixed(self, x: Array) -> Array | None:
        """Minimise the sum of distances with whole numbers by branch and bound."""
        space, dim = self.space, self.space.dim
        width = np.where(space.integer, space.upper - space.lower, 1.0)
        target = (x - space.lower) / self._unit
        eye = np.eye(dim)
        distances = [
            LinearConstraint(np.hstack([eye, -eye]), ub=target),
            LinearConstraint(np.hstack([-eye, -eye]), ub=-target),
        ]
        rows = np.hstack([self._rows, np.zeros_like(self._rows)])
        found = milp(
            np.append(np.zeros(dim), 1.0 / width),
            integrality=np.append(space.integer, np.zeros(dim)),
            bounds=Bounds(np.zeros(2 * dim), np.append(self._high, np.full(dim, np.inf))),
            constraints=[LinearConstraint(rows, ub=self._room_of_rows), *distances],
        )
        return None if found.x is None else self._from_solver(found.x[:dim])

    def pull(self, x: Array, inside: Array) -> Array:
        """Draw points `(n, d)` towards an allowed point `(d,)`, or one each, until A x <= b holds.

        Points that are allowed stay. Whole numbers are rounded afterwards, which can break a
        constraint again: look with `space.allows`.
        """
        way = x - inside
        left = self._limit - inside @ self._matrix.T
        rates = way @ self._matrix.T
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(rates > left, left / rates, 1.0)
        share = np.minimum(steps.min(axis=1, initial=1.0), 1.0)
        # A little less than to the face, where rounding would decide.
        share = np.where(share < 1.0, share * (1.0 - 1e-9), 1.0)
        pulled = np.where((share < 1.0)[:, None], inside + share[:, None] * way, x)
        rounded: Array = np.where(self.space.integer, np.round(pulled), pulled)
        return rounded

    def sample(self, n: int, random: np.random.Generator) -> Array:
        """Draw allowed points, uniform on the scales of the variables, shape `(n, d)`.

        By rejection; where that is hopeless by Markov chains of moves along variables and, for
        plain continuous variables, along random directions (hit and run), each from another start.
        """
        space = self.space
        found, count = [np.empty((0, space.dim))], 0
        for _ in range(10):
            drawn = space.from_unit(random.random((max(1, _TRIES * n // 10), space.dim)))
            found.append(drawn[space.allows(drawn)])
            count += len(found[-1])
            if count >= n:
                return np.concatenate(found)[:n]
        starts = space.from_unit(random.random((n, space.dim)))
        x = np.array([self.nearest(start) for start in starts])
        plain = np.flatnonzero(~(space.integer | space.log_scale))
        for _ in range(_SWEEPS):
            for j in range(space.dim):
                x = self._move_along(x, j, random)
            for _ in range(len(plain)):
                x = self._move_across(x, plain, random)
        return x

    def _move_along(self, x: Array, j: int, random: np.random.Generator) -> Array:
        """Draw variable j of all points `(n, d)` anew, given the others."""
        space = self.space
        before = x[:, j]
        low, high = self._reach(
            x, np.eye(space.dim)[j], space.lower[j] - before, space.upper[j] - before
        )
        low, high = before + low, before + high
        share = random.random(len(x))
        if space.integer[j]:
            low, high = np.ceil(low - 1e-9) - 0.5, np.floor(high + 1e-9) + 0.5
        if space.log_scale[j]:
            drawn = low * (high / low) ** share
        else:
            drawn = low + share * (high - low)
        if space.integer[j]:
            drawn = np.clip(np.round(drawn), low + 0.5, high - 0.5)
        moved = x.copy()
        moved[:, j] = np.clip(drawn, space.lower[j], space.upper[j])
        return self._keep_allowed(moved, x)

    def _move_across(self, x: Array, plain: Indices, random: np.random.Generator) -> Array:
        """Draw all points `(n, d)` anew along a random direction of some variables each."""
        space = self.space
        ways = np.zeros_like(x)
        ways[:, plain] = random.standard_normal((len(x), len(plain))) * self._unit[plain]
        with np.errstate(divide="ignore", invalid="ignore"):
            to_low, to_high = (space.lower - x) / ways, (space.upper - x) / ways
        still = ways == 0.0
        low = np.where(still, -np.inf, np.minimum(to_low, to_high)).max(axis=1)
        high = np.where(still, np.inf, np.maximum(to_low, to_high)).min(axis=1)
        low, high = self._reach(x, ways, low, high)
        steps = low + random.random(len(x)) * (high - low)
        moved = np.clip(x + steps[:, None] * ways, space.lower, space.upper)
        return self._keep_allowed(moved, x)

    def _reach(self, x: Array, ways: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Say how far back and on points `(n, d)` may go along their ways, each `(n,)`.

        Args:
            x: Allowed points.
            ways: Directions, one for all `(d,)` or one each `(n, d)`.
            low: How far back the box lets them go, at most 0, shape `(n,)`.
            high: How far on the box lets them go, at least 0, shape `(n,)`.
        """
        left = self._limit - x @ self._matrix.T
        rates = np.broadcast_to(ways @ self._matrix.T, left.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = left / rates
        on = np.minimum(high, np.where(rates > 0.0, steps, np.inf).min(axis=1))
        back = np.maximum(low, np.where(rates < 0.0, steps, -np.inf).max(axis=1))
        return np.minimum(back, 0.0), np.maximum(on, 0.0)

    def _keep_allowed(self, moved: Array, x: Array) -> Array:
        """Take the moved points `(n, d)` where rounding has not put them outside."""
        kept: Array = np.where(self.space.allows(moved)[:, None], moved, x)
        return kept
