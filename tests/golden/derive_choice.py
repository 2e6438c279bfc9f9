"""Derive the rule of `optimizer="auto"` from records, and judge it with each problem left out.

Run from the root of the repository when rows were made:

    python -m tests.golden.derive_choice [FOLDER ...]

It reads the records under leaderboard/runs and in the folders that are named besides, such as
those that `cbo export --partial` makes of a campaign; where both have a row, the one with more
seeds counts. It writes the evidence, `tests/golden/choice.json`, and the tables of docs/choose.md
anew, and says what the evidence speaks for and how the rule does. The rule itself, in
`cbo_suite/choice.py`, is changed by hand.

The lines for Gaussian processes are fitted whole, see `choice_fit`. Those without torch have limits
that are not fitted; who has the best mean score over the problems is taken there, families counted
alike. One family at a time is left out, as the members of one resemble each other.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from cbo_suite.choice import SMALL_DIM
from cbo_suite.scoring import TRACKS
from cbo_suite.scoring.runs import family
from cbo_suite.scoring.tracks import Track
from tests.golden.choice_evidence import FILE, Evidence, Problem, gather, mean_score, weigh
from tests.golden.choice_fit import fit_lines

RUNS, PAGE = Path("leaderboard/runs"), Path("docs/choose.md")


class Region(NamedTuple):
    """Problems that have something in common, and who can be chosen there.

    Attributes:
        title: What its problems have in common, in words.
        candidates: Who can do what is asked there, and is on the board.
        holds: Tells whether a problem belongs to it.
    """

    title: str
    candidates: tuple[str, ...]
    holds: Callable[[Problem], bool]

    def problems(self, evidence: Evidence) -> list[str]:
        """Name the problems of the region on which all candidates have rows."""
        return [
            id_
            for id_, problem in evidence.items()
            if self.holds(problem) and all(name in problem.rows for name in self.candidates)
        ]


def _is_small(problem: Problem) -> bool:
    """Tell whether SLACK can do it."""
    return problem.batch_size == 1 and problem.dim <= SMALL_DIM


SMALL = Region("one point at a time, few variables", ("cei", "slack", "scbo", "cobyla"), _is_small)
LARGE = Region(
    "several points at once, or more variables",
    ("scbo", "cei", "cobyla"),
    lambda problem: not _is_small(problem),
)
ONE_BY_ONE = Region(
    "without torch, one point at a time",
    ("cobyla", "cobyqa", "cma-es-al", "cma-es-violation", "cma-es"),
    _is_small,
)
# Rows in batches are those of `cma-es` alone: how constraints are handled, all problems tell.
BATCHES = Region(
    "without torch, several points at once",
    ("cma-es-al", "cma-es-violation", "cma-es"),
    lambda problem: True,
)
REGIONS = {"small": SMALL, "large": LARGE, "one-by-one": ONE_BY_ONE, "batches": BATCHES}
# What would come of other candidates, and of the lines that no track judges.
VARIATIONS = {
    "few variables, one method for all": SMALL,
    "few variables, `pesc` too": SMALL._replace(candidates=(*SMALL.candidates, "pesc")),
    "few variables, `cobyqa` too": SMALL._replace(candidates=(*SMALL.candidates, "cobyqa")),
    "few variables, `cmes-ibo` too": SMALL._replace(candidates=(*SMALL.candidates, "cmes-ibo")),
    "few variables, `furbo` too": SMALL._replace(candidates=(*SMALL.candidates, "furbo")),
    ONE_BY_ONE.title: ONE_BY_ONE,
    f"{ONE_BY_ONE.title}, `nomad` and `optuna-tpe` too": ONE_BY_ONE._replace(
        candidates=(*ONE_BY_ONE.candidates, "nomad", "optuna-tpe")
    ),
    BATCHES.title: BATCHES,
    f"{BATCHES.title}, `optuna-tpe` and `isres` too": BATCHES._replace(
        candidates=(*BATCHES.candidates, "optuna-tpe", "isres")
    ),
}
CANDIDATES = {name for region in REGIONS.values() for name in region.candidates}


class Judgement(NamedTuple):
    """How the rule does on problems that had no part in it.

    Attributes:
        took: By problem the optimizer that the others speak for.
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


def judge(
    evidence: Evidence, problems: Iterable[str], among: Iterable[str] = ()
) -> Judgement | None:
    """Judge the rule on problems, each by what the others are for; None without evidence.

    Args:
        evidence: All rows.
        problems: Ids of the problems.
        among: Single methods that it is compared with, all that have rows by default.
    """
    took = {}
    for id_ in problems:
        lines = fit_lines(evidence, without=id_) if id_ in evidence else None
        if lines and (name := lines.take(evidence[id_])) in evidence[id_].rows:
            took[id_] = name
    singles = set.intersection(*(set(evidence[id_].rows) for id_ in took)) if took else set()
    return _compare(evidence, took, singles & set(among) if among else singles)


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


def judge_tracks(evidence: Evidence, among: Iterable[str] = ()) -> dict[str, Judgement]:
    """Judge the rule on every track that has evidence, as `judge` does on problems."""
    judged = {track.id: judge(evidence, track.problems, among) for track in TRACKS}
    return {id_: judgement for id_, judgement in judged.items() if judgement is not None}


def has_all_rows(evidence: Evidence, track: Track) -> bool:
    """Tell whether all candidates have rows on all problems of a track."""
    problems = {id_ for region in (SMALL, LARGE) for id_ in region.problems(evidence)}
    return set(track.problems) <= problems


def main() -> None:
    """Write the evidence and the tables of the page; say what they are for."""
    # Imported on use: it imports this module.
    from tests.golden.choice_page import write_tables

    evidence = gather([RUNS, *map(Path, sys.argv[1:])], CANDIDATES)
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(evidence), indent=1) + b"\n")
    PAGE.write_text(write_tables(PAGE.read_text("utf-8"), evidence), "utf-8")
    sys.stdout.write(f"models: {fit_lines(evidence)}\n")
    for name, region in REGIONS.items():
        sys.stdout.write(
            f"{name}: {len(region.problems(evidence))} problems, {best_of(evidence, region)} is "
            "best\n"
        )
    for id_, judgement in judge_tracks(evidence).items():
        sys.stdout.write(
            f"{id_}, {len(judgement.took)} problems left out: auto {judgement.score:.2f}, "
            f"{judgement.best} {judgement.best_score:.2f}, loss {judgement.loss:.2f}, standard "
            f"error {judgement.error:.2f}; took {judgement.took}\n"
        )


if __name__ == "__main__":
    main()
