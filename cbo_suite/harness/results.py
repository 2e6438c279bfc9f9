"""What a run gives back: every evaluation as arrays, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbo_suite.journal import Batch, End, Header, digest, gather, seconds_processor
from cbo_suite.protocols import Array, Evaluation, Task


@dataclass(frozen=True, eq=False)
class Run:
    """The evaluations of one run in the order in which their results came in.

    Attributes:
        task: What was run.
        x: Points, shape `(n, d)`.
        objective: Objective values, shape `(n,)`.
        constraints: Constraint values, shape `(n, m)`.
        statuses: One word per evaluation: "ok", "nonfinite", "failed" or "timeout".
        messages: For evaluations that failed or were late, their number and what happened.
        status: How the run ended: "complete", "failed", or "stopped" before its budget was spent.
        error: What ended a run that failed or stopped, "" otherwise.
        seconds_optimizer: Time spent in ask and tell.
        seconds_evaluation: Time spent in the problem.
        seconds_processor: Time of the processors in ask and tell, that of all threads together;
            None for a journal of a version that did not measure it.
        recommended_x: The point that the optimizer recommends, shape `(d,)`, None if it does not.
        inspections: What the optimizer said of itself with each batch.
        digest: Fingerprint of points and values, equal for an exact repetition.
    """

    task: Task
    x: Array
    objective: Array
    constraints: Array
    statuses: list[str]
    messages: dict[int, str]
    status: str
    error: str
    seconds_optimizer: float
    seconds_evaluation: float
    seconds_processor: float | None
    recommended_x: Array | None
    inspections: list[dict[str, Any] | None]
    digest: str

    @property
    def evaluation(self) -> Evaluation:
        """Objective and constraints of all evaluations."""
        return Evaluation(self.objective, self.constraints)

    @property
    def best_index(self) -> int:
        """Number of the best evaluation: feasible, else least violation, then objective."""
        return self.evaluation.best()

    @property
    def best_x(self) -> Array:
        """The best point, shape `(d,)`: feasible if `feasible`, else of least violation."""
        point: Array = self.x[self.best_index]
        return point

    @property
    def best_objective(self) -> float:
        """Objective value of the best point."""
        return float(self.objective[self.best_index])

    @property
    def feasible(self) -> bool:
        """Whether a feasible point was found."""
        return bool(self.evaluation.feasible.any())

    def __repr__(self) -> str:
        """Say in a line what was run and what came of it."""
        found = "no evaluation"
        if len(self.x):
            kind = "feasible" if self.feasible else "infeasible"
            found = f"best {kind} objective {self.best_objective:.6g}"
        return f"<Run {self.task.name}: {self.status}, {len(self.x)} evaluations, {found}>"


def gather_run(header: Header, batches: Sequence[Batch], end: End) -> Run:
    """Put the lines of a journal together."""
    x, evaluation = gather(batches, header.dim, header.num_constraints)
    starts = np.cumsum([0, *(len(batch.x) for batch in batches)])
    recommended = end.recommendation
    return Run(
        task=header.task,
        x=x,
        objective=evaluation.objective,
        constraints=evaluation.constraints,
        statuses=[status for batch in batches for status in batch.status],
        messages={
            int(start) + int(row): text
            for start, batch in zip(starts, batches, strict=False)
            for row, text in batch.messages.items()
        },
        status=end.status,
        error=end.error,
        seconds_optimizer=end.seconds_optimizer + sum(b.seconds_optimizer for b in batches),
        seconds_evaluation=sum(b.seconds_evaluation for b in batches),
        seconds_processor=seconds_processor(batches, end),
        recommended_x=None if recommended is None else np.array(recommended, dtype=float),
        inspections=[batch.inspection for batch in batches],
        digest=digest(batches),
    )
