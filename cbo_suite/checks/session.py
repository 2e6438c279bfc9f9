"""Short runs of an optimizer under check, on small problems with cheap values.

The boxes do not touch the unit cube: an optimizer that forgets to scale its points is found at
once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from cbo_suite.checks.rules import RuleSkipped, copied, require_float64
from cbo_suite.errors import ConformanceError, InvalidPoint, UnsupportedTask
from cbo_suite.protocols import Array, Evaluation, Space

# Points told before the first ask, as the harness does with the initial design.
DESIGN = 5
BATCH = 4
# Evaluations of the one run that shows what an optimizer does after its first points.
LONG_RUN = 30
_LOWER = np.array([10.0, -20.0, 2.5, -3.0, 100.0])
_UPPER = np.array([12.0, -15.0, 2.6, -1.0, 400.0])
# A space of whole numbers, on a plain and a logarithmic scale, a logarithmic and a plain variable.
_MIXED_LOWER = np.array([-3.0, 1e-3, 1.0, 20.0])
_MIXED_UPPER = np.array([8.0, 1e2, 64.0, 25.0])
_MIXED_INTEGER = np.array([True, False, True, False])
_MIXED_LOG = np.array([False, True, True, False])
# Half of its points are allowed, and their sides do not follow the axes.
_MIXED_MATRIX = np.array([[4.0, 0.0, 0.1, 1.0], [-1.0, 0.3, 0.0, 0.0]])
_MIXED_LIMIT = np.array([32.0, 2.5])


class OptimizerSubject:
    """An optimizer's class or factory under check."""

    def __init__(self, factory: Callable[..., Any], budget: int) -> None:
        """Take anything that claims to make optimizers.

        Args:
            factory: Called as `(space, *, budget, batch_size, seed)`.
            budget: Evaluations of each short run with batches of one, the design among them.
        """
        self.factory = factory
        self.budget = budget
        self.rounds = budget - DESIGN

    @cached_property
    def probe(self) -> Any:
        """An optimizer that only serves to read what its class declares."""
        try:
            return self._make(_space(2, 1), self.budget, 1, 0)
        except UnsupportedTask:
            return self._make(_space(1, 1), self.budget, 1, 0)

    def declared(self, name: str) -> Any:
        """Return what the class declares under a name, None where it says nothing."""
        # The harness reads a class before it makes an optimizer; other factories cannot tell.
        source = self.factory if isinstance(self.factory, type) else self.probe
        return getattr(source, name, None)

    @property
    def dims(self) -> list[int]:
        """The numbers of variables to try."""
        return [d for d in (1, 2, 5) if d <= (self.declared("max_dim") or d)]

    @property
    def batch_obstacle(self) -> str | None:
        """Why the optimizer proposes no batches, None if it does."""
        if self.declared("sequential"):
            return "the optimizer declares sequential = True"
        largest = self.declared("max_batch_size")
        if largest is not None and largest < BATCH:
            return f"the optimizer declares max_batch_size = {largest}"
        return None

    @property
    def batch_size(self) -> int:
        """The larger batch size if the optimizer proposes batches, else one."""
        return 1 if self.batch_obstacle else BATCH

    def session(
        self,
        dim: int = 2,
        m: int = 1,
        *,
        batch_size: int = 1,
        seed: int = 0,
        remainder: int = 0,
        rounds: int | None = None,
        space: Space | None = None,
    ) -> Session:
        """Start a short run of some batches, the last short of `remainder` points.

        The space is a box of `dim` variables with `m` constraints, unless another one is given.
        """
        space = space or _space(min(dim, self.dims[-1]), m)
        budget = DESIGN + (rounds or self.rounds) * batch_size - remainder
        try:
            return Session(self._make(space, budget, batch_size, seed), space)
        except UnsupportedTask as refusal:
            raise RuleSkipped(f"the optimizer refuses the task: {refusal}") from refusal

    def _make(self, space: Space, budget: int, batch_size: int, seed: int) -> Any:
        """Call the factory as the harness does."""
        return self.factory(space, budget=budget, batch_size=batch_size, seed=seed)


class Session:
    """One optimizer on one small problem; every ask is held against the contract."""

    def __init__(self, optimizer: Any, space: Space) -> None:
        """Keep the optimizer and draw the design, shape `(DESIGN, d)`."""
        self.optimizer = optimizer
        self.space = space
        self.design = self.draw(DESIGN, seed=0)

    def draw(self, n: int, *, seed: int) -> Array:
        """Draw `n` points that the optimizer did not ask for."""
        return self.space.sample(n, np.random.default_rng(seed))

    def evaluate(self, x: Array) -> Evaluation:
        """Evaluate a bowl with its feasible side away from its minimum."""
        unit = self.space.to_unit(x)
        limits = 0.5 + 0.1 * np.arange(self.space.num_constraints)
        constraints = limits - unit.mean(axis=1, keepdims=True)
        return Evaluation(((unit - 0.3) ** 2).sum(axis=1), constraints)

    def ask(self, n: int = 1) -> Array:
        """Ask for up to `n` points and return a copy, or say what is wrong with them."""
        x = self.optimizer.ask(n)
        count = len(x) if isinstance(x, np.ndarray) and x.ndim == 2 else n
        require_float64(x, f"the answer to ask({n})", (count, self.space.dim))
        if not 1 <= count <= n:
            raise ConformanceError(f"ask({n}) returned {count} points: return 1 to {n}")
        inside = (x >= self.space.lower) & (x <= self.space.upper)
        if not inside.all():
            row, column = (int(i) for i in np.argwhere(~inside)[0])
            raise ConformanceError(
                f"ask({n}) proposed x[{row}, {column}] = {x[row, column]} outside "
                f"[{self.space.lower[column]}, {self.space.upper[column]}]: clip the points, or "
                "scale them with space.from_unit"
            )
        try:
            self.space.validate(x)
        except InvalidPoint as error:
            raise ConformanceError(
                f"ask({n}) proposed a point that may not be evaluated, {error}: end ask with "
                "space.place(unit) instead of space.from_unit(unit)"
            ) from error
        return np.array(x)

    def tell(self, x: Array, evaluation: Evaluation | None = None) -> None:
        """Tell copies of points `(n, d)` and their values, by default those of the problem."""
        values = self.evaluate(x) if evaluation is None else evaluation
        self.optimizer.tell(x.copy(), copied(values))

    def advance(self, rounds: int, n: int = 1) -> list[Array]:
        """Ask and tell a few times; return what was asked."""
        asked = []
        for _ in range(rounds):
            asked.append(self.ask(n))
            self.tell(asked[-1])
        return asked


def _space(dim: int, m: int) -> Space:
    """Make the box of the first `dim` variables with `m` constraints."""
    return Space(_LOWER[:dim], _UPPER[:dim], m)


def mixed_space(most: int) -> Space:
    """Make a space with all that a space can have, of at most this many variables."""
    part = slice(min(most, len(_MIXED_LOWER)))
    # Variables that are left out stay where they leave the most room.
    left = np.minimum(_MIXED_MATRIX * _MIXED_LOWER, _MIXED_MATRIX * _MIXED_UPPER)
    return Space(
        _MIXED_LOWER[part],
        _MIXED_UPPER[part],
        1,
        integer=_MIXED_INTEGER[part],
        log_scale=_MIXED_LOG[part],
        linear=(_MIXED_MATRIX[:, part], _MIXED_LIMIT - left[:, part.stop :].sum(axis=1)),
    )


def small_grid(most: int) -> Space:
    """Make a grid of whole numbers with fewer points than a run has evaluations."""
    dim = min(most, 2)
    return Space([-1.0] * dim, [1.0] * dim, 1, integer=range(dim))
