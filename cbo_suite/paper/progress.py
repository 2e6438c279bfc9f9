"""Which runs of the reproduction there are: on the board, in the folder of a campaign, nowhere."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from cbo_suite.campaign.store import Store
from cbo_suite.errors import RecordError
from cbo_suite.harness.identity import identify_target
from cbo_suite.records import SOURCE
from cbo_suite.registry import list_optimizers
from cbo_suite.tasks import Task


class Published(NamedTuple):
    """What a folder of records holds.

    Attributes:
        present: Tasks whose record was made by the optimizer as it is here.
        others: Tasks whose record was made by another version of it.
    """

    present: set[Task]
    others: set[Task]


class Counts(NamedTuple):
    """How many runs of a part of the reproduction there are.

    Attributes:
        runs: Number of runs planned.
        published: Number on the board.
        done: Number that the campaign has finished and that are not on the board.
        others: Number on the board that another version made.
    """

    runs: int
    published: int
    done: int
    others: int

    @property
    def missing(self) -> int:
        """Number of runs still to be made."""
        return self.runs - self.published - self.done


class _Outline(msgspec.Struct):
    """As much of a record as tells which run it is; all else is skipped unread."""

    task: Task
    versions: dict[str, str]


_decoder = msgspec.json.Decoder(_Outline)


def published_tasks(folder: Path) -> Published:
    """Look which tasks a folder of records has; the records themselves are not checked.

    Raises:
        RecordError: A line tells no task.
    """
    found = Published(set(), set())
    for path in sorted(folder.glob("*/*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            try:
                outline = _decoder.decode(line)
            except msgspec.DecodeError as error:
                raise RecordError(f"{path}, line {number}, is no record: {error}") from error
            identity = outline.versions.get(SOURCE)
            same = identity is not None and identity == present_identity(outline.task.optimizer)
            (found.present if same else found.others).add(outline.task)
    return found


def missing_tasks(tasks: Iterable[Task], folder: Path) -> list[Task]:
    """Leave out the tasks that a folder of records has from the present version."""
    present = published_tasks(folder).present
    return [task for task in tasks if task not in present]


def count_runs(tasks: Iterable[Task], published: Published, done: set[Task]) -> Counts:
    """Count where the runs of a part are."""
    wanted = set(tasks)
    board = wanted & published.present
    own = (wanted & done) - board
    return Counts(len(wanted), len(board), len(own), len(wanted & published.others))


def done_tasks(tasks: Iterable[Task], store: Store) -> set[Task]:
    """Look which tasks the campaign in a folder has finished.

    Raises:
        InvalidTask: The folder holds another run in the place of one of these.
    """
    return {
        task for task in tasks if store.journal(task).exists() and store.state(task).word == "done"
    }


@cache
def present_identity(optimizer: str) -> str | None:
    """Return the identity that a run of an optimizer would have now, None if there is none."""
    for info in list_optimizers():
        if info.id == optimizer:
            return identify_target(info.target, info.options)
    return None
