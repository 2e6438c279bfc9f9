"""Many tasks, side by side on the cores, resumable: what is done is skipped, the rest goes on.

In the folder of a campaign every run has its journal in `<problem>/<optimizer>/<seed>.jsonl`; its
record goes to `<problem>/<optimizer>.jsonl` when all runs of the pair have ended.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from cbo_suite.errors import CboError, JournalError, UnsupportedTask
from cbo_suite.harness import run
from cbo_suite.journal import Contents, read_journal
from cbo_suite.records import make_record, write_records
from cbo_suite.tasks import Task

# Runs go side by side, one per core: a run that used more threads would slow down the others.
_THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Outcome(NamedTuple):
    """How one task ended.

    Attributes:
        task: The task.
        best_objective: Objective value of its best point, NaN if there is none.
        feasible: Whether that point is feasible.
        error: What went wrong, "" if nothing did.
        skipped: Why the task was not run, "" if it was.
    """

    task: Task
    best_objective: float
    feasible: bool
    error: str = ""
    skipped: str = ""


def journal_path(folder: Path, task: Task) -> Path:
    """Return where the journal of a task is."""
    return folder / task.problem / task.optimizer / f"{task.seed}.jsonl"


def record_path(folder: Path, task: Task) -> Path:
    """Return where the record of a task is, with those of the other seeds."""
    return folder / task.problem / f"{task.optimizer}.jsonl"


def run_tasks(tasks: Sequence[Task], folder: Path, jobs: int) -> Iterator[Outcome]:
    """Run tasks on `jobs` processes and give their outcomes as they come.

    An error ends its task only.
    """
    previous = {name: os.environ.get(name) for name in _THREAD_SETTINGS}
    os.environ.update(dict.fromkeys(_THREAD_SETTINGS, "1"))
    try:
        # Fresh processes, because a fork would inherit whatever threads the caller has started.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(jobs, max(1, len(tasks))), mp_context=context) as pool:
            futures = [pool.submit(run_task, task, folder) for task in tasks]
            yield from _as_they_come(futures)
    finally:
        for name, value in previous.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _as_they_come(futures: Sequence[Future[Outcome]]) -> Iterator[Outcome]:
    """Give results as they come; when the caller stops, cancel what has not begun."""
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def run_task(task: Task, folder: Path) -> Outcome:
    """Run or resume one task in the folder of a campaign."""
    try:
        done = run(
            task.problem,
            task.optimizer,
            budget=task.budget,
            batch_size=task.batch_size,
            n_init=task.n_init,
            seed=task.seed,
            workers=task.workers,
            journal=journal_path(folder, task),
        )
    except UnsupportedTask as reason:
        return Outcome(task, float("nan"), False, skipped=str(reason))
    except CboError as error:
        return Outcome(task, float("nan"), False, error=str(error))
    return Outcome(task, done.best_objective, done.feasible)


def write_campaign_records(tasks: Iterable[Task], folder: Path) -> list[Path]:
    """Condense the journals of tasks that have ended; return the files written.

    The records of a problem and an optimizer are written when all their seeds have ended.
    """
    files: dict[Path, list[Task]] = defaultdict(list)
    for task in tasks:
        files[record_path(folder, task)].append(task)
    written = []
    for path, group in sorted(files.items()):
        ended = [_ended(journal_path(folder, task)) for task in group]
        records = [make_record(contents) for contents in ended if contents is not None]
        if len(records) == len(group):
            write_records(path, records)
            written.append(path)
    return written


def _ended(path: Path) -> Contents | None:
    """Read the journal of a run, None if it is missing, damaged or has not ended."""
    try:
        contents = read_journal(path) if path.exists() else None
    except JournalError:
        return None
    return contents if contents is not None and contents.end is not None else None
