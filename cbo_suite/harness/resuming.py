"""Which journals a run may go on from: its own, and that of the same run with a smaller budget."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cbo_suite.errors import JournalError
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
    for name in ("task", "options", "dim", "num_constraints", "facts"):
        before, now = _comparable(recorded, name), _comparable(wanted, name)
        if before != now:
            raise JournalError(
                f"{path} belongs to another run: its {name} is {before}, this run's is {now}; "
                "choose another path or remove the file"
            )
    budget, made = wanted.task.budget, sum(len(batch.status) for batch in contents.batches)
    versions = _resumed_versions(contents, wanted, made)
    if budget == recorded.task.budget:
        return msgspec.structs.replace(recorded, versions=versions)
    if budget < recorded.task.budget:
        raise JournalError(
            f"{path} is that of a run of {recorded.task.budget} evaluations, which cannot be made "
            f"shorter: ask for {recorded.task.budget} or more, not {budget}"
        )
    complete = contents.end is not None and contents.end.status == "complete"
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


def _comparable(header: Header, name: str) -> object:
    """Return a field of a header without what may differ: the budget, and what came before."""
    if name == "task":
        return msgspec.structs.replace(header.task, budget=1)
    if name == "facts":
        return {fact: text for fact, text in header.facts.items() if fact != CONTINUED}
    return getattr(header, name)
