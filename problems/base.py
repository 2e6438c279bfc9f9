"""What every problem of the suite shares: checked input, and facts known of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from numpy.typing import ArrayLike

from cbo_suite.protocols import Array, BestKnown, Evaluation, Space


class Problem(ABC):
    """A problem that checks its input once, so that its own file holds the formula only.

    Attributes:
        id: Frozen, versioned name.
        space: The box and the number of constraints.
        best_known: The best feasible point that is known, None if there is none.
        feasible_fraction: Share of the box that is feasible, None if unknown.
    """

    id: str
    space: Space
    best_known: BestKnown | None = None
    feasible_fraction: float | None = None
    # Whether one evaluation takes microseconds, so that every point can be replayed.
    cheap: ClassVar[bool] = True
    # By which part of its size a value may differ between processors: 450 units in the last place.
    rounding: ClassVar[float] = 1e-13
    # Whether some points have no value, so that a failure or NaN there is no mistake.
    may_fail: ClassVar[bool] = False
    # Distributions that compute its values, whose versions belong on record.
    libraries: ClassVar[tuple[str, ...]] = ()

    def evaluate(self, x: ArrayLike) -> Evaluation:
        """Evaluate points of shape `(n, d)` inside the box.

        Raises:
            InvalidPoint: Wrong shape, not finite or outside the box.
        """
        return self._evaluate(self.space.validate(x))

    def __repr__(self) -> str:
        """Name the problem and its size."""
        space = self.space
        return f"<Problem {self.id}: {space.dim} variables, {space.num_constraints} constraints>"

    @abstractmethod
    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate points that are known to be valid, shape `(n, d)`."""
