"""From the journal of a run that ended to its record."""

from __future__ import annotations

import msgspec

from cbo_suite.errors import RecordError
from cbo_suite.journal import Batch, Contents, digest, gather, restarts, seconds_processor
from cbo_suite.records.lines import MAX_EVALUATIONS, MAX_OPTIONS_BYTES
from cbo_suite.records.record import MAX_POINT_NUMBERS, Record, improvements, regular_batches
from cbo_suite.records.tree import compute_root, hash_leaves

LETTERS = {"ok": "o", "nonfinite": "n", "failed": "f", "timeout": "t"}


def make_record(contents: Contents) -> Record:
    """Condense the journal of a run that ended.

    Raises:
        RecordError: The run has not ended, or is too long, or has too many options.
    """
    header, end, batches = contents.header, contents.end, contents.batches
    if end is None:
        raise RecordError(f"{header.task.name} has not ended: resume it first")
    x, evaluation = gather(batches, header.dim, header.num_constraints)
    if len(x) > MAX_EVALUATIONS:
        raise RecordError(
            f"{header.task.name} has {len(x)} evaluations, a record at most {MAX_EVALUATIONS}: "
            "keep the journal"
        )
    if len(msgspec.json.encode(header.options)) > MAX_OPTIONS_BYTES:
        raise RecordError(
            f"{header.task.name} has options of more than {MAX_OPTIONS_BYTES} bytes: keep the "
            "journal, and pass large data in another way"
        )
    sizes = [len(batch.x) for batch in batches]
    letters = status_letters(batches)
    return Record(
        schema=2,
        task=header.task,
        options=header.options,
        versions=header.versions,
        machine=header.machine,
        facts=header.facts,
        status=end.status,
        error=end.error[:10_000],
        dim=header.dim,
        num_constraints=header.num_constraints,
        objectives=evaluation.objective,
        violations=evaluation.violation,
        statuses=letters,
        points=x if x.size <= MAX_POINT_NUMBERS else x[improvements(evaluation)],
        batches=None if sizes == regular_batches(header.task, len(x)) else sizes,
        restarts=restarts(batches),
        seconds_optimizer=end.seconds_optimizer + sum(b.seconds_optimizer for b in batches),
        seconds_processor=seconds_processor(batches, end),
        seconds_evaluation=sum(b.seconds_evaluation for b in batches),
        digest=digest(batches),
        root=compute_root(hash_leaves(range(len(x)), x, evaluation, letters)).hex(),
    )


def status_letters(batches: list[Batch]) -> str:
    """Return one letter for the status of every evaluation, in the order told."""
    return "".join(LETTERS[status] for batch in batches for status in batch.status)
