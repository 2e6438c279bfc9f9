"""One curve for a whole suite, as COCO draws it: the share of all targets of all problems reached.

The empirical distribution function of the evaluations that a run takes to reach a target, over all
targets, problems and runs, each problem with the same weight. Evaluations are counted per variable,
so that problems of different sizes can be put together; a run that has ended keeps what it reached.
The targets are those of `anytime`: a feasible point, and 50 values closing in on the best known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from cbo_suite.protocols import Array
from cbo_suite.records import Record
from cbo_suite.scoring.board import ProblemBoard
from cbo_suite.scoring.references import Reference
from cbo_suite.scoring.runs import best_so_far, targets_reached

NUM_POINTS = 100


class Course(NamedTuple):
    """What optimizers have reached on one problem.

    Attributes:
        dim: Number of variables.
        evaluations: Numbers of evaluations, ascending, shape `(k,)`.
        reached: Optimizer to the mean share of the targets reached after them, shape `(k,)`.
    """

    dim: int
    evaluations: Array
    reached: Mapping[str, Array]


class Aggregate(NamedTuple):
    """The curves over all problems of a suite.

    Attributes:
        problems: The problems that count: those with records and reference values.
        evaluations: Evaluations per variable, ascending, shape `(k,)`; empty without problems.
        reached: Optimizer to the share of all targets reached, 0 to 1, shape `(k,)`; the best at
            the end first. Only who was run on all of these problems.
        partial: Who was run on some of them only.
    """

    problems: list[str]
    evaluations: Array
    reached: dict[str, Array]
    partial: list[str]


def aggregate(courses: Mapping[str, Course]) -> Aggregate:
    """Put the courses of several problems together, by problem."""
    everybody = sorted({name for course in courses.values() for name in course.reached})
    if not courses:
        return Aggregate([], np.empty(0), {}, [])
    first = min(course.evaluations[0] / course.dim for course in courses.values())
    last = max(course.evaluations[-1] / course.dim for course in courses.values())
    grid = np.geomspace(first, last, NUM_POINTS)
    complete = [
        name for name in everybody if all(name in course.reached for course in courses.values())
    ]
    means = {
        name: np.mean([_at(course, name, grid) for course in courses.values()], axis=0)
        for name in complete
    }
    order = sorted(complete, key=lambda name: (-means[name][-1], name))
    return Aggregate(
        sorted(courses),
        grid,
        {name: means[name] for name in order},
        [name for name in everybody if name not in means],
    )


def _at(course: Course, optimizer: str, grid: Array) -> Array:
    """Return what an optimizer has reached after evaluations per variable `(k,)`: a staircase."""
    # A hair more, because dividing and multiplying by the dimension may round down.
    places = np.searchsorted(course.evaluations, grid * course.dim * (1 + 1e-9), side="right") - 1
    reached = course.reached[optimizer][np.maximum(places, 0)]
    return np.where(places < 0, 0.0, reached)


def courses_of_board(problems: Iterable[ProblemBoard], ids: Sequence[str]) -> dict[str, Course]:
    """Gather the courses of some problems of a board, of those that have reference values."""
    return {
        board.problem: Course(
            board.dim,
            np.array(board.evaluations, dtype=float),
            {row.optimizer: np.array(row.curves.targets, dtype=float) for row in board.rows},
        )
        for board in problems
        if board.problem in ids and board.best is not None and board.dim is not None
    }


def courses_of_records(
    records: Iterable[Record], references: Mapping[str, Reference]
) -> dict[str, Course]:
    """Gather the courses of runs, on the problems that have reference values."""
    known = [record for record in records if record.task.problem in references and record.dim]
    courses = {}
    ordered = sorted(known, key=lambda record: (record.task.problem, record.task.optimizer))
    for problem, group in groupby(ordered, key=lambda record: record.task.problem):
        runs = list(group)
        # A shorter run keeps what it reached until the longest one ends.
        budget = max(record.task.budget for record in runs)
        reached = {
            optimizer: np.mean(
                [_share(record, references[problem], budget) for record in own], axis=0
            )
            for optimizer, own in groupby(runs, key=lambda record: record.task.optimizer)
        }
        courses[problem] = Course(runs[0].dim, np.arange(1.0, budget + 1), reached)
    return courses


def _share(record: Record, reference: Reference, budget: int) -> Array:
    """Trace the share of targets that a run has reached, shape `(budget,)`."""
    share = targets_reached(best_so_far(record, reference.feasibility_tolerance), reference)
    return np.pad(share, (0, budget - len(share)), mode="edge")
