"""Honest result files, and records that are consistent in themselves, whether true or not."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.harness import Factory
from cbo_suite.harness.design import initial_design
from cbo_suite.harness.identity import identify_target
from cbo_suite.journal import Contents, read_journal
from cbo_suite.protocols import Evaluation
from cbo_suite.records import (
    MAX_POINT_NUMBERS,
    SOURCE,
    Record,
    Sample,
    improvements,
    make_record,
    seal_blocks,
    write_records,
)
from cbo_suite.records.blocks import draw_block
from cbo_suite.records.tree import compute_root, hash_leaves, make_path
from cbo_suite.registry import protocol_of
from cbo_suite.tasks import Task

# The points of a run and their values.
Values = tuple[np.ndarray, Evaluation]


def run_records(
    folder: Path, problem: str, optimizer: str | Factory, seeds: Iterable[int]
) -> list[Record]:
    """Run some seeds at the protocol of the problem and return their records, sealed."""
    journals: dict[Task, Contents] = {}
    with pytest.MonkeyPatch.context() as patch:
        # That journals survive a crash is tested elsewhere; waiting for the disk takes long.
        patch.setattr(os, "fsync", lambda file: None)
        for seed in seeds:
            name = optimizer if isinstance(optimizer, str) else "own"
            journal = folder / f"{problem}-{name}-{seed}.jsonl"
            cbo.run(problem, optimizer, seed=seed, journal=journal)
            contents = read_journal(journal)
            assert contents is not None
            journals[contents.header.task] = contents
    return seal_blocks([make_record(contents) for contents in journals.values()], journals.get)


def sealed(records: Sequence[Record], values: Mapping[int, Values]) -> list[Record]:
    """Give the records of one block the samples that it draws, from what each seed evaluated.

    That may be anything: a record is only as true as what it is made of.
    """
    found = []
    for record, drawn in zip(records, draw_block(records), strict=True):
        x, evaluation = values[record.task.seed]
        assert record.statuses is not None
        leaves = hash_leaves(range(len(x)), x, evaluation, record.statuses)
        path = make_path(leaves, drawn.tolist()) if len(drawn) else b""
        sample = Sample(x[drawn], evaluation.constraints[drawn], path)
        found.append(msgspec.structs.replace(record, sample=sample))
    return found


def put(folder: Path, records: Sequence[Record]) -> Path:
    """Write records where they belong below a folder."""
    task = records[0].task
    path = folder / task.problem / f"{task.optimizer}.jsonl"
    write_records(path, records)
    return path


def condensed(
    task: Task, x: np.ndarray, evaluation: Evaluation, digest: str, like: Record, lost: str = "n"
) -> Record:
    """Make the record of a run that saw these points and values; the rest is as in another.

    What is not finite has the status `lost`.
    """
    violations = evaluation.violation
    space = cbo.make_problem(task.problem).space if task.problem != "mopta08-124d-v1" else None
    letters = "".join("o" if np.isfinite(violation) else lost for violation in violations)
    root = compute_root(hash_leaves(range(len(x)), x, evaluation, letters)).hex()
    return msgspec.structs.replace(
        like,
        task=task,
        facts={"space": space.digest if space is not None else "0" * 64},
        dim=x.shape[1],
        num_constraints=evaluation.constraints.shape[1],
        objectives=evaluation.objective,
        violations=violations,
        statuses=letters,
        points=x if x.size <= MAX_POINT_NUMBERS else x[improvements(evaluation)],
        digest=digest,
        root=root,
    )


def failed_at_once(record: Record) -> Record:
    """Return the record of a run that failed before its first evaluation."""
    return msgspec.structs.replace(
        record,
        status="failed",
        error="it broke",
        objectives=np.empty(0),
        violations=np.empty(0),
        statuses="",
        points=np.empty((0, record.dim)),
        digest=hashlib.sha256().hexdigest(),
        root=hashlib.sha256().hexdigest(),
    )


def invented_runs(problem: str, optimizer: str, seeds: Iterable[int], like: Record) -> list[Record]:
    """Make runs of random points with their true values, at the problem's protocol."""
    function, protocol = cbo.make_problem(problem), protocol_of(problem)
    space, asked = function.space, protocol.budget - protocol.n_init
    made = []
    for seed in seeds:
        design = initial_design(problem, space, protocol.n_init, seed)
        unit = np.random.default_rng(seed).random((asked, space.dim))
        x = np.concatenate([design, space.from_unit(unit)])
        task = Task(problem, optimizer, *protocol, seed)
        made.append(condensed(task, x, function.evaluate(x), f"{seed:064x}", like))
    return made


def renamed(records: Iterable[Record], optimizer: str) -> list[Record]:
    """Return the records of one optimizer as if they were those of another.

    Under an id of the suite they claim the identity of that optimizer.
    """
    own = {info.id: identify_target(info.target, info.options) for info in cbo.list_optimizers()}
    claim = {SOURCE: source} if (source := own.get(optimizer)) is not None else {}
    return [
        msgspec.structs.replace(
            record,
            task=msgspec.structs.replace(record.task, optimizer=optimizer),
            versions=record.versions | claim,
        )
        for record in records
    ]
