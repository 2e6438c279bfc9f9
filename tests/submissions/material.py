"""True runs, and how to write down false ones as if they were true.

Digests, roots and samples are those of what is claimed: whoever lies can compute them too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

import cbo_suite as cbo
from cbo_suite.harness.design import initial_design
from cbo_suite.protocols import Evaluation
from cbo_suite.records import MAX_POINT_NUMBERS, Record, encode_record
from cbo_suite.registry import protocol_of
from cbo_suite.tasks import Task
from cbo_suite.verify.replay import compute_fingerprints
from tests.submissions.honest import Values, condensed, sealed

SMALL, LARGE = "toy-2d-v1", "keane-30d-v1"
OPTIMIZER = "my-search"
Edit = Callable[[np.ndarray, np.ndarray, np.ndarray], object]


class Row(NamedTuple):
    """Ten true runs of a problem.

    Attributes:
        records: Their records; those of large runs are sealed.
        values: Points and values of each seed.
    """

    records: list[Record]
    values: dict[int, Values]


class Material(NamedTuple):
    """What forgeries are made of.

    Attributes:
        small: Runs that keep all points.
        large: Runs that open a sample.
        like: A record that lends versions, machine and times.
    """

    small: Row
    large: Row
    like: Record


class Forgery(NamedTuple):
    """A row that must not be verified.

    Attributes:
        idea: What it tries.
        message: Pattern of what is said against it.
        make: Makes the bytes of its file.
        problem: Id of its problem.
    """

    idea: str
    message: str
    make: Callable[[Material], bytes]
    problem: str = SMALL


def true_values(problem: str, seed: int) -> Values:
    """Return the design of a seed and random points after it, with their values."""
    function, protocol = cbo.make_problem(problem), protocol_of(problem)
    design = initial_design(problem, function.space, protocol.n_init, seed)
    random = np.random.default_rng(seed)
    unit = random.random((protocol.budget - protocol.n_init, function.space.dim))
    x = np.concatenate([design, function.space.from_unit(unit)])
    return x, function.evaluate(x)


def make_row(problem: str, like: Record) -> Row:
    """Make ten true runs."""
    values = {seed: true_values(problem, seed) for seed in range(10)}
    return Row(claim(problem, values, like), values)


def make_material(like: Record) -> Material:
    """Make what forgeries are made of."""
    return Material(make_row(SMALL, like), make_row(LARGE, like), like)


def claim(problem: str, values: Mapping[int, Values], like: Record) -> list[Record]:
    """Write the records of runs that claim these points and values, as `cbo` would."""
    records = []
    for seed, (x, evaluation) in values.items():
        task = Task(problem, OPTIMIZER, *protocol_of(problem), seed)
        record = condensed(task, x, evaluation, "", like)
        digest, _ = compute_fingerprints(msgspec.structs.replace(record, points=x), evaluation)
        records.append(msgspec.structs.replace(record, digest=digest))
    large = next(iter(values.values()))[0].size > MAX_POINT_NUMBERS
    return sealed(records, values) if large else records


def file_of(records: Sequence[Record]) -> bytes:
    """Write records as a file."""
    return b"".join(encode_record(record) for record in records)


def values_of(row: Row, edit: Edit, seeds: Sequence[int] = (4,)) -> dict[int, Values]:
    """Edit points, objective and constraints of some runs in place, in a copy."""
    values = {
        seed: (x.copy(), Evaluation(*(array.copy() for array in evaluation)))
        for seed, (x, evaluation) in row.values.items()
    }
    for seed in seeds:
        x, evaluation = values[seed]
        edit(x, *evaluation)
    return values


def lie(idea: str, message: str, edit: Edit, seeds: Sequence[int] = (4,)) -> Forgery:
    """A row of small runs of which some are edited; all else follows from what they claim."""

    def make(material: Material) -> bytes:
        return file_of(claim(SMALL, values_of(material.small, edit, seeds), material.like))

    return Forgery(idea, message, make)


def large_lie(idea: str, message: str, edit: Edit, seeds: Sequence[int] = (4,)) -> Forgery:
    """The same with large runs: the block is sealed over what they claim."""

    def make(material: Material) -> bytes:
        return file_of(claim(LARGE, values_of(material.large, edit, seeds), material.like))

    return Forgery(idea, message, make, LARGE)


def edited(idea: str, message: str, large: bool, **changes: Any) -> Forgery:
    """A row with fields of one record replaced; what is a function is given the record."""

    def make(material: Material) -> bytes:
        records = list((material.large if large else material.small).records)
        found = {
            name: value(records[4], material) if callable(value) else value
            for name, value in changes.items()
        }
        records[4] = msgspec.structs.replace(records[4], **found)
        return file_of(records)

    return Forgery(idea, message, make, LARGE if large else SMALL)


def old_record(record: Record, points: bool) -> Record:
    """Write a run in version 1 of the format."""
    evaluation = cbo.make_problem(record.task.problem).evaluate(
        record.points[record.steps] if record.whole else record.points
    )
    space = cbo.make_problem(record.task.problem).space
    box = hashlib.sha256(space.lower.tobytes() + space.upper.tobytes()).hexdigest()
    improved = record.points[record.steps] if record.whole else record.points
    return msgspec.structs.replace(
        record,
        schema=1,
        facts={"box": box},
        statuses=None,
        root=None,
        sample=None,
        restarts=None,
        seconds_processor=None,
        points=record.points if points else improved,
        step_constraints=evaluation.constraints,
    )
