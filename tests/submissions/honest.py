"""Honest result files, and records that are consistent in themselves, whether true or not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.harness import Factory
from cbo_suite.harness.design import initial_design
from cbo_suite.harness.environment import SOURCE
from cbo_suite.harness.identity import identify_target
from cbo_suite.journal import read_journal, to_json_numbers
from cbo_suite.protocols import Evaluation
from cbo_suite.records import (
    Improvement,
    Record,
    encode_points,
    improvements,
    make_record,
    write_records,
)
from cbo_suite.registry import protocol_of
from cbo_suite.tasks import Task


def run_records(
    folder: Path, problem: str, optimizer: str | Factory, seeds: Iterable[int]
) -> list[Record]:
    """Run some seeds at the problem's protocol and return their records."""
    records = []
    with pytest.MonkeyPatch.context() as patch:
        # That journals survive a crash is tested elsewhere; waiting for the disk takes long.
        patch.setattr(os, "fsync", lambda file: None)
        for seed in seeds:
            name = optimizer if isinstance(optimizer, str) else "own"
            journal = folder / f"{problem}-{name}-{seed}.jsonl"
            cbo.run(problem, optimizer, seed=seed, journal=journal)
            contents = read_journal(journal)
            assert contents is not None
            records.append(make_record(contents))
    return records


def put(folder: Path, records: Sequence[Record]) -> Path:
    """Write records where they belong below a folder."""
    task = records[0].task
    path = folder / task.problem / f"{task.optimizer}.jsonl"
    write_records(path, records)
    return path


def condensed(
    task: Task, x: np.ndarray, evaluation: Evaluation, digest: str, like: Record
) -> Record:
    """Make the record of a run that saw these points and values; the rest is as in another."""
    violation = evaluation.violation
    space = cbo.make_problem(task.problem).space if task.problem != "mopta08-124d-v1" else None
    return msgspec.structs.replace(
        like,
        task=task,
        facts={"space": space.digest if space is not None else "0" * 64},
        objective=to_json_numbers(evaluation.objective),
        violation=to_json_numbers(violation),
        feasible="".join("1" if v == 0 else "0" for v in violation),
        improvements=[
            Improvement(
                i,
                x[i].tolist(),
                float(evaluation.objective[i]),
                evaluation.constraints[i].tolist(),
            )
            for i in improvements(evaluation)
        ],
        points=encode_points(x),
        digest=digest,
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
