"""Run an optimizer on twins of a problem: does it do as well where the answer is elsewhere?

A twin is the same problem with its variables reflected at random, and permuted where they have
equal bounds. To a method that is not tied to the order and direction of coordinates it is the same;
who knows the answer by heart finds it in another place. What this shows and what not is told in
docs/submit-results.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from cbo_suite.apart.client import OptimizerProcess
from cbo_suite.errors import CboError, OptimizerFailed
from cbo_suite.harness import Run, Settings, execute
from cbo_suite.protocols import Array, BoolArray, ConstrainedProblem, Evaluation, Space, Task
from cbo_suite.records import Record
from cbo_suite.registry import make_problem
from cbo_suite.scoring.statistics import holm
from cbo_suite.verify.outcomes import Outcome, outcome_of, rank_courses, rank_ends, rank_sum_test
from cbo_suite.verify.replay import draw
from cbo_suite.verify.submission import Submission
from cbo_suite.verify.verdict import MISSING, Case

# Adjusted p-values up to this are no chance.
LEVEL = 0.005


class Twin:
    """A problem whose variables are permuted and reflected.

    Variable j of the twin is variable `order[j]` of the problem, seen from its other end if
    `flipped[j]`.
    """

    def __init__(
        self, problem: ConstrainedProblem, order: NDArray[np.intp], flipped: BoolArray
    ) -> None:
        """Make the twin and its space."""
        self.id, self._problem = problem.id, problem
        self._order, self._flipped = order, flipped
        space = problem.space
        sign = np.where(flipped, -1.0, 1.0)
        shift = np.where(flipped, space.lower + space.upper, 0.0)
        matrix = space.linear_matrix[:, order]
        self.space = Space(
            space.lower,
            space.upper,
            space.num_constraints,
            integer=space.integer,
            log_scale=space.log_scale,
            linear=(matrix * sign, space.linear_limit - matrix @ shift)
            if len(space.linear_limit)
            else None,
        )

    @property
    def moved(self) -> bool:
        """Whether the twin is another one than the problem itself, where there can be another."""
        still = not _reflectable(self._problem.space).any()
        moved = self._flipped.any() or (self._order != np.arange(len(self._order))).any()
        return bool(moved or still)

    def original(self, x: Array) -> Array:
        """Turn points of the twin, shape `(n, d)`, into points of the problem."""
        space = self._problem.space
        with np.errstate(divide="ignore", invalid="ignore"):
            mirrored = np.where(
                space.log_scale, space.lower * space.upper / x, space.lower + space.upper - x
            )
        turned = np.clip(np.where(self._flipped, mirrored, x), space.lower, space.upper)
        points = np.empty_like(turned)
        points[:, self._order] = turned
        return points

    def evaluate(self, x: Array) -> Evaluation:
        """Evaluate points of the twin."""
        return self._problem.evaluate(self.original(x))


def draw_twin(problem: ConstrainedProblem, random: np.random.Generator) -> Twin:
    """Draw a twin: all variables reflected by a coin, those with equal bounds permuted.

    The problem itself is drawn anew: it would be a twin in one case of eight with three variables.
    """
    while True:
        twin = _draw_any(problem, random)
        if twin.moved:
            return twin


def _draw_any(problem: ConstrainedProblem, random: np.random.Generator) -> Twin:
    """Draw a twin that may be the problem itself."""
    space = problem.space
    kinds = np.column_stack([space.lower, space.upper, space.integer, space.log_scale])
    _, group = np.unique(kinds, axis=0, return_inverse=True)
    order = np.arange(space.dim)
    for members in (np.flatnonzero(group.ravel() == i) for i in range(space.dim)):
        order[members] = random.permutation(members)
    flipped = (random.random(space.dim) < 0.5) & _reflectable(space)
    return Twin(problem, order, flipped)


def _reflectable(space: Space) -> BoolArray:
    """Which variables can be seen from their other end, shape `(d,)`.

    A reflection on a logarithmic scale leaves neither whole numbers whole nor linear constraints
    linear.
    """
    return ~(space.log_scale & (space.integer | bool(len(space.linear_limit))))


class TwinTest(NamedTuple):
    """Whether recorded runs do better than runs on twins.

    Attributes:
        final: p-value of how they end, adjusted for two tests.
        anytime: p-value of how fast they are, adjusted for two tests; NaN without a reference.
    """

    final: float
    anytime: float

    @property
    def suspicious(self) -> bool:
        """Whether recorded runs do better than chance allows."""
        return bool(np.nanmin([self.final, self.anytime]) <= LEVEL)


def run_twins(
    task: Task,
    problem: ConstrainedProblem,
    options: Mapping[str, Any],
    count: int,
    random: np.random.Generator,
) -> list[Outcome]:
    """Run the optimizer of a task on twins, each with a seed of its own.

    A run that fails counts as what it had until then, so that failing is no way out.

    Raises:
        MissingExtra: The optimizer cannot be made here.
    """
    found = []
    for _ in range(count):
        twin = draw_twin(problem, random)
        own = msgspec.structs.replace(task, seed=int(random.integers(2**32, 2**62)))
        run = _run_apart(own, twin, options)
        values = (run.objective, run.evaluation.violation) if run else (np.empty(0), np.empty(0))
        found.append(outcome_of(own, *values))
    return found


def _run_apart(task: Task, twin: Twin, options: Mapping[str, Any]) -> Run | None:
    """Run an optimizer in a process of its own; None if there is nothing of it."""
    try:
        with OptimizerProcess(task.optimizer) as process:
            return execute(task, twin, process.factory, Settings(options=options))
    except OptimizerFailed as failure:
        run: Run | None = failure.run
        return run
    except MISSING:
        raise
    except CboError:
        return None


def compare_outcomes(recorded: Sequence[Outcome], twins: Sequence[Outcome]) -> TwinTest:
    """Test whether recorded runs end better or are faster than runs on twins."""
    n, both = len(recorded), [*recorded, *twins]
    ends = rank_ends(both)
    p_values = [rank_sum_test(ends[:n], ends[n:]), float("nan")]
    if not any(np.isnan(outcome.anytime) for outcome in both):
        courses = rank_courses(both)
        p_values[1] = rank_sum_test(courses[:n], courses[n:])
    return TwinTest(*holm(p_values).tolist())


def check_twins(submission: Submission, count: int, case: Case) -> None:
    """Run the optimizer of a file on twins of its problem and compare with what is recorded."""
    records: list[Record] = [row.record for row in submission.rows]
    task, options = records[0].task, records[0].options
    try:
        problem = make_problem(submission.problem)
        random = draw(submission, case.salt, "twins")
        twins = run_twins(task, problem, options, count, random)
    except MISSING as reason:
        case.skip("twins", reason)
        case.checked = False
        return
    recorded = [outcome_of(r.task, r.objectives, r.violations) for r in records]
    result = compare_outcomes(recorded, twins)
    values = f"p = {result.final:.2g} for the ends, {result.anytime:.2g} for the courses"
    if result.suspicious:
        case.doubt("twins", f"recorded runs do better than {count} on twins: {values}")
    else:
        case.note("twins", f"recorded runs do no better than {count} on twins: {values}")
