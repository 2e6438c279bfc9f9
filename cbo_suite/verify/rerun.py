"""Run some seeds of a result file again and compare: what replaying points cannot show."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cbo_suite.errors import InvalidTask, OptimizerFailed, UnknownId, UnsupportedTask
from cbo_suite.harness import Factory, Run, Settings, execute
from cbo_suite.harness.environment import describe_machine, describe_versions
from cbo_suite.registry import make_problem, optimizer_factory
from cbo_suite.verify.replay import draw, known_points
from cbo_suite.verify.submission import Row, Submission, differing_version
from cbo_suite.verify.verdict import MISSING, Case


def rerun_seeds(submission: Submission, count: int, case: Case) -> None:
    """Run some seeds again, if problem and optimizer can be made here."""
    try:
        notes = _compare_again(submission, count, case)
        case.note("rerun", ", ".join(notes))
    except (UnknownId, *MISSING) as reason:
        absent = (
            f"{submission.optimizer} is not installed here: install its package, or leave out "
            "--rerun"
        )
        case.skip("rerun", absent if isinstance(reason, UnknownId) else reason)
        case.checked = False


def _compare_again(submission: Submission, count: int, case: Case) -> list[str]:
    """Run some seeds again and compare; which ones, nobody can choose beforehand."""
    factory = optimizer_factory(submission.optimizer)
    random = draw(submission, case.salt, "seeds")
    rows, complaints = submission.rows, case.complaints
    seeds = sorted(random.choice(len(rows), size=min(count, len(rows)), replace=False).tolist())
    machine = describe_machine()
    notes = []
    for row in (rows[seed] for seed in seeds):
        try:
            again = _run_again(row, factory)
        except (InvalidTask, UnsupportedTask, OptimizerFailed) as reason:
            complaints.add(row.line, "task", f"it cannot be run again: {reason}")
            continue
        # What the run has imported is known only after it.
        other = differing_version(row.versions, describe_versions(factory))
        difference = _first_difference(row, again)
        if difference is None:
            notes.append(f"seed {row.task.seed} identical")
        elif again.digest == row.digest or (other is None and dict(row.machine) == machine):
            complaints.add(row.line, "digest", f"run again, {difference}")
        elif _in_range(again, rows):
            where = other or "another machine"
            notes.append(f"seed {row.task.seed} within the range of the runs (here: {where})")
        else:
            complaints.add(
                row.line, "objective", "run again, it ends outside the range of all these runs"
            )
    return notes


def _run_again(row: Row, factory: Factory) -> Run:
    """Run a task as recorded; a run that fails gives what it had until then.

    Raises:
        OptimizerFailed: It has no evaluation, unlike the recorded one.
    """
    try:
        problem = make_problem(row.task.problem)
        return execute(row.task, problem, factory, Settings(options=row.options, registered=True))
    except OptimizerFailed as failure:
        if isinstance(failure.__cause__, MISSING):
            raise failure.__cause__ from failure
        failed: Run | None = failure.run
        if failed is None or len(failed.x) < min(1, len(row.objective)):
            raise
        return failed


def _first_difference(row: Row, again: Run) -> str | None:
    """Say where a run that was made again leaves the recorded one, None if it does not.

    The digest alone proves nothing: it may be the right one beside points of another run.
    """
    n = min(len(row.objective), len(again.objective))
    _, x, numbers = known_points(row)
    x, numbers = x[numbers < n], numbers[numbers < n]
    objective, now = row.objective[:n], again.objective[:n]
    equal = (objective == now) | (np.isnan(objective) & np.isnan(now))
    equal &= row.violation[:n] == again.evaluation.violation[:n]
    if len(numbers):
        equal[numbers] &= (x == again.x[numbers]).all(axis=1)
    if not equal.all():
        return f"evaluation {int(np.argmin(equal))} is another one"
    if len(again.objective) != len(row.objective):
        return f"it has {len(again.objective)} evaluations instead of {len(row.objective)}"
    return None if again.digest == row.digest else "its digest is another one"


def _in_range(again: Run, rows: Iterable[Row]) -> bool:
    """Tell whether a run ends between the best and the worst of the recorded ones.

    A run without an evaluation ends nowhere.
    """
    if not len(again.x):
        return False
    ends = [
        (float(row.violation[row.steps[-1]]), float(row.objective[row.steps[-1]]))
        for row in rows
        if len(row.steps)
    ]
    end = float(again.evaluation.violation[again.best_index]), again.best_objective
    return bool(ends) and min(ends) <= end <= max(ends)
