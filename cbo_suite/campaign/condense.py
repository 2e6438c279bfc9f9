"""From the journals of a campaign to records: what has ended, seed by seed."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from cbo_suite._version import __version__
from cbo_suite.campaign.leases import explained
from cbo_suite.campaign.store import Store
from cbo_suite.errors import CboError, InvalidTask, JournalError
from cbo_suite.files import write_whole
from cbo_suite.journal import Contents, End, read_journal
from cbo_suite.records import Record, make_record, read_records, seal_blocks, write_records
from cbo_suite.tasks import Task


def write_campaign_records(tasks: Iterable[Task], store: Store) -> list[Path]:
    """Condense the journals of tasks that have ended; return the files written.

    The records of a problem and an optimizer are written when all its tasks among these have
    ended, with all other seeds in the folder that have: exactly those, whichever files were there
    before. What is there already and made of the same journals is not written again.

    Raises:
        InvalidTask: A file holds records of other runs.
    """
    tasks = list(tasks)
    refuse_foreign_records(tasks, store)
    pairs: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in tasks:
        pairs[task.problem, task.optimizer].append(task)
    written = []
    for (problem, optimizer), group in sorted(pairs.items()):
        path = store.records(problem, optimizer)
        journals = sorted(path.with_suffix("").glob("*.jsonl"))
        if not {store.journal(task) for task in group} <= set(journals):
            continue
        stamp = _stamp(path)
        sources = _digest([*journals, *(journal.with_suffix(".json") for journal in journals)])
        if _text(stamp) == f"{sources} {_digest([path])}":
            continue
        records = {journal: _whole_record(journal, store) for journal in journals}
        if all(records[store.journal(task)] is not None for task in group):
            ended = [record for record in records.values() if record is not None]
            with explained(path):
                write_records(path, sealed(ended, store))
                write_whole(stamp, f"{sources} {_digest([path])}".encode())
            written.append(path)
    return written


def refuse_foreign_records(tasks: Iterable[Task], store: Store) -> None:
    """Refuse a folder where records of other runs are in the place of those of a campaign.

    They are a campaign's own if they are as it left them, or if all their journals are there.

    Raises:
        InvalidTask: A file holds records of other runs.
    """
    for path in {store.records(task.problem, task.optimizer) for task in tasks}:
        if not path.exists() or _text(_stamp(path)).endswith(f" {_digest([path])}"):
            continue
        try:
            known = all(store.journal(record.task).exists() for record in read_records(path))
        except (CboError, OSError):
            known = False
        if not known:
            raise InvalidTask(
                f"{path} holds records whose journals are not in {store.folder}, and a campaign "
                "would replace them: choose another folder, and `cbo export` adds its records to "
                "these"
            )


def _stamp(path: Path) -> Path:
    """Return the file that says what a file of records was made of."""
    return path.with_name(f".{path.stem}.made-of")


def _whole_record(journal: Path, store: Store) -> Record | None:
    """Condense the journal of a run; None also if it is damaged."""
    try:
        return ended_record(journal, store)
    except JournalError:
        return None


def ended_record(journal: Path, store: Store) -> Record | None:
    """Condense the journal of a run; None if it is missing or may still go on.

    Raises:
        JournalError: The journal is damaged.
    """
    contents = ended_contents(journal, store)
    return None if contents is None else make_record(contents)


def sealed(records: Sequence[Record], store: Store) -> list[Record]:
    """Give large runs the samples that their blocks of ten seeds draw, from the journals."""

    def whole(task: Task) -> Contents | None:
        try:
            return ended_contents(store.journal(task), store)
        except JournalError:
            return None

    return seal_blocks(records, whole)


def ended_contents(journal: Path, store: Store) -> Contents | None:
    """Read the journal of a run; None if it is missing or may still go on.

    A run that was ended by its limits or by a crash could not write its own end: what it evaluated
    is the record of a failed run, since runs are never dropped.

    Raises:
        JournalError: The journal is damaged.
    """
    contents = read_journal(journal) if journal.exists() else None
    if contents is None:
        return None
    if contents.end is None:
        state = store.state(contents.header.task)
        if state.word != "failed":
            return None
        contents = msgspec.structs.replace(contents, end=End("failed", 0.0, state.error))
    return contents


def _digest(paths: Iterable[Path]) -> str:
    """Return a digest of files, names and contents, and of the version that makes records."""
    total = hashlib.sha256(__version__.encode())
    for path in paths:
        data = path.read_bytes() if path.is_file() else b""
        total.update(f" {path.name} {len(data)} ".encode())
        total.update(data)
    return total.hexdigest()


def _text(path: Path) -> str:
    """Return what a file says, "" if it is not there."""
    return path.read_text("utf-8", errors="replace") if path.is_file() else ""
