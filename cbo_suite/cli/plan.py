"""The tasks that the options of `cbo run` name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from cbo_suite.errors import UnknownId
from cbo_suite.registry import (
    list_optimizers,
    list_problems,
    optimizer_factory,
    resolve_problem_id,
)
from cbo_suite.scoring.tracks import TRACKS
from cbo_suite.tasks import Task, change_task, get_suite, make_tasks

_ALL = "all"


def planned_tasks(suite: str | None, options: Mapping[str, Any]) -> list[Task]:
    """Write out the tasks that the options name.

    An optimizer that is not of the suite is run on all its problems, with its seeds.

    Raises:
        UnknownId: A suite, problem or optimizer does not exist, or the suite has none of these.
    """
    problems = named_problems(options["problems"] or ())
    optimizers = list(options["optimizers"] or ())
    _refuse_unknown(optimizers)
    seeds: Sequence[int] | None = options["seeds"]
    changes = {name: options[name] for name in ("budget", "batch_size", "n_init", "workers")}
    if suite is None:
        if not problems or not optimizers:
            raise click.UsageError("give both --problems and --optimizers, or a --suite")
        return make_tasks(problems, optimizers, range(30) if seeds is None else seeds, **changes)
    planned = get_suite(suite)
    tasks = planned.tasks()
    of_suite = {task.optimizer for task in tasks}
    others = [id_ for id_ in optimizers if id_ not in of_suite]
    every_problem = list(dict.fromkeys(task.problem for task in tasks))
    tasks += make_tasks(every_problem, others, planned.seeds)
    # Seed by seed, so that replications finish whole.
    tasks.sort(key=lambda task: task.seed)
    chosen = [
        change_task(task, **changes)
        for task in tasks
        if (not problems or task.problem in problems)
        and (not optimizers or task.optimizer in optimizers)
        and (seeds is None or task.seed in set(seeds))
    ]
    if not chosen:
        raise UnknownId(f"suite {suite} has no task of these problems, optimizers and seeds")
    return chosen


def named_problems(names: Iterable[str]) -> list[str]:
    """Return the full ids of problems: of ids, of the tracks of the leaderboard, or of "all".

    Raises:
        UnknownId: There is no such problem or track.
    """
    tracks = {track.id: track.problems for track in TRACKS}
    found: list[str] = []
    for name in names:
        if name == _ALL:
            found += [problem.id for problem in list_problems()]
        elif name in tracks:
            found += tracks[name]
        else:
            found.append(resolve_problem_id(name))
    return list(dict.fromkeys(found))


def _refuse_unknown(optimizers: Iterable[str]) -> None:
    """Refuse ids that are not registered.

    Raises:
        UnknownId: There is no such optimizer.
    """
    known = {optimizer.id for optimizer in list_optimizers()}
    for id_ in optimizers:
        if ":" in id_:
            raise UnknownId(
                f"{id_} is a class without an id, and a campaign needs ids: give it one by an "
                "entry point, as `cbo new optimizer` writes it, and install it; or run it alone "
                f"with `cbo run PROBLEM {id_}`"
            )
        if id_ not in known:
            optimizer_factory(id_)  # it says what may have been meant
