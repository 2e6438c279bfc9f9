"""SCBO and its rivals, seed by seed: the numbers behind docs/rivals.md.

Two optimizers are compared on the seeds that both have, pair by pair, because they began with the
same design: feasible runs by their best value, others by their least violation. The test is
Wilcoxon's on the ranks of these outcomes, two-sided.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cbo_suite.records import Record
from cbo_suite.scoring.runs import best_so_far, outcome_ranks
from cbo_suite.scoring.statistics import holm, paired_wilcoxon

LEVEL = 0.05
# Below this many common seeds nothing is decided.
FEWEST_SEEDS = 10
# Shares of the budget at which runs are compared; the last is the end.
SHARES = (0.25, 0.5, 1.0)


class Outcome(NamedTuple):
    """Where a run is: its best feasible value, NaN if none, and its least violation."""

    value: float
    violation: float


class Cell(NamedTuple):
    """The runs of an optimizer on a problem.

    Attributes:
        outcomes: Seed to where its run is at each of `SHARES`.
        seconds: Processor seconds per evaluation of each run.
        versions: Versions on record, by distribution; of several runs the last one's.
    """

    outcomes: dict[int, tuple[Outcome, ...]]
    seconds: list[float]
    versions: dict[str, str]


class Row(NamedTuple):
    """A problem at its protocol, and the runs on it by optimizer."""

    problem: str
    dim: int
    num_constraints: int
    budget: int
    batch_size: int
    cells: dict[str, Cell]


class Comparison(NamedTuple):
    """An optimizer against another on a problem.

    Attributes:
        problem: Id of the problem.
        optimizer: Its id.
        seeds: Number of seeds that both have.
        feasible: Runs that are feasible, of it and of the other.
        medians: Medians of their feasible values, NaN if there are none.
        better: Seeds on which it is better, and worse.
        p_value: Of the paired test, corrected for the comparisons made together.
    """

    problem: str
    optimizer: str
    seeds: int
    feasible: tuple[int, int]
    medians: tuple[float, float]
    better: tuple[int, int]
    p_value: float

    @property
    def verdict(self) -> str:
        """Who is ahead, if the test says so: "ahead", "behind" or "undecided"."""
        if self.seeds < FEWEST_SEEDS or self.p_value > LEVEL or self.better[0] == self.better[1]:
            return "undecided"
        return "ahead" if self.better[0] > self.better[1] else "behind"


def collect(records: Iterable[Record], optimizers: Sequence[str]) -> list[Row]:
    """Gather the runs of some optimizers by problem, in the order of dimension and id."""
    rows: dict[str, Row] = {}
    for record in records:
        task = record.task
        if task.optimizer not in optimizers:
            continue
        sizes = record.dim, record.num_constraints, task.budget, task.batch_size
        row = rows.setdefault(task.problem, Row(task.problem, *sizes, {}))
        cell = row.cells.setdefault(task.optimizer, Cell({}, [], {}))
        cell.outcomes[task.seed] = outcomes(record)
        seconds = record.seconds_processor
        if seconds is None:
            seconds = record.seconds_optimizer
        cell.seconds.append(seconds / max(1, len(record.objectives)))
        cell.versions.update(record.versions)
    return sorted(rows.values(), key=lambda row: (row.dim, row.problem))


def outcomes(record: Record) -> tuple[Outcome, ...]:
    """Where a run is at each of `SHARES` of its budget."""
    trace, found = best_so_far(record), []
    for share in SHARES:
        spent = math.ceil(share * len(trace))
        violation = float(np.min(record.violations[:spent], initial=np.inf))
        found.append(Outcome(float(trace[spent - 1]), violation))
    return tuple(found)


def duel(row: Row, optimizer: str, other: str, share: float = 1.0) -> Comparison | None:
    """Compare two optimizers on a problem at a share of the budget; None without common seeds."""
    cells, place = row.cells, SHARES.index(share)
    if optimizer not in cells or other not in cells:
        return None
    first, second = cells[optimizer].outcomes, cells[other].outcomes
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    ends = np.array([[first[seed][place], second[seed][place]] for seed in seeds])
    values = ends[:, :, 0]
    ranks = outcome_ranks(values, ends[:, :, 1])
    better, worse = ranks[:, 0] < ranks[:, 1], ranks[:, 0] > ranks[:, 1]
    return Comparison(
        row.problem,
        optimizer,
        len(seeds),
        (_feasible(values[:, 0]), _feasible(values[:, 1])),
        (_median(values[:, 0]), _median(values[:, 1])),
        (int(better.sum()), int(worse.sum())),
        paired_wilcoxon(ranks[:, 0], ranks[:, 1]),
    )


def corrected(comparisons: Iterable[Comparison | None]) -> list[Comparison]:
    """Correct the p-values of comparisons that are made together by Holm's rule."""
    found = [comparison for comparison in comparisons if comparison is not None]
    adjusted = holm([comparison.p_value for comparison in found])
    return [c._replace(p_value=float(p)) for c, p in zip(found, adjusted, strict=True)]


def count(comparisons: Iterable[Comparison]) -> Mapping[str, int]:
    """Count the verdicts."""
    verdicts = [comparison.verdict for comparison in comparisons]
    return {word: verdicts.count(word) for word in ("ahead", "behind", "undecided")}


def stamp(rows: Sequence[Row]) -> str:
    """Name what was compared: sixteen digits that change with the outcomes of any run."""
    facts = [
        (row.problem, optimizer, seed, *(map(repr, outcome[-1])))
        for row in rows
        for optimizer, cell in sorted(row.cells.items())
        for seed, outcome in sorted(cell.outcomes.items())
    ]
    return hashlib.sha256(repr(facts).encode("ascii")).hexdigest()[:16]


def _median(values: np.ndarray) -> float:
    """The median of what is feasible, NaN if nothing is."""
    feasible = values[np.isfinite(values)]
    return float(np.median(feasible)) if feasible.size else float("nan")


def _feasible(values: np.ndarray) -> int:
    """How many runs are feasible."""
    return int(np.isfinite(values).sum())
