"""Run an optimizer on a problem.

`run` is the public call. It builds the arguments of `execute`, the core that every run goes
through; the loop does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cbo_suite.harness.execution import execute, named_factory
from cbo_suite.harness.results import Run
from cbo_suite.harness.settings import Callback, Factory, Progress, Settings
from cbo_suite.protocols import ConstrainedProblem, Task
from cbo_suite.registry import make_problem, protocol_of

__all__ = ["Callback", "Factory", "Progress", "Run", "Settings", "execute", "named_factory", "run"]


def run(
    problem: str | ConstrainedProblem,
    optimizer: str | Factory,
    *,
    budget: int | None = None,
    batch_size: int | None = None,
    n_init: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    processes: int | None = None,
    evaluation_timeout: float | None = None,
    real_time: bool = False,
    journal: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    callback: Callback | None = None,
) -> Run:
    """Run an optimizer on a problem.

    Args:
        problem: A problem or its id.
        optimizer: An optimizer's id, or a class or factory called as
            `(space, *, budget, batch_size, seed, **options)`.
        budget: Number of evaluations, the initial design among them; the problem's protocol by
            default, as for the next two.
        batch_size: Number of points asked, evaluated and told together.
        n_init: Number of points of the initial Latin hypercube.
        seed: Fixes the design (with the problem) and the optimizer.
        workers: Number of asynchronous workers instead of batches: whenever one falls free, one
            point is asked for. The order in which they finish follows a virtual clock.
        processes: Number of processes that evaluate the points under way side by side; None
            evaluates in this process, unless one of the next two is given: then it means
            `workers`, or as many of the batch as there are cores. The results are the same.
        evaluation_timeout: Seconds after which the evaluation of a point is killed: it is
            recorded with the status "timeout", paid for, and the run goes on.
        real_time: Tell results of asynchronous workers in the order in which they really come.
            The run is then not reproducible, but it resumes in the order recorded.
        journal: Where every evaluation is written; the same path again resumes.
        options: Options of the optimizer.
        callback: Called with a `Progress` after every batch.

    Raises:
        InvalidTask: The numbers make no run, or the problem cannot be sent to other processes.
        UnsupportedTask: The optimizer declares that it cannot handle the task.
        OptimizerFailed: The optimizer raised or broke its contract; `.run` holds what there is.
        EvaluationFailed: Not one point of the initial design could be evaluated, or no process
            could be started.
        JournalError: The journal belongs to another task or does not replay.
    """
    made = make_problem(problem) if isinstance(problem, str) else problem
    name, factory = named_factory(optimizer)
    protocol = protocol_of(made)
    task = Task(
        problem=made.id,
        optimizer=name,
        budget=protocol.budget if budget is None else budget,
        batch_size=protocol.batch_size if batch_size is None else batch_size,
        n_init=protocol.n_init if n_init is None else n_init,
        seed=seed,
        workers=workers,
    )
    settings = Settings(
        options=options or {},
        journal=journal,
        callback=callback,
        processes=processes,
        evaluation_timeout=evaluation_timeout,
        real_time=real_time,
        registered=isinstance(problem, str),
    )
    return execute(task, made, factory, settings)
