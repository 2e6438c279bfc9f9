"""The folder of a campaign: where the files of a run are, and what they say of it.

    <folder>/<problem>/<optimizer>/<seed>.jsonl   journal: the run itself
    <folder>/<problem>/<optimizer>/<seed>.json    how the last attempt ended
    <folder>/<problem>/<optimizer>/<seed>.claim   lease, while somebody works on it
    <folder>/<problem>/<optimizer>/<seed>.jsonl.damaged-1   a damaged journal that was set aside
    <folder>/<problem>/<optimizer>.jsonl          records, once all planned seeds have ended
    <folder>/plans/<digest>.json                  what was planned

The journal decides: a run is done when its journal says so, whatever the other files say.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from cbo_suite.campaign.leases import PATIENCE_SECONDS, Leases, explained
from cbo_suite.engines import INTERRUPTED, Outcome
from cbo_suite.errors import InvalidTask, JournalError
from cbo_suite.files import move_aside, write_whole
from cbo_suite.journal import outline_journal, read_header
from cbo_suite.tasks import Task

#   done         the journal is complete
#   skipped      the optimizer declares that it cannot handle the task
#   failed       the last attempt failed; it is repeated when that is asked for
#   interrupted  it was begun and goes on with the next campaign
#   damaged      the journal is not as it was written; it is set aside when that is asked for
#   missing      nothing is there
Word = Literal["done", "skipped", "failed", "interrupted", "damaged", "missing"]

# The folder in that of a campaign that no other folder of records has.
PLANS = "plans"
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
_outcome_decoder = msgspec.json.Decoder(Outcome)
_plan_decoder = msgspec.json.Decoder(list[Task])


class State(NamedTuple):
    """What the files say of a task.

    Attributes:
        word: One word, see `Word`.
        last: How the last attempt ended, None if that is not known.
        error: Why it failed or was skipped, or what is damaged, "" otherwise.
    """

    word: Word
    last: Outcome | None = None
    error: str = ""


class Store:
    """The folder of a campaign. Reading changes nothing."""

    def __init__(self, folder: str | Path, patience: float = PATIENCE_SECONDS) -> None:
        """Look at a folder, which need not exist.

        Args:
            folder: The folder.
            patience: Seconds after which a lease that is not renewed is dead.
        """
        self.folder = Path(folder)
        self.leases = Leases(self.folder, patience)

    def journal(self, task: Task) -> Path:
        """Return where the journal of a task is."""
        return self._file(task, ".jsonl")

    def records(self, problem: str, optimizer: str) -> Path:
        """Return where the records of a problem and an optimizer are."""
        return self.folder / _safe(problem) / f"{_safe(optimizer)}.jsonl"

    def lease_path(self, task: Task) -> Path:
        """Return where the lease on a task is."""
        # The suffix stays: campaigns of other versions may share the folder.
        return self._file(task, ".claim")

    def _file(self, task: Task, suffix: str) -> Path:
        """Return a file of a task; no name leads out of the folder."""
        name = f"{task.seed}{suffix}"
        return self.folder / _safe(task.problem) / _safe(task.optimizer) / name

    def state(self, task: Task) -> State:
        """Say what the files say of a task; the journal is checked from end to end.

        Raises:
            InvalidTask: The journal in its place is of another task.
        """
        path, last = self.journal(task), self.last(task)
        try:
            outline = outline_journal(path)
        except OSError:
            outline = None
        except JournalError as damage:
            return State("damaged", last, str(damage))
        if outline is not None and outline.header.task != task:
            raise InvalidTask(
                f"{path} is a run of another task, {_differences(outline.header.task, task)}"
                ": choose another folder"
            )
        end = None if outline is None else outline.end
        if end is not None and end.status == "complete":
            return State("done", last)
        if last is not None and last.status == "skipped":
            return State("skipped", last, last.error)
        if last is not None and last.status not in ("complete", *INTERRUPTED):
            return State("failed", last, f"{last.status}: {last.error}")
        if end is not None:
            return State("failed", last, f"failed: {end.error}")
        begun = outline is not None or (path.exists() and path.stat().st_size > 0)
        error = "" if last is None or not last.error else f"{last.status}: {last.error}"
        return State("interrupted" if begun else "missing", last, error)

    def set_aside(self, task: Task) -> Path:
        """Move a damaged journal out of the way, so that the run begins anew; it is kept.

        Returns:
            Where it is now.

        Raises:
            StoreNotWritten: It cannot be moved.
        """
        path = self.journal(task)
        with explained(path):
            return move_aside(path, "damaged")

    def last(self, task: Task) -> Outcome | None:
        """Return how the last attempt at a task ended, None if that is not known."""
        try:
            return _outcome_decoder.decode(self._file(task, ".json").read_bytes())
        except (OSError, msgspec.DecodeError):
            return None

    def write_outcome(self, outcome: Outcome) -> None:
        """Write down how an attempt ended.

        Raises:
            StoreNotWritten: It cannot be written.
        """
        path = self._file(outcome.task, ".json")
        self._write(path, msgspec.json.format(msgspec.json.encode(outcome)) + b"\n")

    def is_running(self, task: Task) -> bool:
        """Tell whether a living campaign works on a task."""
        return self.leases.is_alive(self.lease_path(task))

    def write_plan(self, tasks: Sequence[Task]) -> None:
        """Remember what was planned, for `tasks`; the same plan twice is one file.

        Raises:
            StoreNotWritten: It cannot be written.
        """
        data = msgspec.json.encode(list(tasks)) + b"\n"
        path = self.folder / PLANS / f"{hashlib.sha256(data).hexdigest()[:16]}.json"
        if not path.exists():
            self._write(path, data)

    def tasks(self) -> list[Task]:
        """Return every task that was ever planned or begun, by problem, optimizer and seed."""
        tasks: set[Task] = set()
        for path in self.folder.glob(f"{PLANS}/*.json"):
            try:
                tasks.update(_plan_decoder.decode(path.read_bytes()))
            except msgspec.DecodeError as error:
                raise InvalidTask(
                    f"{path} is no plan: {error}; remove it, the journals are not touched"
                ) from error
        for path in self.folder.glob("*/*/*.jsonl"):
            header = read_header(path)
            if header is not None and self.journal(header.task) == path:
                tasks.add(header.task)
        return sorted(tasks, key=lambda task: (task.problem, task.optimizer, task.seed))

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file whole."""
        with explained(path):
            write_whole(path, data)


def _safe(name: str) -> str:
    """Return a name that is fit for a folder, or refuse it."""
    if not _SAFE_NAME.fullmatch(name) or len(name) > 200:
        raise InvalidTask(f"{name!r} cannot name a folder: use an id as `cbo list` shows it")
    return name


def _differences(found: Task, wanted: Task) -> str:
    """Name the fields in which two tasks differ."""
    return ", ".join(
        f"with {field} {getattr(found, field)} instead of {getattr(wanted, field)}"
        for field in Task.__struct_fields__
        if getattr(found, field) != getattr(wanted, field)
    )
