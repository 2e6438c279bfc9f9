"""What a study has found so far, as a run."""

from __future__ import annotations

from dataclasses import replace

from cbo_suite.harness.environment import describe_machine
from cbo_suite.harness.results import Run, gather_run
from cbo_suite.harness.user_function import UserProblem
from cbo_suite.journal import SCHEMA, Batch, End, Header
from cbo_suite.protocols import Task
from cbo_suite.study.lines import Asked
from cbo_suite.study.reading import StudyContents


def as_run(contents: StudyContents) -> Run:
    """Return all results of a study in the order told, as a run."""
    begin = contents.beginning
    batches = [
        Batch(
            first=number,
            x=[contents.point(result)],
            objective=[result.objective],
            constraints=[result.constraints],
            status=[result.status],
            clock=float(number),
            seconds_optimizer=0.0,
            seconds_evaluation=0.0,
            messages={"0": result.message} if result.message else {},
        )
        for number, result in enumerate(contents.results)
    ]
    task = Task(
        UserProblem.id,
        begin.optimizer,
        contents.budget,
        begin.batch_size,
        begin.n_init,
        begin.seed,
    )
    header = Header(
        schema=SCHEMA,
        task=task,
        options=begin.options,
        dim=len(begin.space.lower),
        num_constraints=begin.space.num_constraints,
        versions=begin.versions,
        machine=describe_machine(),
    )
    seconds = sum(event.seconds for event in contents.events if isinstance(event, Asked))
    made = gather_run(header, batches, End("complete", seconds))
    complete = contents.last_id >= contents.budget and not contents.pending
    return made if complete else replace(made, status="open")
