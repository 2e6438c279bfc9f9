"""What an optimizer remembers of the told data when it has no model of it."""

from __future__ import annotations

import numpy as np

from cbo_suite.protocols import Array, Evaluation, Space

# Larger values are cut off, so that sums and squares of differences stay finite.
LARGEST = 1e30


class Archive:
    """The best told point and the largest values seen.

    Attributes:
        best_x: The best point told so far, shape `(d,)`, None before the first; better means
            feasible, then less violation, then less objective, ties to the earliest.
    """

    def __init__(self, space: Space) -> None:
        self.best_x: Array | None = None
        self._best: Evaluation | None = None
        self._largest_objective = -np.inf
        self._largest_constraint = np.zeros(space.num_constraints)

    @property
    def has_feasible(self) -> bool:
        """Whether a feasible point was told."""
        return self._best is not None and bool(self._best.feasible[0])

    def add(self, x: Array, evaluation: Evaluation) -> Evaluation:
        """Take in points `(n, d)` and return their evaluation with finite values only.

        An objective that is not finite becomes the largest finite one seen so far (0 before there
        is one); a constraint that is not finite becomes the largest magnitude it has had (1 before
        it had any but 0), which is a violation.
        """
        if len(x) == 0:
            return evaluation
        objective = np.asarray(evaluation.objective, dtype=float)
        constraints = np.asarray(evaluation.constraints, dtype=float)
        self._keep_best(x, Evaluation(objective, constraints))

        valid = np.isfinite(objective)
        objective = np.clip(objective, -LARGEST, LARGEST)
        self._largest_objective = max(
            self._largest_objective, objective.max(where=valid, initial=-np.inf)
        )
        worst = self._largest_objective if np.isfinite(self._largest_objective) else 0.0
        objective = np.where(valid, objective, worst)

        valid = np.isfinite(constraints)
        constraints = np.clip(constraints, -LARGEST, LARGEST)
        self._largest_constraint = np.maximum(
            self._largest_constraint, np.abs(constraints).max(axis=0, where=valid, initial=0.0)
        )
        violated = np.where(self._largest_constraint > 0.0, self._largest_constraint, 1.0)
        return Evaluation(objective, np.where(valid, constraints, violated))

    def _keep_best(self, x: Array, evaluation: Evaluation) -> None:
        """Compare the best point so far with new ones `(n, d)`."""
        if self._best is not None and self.best_x is not None:
            x = np.vstack([self.best_x, x])
            evaluation = Evaluation(
                np.concatenate([self._best.objective, evaluation.objective]),
                np.concatenate([self._best.constraints, evaluation.constraints]),
            )
        best = evaluation.best()
        self.best_x = np.array(x[best], dtype=float)
        self._best = Evaluation(
            evaluation.objective[best : best + 1], evaluation.constraints[best : best + 1]
        )
