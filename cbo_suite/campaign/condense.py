"""From the journals of a campaign to records: what has ended, seed by seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from cbo_suite.campaign.leases import explained
from cbo_suite.campaign.store import Store
from cbo_suite.errors import JournalError
from cbo_suite.journal import Contents, End, read_journal
from cbo_suite.records import Record, make_record, seal_blocks, write_records
from cbo_suite.tasks import Task


def write_campaign_records(tasks: Iterable[Task], store: Store) -> list[Path]:
    """Condense the journals of tasks that have ended; return the files written.

    The records of a problem and an optimizer are written when all its tasks among these have
    ended, with all other seeds in the folder that have.
    """
    pairs: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in tasks:
        pairs[task.problem, task.optimizer].append(task)
    written = []
    for (problem, optimizer), group in sorted(pairs.items()):
        path = store.records(problem, optimizer)
        journals = sorted(path.with_suffix("").glob("*.jsonl"))
        if not {store.journal(task) for task in group} <= set(journals) or _is_newer(
            path, journals
        ):
            continue
        records = {journal: ended_record(journal, store) for journal in journals}
        if all(records[store.journal(task)] is not None for task in group):
            ended = [record for record in records.values() if record is not None]
            with explained(path):
                write_records(path, sealed(ended, store))
            written.append(path)
    return written


def ended_record(journal: Path, store: Store) -> Record | None:
    """Condense the journal of a run; None if it is missing, damaged or may still go on."""
    contents = ended_contents(journal, store)
    return None if contents is None else make_record(contents)


def sealed(records: Sequence[Record], store: Store) -> list[Record]:
    """Give large runs the samples that their blocks of ten seeds draw, from the journals."""
    return seal_blocks(records, lambda task: ended_contents(store.journal(task), store))


def ended_contents(journal: Path, store: Store) -> Contents | None:
    """Read the journal of a run; None if it is missing, damaged or may still go on.

    A run that was ended by its limits or by a crash could not write its own end: what it evaluated
    is the record of a failed run, since runs are never dropped.
    """
    try:
        contents = read_journal(journal) if journal.exists() else None
    except JournalError:
        return None
    if contents is None:
        return None
    if contents.end is None:
        state = store.state(contents.header.task)
        if state.word != "failed":
            return None
        contents = msgspec.structs.replace(contents, end=End("failed", 0.0, state.error))
    return contents


def _is_newer(path: Path, sources: Iterable[Path]) -> bool:
    """Tell whether a file is there and newer than all its sources."""
    if not path.exists():
        return False
    stamp = path.stat().st_mtime_ns
    return all(source.stat().st_mtime_ns < stamp for source in sources)
