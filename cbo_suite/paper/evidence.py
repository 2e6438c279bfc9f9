"""What the reproduction has measured: the runs of every pair as arrays, and the measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from cbo_suite.paper.consistency import Consistency
from cbo_suite.paper.experiments import ROVER, STAGES, Pair, num_seeds, stage_tasks
from cbo_suite.paper.measurements import Measurements
from cbo_suite.paper.progress import present_identity
from cbo_suite.protocols import Array
from cbo_suite.records import SOURCE, Record, read_records
from cbo_suite.scoring.runs import best_so_far
from cbo_suite.tasks import Task


class PairRuns(NamedTuple):
    """The runs of an optimizer on a problem, in the order of their seeds.

    Attributes:
        seeds: The seeds.
        best: Best feasible value after every evaluation, NaN before there is one, `(n, budget)`.
        violation: Least total violation after every evaluation, `(n, budget)`.
        largest: Largest feasible value of all evaluations, NaN if there is none.
        seconds: Processor seconds of the optimizer per run, None where they were not measured.
        restarts: Numbers of the first evaluations after restarts, None where a run does not tell.
        n_init: Number of points of the initial design.
        best_x: The best feasible point of all runs, shape `(d,)`, None if there is none.
    """

    seeds: list[int]
    best: Array
    violation: Array
    largest: float
    seconds: list[float | None]
    restarts: list[list[int] | None]
    n_init: int
    best_x: Array | None = None

    @property
    def finals(self) -> Array:
        """Best feasible value at the end of each run, NaN where there is none, `(n,)`."""
        return self.best[:, -1]

    @property
    def num_feasible(self) -> int:
        """Number of runs that found a feasible point."""
        return int(np.count_nonzero(~np.isnan(self.finals)))


class Evidence(NamedTuple):
    """All that claims are judged by.

    Attributes:
        runs: The runs of every pair that has any.
        measurements: What was measured apart from them.
        consistency: What came of the check that SCBO always restarts; None if it was not made.
    """

    runs: Mapping[Pair, PairRuns]
    measurements: Measurements = Measurements()
    consistency: Consistency | None = None

    def have(self, pairs: Iterable[Pair]) -> int:
        """Count the runs there are of some pairs."""
        return sum(len(self.runs[pair].seeds) for pair in set(pairs) if pair in self.runs)

    def seconds_per_evaluation(self, problem: str, id_: str) -> float | None:
        """Return the processor seconds of an optimizer, None if they were not measured.

        They are measured apart, with nothing else running; without such a file they are the median
        of the runs, which ran side by side.
        """
        if self.measurements.seconds is not None:
            return self.measurements.seconds.problems.get(problem, {}).get(id_)
        runs = self.runs[problem, id_]
        known = [seconds for seconds in runs.seconds if seconds is not None]
        return median(known) / runs.best.shape[1] if known else None

    def imputed(self, problem: str, id_: str) -> Array:
        """Return the best value after every evaluation, `(n, budget)`.

        Before a run finds something feasible it is given the largest feasible value that any run
        on the problem found.
        """
        found = [runs.largest for (own, _), runs in self.runs.items() if own == problem]
        largest = np.fmax.reduce(np.array(found), initial=np.nan)
        best = self.runs[problem, id_].best
        values: Array = np.where(np.isnan(best), largest, best)
        return values


def needed(pairs: Iterable[Pair]) -> int:
    """Count the runs that some pairs are to have."""
    return sum(num_seeds(*pair) for pair in set(pairs))


def read_runs(folder: Path) -> dict[Pair, PairRuns]:
    """Read the runs of the reproduction from a folder of records; other records are left out.

    So are those that another version of an optimizer made, as `cbo paper status` counts them.

    Raises:
        RecordError: A file holds what is no record.
    """
    planned: dict[Pair, set[Task]] = {}
    for task in stage_tasks([stage.id for stage in STAGES]):
        planned.setdefault((task.problem, task.optimizer), set()).add(task)
    found: dict[Pair, PairRuns] = {}
    for (problem, optimizer), tasks in planned.items():
        path = folder / problem / f"{optimizer}.jsonl"
        if path.is_file():
            identity = present_identity(optimizer)
            records = [
                record
                for record in read_records(path)
                if record.task in tasks and record.versions.get(SOURCE) == identity is not None
            ]
            if records:
                found[problem, optimizer] = condense(records)
    return found


def condense(records: Iterable[Record]) -> PairRuns:
    """Put the runs of one optimizer on one problem into arrays."""
    ordered = sorted(records, key=lambda record: record.task.seed)
    budget = ordered[0].task.budget
    feasible = [record.objectives[record.violations == 0.0] for record in ordered]
    return PairRuns(
        seeds=[record.task.seed for record in ordered],
        best=np.stack([best_so_far(record) for record in ordered]),
        violation=np.stack([_least(record.violations, budget) for record in ordered]),
        largest=float(np.fmax.reduce(np.concatenate(feasible), initial=np.nan)),
        seconds=[record.seconds_processor for record in ordered],
        restarts=[record.restarts for record in ordered],
        n_init=ordered[0].task.n_init,
        best_x=_best_point(ordered) if ordered[0].task.problem == ROVER else None,
    )


def _least(violations: Array, budget: int) -> Array:
    """Trace the least violation so far, to the end of the budget."""
    padded = np.full(budget, np.inf)
    padded[: len(violations)] = violations
    trace: Array = np.fmin.accumulate(padded)
    return trace


def _best_point(records: Iterable[Record]) -> Array | None:
    """Return the feasible point of least objective value of some runs, None if there is none."""
    last = [record.improvements[-1] for record in records if record.improvements]
    best = min(last, key=lambda found: (found.violation, found.objective), default=None)
    return best.x if best is not None and best.violation == 0.0 else None
