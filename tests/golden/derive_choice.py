"""Derive the rule of `optimizer="auto"` from records, and judge it with each problem left out.

Run from the root of the repository when rows were made:

    python -m tests.golden.derive_choice [FOLDER ...]

It reads the records under leaderboard/runs and in the folders that are named besides, such as
those that `cbo export --partial` makes of a campaign; where both have a row, the one with more
seeds counts. It writes the evidence, `tests/golden/choice.json`, and the tables of docs/choose.md
anew, and says which optimizer the evidence speaks for in each region and how the rule does. The
rule itself, in `cbo_suite/choice.py`, is changed by hand.

The score is `anytime` of score-v1: the mean share of 51 targets reached, over the whole run, from 0
to 100. It depends on no other participant and has one scale on all problems, so that it can be
averaged. The regions of the rule are not fitted: they follow from what the methods can do and from
how far the records reach. What is chosen by scores is the optimizer of each region: the one with
the best mean over the problems there, families counted alike. One family at a time is left out, as
the members of one resemble each other.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from cbo_suite.choice import Situation, find_branch
from cbo_suite.records import Record, read_records
from cbo_suite.registry import list_optimizers
from cbo_suite.scoring import TRACKS, anytime, best_so_far, load_references
from cbo_suite.scoring.runs import family, targets_reached
from cbo_suite.scoring.tracks import LEAST_RUNS, Track, problem_weights

RUNS, FILE = Path("leaderboard/runs"), Path(__file__).with_name("choice.json")
PAGE = Path("docs/choose.md")
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

    def situation(self, models: bool = True) -> Situation:
        """What the rule sees of it."""
        return Situation(
            self.dim, self.num_constraints, self.budget, self.batch_size, models=models
        )


Evidence = dict[str, Problem]


class Region(NamedTuple):
    """A line of the rule whose optimizer is the one with the best mean score there.

    Attributes:
        title: What its problems have in common, in words.
        candidates: Who can do what is asked there, and is on the board.
        example: What the rule sees of such a task.
        anywhere: Whether problems of other regions count as well.
    """

    title: str
    candidates: tuple[str, ...]
    example: Situation
    anywhere: bool = False

    @property
    def taken(self) -> str:
        """The optimizer that the rule takes in this region."""
        return find_branch(self.example).optimizers[0]

    def problems(self, evidence: Evidence) -> list[str]:
        """Name the problems of the region on which all candidates have rows."""
        branch, models = find_branch(self.example), self.example.models
        return [
            id_
            for id_, problem in evidence.items()
            if all(name in problem.rows for name in self.candidates)
            and (self.anywhere or find_branch(problem.situation(models)) is branch)
        ]


SMALL = Region(
    "one point at a time, few variables",
    ("cei", "slack", "scbo", "cobyla"),
    Situation(5, 5, 100, 1),
)
LARGE = Region(
    "several points at once, more variables or longer runs",
    ("scbo", "cei", "cma-es"),
    Situation(30, 5, 1000, 50),
)
ONE_BY_ONE = Region(
    "without torch, one point at a time",
    ("cobyla", "cobyqa", "cma-es-al", "cma-es-violation", "cma-es"),
    Situation(5, 5, 100, 1, models=False),
)
# Rows in batches are those of `cma-es` alone: how constraints are handled, all problems tell.
BATCHES = Region(
    "without torch, several points at once",
    ("cma-es-al", "cma-es-violation", "cma-es"),
    Situation(30, 5, 1000, 50, models=False),
    anywhere=True,
)
REGIONS = {"small": SMALL, "large": LARGE, "one-by-one": ONE_BY_ONE, "batches": BATCHES}
# What would come of other candidates, and of the lines that no track judges.
VARIATIONS = {
    "few variables, `pesc` too": SMALL._replace(candidates=(*SMALL.candidates, "pesc")),
    "few variables, `cobyqa` too": SMALL._replace(candidates=(*SMALL.candidates, "cobyqa")),
    "few variables, `cmes-ibo` too": SMALL._replace(candidates=(*SMALL.candidates, "cmes-ibo")),
    ONE_BY_ONE.title: ONE_BY_ONE,
    BATCHES.title: BATCHES,
}


class Judgement(NamedTuple):
    """How the rule does on problems that had no part in it.

    Attributes:
        took: By problem the optimizer that is best on the others of its region.
        score: Mean score of `auto`.
        best: The single method with the best mean score.
        best_score: Its score.
        error: Standard error of the difference.
    """

    took: dict[str, str]
    score: float
    best: str
    best_score: float
    error: float

    @property
    def loss(self) -> float:
        """What `auto` loses against the best single method."""
        return self.best_score - self.score


def gather(folders: Iterable[Path]) -> Evidence:
    """Condense the rows of all methods, and of variants that can be chosen, with enough seeds."""
    references = load_references()
    variants = {info.id for info in list_optimizers() if info.method != info.id}
    variants -= {name for region in REGIONS.values() for name in region.candidates}
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


def best_of(evidence: Evidence, region: Region, without: str = "") -> str | None:
    """Name the best optimizer of a region; None if there is nothing to go by.

    Args:
        evidence: All rows.
        region: The region.
        without: A problem whose family is left out.
    """
    weights = weigh(
        id_ for id_ in region.problems(evidence) if not without or family(id_) != family(without)
    )
    if not weights:
        return None
    return max(region.candidates, key=lambda name: mean_score(evidence, weights, name))


def judge(evidence: Evidence, track: Track) -> Judgement | None:
    """Judge the rule on a track, each problem by what the others are for; None without evidence."""
    took = left_out(evidence, SMALL) | left_out(evidence, LARGE)
    took = {id_: name for id_, name in took.items() if id_ in track.problems}
    singles = set.intersection(*(set(evidence[id_].rows) for id_ in took)) if took else set()
    return _compare(evidence, took, singles)


def judge_region(evidence: Evidence, region: Region) -> Judgement | None:
    """Judge the choice in a region among its candidates, in the same way."""
    return _compare(evidence, left_out(evidence, region), region.candidates)


def left_out(evidence: Evidence, region: Region) -> dict[str, str]:
    """Name for each problem of a region the optimizer that the others speak for."""
    choices = {id_: best_of(evidence, region, without=id_) for id_ in region.problems(evidence)}
    return {id_: name for id_, name in choices.items() if name is not None}


def _compare(evidence: Evidence, took: dict[str, str], singles: Iterable[str]) -> Judgement | None:
    """Compare what was taken with the best single optimizer; None if nothing was taken."""
    if not took:
        return None
    weights = weigh(took)
    best = max(sorted(singles), key=lambda name: mean_score(evidence, weights, name))
    variance = sum(
        weights[id_] ** 2 * sum(evidence[id_].rows[one].error ** 2 for one in (name, best))
        for id_, name in took.items()
        if name != best
    )
    return Judgement(
        took,
        sum(weights[id_] * evidence[id_].rows[name].score for id_, name in took.items()),
        best,
        mean_score(evidence, weights, best),
        math.sqrt(variance),
    )


def judge_tracks(evidence: Evidence) -> dict[str, Judgement]:
    """Judge the rule on every track that has evidence."""
    judged = {track.id: judge(evidence, track) for track in TRACKS}
    return {id_: judgement for id_, judgement in judged.items() if judgement is not None}


def load_evidence() -> Evidence:
    """Read the evidence that is committed."""
    return msgspec.json.decode(FILE.read_bytes(), type=Evidence)


def main() -> None:
    """Write the evidence and the tables of the page; say what they are for."""
    # Imported on use: it imports this module.
    from tests.golden.choice_page import write_tables

    evidence = gather([RUNS, *map(Path, sys.argv[1:])])
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(evidence), indent=1) + b"\n")
    PAGE.write_text(write_tables(PAGE.read_text("utf-8"), evidence), "utf-8")
    for name, region in REGIONS.items():
        best = best_of(evidence, region)
        sys.stdout.write(
            f"{name}: {len(region.problems(evidence))} problems, {best} is best, the rule takes "
            f"{region.taken}\n"
        )
    for id_, judgement in judge_tracks(evidence).items():
        sys.stdout.write(
            f"{id_}, {len(judgement.took)} problems left out: auto {judgement.score:.2f}, "
            f"{judgement.best} {judgement.best_score:.2f}, loss {judgement.loss:.2f}, standard "
            f"error {judgement.error:.2f}; took {judgement.took}\n"
        )


if __name__ == "__main__":
    main()
