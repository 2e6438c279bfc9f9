"""Records of finished runs, from the folder of a campaign to a folder of records."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from cbo_suite.campaign.condense import ended_record, sealed
from cbo_suite.campaign.leases import explained
from cbo_suite.campaign.store import Store
from cbo_suite.errors import ExportRefused, JournalError
from cbo_suite.records import Record, read_records, write_records
from cbo_suite.tasks import Task

SHOWN = 5  # how many names an error lists


class Exported(NamedTuple):
    """What came of an export.

    Attributes:
        files: Files that were written.
        added: Number of records that were not there before.
        kept: Number of records that were there already, times aside.
        replaced: Number of records that took the place of others.
    """

    files: list[Path]
    added: int
    kept: int
    replaced: int


def export_records(
    store: Store, target: Path, *, partial: bool = False, replace: bool = False
) -> Exported:
    """Add the records of finished runs to a folder of records; when refused, nothing is written.

    A record that is there already, times and machines aside, stays as it is.

    Args:
        store: The folder of a campaign.
        target: Folder with `<problem>/<optimizer>.jsonl`.
        partial: Whether a problem and an optimizer are exported although planned seeds are not
            finished or damaged.
        replace: Whether records that differ from those there take their place.

    Raises:
        ExportRefused: The folder is that of no campaign, seeds are missing or damaged, or a record
            would be overwritten by a different one.
        StoreNotWritten: A file cannot be written.
    """
    pairs: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in store.tasks():
        pairs[task.problem, task.optimizer].append(task)
    if not pairs:
        raise ExportRefused(
            f"{store.folder} is no campaign folder: it holds neither a plan nor a journal; name "
            "the folder that `cbo run --out` has written"
        )
    missing: list[str] = []
    damaged: list[str] = []
    differing: list[str] = []
    added = kept = replaced = 0
    files: dict[Path, list[Record]] = {}
    for (problem, optimizer), tasks in pairs.items():
        found: list[Record] = []
        for task in tasks:
            try:
                record = ended_record(store.journal(task), store)
            except JournalError as error:
                damaged.append(str(error))
                continue
            if record is None:
                missing.append(task.name)
            else:
                found.append(record)
        if not found:
            continue
        path = target / problem / f"{optimizer}.jsonl"
        rows = {row.task.seed: row for row in read_records(path)} if path.exists() else {}
        before = dict(rows)
        for record in found:
            old = before.get(record.task.seed)
            if old is not None and _same(old, record):
                kept += 1
                continue
            if old is not None:
                differing.append(record.task.name)
            added, replaced = added + (old is None), replaced + (old is not None)
            rows[record.task.seed] = record
        after = sealed(list(rows.values()), store)
        if after != list(before.values()):
            files[path] = after
    if damaged and not partial:
        raise ExportRefused(
            f"{len(damaged)} journals are damaged: {_shorten(damaged)}; run them anew with "
            "`cbo run --retry-damaged`, or export the others with --partial"
        )
    if missing and not partial:
        raise ExportRefused(
            f"{len(missing)} planned runs are not finished: {_shorten(missing)}; finish them with "
            "`cbo run`, or export what there is with --partial"
        )
    if differing and not replace:
        raise ExportRefused(
            f"{len(differing)} records in {target} differ from these: {_shorten(differing)}; "
            "export to another folder, or replace them with --replace"
        )
    for path, rows_ in files.items():
        with explained(path):
            write_records(path, rows_)
    return Exported(list(files), added, kept, replaced)


def _same(one: Record, other: Record) -> bool:
    """Tell whether two records are of the same run: same task, same points and values."""
    return all(
        getattr(one, name) == getattr(other, name)
        for name in ("task", "options", "status", "error", "digest")
    )


def _shorten(names: list[str]) -> str:
    """List some names."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
