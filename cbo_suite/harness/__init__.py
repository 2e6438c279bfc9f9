"""Run one task: which problem, which optimizer, whether they fit; the loop does the rest."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from cbo_suite.errors import InvalidTask, UnsupportedTask
from cbo_suite.harness.evaluate import Evaluator, InProcess
from cbo_suite.harness.loop import REAL_TIME, Callback, Factory, Loop
from cbo_suite.harness.results import Run
from cbo_suite.journal import JournalWriter
from cbo_suite.protocols import ConstrainedProblem, Space, Task
from cbo_suite.registry import make_problem, optimizer_factory, protocol_of


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
    factory = optimizer_factory(optimizer) if isinstance(optimizer, str) else optimizer
    protocol = protocol_of(made)
    task = Task(
        problem=made.id,
        optimizer=optimizer if isinstance(optimizer, str) else factory_name(optimizer),
        budget=protocol.budget if budget is None else budget,
        batch_size=protocol.batch_size if batch_size is None else batch_size,
        n_init=protocol.n_init if n_init is None else n_init,
        seed=seed,
        workers=workers,
    )
    reason = unsupported_reason(factory, made.space, task)
    if reason:
        raise UnsupportedTask(f"{task.optimizer} cannot run {task.problem}: {reason}")
    facts = {}
    if evaluation_timeout is not None:
        facts["evaluation_timeout"] = str(_seconds(evaluation_timeout))
    if real_time:
        if workers is None:
            raise InvalidTask("real_time orders the results of asynchronous workers: give workers")
        facts["order"] = REAL_TIME
    evaluator: Evaluator = InProcess(made)
    if processes is not None or facts:
        # Imported on use: runs in one process have no part in what it costs.
        from cbo_suite.harness.pool import EvaluationPool

        if processes is None:
            processes = task.workers or min(task.batch_size, os.cpu_count() or 1)
        evaluator = EvaluationPool(
            problem, made.space.num_constraints, processes, evaluation_timeout
        )
    with closing(evaluator):
        loop = Loop(made, factory, task, options or {}, callback, evaluator, facts)
        if journal is None:
            return loop.run(None)
        with JournalWriter(journal) as writer:
            return loop.run(writer)


def _seconds(value: float) -> float:
    """Return a time-out in seconds, or refuse it."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0.0 < seconds < math.inf:
        raise InvalidTask(f"evaluation_timeout must be seconds above 0, got {value!r}")
    return seconds


def run_task(task: Task, **settings: Any) -> Run:
    """Run a task as it is written down; `settings` are the other arguments of `run`."""
    return run(
        task.problem,
        task.optimizer,
        budget=task.budget,
        batch_size=task.batch_size,
        n_init=task.n_init,
        seed=task.seed,
        workers=task.workers,
        **settings,
    )


def unsupported_reason(factory: Factory, space: Space, task: Task) -> str | None:
    """Say why an optimizer, by its declared limits, cannot handle a task; None if it can."""
    max_dim = getattr(factory, "max_dim", None)
    if max_dim is not None and space.dim > max_dim:
        return f"it handles at most {max_dim} dimensions, the problem has {space.dim}"
    at_once = task.workers or task.batch_size
    max_batch = getattr(factory, "max_batch_size", None)
    if max_batch is not None and at_once > max_batch:
        return f"it handles at most {max_batch} points at once, the task has {at_once}"
    return None


def factory_name(factory: Factory) -> str:
    """Name a class or factory that is not registered: "module:name"."""
    name = getattr(factory, "__qualname__", type(factory).__qualname__)
    return f"{getattr(factory, '__module__', type(factory).__module__)}:{name}"
