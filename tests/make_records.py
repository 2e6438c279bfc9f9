"""Records made by hand, for scoring."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cbo_suite.records import Record
from cbo_suite.scoring.references import Reference
from cbo_suite.tasks import Task


def make(
    values: list[float | None],
    *,
    problem: str = "some-1d-v1",
    optimizer: str = "some",
    seed: int = 0,
    budget: int | None = None,
    batch_size: int = 1,
    dim: int = 1,
    num_constraints: int = 1,
    versions: dict[str, str] | None = None,
    status: Literal["complete", "failed"] = "complete",
) -> Record:
    """Make the record of a run that saw these objective values; None is an infeasible point."""
    objectives = np.array([0.0 if value is None else value for value in values])
    violations = np.array([1.0 if value is None else 0.0 for value in values])
    return Record(
        schema=2,
        task=Task(problem, optimizer, budget or len(values), batch_size, 0, seed),
        options={},
        versions=versions or {},
        machine={},
        facts={},
        status=status,
        error="" if status == "complete" else "it broke",
        dim=dim,
        num_constraints=num_constraints,
        objectives=objectives,
        violations=violations,
        statuses="o" * len(values),
        points=np.zeros((len(values), dim)),
        batches=None,
        restarts=None,
        seconds_optimizer=0.1 * len(values),
        seconds_processor=None,
        seconds_evaluation=0.0,
        digest="0" * 64,
        root="0" * 64,
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
