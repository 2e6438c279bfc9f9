"""What is measured apart from the runs: files in `leaderboard/measurements`, and who makes them.

restarts.json      `cbo paper measure restarts`: longer runs of SCBO
feasibility.json   `cbo paper measure feasibility`: random points of Ackley
batch-gp.json      `python tests/benchmarks/batch_gp_table.py FILE`: many models at once
seconds.json       `cbo paper measure seconds`: what optimizers take, with nothing else running
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
from scipy.stats import CensoredData, ecdf

from cbo_suite.campaign.condense import ended_record
from cbo_suite.campaign.store import Store
from cbo_suite.errors import RecordError
from cbo_suite.files import write_whole
from cbo_suite.paper.experiments import ACKLEY, ARTEFACTS, KEANE, ROSENBROCK, TOY
from cbo_suite.registry import make_problem
from cbo_suite.tasks import Task, make_tasks

RESTARTS, FEASIBILITY, BATCH_GP, SECONDS = "restarts", "feasibility", "batch-gp", "seconds"
# Evaluations and seeds of the runs that restarts are counted in: about ten restarts in a run by the
# paper's numbers on the small problems, three on Keane's.
RESTART_RUNS = {TOY: (400, 30), ROSENBROCK: (800, 30), KEANE: (6000, 10)}
_BLOCK = 200_000  # points at a time

Struct = TypeVar("Struct", bound=msgspec.Struct)


class RestartRuns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the runs of SCBO on a problem began a new trust region.

    Attributes:
        evaluations: Number of evaluations of each run.
        restarts: Of each run, by its seed, the numbers of the first evaluations of new regions.
        identity: Identity of the optimizer that made the runs, "" if they name none.
    """

    evaluations: int
    restarts: list[list[int]]
    identity: str = ""

    @property
    def interval(self) -> float:
        """Mean number of evaluations between restarts, infinite if there were none.

        The last region of a run is cut off by its end: a mean over the others alone would be too
        small, and all evaluations by all restarts too large, as regions live about equally long.
        The mean is that of the survival function of Kaplan and Meier.
        """
        ended, cut = [], []
        for restarts in self.restarts:
            begun = [0, *restarts]
            ended += np.diff(begun).tolist()
            cut.append(self.evaluations - begun[-1])
        if not ended:
            return math.inf
        survival = ecdf(CensoredData(uncensored=ended, right=cut)).sf
        alive = np.concatenate([[1.0], survival.probabilities[:-1]])
        return float(np.diff(survival.quantiles, prepend=0.0) @ alive)


class Restarts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Restarts of SCBO, by problem."""

    problems: dict[str, RestartRuns]


class Feasibility(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many uniform random points of a problem are feasible.

    Attributes:
        problem: Id of the problem.
        points: Number of points.
        feasible: Number of those that are feasible.
        seed: Seed of the points.
    """

    problem: str
    points: int
    feasible: int
    seed: int


class BatchSide(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one way of computing many models took, and how far off it is.

    Attributes:
        training: Processor seconds of 50 gradient steps.
        prediction: Processor seconds of means and variances at 5000 points.
        sampling: Processor seconds of one joint draw there.
        mean_mae: Mean absolute error of the means against exact models in double precision.
        variance_mae: The same of the variances.
    """

    training: float
    prediction: float
    sampling: float
    mean_mae: float
    variance_mae: float


class BatchCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One size of the table of many models.

    Attributes:
        models: Number of models.
        points: Number of training points.
        cholesky: A Cholesky factor per model (GPyTorch).
        batched: All at once by conjugate gradients (GPyTorch).
        ours: As this suite's SCBO does it.
    """

    models: int
    points: int
    cholesky: BatchSide
    batched: BatchSide
    ours: BatchSide

    @property
    def gain(self) -> float:
        """How many times as fast batched training is as a Cholesky factor per model."""
        return self.cholesky.training / self.batched.training


class BatchTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table of many models, and the processor that it was measured on."""

    processor: str
    cells: list[BatchCell]


class Seconds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What optimizers take: one run each at the problem's protocol, seed 0, one after the other.

    Attributes:
        processor: The processor.
        load: How many processes the machine had to run beforehand, mean of a minute; the largest
            of all times that something was measured.
        problems: Processor seconds of the optimizer per evaluation, by problem and optimizer.
    """

    processor: str
    load: float
    problems: dict[str, dict[str, float]]


class Measurements(msgspec.Struct, frozen=True):
    """All files of measurements; None where there is no such file."""

    restarts: Restarts | None = None
    feasibility: Feasibility | None = None
    batch_gp: BatchTable | None = None
    seconds: Seconds | None = None


def read_measurements(folder: Path) -> Measurements:
    """Read the files of measurements that a folder has.

    Raises:
        RecordError: A file is not what its name says.
    """
    return Measurements(
        _read(folder, RESTARTS, Restarts),
        _read(folder, FEASIBILITY, Feasibility),
        _read(folder, BATCH_GP, BatchTable),
        _read(folder, SECONDS, Seconds),
    )


def write_measurement(folder: Path, name: str, measured: msgspec.Struct) -> Path:
    """Write a file of measurements; equal ones are equal bytes."""
    path = folder / f"{name}.json"
    write_whole(path, msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")
    return path


def restart_tasks(problems: Sequence[str]) -> list[Task]:
    """Write out the runs that restarts are counted in."""
    tasks: list[Task] = []
    for problem in problems:
        budget, seeds = RESTART_RUNS[problem]
        tasks += make_tasks([problem], ["scbo"], range(seeds), budget=budget)
    return tasks


def gather_restarts(problems: Iterable[str], store: Store, known: Restarts | None) -> Restarts:
    """Read the restarts of runs that are done, beside those of other problems.

    Raises:
        RecordError: A run is not there or does not tell its restarts.
        JournalError: A journal is damaged.
    """
    found = dict(known.problems) if known else {}
    for problem in problems:
        restarts, identities = [], set()
        for task in restart_tasks([problem]):
            record = ended_record(store.journal(task), store)
            if record is None or record.restarts is None:
                raise RecordError(f"{task.name} in {store.folder} has not ended: run it first")
            restarts.append(record.restarts)
            identities.add(record.identity or "")
        identity = identities.pop() if len(identities) == 1 else ""
        found[problem] = RestartRuns(RESTART_RUNS[problem][0], restarts, identity)
    return Restarts(dict(sorted(found.items())))


def seconds_tasks() -> list[Task]:
    """Write out the runs that are timed: the first of every pair whose table says what it takes.

    MOPTA08 is left out, as not everybody can run it.
    """
    pairs = dict.fromkeys(
        pair
        for artefact in ARTEFACTS
        if artefact.id not in ("lunar", "mopta08", RESTARTS)
        for pair in artefact.pairs
    )
    return [task for pair in pairs for task in make_tasks([pair[0]], [pair[1]], [0])]


def gather_seconds(
    tasks: Iterable[Task], store: Store, load: float, known: Seconds | None
) -> Seconds:
    """Read the processor seconds of runs that are done, beside those of others.

    Raises:
        RecordError: A run is not there, or those known are of another processor.
        JournalError: A journal is damaged.
    """
    problems = {id_: dict(rows) for id_, rows in known.problems.items()} if known else {}
    processors = {known.processor} if known else set()
    for task in tasks:
        record = ended_record(store.journal(task), store)
        if record is None or record.seconds_processor is None:
            raise RecordError(f"{task.name} in {store.folder} has not ended: run it first")
        processors.add(record.machine["processor"])
        seconds = float(f"{record.seconds_processor / len(record.objectives):.3g}")
        problems.setdefault(task.problem, {})[task.optimizer] = seconds
    if len(processors) > 1:
        raise RecordError(
            f"seconds of different processors do not compare: {', '.join(sorted(processors))}; "
            "remove the file and measure all of them on one"
        )
    load = max(round(load, 2), known.load if known else 0.0)
    rows = {id_: dict(sorted(problems[id_].items())) for id_ in sorted(problems)}
    return Seconds(processors.pop(), load, rows)


def measure_feasibility(
    points: int, seed: int = 0, on_block: Callable[[int], object] | None = None
) -> Feasibility:
    """Count feasible points among uniform random ones of Ackley's problem.

    Args:
        points: Number of points.
        seed: Seed of the points.
        on_block: Called with the number of points that are done, now and then.
    """
    problem = make_problem(ACKLEY)
    lower, upper = problem.space.lower, problem.space.upper
    random = np.random.default_rng(seed)
    feasible = done = 0
    while done < points:
        size = min(_BLOCK, points - done)
        evaluation = problem.evaluate(random.uniform(lower, upper, (size, len(lower))))
        feasible += int(np.count_nonzero(evaluation.feasible))
        done += size
        if on_block is not None:
            on_block(done)
    return Feasibility(ACKLEY, points, feasible, seed)


def _read(folder: Path, name: str, kind: type[Struct]) -> Struct | None:
    """Read one file; None if it is not there."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise RecordError(f"{path} is no file of measurements: {error}") from error
