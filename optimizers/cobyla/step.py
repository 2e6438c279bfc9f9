"""The trust-region step of COBYLA, solved exactly.

COBYLA models the objective by `g·d` and the constraints by `A.T d <= b`, and asks for a step `d`
of length at most `radius` (Powell 1994): first lower the greatest violation as far as
the ball allows, by the shortest step that does it; then, with what is left of the ball, lower the
objective without raising that violation.

Both stages follow a path of optimal points, of which every piece is straight. Write the step as
`d = -(N.T λ + μ g)`, N holding the normals of the active constraints as rows and λ >= 0.

1. Stage one lowers the violation t from its value at `d = 0`. The shortest step of violation t is
   such a `d` with μ = 0; it moves along `s`, the shortest vector with `N s = -1`.
2. Stage two raises μ from 0: `d` is then the minimiser of `g·d + |d|²/(2μ)`, which is the solution
   for a ball of radius |d|. It moves along `s`, the part of -g orthogonal to every row of N.

A piece ends where a slack is used up (the constraint becomes active), where a multiplier falls to
zero (it becomes inactive), at the end of the stage or on the ball. The dual basis P of the active
normals (`P N.T = 1`, rows in the span of N) gives all that is needed: `s = -P.T 1` in stage one,
and `P y` are the coefficients of any y in that span. One constraint more or less is a rank-one
change of P.

Reference: M. J. D. Powell, "A direct search optimization method that models the objective and
constraint functions by linear interpolation", 1994, doi:10.1007/978-94-015-8330-5_4. The paper
states the two stages; the path above is our own derivation.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_suite.protocols import Array, BoolArray

# A vector this much shorter than the one it is left over from is rounding.
ROUNDING = 1e-11


def trust_region_step(normals: Array, limits: Array, radius: float, gradient: Array) -> Array:
    """Return the step of the trust region, shape `(d,)`.

    Args:
        normals: Gradients of the linear constraints as columns, shape `(d, k)`.
        limits: Right-hand sides, shape `(k,)`: wanted is `normals.T @ step <= limits`.
        radius: Greatest length of the step.
        gradient: Gradient of the linear objective, shape `(d,)`.
    """
    with np.errstate(all="ignore"):
        path = _Path(normals, limits, radius)
        path.lower_violation()
        path.lower_objective(gradient)
    return path.step if np.isfinite(path.step).all() else np.zeros_like(path.step)


class _Path:
    """The path of optimal steps and the active constraints at its present point.

    Attributes:
        step: The present point of the path, shape `(d,)`.
        violation: Its greatest violation, the level every constraint is held to.
        slack: What each constraint has left below that level, shape `(k,)`.
    """

    def __init__(self, normals: Array, limits: Array, radius: float) -> None:
        """Start at the zero step."""
        dim, count = normals.shape
        self.normals = np.ascontiguousarray(normals, dtype=float)
        self.radius = radius
        self.step = np.zeros(dim)
        self.violation = max(0.0, -float(limits.min(initial=0.0)))
        self.slack = limits + self.violation
        self._scale = ROUNDING * np.sqrt(np.einsum("ij,ij->j", self.normals, self.normals))
        self._inactive = np.ones(count, dtype=bool)
        self._active: list[int] = []
        self._rows = np.empty((dim, dim))  # N
        self._dual = np.empty((dim, dim))  # P
        self._multipliers = np.zeros(dim)
        # Degenerate corners could make the path turn in circles; it is far shorter otherwise.
        self._pieces_left = 20 * (dim + count)

    def lower_violation(self) -> None:
        """Stage one: follow the shortest steps of ever smaller violation."""
        going = self.violation > 0.0 and self._enter(int(self.slack.argmin()))
        while going:
            dual = self._dual[: len(self._active)]
            direction = -dual.sum(axis=0)
            multiplier_rate = -(dual @ direction)
            slack_rate = 1.0 + direction @ self.normals
            length, going = self._piece(direction, multiplier_rate, slack_rate, self.violation)
            self.violation -= length

    def lower_objective(self, gradient: Array) -> None:
        """Stage two: follow the best steps of ever greater length, at constant violation."""
        rounding = ROUNDING * math.sqrt(gradient @ gradient)
        going = True
        while going:
            count = len(self._active)
            rows, dual = self._rows[:count], self._dual[:count]
            coefficients = dual @ gradient
            direction = coefficients @ rows - gradient
            direction -= (dual @ direction) @ rows
            if math.sqrt(direction @ direction) <= rounding:
                direction[:] = 0.0
            _, going = self._piece(direction, -coefficients, direction @ self.normals, math.inf)

    def _piece(
        self, direction: Array, multiplier_rate: Array, slack_rate: Array, limit: float
    ) -> tuple[float, bool]:
        """Go along one straight piece of the path.

        Returns:
            The length of the piece and whether another piece follows.
        """
        steepness = self._scale * math.sqrt(direction @ direction)
        enter, enter_at = _first(self.slack, slack_rate, self._inactive & (slack_rate > steepness))
        multipliers = self._multipliers[: len(self._active)]
        leave, leave_at = _first(multipliers, -multiplier_rate, multiplier_rate < 0.0)
        length = min(limit, self._to_sphere(direction), enter_at, leave_at)
        if not math.isfinite(length):
            return 0.0, False
        self.step = self.step + length * direction
        np.maximum(multipliers + length * multiplier_rate, 0.0, out=multipliers)
        self.slack = np.maximum(self.slack - length * slack_rate, 0.0)
        self._pieces_left -= 1
        if self._pieces_left < 0:
            return length, False
        if length == leave_at:
            self._leave(leave)
            return length, True
        return length, length == enter_at and self._enter(enter)

    def _to_sphere(self, direction: Array) -> float:
        """Return how far the ball reaches from the present point in this direction."""
        square = float(direction @ direction)
        room = self.radius**2 - float(self.step @ self.step)
        if room <= 0.0:
            return 0.0
        if square == 0.0:
            return math.inf
        along = float(direction @ self.step)
        root = math.sqrt(square * room + along * along)
        # Of the two forms of the root, take the one without cancellation.
        return room / (root + along) if along > 0.0 else (root - along) / square

    def _enter(self, index: int) -> bool:
        """Make a constraint active; say whether the path can go on."""
        normal = self.normals[:, index]
        coefficients, rest = self._split(normal)
        multiplier = 0.0
        if rest @ rest <= self._scale[index] ** 2:
            # The normal is a sum of the active ones: it takes the place of one of them.
            multipliers = self._multipliers[: len(self._active)]
            place, multiplier = _first(multipliers, coefficients, coefficients > ROUNDING)
            if not math.isfinite(multiplier):
                return False
            np.maximum(multipliers - multiplier * coefficients, 0.0, out=multipliers)
            self._leave(place)
            coefficients, rest = self._split(normal)
            if rest @ rest <= self._scale[index] ** 2:
                return False
        count = len(self._active)
        new = rest / (rest @ rest)
        self._dual[:count] -= coefficients[:, None] * new
        self._dual[count], self._rows[count] = new, normal
        self._multipliers[count] = multiplier
        self._active.append(index)
        self._inactive[index] = False
        return True

    def _leave(self, place: int) -> None:
        """Make the active constraint at this place inactive."""
        count = len(self._active)
        dual = self._dual[:count]
        gone = dual[place].copy()
        dual -= ((dual @ gone) / (gone @ gone))[:, None] * gone
        self._inactive[self._active[place]] = True
        # The last row moves into the gap: their order is of no importance.
        dual[place], self._rows[place] = dual[-1], self._rows[count - 1]
        self._multipliers[place] = self._multipliers[count - 1]
        last = self._active.pop()
        if place < count - 1:
            self._active[place] = last

    def _split(self, vector: Array) -> tuple[Array, Array]:
        """Return the coefficients of a vector in the active normals, and what they leave over."""
        count = len(self._active)
        rows, dual = self._rows[:count], self._dual[:count]
        coefficients = dual @ vector
        rest = vector - coefficients @ rows
        # The second pass removes what rounding left of the active normals.
        correction = dual @ rest
        return coefficients + correction, rest - correction @ rows


def _first(amount: Array, rate: Array, counts: BoolArray) -> tuple[int, float]:
    """Return which amount is used up first at these rates, and when; infinity if none is."""
    if amount.size == 0:
        return -1, math.inf
    when = np.where(counts, amount / rate, np.inf)
    index = int(when.argmin())
    return index, float(when[index])
