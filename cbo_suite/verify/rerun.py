"""Run some seeds of a result file again and compare: what replaying points cannot show."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cbo_suite.errors import InvalidTask, OptimizerFailed, UnknownId, UnsupportedTask
from cbo_suite.harness import Factory, Run, Settings, execute
from cbo_suite.records import Record
from cbo_suite.registry import make_problem, optimizer_factory
from cbo_suite.scoring.statistics import paired_wilcoxon
from cbo_suite.verify.outcomes import outcome_of, rank_ends
from cbo_suite.verify.replay import draw
from cbo_suite.verify.submission import Submission
from cbo_suite.verify.verdict import MISSING, Case

# Runs that do not come out the same are believed if there are this many of them, and a test at this
# level does not see that the recorded ones end better. Runs that come out the same are no part of
# it: a few forged ones could hide among them.
LEAST_RERUNS = 8
LEVEL = 0.01


class Again(NamedTuple):
    """A run that was made again.

    Attributes:
        record: What is on record.
        run: What came of it now, None if it could not be run.
        difference: Where it leaves the recorded one, None if it does not.
    """

    record: Record
    run: Run | None
    difference: str | None


def rerun_seeds(submission: Submission, count: int, case: Case) -> None:
    """Run some seeds again, if problem and optimizer can be made here.

    Which ones, nobody can choose beforehand.
    """
    try:
        factory = optimizer_factory(submission.optimizer)
        rows = submission.rows
        random = draw(submission, case.salt, "seeds")
        seeds = random.choice(len(rows), size=min(count, len(rows)), replace=False)
        again = [_run_again(rows[seed].record, factory) for seed in sorted(seeds.tolist())]
    except (UnknownId, *MISSING) as reason:
        absent = (
            f"{submission.optimizer} is not installed here: install its package, or leave out "
            "--rerun"
        )
        case.skip("rerun", absent if isinstance(reason, UnknownId) else reason)
        case.checked = False
        return
    for one in again:
        # The digest alone proves nothing: it may be the right one beside points of another run.
        if one.difference and one.run is not None and one.run.digest == one.record.digest:
            line = rows[one.record.task.seed].line
            case.complaints.add(line, "digest", f"run again, {one.difference}")
    believed, text = _judge(again)
    if believed or not case.sound:
        case.note("rerun", text)
    else:
        case.doubt("rerun", text)


def _judge(again: list[Again]) -> tuple[bool, str]:
    """Tell whether runs made again support the recorded ones, and why."""
    different = [one for one in again if one.difference is not None]
    same = [f"seed {one.record.task.seed}" for one in again if one.difference is None]
    if not different:
        return True, f"{', '.join(same)} identical"
    first = different[0]
    what = (
        f"{len(same)} of {len(again)} identical (seed {first.record.task.seed}: {first.difference})"
    )
    pairs = [
        (one.record, one.run)
        for one in different
        if one.run is not None and {one.record.status, one.run.status} == {"complete"}
    ]
    if len(pairs) < LEAST_RERUNS:
        return False, (
            f"{what}; {len(pairs)} complete runs that differ are too few for a test: at least "
            f"{LEAST_RERUNS} are needed"
        )
    outcomes = [outcome_of(r.task, r.objectives, r.violations) for r, _ in pairs]
    outcomes += [outcome_of(r.task, run.objective, run.evaluation.violation) for r, run in pairs]
    ranks = rank_ends(outcomes)
    p_value = paired_wilcoxon(ranks[: len(pairs)], ranks[len(pairs) :], alternative="less")
    better = "better" if p_value <= LEVEL else "no better"
    text = f"{what}; recorded runs end {better} than those made again, p = {p_value:.2g}"
    return p_value > LEVEL, text


def _run_again(record: Record, factory: Factory) -> Again:
    """Run a task as recorded; a run that fails gives what it had until then.

    Raises:
        MissingExtra: The problem or the optimizer cannot be made here, nor with `MissingExecutable`
            or `WrongExecutable`.
    """
    task = record.task
    try:
        problem = make_problem(task.problem)
        settings = Settings(options=record.options, registered=True)
        run: Run | None = execute(task, problem, factory, settings)
    except OptimizerFailed as failure:
        run = failure.run
    except (InvalidTask, UnsupportedTask):
        run = None
    if run is None:
        return Again(record, None, "it cannot be run again")
    return Again(record, run, _first_difference(record, run))


def _first_difference(record: Record, again: Run) -> str | None:
    """Say where a run that was made again leaves the recorded one, None if it does not."""
    n = min(len(record.objectives), len(again.objective))
    kept = record.kept < n
    x, numbers = record.points[kept], record.kept[kept]
    objective, now = record.objectives[:n], again.objective[:n]
    equal = (objective == now) | (np.isnan(objective) & np.isnan(now))
    equal &= record.violations[:n] == again.evaluation.violation[:n]
    if len(numbers):
        equal[numbers] &= (x == again.x[numbers]).all(axis=1)
    if not equal.all():
        return f"evaluation {int(np.argmin(equal))} is another one"
    if len(again.objective) != len(record.objectives):
        return f"it has {len(again.objective)} evaluations instead of {len(record.objectives)}"
    return None if again.digest == record.digest else "its digest is another one"
