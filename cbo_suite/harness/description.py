"""Describe a run for the first line of its journal."""

from __future__ import annotations

from typing import Any

import msgspec

from cbo_suite.errors import InvalidTask
from cbo_suite.harness.environment import (
    describe_libraries,
    describe_machine,
    describe_versions,
)
from cbo_suite.harness.settings import Factory, Settings
from cbo_suite.journal import SCHEMA, Given, Header
from cbo_suite.protocols import ConstrainedProblem, Task


def describe_run(
    task: Task, problem: ConstrainedProblem, factory: Factory, settings: Settings
) -> Header:
    """Say what is run, with what, and where.

    Raises:
        InvalidTask: The options of the optimizer are not plain JSON.
    """
    space = problem.space
    facts = {"space": space.digest, **settings.facts()}
    if hasattr(problem, "executable_sha256"):
        facts["executable_sha256"] = str(problem.executable_sha256)
    return Header(
        schema=SCHEMA,
        task=task,
        options=plain_json(dict(settings.options), "options"),
        dim=space.dim,
        num_constraints=space.num_constraints,
        versions=describe_versions(factory, getattr(problem, "libraries", ())),
        machine=describe_machine(),
        facts=facts,
        given=msgspec.UNSET if settings.given == Given() else settings.given,
    )


def with_libraries(header: Header) -> Header:
    """Add the libraries imported since: some are when the optimizer that needs them is made."""
    return msgspec.structs.replace(header, versions=header.versions | describe_libraries())


def plain_json(value: object, what: str) -> dict[str, Any]:
    """Return a dict as JSON would give it back.

    Raises:
        InvalidTask: It holds something that JSON cannot.
    """
    try:
        data = msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidTask(f"{what} must be plain JSON: {error}") from error
    if not isinstance(data, dict):
        raise InvalidTask(f"{what} must be a dict with string keys, got {type(value).__name__}")
    return data
