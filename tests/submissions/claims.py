"""Rows whose values are true and which lie about something else, or hide a lie in a tolerance."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

import cbo_suite as cbo
from cbo_suite.records import Record
from tests.submissions.material import LARGE, Forgery, Material, file_of, large_lie


def restated(idea: str, message: str, change: Callable[[Record], Record]) -> Forgery:
    """A row of small runs of which every record is changed in the same way."""

    def make(material: Material) -> bytes:
        return file_of([change(record) for record in material.small.records])

    return Forgery(idea, message, make)


def with_fact(name: str, word: str) -> Callable[[Record], Record]:
    """Add a fact to a record."""
    return lambda record: msgspec.structs.replace(record, facts=record.facts | {name: word})


def with_option(record: Record) -> Record:
    """Give a record an option that is equal in all runs and still another in each."""
    value = (1, 1.0, True)[record.task.seed % 3]
    return msgspec.structs.replace(record, options={"restarts": value})


def next_to_nothing(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Miss a product of Keane's problem, which is typically 1e17, and call that 1e-300."""
    design = 100
    x[design:] = 0.3 + 0.01 * x[design:]
    objective[design:], constraints[design:] = cbo.make_problem(LARGE).evaluate(x[design:])
    constraints[design:, 0] = 1e-300


CLAIMS: dict[str, Forgery] = {
    "order of telling": restated(
        "results told in the order in which they came",
        "facts: no such run has 'order'",
        with_fact("order", "real-time"),
    ),
    "a fact of one's own": restated(
        "a fact that nobody asked for",
        "facts: no such run has 'approved'",
        with_fact("approved", "yes"),
    ),
    "options of several types": restated(
        "1, 1.0 and true as if they were one option",
        "options: it differs from line 1",
        with_option,
    ),
    "violation of a huge constraint": large_lie(
        "a violation that is small beside the typical size of its constraint",
        "field violation: evaluation .* does not come out again",
        next_to_nothing,
        range(10),
    ),
    "a flood of versions": restated(
        "more packages than anybody reads, on the board and in the table",
        "versions: more than 10000 bytes",
        lambda record: msgspec.structs.replace(
            record, versions=record.versions | {f"{i}": "a" * 300 for i in range(50)}
        ),
    ),
    "an executable": restated(
        "an executable of a problem that has none",
        "facts.executable_sha256: it is there",
        with_fact("executable_sha256", "0" * 64),
    ),
}
