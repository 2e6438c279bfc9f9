"""Records made by hand, for scoring."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cbo_suite.protocols import Evaluation
from cbo_suite.records import Improvement, Record, improvements
from cbo_suite.scoring.references import Reference
from cbo_suite.tasks import Task


def make(
    values: list[float | None],
    *,
    problem: str = "some-1d-v1",
    optimizer: str = "some",
    seed: int = 0,
    budget: int | None = None,
    status: Literal["complete", "failed"] = "complete",
) -> Record:
    """Make the record of a run that saw these objective values; None is an infeasible point."""
    objective = np.array([0.0 if value is None else value for value in values])
    violation = np.array([1.0 if value is None else 0.0 for value in values])
    task = Task(problem, optimizer, budget or len(values), 1, 0, seed)
    steps = improvements(Evaluation(objective, violation[:, None]))
    return Record(
        schema=1,
        task=task,
        options={},
        versions={},
        machine={},
        facts={},
        status=status,
        error="" if status == "complete" else "it broke",
        objective=objective.tolist(),
        violation=violation.tolist(),
        feasible="".join("0" if value is None else "1" for value in values),
        improvements=[
            Improvement(i, [0.0], float(objective[i]), [float(violation[i])]) for i in steps
        ],
        seconds_optimizer=0.1 * len(values),
        seconds_evaluation=0.0,
        digest="0" * 64,
    )


def make_reference(budget: int, n_init: int) -> Reference:
    """Make references from 0, the best, over the level 10 to 20, the worst."""
    return Reference(
        best=0.0,
        best_x=[0.0],
        worst=20.0,
        worst_x=[1.0],
        level=10.0,
        budget=budget,
        n_init=n_init,
        feasibility_tolerance=0.0,
        optional=False,
        source="made up",
    )
