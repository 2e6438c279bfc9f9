"""The evidence for the rule of `auto`: how optimizers do on the problems of the board.

The score is `anytime` of score-v1: the mean share of 51 targets reached, over the whole run, from 0
to 100. It depends on no other participant and has one scale on all problems, so that it can be
averaged.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from cbo_suite.choice import Situation
from cbo_suite.records import Record, read_records
from cbo_suite.registry import list_optimizers
from cbo_suite.scoring import anytime, best_so_far, load_references
from cbo_suite.scoring.runs import family, targets_reached
from cbo_suite.scoring.tracks import LEAST_RUNS, problem_weights

FILE = Path(__file__).with_name("choice.json")
# Evaluations after which the page shows how many targets were reached.
STOPS = (15, 20, 30, 50, 75, 100)


class Row(msgspec.Struct, frozen=True):
    """An optimizer on a problem.

    Attributes:
        seeds: Number of runs.
        score: Mean of `anytime`.
        error: Its standard error.
        feasible: Number of runs that found a feasible point.
        seconds: Median time of a run in ask and tell, seconds of the processor.
        reached: Mean percentage of the targets reached after `STOPS` evaluations.
    """

    seeds: int
    score: float
    error: float
    feasible: int
    seconds: float
    reached: list[float]


class Problem(msgspec.Struct, frozen=True):
    """A problem with its protocol and its rows.

    Attributes:
        dim: Number of variables.
        num_constraints: Number of constraints.
        budget: Number of evaluations.
        batch_size: Number of points at once.
        rows: Rows by optimizer.
    """

    dim: int
    num_constraints: int
    budget: int
    batch_size: int
    rows: dict[str, Row]

    def situation(self) -> Situation:
        """What the rule sees of it."""
        return Situation(self.dim, self.num_constraints, self.budget, self.batch_size)


Evidence = dict[str, Problem]


def gather(folders: Iterable[Path], candidates: Iterable[str]) -> Evidence:
    """Condense the rows with enough seeds of all methods, and of variants that can be chosen.

    Args:
        folders: Folders with `<problem>/<optimizer>.jsonl`.
        candidates: Who can be chosen.
    """
    references = load_references()
    variants = {info.id for info in list_optimizers() if info.method != info.id}
    variants -= set(candidates)
    evidence: Evidence = {}
    for path in sorted(file for folder in folders for file in folder.glob("*/*.jsonl")):
        if path.stem in variants:
            continue
        records = [record for record in read_records(path) if record.task.problem in references]
        if len(records) < LEAST_RUNS:
            continue
        task = records[0].task
        problem = evidence.setdefault(
            task.problem,
            Problem(records[0].dim, records[0].num_constraints, task.budget, task.batch_size, {}),
        )
        before = problem.rows.get(task.optimizer)
        if before is None or before.seeds <= len(records):
            problem.rows[task.optimizer] = condense(records)
    return {
        id_: msgspec.structs.replace(problem, rows=dict(sorted(problem.rows.items())))
        for id_, problem in sorted(evidence.items())
    }


def condense(records: Sequence[Record]) -> Row:
    """Score the runs of one optimizer on one problem."""
    reference = load_references()[records[0].task.problem]
    traces = [best_so_far(record, reference.feasibility_tolerance) for record in records]
    scores = [
        anytime(trace, reference, record.task.n_init)
        for trace, record in zip(traces, records, strict=True)
    ]
    reached = 100.0 * np.mean([targets_reached(trace, reference) for trace in traces], axis=0)
    seconds = [
        record.seconds_optimizer if record.seconds_processor is None else record.seconds_processor
        for record in records
    ]
    return Row(
        seeds=len(records),
        score=round(statistics.mean(scores), 3),
        error=round(statistics.stdev(scores) / math.sqrt(len(scores)), 3),
        feasible=sum(not math.isnan(trace[-1]) for trace in traces),
        seconds=float(f"{statistics.median(seconds):.3g}"),
        reached=[round(float(reached[stop - 1]), 1) for stop in STOPS if stop <= len(reached)],
    )


def weigh(problems: Iterable[str]) -> dict[str, float]:
    """Weigh problems so that families count alike."""
    families: dict[str, list[str]] = {}
    for id_ in problems:
        families.setdefault(family(id_), []).append(id_)
    return problem_weights(families.values())


def mean_score(evidence: Evidence, weights: Mapping[str, float], name: str) -> float:
    """Average the score of an optimizer over problems."""
    return sum(weight * evidence[id_].rows[name].score for id_, weight in weights.items())


def load_evidence() -> Evidence:
    """Read the evidence that is committed."""
    return msgspec.json.decode(FILE.read_bytes(), type=Evidence)
