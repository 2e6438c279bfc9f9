"""Hidden constraints: any problem whose evaluation fails in a part of the box.

Simulators crash and solvers diverge at points that nobody can tell beforehand, and then there is no
value: no objective, no constraint, only the failure. `Failing` makes such a problem of any other.
Where it fails is a function of the point, and so part of the problem: the same point always fails.

`failing-g19-15d-v1` is g19 (cbo_suite.problems.g_problems.large) in a box of which a cylinder
fails,

    (x3 - 7)^2 + (x6 - 7)^2 < 4^2,

42 % of the box, its centre among it. The optimum of g19, at x3 = 3.946, x6 = 10, lies beside it, at
a distance of 0.28 from its edge, and stays the optimum; the way to it leads around the cylinder.
Whoever takes failures for bad luck proposes points in there again and again.

Version history:
    v1: First release.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from cbo_suite.errors import EvaluationFailed, InvalidTask, PartialEvaluation
from cbo_suite.problems.base import Problem
from cbo_suite.problems.g_problems.large import G19
from cbo_suite.protocols import Array, BoolArray, ConstrainedProblem, Evaluation

# Points of shape `(n, d)` to whether their evaluation fails, shape `(n,)`.
Region = Callable[[Array], BoolArray]


class Failing(Problem):
    """Another problem whose evaluation fails in a region.

    Attributes:
        without_failures: The problem itself.
    """

    may_fail = True

    def __init__(
        self,
        problem: ConstrainedProblem,
        region: Region,
        *,
        failure: Literal["raise", "nan"] = "raise",
    ) -> None:
        """Let a problem fail in a region.

        Args:
            problem: The problem, which is evaluated outside the region only.
            region: Tells where it fails: points `(n, d)` to booleans `(n,)`; a pure function.
            failure: "raise" raises `PartialEvaluation`, which carries the values of the other
                points of a batch; "nan" gives NaN for all values of a point.

        Raises:
            InvalidTask: `failure` is something else.
        """
        if failure not in ("raise", "nan"):
            raise InvalidTask(f"failure must be 'raise' or 'nan', got {failure!r}")
        self.without_failures = problem
        self.id = f"failing-{problem.id}"
        self.space = problem.space
        self._region = region
        self._raises = failure == "raise"

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate the points outside the region.

        Raises:
            PartialEvaluation: Some points lie in the region; it carries the values of the others.
        """
        failed = np.asarray(self._region(x), dtype=bool)
        values = Evaluation(
            np.full(len(x), np.nan), np.full((len(x), self.space.num_constraints), np.nan)
        )
        if not failed.all():
            inside = self.without_failures.evaluate(x[~failed])
            values.objective[~failed] = inside.objective
            values.constraints[~failed] = inside.constraints
        if self._raises and failed.any():
            rows = np.flatnonzero(failed).tolist()
            reason = EvaluationFailed(f"{self.id} has no value at this point")
            message = f"{self.id} failed at {len(rows)} of {len(x)} points"
            raise PartialEvaluation(message, values, dict.fromkeys(rows, reason))
        return values


def _in_cylinder(x: Array) -> BoolArray:
    """Tell which points lie in the cylinder around x3 = x6 = 7 of radius 4."""
    mask: BoolArray = np.square(x[:, 2] - 7.0) + np.square(x[:, 5] - 7.0) < 16.0
    return mask


class FailingG19(Failing):
    """g19 with a cylinder of failures: d = 15, m = 5."""

    # A point that fails is not feasible: tests/golden/derive_feasible_fractions.py
    feasible_fraction = 0.1899

    def __init__(self) -> None:
        """Put the cylinder into g19, whose best known point it leaves as it is."""
        problem = G19()
        super().__init__(problem, _in_cylinder)
        self.best_known = problem.best_known
