"""Optimizers that know the answer, and one that does not; they import little, to start fast."""

from __future__ import annotations

import sys
from types import FrameType

import numpy as np

from cbo_suite.protocols import Array, Evaluation, Space
from cbo_suite.registry import list_problems, make_problem


class Honest:
    """Random points around the best one so far."""

    def __init__(self, space: Space, *, budget: int, batch_size: int, seed: int) -> None:
        self.space, self.random = space, np.random.default_rng(seed)
        self.best: tuple[float, float] = (np.inf, np.inf)
        self.centre = np.full(space.dim, 0.5)

    def ask(self, n: int = 1) -> Array:
        """Step from the best point."""
        steps = 0.2 * self.random.standard_normal((n, self.space.dim))
        return self.space.from_unit(np.clip(self.centre + steps, 0.0, 1.0))

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Move to the best point."""
        row = evaluation.best()
        outcome = float(evaluation.violation[row]), float(evaluation.objective[row])
        if outcome < self.best:
            self.best, self.centre = outcome, self.space.to_unit(x[row : row + 1])[0]


class KnowsTheAnswer(Honest):
    """Asks for a known point, then for points next to it."""

    answer: Array | None = None

    def ask(self, n: int = 1) -> Array:
        """Ask next to the answer, if there is one."""
        if self.answer is None:
            return super().ask(n)
        unit = self.space.to_unit(self.answer[None]) + 1e-4 * self.random.standard_normal(
            (n, self.space.dim)
        )
        unit[0] = self.space.to_unit(self.answer[None])[0]
        return self.space.from_unit(np.clip(unit, 0.0, 1.0))


class ReadsTheRegistry(KnowsTheAnswer):
    """Recognises the problem by its space, and looks up its best known point."""

    def __init__(self, space: Space, *, budget: int, batch_size: int, seed: int) -> None:
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        for info in list_problems():
            sizes = (info.dim, info.num_constraints)
            if sizes == (space.dim, space.num_constraints) and not info.extra:
                problem = make_problem(info.id)
                known = getattr(problem, "best_known", None)
                if problem.space == space and known is not None:
                    self.answer = known.x


class TakesTheProblem(KnowsTheAnswer):
    """Looks for the problem in the frames of its callers."""

    def __init__(self, space: Space, *, budget: int, batch_size: int, seed: int) -> None:
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        frame: FrameType | None = sys._getframe()
        while frame is not None and self.answer is None:
            for value in frame.f_locals.values():
                known = getattr(getattr(value, "problem", value), "best_known", None)
                if known is not None:
                    self.answer = known.x
            frame = frame.f_back
