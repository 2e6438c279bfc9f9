"""Carry out one task: the core that `run`, `minimize`, campaigns and reruns build arguments for."""

from __future__ import annotations

from contextlib import closing

from cbo_suite.errors import UnsupportedTask
from cbo_suite.harness.evaluate import Evaluator, InProcess
from cbo_suite.harness.loop import Loop
from cbo_suite.harness.results import Run
from cbo_suite.harness.settings import Factory, Settings
from cbo_suite.journal import JournalWriter
from cbo_suite.protocols import ConstrainedProblem, Space, Task
from cbo_suite.registry import optimizer_factory


def execute(task: Task, problem: ConstrainedProblem, factory: Factory, settings: Settings) -> Run:
    """Carry out a task.

    Args:
        task: What is run, and how long.
        problem: The problem of that task.
        factory: Makes its optimizer, called as `(space, *, budget, batch_size, seed, **options)`.
        settings: What steers the run beside the task.

    Raises:
        InvalidTask: The settings make no run, or the problem cannot be sent to other processes.
        UnsupportedTask: The optimizer declares that it cannot handle the task.
        OptimizerFailed: The optimizer raised or broke its contract; `.run` holds what there is.
        EvaluationFailed: Not one point of the initial design could be evaluated, or no process
            could be started.
        JournalError: The journal belongs to another task or does not replay.
    """
    reason = unsupported_reason(factory, problem.space, task)
    if reason:
        raise UnsupportedTask(f"{task.optimizer} cannot run {task.problem}: {reason}")
    with closing(_make_evaluator(task, problem, settings)) as evaluator:
        loop = Loop(task, problem, factory, settings, evaluator)
        if settings.journal is None:
            return loop.run(None)
        with JournalWriter(settings.journal) as writer:
            return loop.run(writer)


def _make_evaluator(task: Task, problem: ConstrainedProblem, settings: Settings) -> Evaluator:
    """Make what evaluates the points: this process, or others."""
    processes = settings.processes_for(task)
    if processes is None:
        return InProcess(problem)
    # Imported on use: runs in one process have no part in what it costs.
    from cbo_suite.harness.pool import EvaluationPool

    source = task.problem if settings.registered else problem
    num_constraints = problem.space.num_constraints
    return EvaluationPool(source, num_constraints, processes, settings.evaluation_timeout)


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


def named_factory(optimizer: str | Factory) -> tuple[str, Factory]:
    """Return the name of an optimizer in a task, and its factory.

    The name of a class or factory that is not registered is "module:name".
    """
    if isinstance(optimizer, str):
        return optimizer, optimizer_factory(optimizer)
    name = getattr(optimizer, "__qualname__", type(optimizer).__qualname__)
    module = getattr(optimizer, "__module__", type(optimizer).__module__)
    return f"{module}:{name}", optimizer
