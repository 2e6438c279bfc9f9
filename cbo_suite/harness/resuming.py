"""Which journals a run may go on from: its own, and that of the same run with a smaller budget."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cbo_suite.errors import JournalError
from cbo_suite.harness.settings import TIME_LIMIT
from cbo_suite.harness.user_function import UserProblem
from cbo_suite.journal import Contents, Header
from cbo_suite.records import SOURCE

# The fact that says how many evaluations a shorter run made before its budget was raised.
CONTINUED = "continued"


def resumed_header(contents: Contents, wanted: Header, path: str | Path) -> Header:
    """Return the header that a run goes on with from what a journal holds.

    A run with a larger budget than the recorded one goes on from its results: with the state that
    the optimizer left, by proposing the same points again, or, if it plans with its budget and
    proposes others, by being told all recorded results before it is asked. How many these were is
    a fact of the run, which a run of that budget from the beginning does not have.

    Raises:
        JournalError: The journal belongs to another run.
    """
    recorded = contents.header
    if recorded.given != wanted.given:
        raise JournalError(
            f"{path} was begun with other data or x0 than those of this run: leave both out to go "
            "on with those of the journal, or choose another path"
        )
    if difference := _find_difference(recorded, wanted):
        raise JournalError(
            f"{path} belongs to another run: {difference}; choose another path or remove the file"
        )
    budget, made = wanted.task.budget, sum(len(batch.status) for batch in contents.batches)
    versions = _resumed_versions(contents, wanted, made)
    complete = contents.end is not None and contents.end.status == "complete"
    if not complete or budget > recorded.task.budget:
        recorded = _with_time_limit_of(wanted, recorded)
    if budget == recorded.task.budget:
        return msgspec.structs.replace(recorded, versions=versions)
    if budget < recorded.task.budget:
        raise JournalError(
            f"{path} is that of a run of {recorded.task.budget} evaluations, which cannot be made "
            f"shorter: ask for {recorded.task.budget} or more, not {budget}"
        )
    if wanted.task.workers is not None and not complete:
        raise JournalError(
            f"{path} is that of a run whose workers have not ended: finish it with its own budget "
            f"of {recorded.task.budget}, then with {budget}"
        )
    facts = recorded.facts | {CONTINUED: str(made)}
    return msgspec.structs.replace(wanted, facts=facts, versions=versions)


def _resumed_versions(contents: Contents, wanted: Header, made: int) -> dict[str, str]:
    """Return the versions of a run that goes on, of which `made` evaluations are made.

    A run that two identities of an optimizer have made has none.
    """
    recorded = contents.header.versions
    complete = contents.end is not None and contents.end.status == "complete"
    longer = wanted.task.budget > contents.header.task.budget
    if recorded.get(SOURCE) == wanted.versions.get(SOURCE) or (complete and not longer):
        return wanted.versions if longer else recorded
    # The initial design is nobody's.
    if made <= wanted.task.n_init:
        return wanted.versions
    return {name: version for name, version in wanted.versions.items() if name != SOURCE}


def told_before(header: Header) -> int:
    """Return the number of evaluations that a shorter run made before this one."""
    return int(header.facts.get(CONTINUED, "0"))


def _with_time_limit_of(wanted: Header, recorded: Header) -> Header:
    """Return the recorded header with the time limit of now, which may have changed."""
    facts = {name: text for name, text in recorded.facts.items() if name != TIME_LIMIT}
    now = {TIME_LIMIT: wanted.facts[TIME_LIMIT]} if TIME_LIMIT in wanted.facts else {}
    return msgspec.structs.replace(recorded, facts=facts | now)


def _find_difference(recorded: Header, wanted: Header) -> str:
    """Say in what two runs differ that must be alike, "" if in nothing."""
    before, now = _comparable(recorded), _comparable(wanted)
    for name in (*before, *(name for name in now if name not in before)):
        if before.get(name) != now.get(name):
            if name == "space":
                return "its bounds, kinds of variables or linear constraints are others"
            values = (known.get(name, "not set") for known in (before, now))
            return "its {} is {!r}, this run's is {!r}".format(name, *values)
    return ""


def _comparable(header: Header) -> dict[str, object]:
    """Return what two runs must have in common: neither the budget nor what came before.

    A function of one's own may get a time limit later, after it has hung.
    """
    task = {name: getattr(header.task, name) for name in header.task.__struct_fields__}
    del task["budget"]
    facts = {name: text for name, text in header.facts.items() if name != CONTINUED}
    if header.task.problem == UserProblem.id:
        facts.pop(TIME_LIMIT, None)
    sizes = {"dim": header.dim, "num_constraints": header.num_constraints}
    return {**task, "options": header.options, **sizes, **facts}
