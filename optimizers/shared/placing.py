"""Where a search may go if the unit cube is not all there is: whole numbers, linear constraints.

Models are to see what is evaluated, and no point is to be proposed twice. So candidates are moved
to where whole numbers lie, brought inside the known linear constraints A x <= b and freed of known
points, all before a model looks at them. Where every point of the cube may be evaluated, nothing is
changed and no random number is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cbo_suite.errors import InvalidSpace
from cbo_suite.protocols import Array, Space

# From a point (d,) to values (1 + k,) and gradients (1 + k, d) of an objective and k constraints.
Smooth = Callable[[Array], tuple[Array, Array]]

# Digits after the point in which two points of the unit cube must differ.
DIGITS = 9
# If less than this share of the candidates is allowed, the others are pulled inside.
ENOUGH = 0.5
# Shares of the way from a centre to the middle of the allowed points.
INWARD = 2.0 ** -np.arange(7.0)
# A grid of whole numbers with at most so many points is looked at as a whole.
SMALL_GRID = 4096
# If so many rounds of drawing find nothing new, everything counts as known.
ROUNDS = 8


class Ground:
    """The points of the unit cube that may be evaluated, for optimizers that have models.

    Attributes:
        whole_cube: Whether these are all; then every method gives back what it got.
    """

    def __init__(self, space: Space) -> None:
        """Look at the space."""
        self._space = space
        self.whole_cube = not (space.integer.any() or len(space.linear_limit))

    def settle(
        self,
        points: Array,
        known: Array,
        generator: np.random.Generator,
        *,
        centres: Array,
        least: int = 1,
    ) -> Array:
        """Turn candidates into points that may be evaluated and are not known.

        Whole numbers are rounded, and the neighbours of the centres in one of them are added. What
        breaks a linear constraint is left out, or pulled inside if too little would remain. If
        fewer than `least` points are new, others are drawn from the whole space.

        Args:
            points: Candidates of the unit cube, shape `(p, d)`.
            known: Points evaluated or under way, shape `(n, d)`.
            generator: Source of randomness.
            centres: Points `(k, d)`, at least one, that the search is about.
            least: Number of new points wanted.

        Returns:
            Points `(r, d)`, r at least `least` and all of them new, unless nothing new is found:
            then fewer, and if there is none, known ones.
        """
        if self.whole_cube:
            return points
        steps = [self._steps(centre) for centre in centres]
        inside = self._bring_inside(np.concatenate([points, *steps]), centres[0], generator)
        return self._with_least(inside, known, generator, least)

    def renew(self, points: Array, known: Array, generator: np.random.Generator) -> Array:
        """Replace points `(p, d)` that are not allowed or not new by others of the whole space.

        Returns:
            Points `(r, d)`, as many as came in unless nothing new is found, at least one.
        """
        if self.whole_cube:
            return points
        rounded = self._space.round_unit(points)
        return self._with_least(rounded[self._allows(rounded)], known, generator, len(points))

    def widen(self, centre: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Let a box around a centre, all `(d,)`, reach the whole numbers next to the centre's."""
        space = self._space
        if self.whole_cube:
            return lower, upper
        x = space.from_unit(centre)
        below, above = (
            space.to_unit(np.clip(x + step, space.lower, space.upper)) for step in (-1.0, 1.0)
        )
        return (
            np.where(space.integer, np.minimum(lower, below), lower),
            np.where(space.integer, np.maximum(upper, above), upper),
        )

    def bounds(self, start: Array) -> list[tuple[float, float]]:
        """Where a local search from a point `(d,)` may go: whole numbers stay as they are."""
        if self.whole_cube:
            return [(0.0, 1.0)] * start.size
        fixed = zip(start.tolist(), self._space.integer, strict=True)
        return [(value, value) if whole else (0.0, 1.0) for value, whole in fixed]

    def with_limits(self, evaluate: Smooth) -> Smooth:
        """Give a function the known linear constraints as further constraints."""
        space = self._space
        if not len(space.linear_limit):
            return evaluate
        size = np.linalg.norm(space.linear_matrix * (space.upper - space.lower), axis=1)
        size = np.where(size > 0.0, size, 1.0)
        matrix, limit = space.linear_matrix / size[:, None], space.linear_limit / size
        log = space.log_scale
        ratio = np.divide(space.upper, space.lower, where=log, out=np.ones(space.dim))

        def limited(point: Array) -> tuple[Array, Array]:
            values, gradients = evaluate(point)
            x = space.from_unit(point)
            # How fast the variables change along the cube; whole numbers do not, in a search.
            slope = np.where(log, x * np.log(ratio), space.upper - space.lower)
            return (
                np.concatenate([values, matrix @ x - limit]),
                np.concatenate([gradients, matrix * slope]),
            )

        return limited

    def back(self, start: Array, end: Array) -> Array:
        """Pull the end of a local search towards its start, both `(d,)`, until it is allowed."""
        if self.whole_cube:
            return end
        space = self._space
        end = np.where(space.integer, start, end)
        if self._allows(end[None])[0]:
            return end
        pulled = space.polytope.pull(space.from_unit(end[None]), space.from_unit(start))
        unit = np.where(space.integer, start, np.clip(space.to_unit(pulled)[0], 0.0, 1.0))
        return unit if self._allows(unit[None])[0] else start

    def _allows(self, points: Array) -> NDArray[np.bool_]:
        """Which points `(p, d)` lie, as they are evaluated, inside the linear constraints."""
        return self._space.allows(self._space.from_unit(points))

    def _steps(self, centre: Array) -> Array:
        """The neighbours of a centre `(d,)` in one whole number each, shape `(2 k, d)`."""
        space = self._space
        moves = np.eye(space.dim)[space.integer]
        x = space.from_unit(centre) + np.concatenate([moves, -moves])
        neighbours = space.to_unit(np.clip(x, space.lower, space.upper))
        steps: Array = np.where(space.integer, neighbours, centre)
        return steps

    def _bring_inside(self, points: Array, centre: Array, generator: np.random.Generator) -> Array:
        """Round candidates `(p, d)` and leave out, or pull inside, what is not allowed."""
        space = self._space
        rounded = space.round_unit(points)
        allowed = self._allows(rounded)
        if allowed.mean() >= ENOUGH:
            return rounded[allowed]
        # Points on the way to an allowed one are allowed sooner or later.
        inward = space.round_unit(centre + INWARD[:, None] * (self._middle - centre))
        kept = np.concatenate([rounded[allowed], inward[self._allows(inward)]])
        outside = rounded[~allowed]
        # Towards many points instead of one, which may lie in a corner: there is no room around it.
        targets = space.from_unit(kept[generator.integers(len(kept), size=len(outside))])
        pulled = space.polytope.pull(space.from_unit(outside), targets)
        # Half of them end at a face, as optima often do, the others on the way to it.
        share = generator.random((len(outside), 1)) ** (1.0 / space.dim)
        share[::2] = 1.0
        unit = np.clip(space.to_unit(targets + share * (pulled - targets)), 0.0, 1.0)
        unit = space.round_unit(unit)
        return np.concatenate([kept, unit[self._allows(unit)]])

    def _with_least(
        self, points: Array, known: Array, generator: np.random.Generator, least: int
    ) -> Array:
        """The new ones of allowed points `(p, d)`, and others if these are fewer than `least`."""
        new = new_points(points, known)
        if len(new) < least:
            seen = np.concatenate([known, new])
            new = np.concatenate([new, self._draw(least - len(new), seen, generator)])
        if len(new):
            return new
        return points if len(points) else self._space.to_unit(self._space.sample(1, generator))

    def _draw(self, count: int, known: Array, generator: np.random.Generator) -> Array:
        """Draw up to `count` points of the space that are not known, shape `(k, d)`."""
        space = self._space
        if self._grid is not None:
            return generator.permutation(new_points(self._grid, known))[:count]
        found = known[:0]
        for _ in range(ROUNDS):
            drawn = space.to_unit(space.sample(max(count, 16), generator))
            found = np.concatenate([found, new_points(drawn, np.concatenate([known, found]))])
            if len(found) >= count:
                break
        return found[:count]

    @cached_property
    def _middle(self) -> Array:
        """The allowed point with the most room around it, shape `(d,)`."""
        centre = self._space.polytope.centre
        if centre is None:
            raise InvalidSpace("no point is allowed")
        return self._space.to_unit(centre)

    @cached_property
    def _grid(self) -> Array | None:
        """All allowed points, shape `(g, d)`, if they are few; else None."""
        space = self._space
        if not space.integer.all() or np.prod(space.upper - space.lower + 1.0) > SMALL_GRID:
            return None
        values = [
            np.arange(low, high + 1.0)
            for low, high in zip(space.lower.tolist(), space.upper.tolist(), strict=True)
        ]
        x = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, space.dim)
        grid: Array = space.to_unit(x[space.allows(x)])
        return grid


# What any box is: nothing to be mindful of.
WHOLE_CUBE = Ground(Space([0.0], [1.0]))


def new_points(points: Array, known: Array) -> Array:
    """Leave out of points `(p, d)` those known `(n, d)` and those that come a second time."""
    rounded = np.round(np.concatenate([known, points]), DIGITS) + 0.0
    _, first = np.unique(rounded, axis=0, return_index=True)
    return points[np.sort(first[first >= len(known)]) - len(known)]
