"""The front page: what the rankings of the tracks show, and what their filters compute with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy.stats import rankdata, t

from cbo_suite.leaderboard.looks import DASHES, Look, shown_first
from cbo_suite.scoring.board import Board, ProblemBoard, ProblemRow, RankingRow, TrackBoard
from cbo_suite.scoring.statistics import bootstrap_state
from cbo_suite.site.texts import Library, as_json

# Upper ends of the classes of dimension that the ranking can be filtered by.
SIZES = ((5, "up to 5"), (20, "6 to 20"), (60, "21 to 60"), (math.inf, "more than 60"))
# Methods that a chart shows because they lead; those of the paper are shown too.
NUM_LEADERS = 3
# Largest degrees of freedom with a quantile of its own; beyond, a series is exact enough.
MOST_FREEDOM = 100
# Places on the horizontal axis of a track's chart: shares of the budget after the initial design.
NUM_SHARES = 41


class Line(NamedTuple):
    """A row of a ranking.

    Attributes:
        row: What the board says.
        under: Id of the method that it stands under, "" if it stands for itself.
        variants: Number of variants that stand under it.
        kind: What kind of optimizer it is, "" if that is not known.
        same_as: Id of an optimizer above it with the same results in every run, "" for none.
        colour: Number of its colour.
    """

    row: RankingRow
    under: str
    variants: int
    kind: str
    same_as: str
    colour: int


class Series(NamedTuple):
    """A line of a track's chart.

    Attributes:
        name: Id of the method.
        colour: Number of its colour.
        shown: Whether it is shown before the reader chooses.
        variant: Whether it is a variant of a method that may be shown too.
    """

    name: str
    colour: int
    shown: bool
    variant: bool = False


class TrackView(NamedTuple):
    """A track as the page shows it.

    Attributes:
        board: Its ranking.
        ranked: Who is ranked, variants below their methods.
        partial: Who is not, likewise.
        series: The lines of its chart: the methods that are ranked, if none is those that are not.
        draws: Whose lines these are, "ranked" or "partial".
    """

    board: TrackBoard
    ranked: list[Line]
    partial: list[Line]
    series: list[Series]
    draws: str


def ranking_context(board: Board, library: Library, looks: Mapping[str, Look]) -> dict[str, Any]:
    """Gather what the rankings show and what their filters need."""
    boards = {problem.problem: problem for problem in board.problems}
    own = {
        track.track: [
            boards[id_] for id_ in track.problems if id_ in boards and boards[id_].best is not None
        ]
        for track in board.tracks
    }
    counted = {problem.problem: problem for problems in own.values() for problem in problems}
    sizes = {_size(problem.dim) for problem in counted.values()}
    views = [_view(track, own[track.track], library, looks) for track in board.tracks]
    rows = list(chain.from_iterable((*view.ranked, *view.partial) for view in views))
    every = list(counted.values())
    data = {
        "student": student(),
        "shares": [round(share, 4) for share in np.linspace(0, 1, NUM_SHARES).tolist()],
        "tracks": [_track_data(view, own[view.board.track], looks) for view in views],
        "comparison": board.comparison
        and {
            "names": board.comparison.optimizers,
            "ranks": board.comparison.mean_ranks,
            "difference": board.comparison.critical_difference,
        },
    }
    return {
        "data": as_json(data),
        "boards": boards,
        "views": views,
        "overall": _lines(board.overall, every, library, looks),
        "families": sorted({problem.family for problem in counted.values()}),
        "sizes": [name for _, name in SIZES if name in sizes],
        "batches": sorted({problem.batch_size for problem in counted.values()}),
        "kinds": sorted({line.kind for line in rows} - {""}),
        "any_verified": any(line.row.verified for line in rows),
        "runs": sum(row.runs for problem in board.problems for row in problem.rows),
        "num_optimizers": len({row.optimizer for p in board.problems for row in p.rows}),
        "num_problems": len(counted),
        "num_variants": len({line.row.optimizer for line in rows if line.row.variant}),
    }


def _view(
    track: TrackBoard,
    problems: Sequence[ProblemBoard],
    library: Library,
    looks: Mapping[str, Look],
) -> TrackView:
    """Arrange the rows of a track."""
    ranked = _lines(track.ranked, problems, library, looks)
    partial = _lines(track.partial, problems, library, looks)
    draws = "ranked" if any(not line.row.variant for line in ranked) else "partial"
    drawn = ranked if draws == "ranked" else partial
    methods = [line.row.optimizer for line in drawn if not line.row.variant]
    shown = shown_first(methods, NUM_LEADERS)
    series = [Series(name, looks[name].colour + 1, name in shown) for name in methods]
    return TrackView(track, ranked, partial, series, draws)


def _lines(
    rows: Sequence[RankingRow],
    problems: Sequence[ProblemBoard],
    library: Library,
    looks: Mapping[str, Look],
) -> list[Line]:
    """Put variants below their methods; those whose method is not there keep their place."""
    names = {row.optimizer for row in rows if not row.variant}
    under = {row.optimizer: row.method for row in rows if row.variant and row.method in names}
    below = [
        [row, *(other for other in rows if under.get(other.optimizer) == row.optimizer)]
        for row in rows
        if row.optimizer not in under
    ]
    same = _same(list(chain.from_iterable(below)), problems)
    return [
        Line(
            row,
            under.get(row.optimizer, ""),
            len(group) - 1 if row is group[0] else 0,
            library.kind(row.optimizer),
            same.get(row.optimizer, ""),
            looks[row.optimizer].colour + 1,
        )
        for group in below
        for row in group
    ]


def _same(rows: Sequence[RankingRow], problems: Sequence[ProblemBoard]) -> dict[str, str]:
    """Find optimizers of one method whose runs are those of one that stands above them."""
    results: dict[str, list[bytes]] = {}
    for problem in problems:
        for entry in problem.rows:
            ends = problem.problem, entry.outcomes, entry.curves
            results.setdefault(entry.optimizer, []).append(msgspec.json.encode(ends))
    first: dict[tuple[str, tuple[bytes, ...]], str] = {}
    found = {}
    for row in rows:
        own = row.method, tuple(results.get(row.optimizer, ()))
        if first.setdefault(own, row.optimizer) != row.optimizer:
            found[row.optimizer] = first[own]
    return found


def _track_data(
    view: TrackView, problems: Sequence[ProblemBoard], looks: Mapping[str, Look]
) -> dict[str, Any]:
    """Gather what the filters need of a track and of its problems that somebody was run on."""
    track = view.board
    methods = [row.optimizer for row in track.ranked if not row.variant]
    ranks = [_paper_ranks(problem, methods) for problem in problems]
    rows = [{row.optimizer: row for row in problem.rows} for problem in problems]
    family_of = {id_: i for i, members in enumerate(track.families) for id_ in members}
    drawn = {series.name for series in view.series}
    return {
        "id": track.track,
        "draws": view.draws,
        "problems": [
            {
                "id": problem.problem,
                "family": problem.family,
                "group": family_of[problem.problem],
                "size": _size(problem.dim),
                "batch": problem.batch_size,
                "states": {
                    str(size): [f"{part:x}" for part in bootstrap_state(size, problem.problem)]
                    for size in sorted({row.runs for row in problem.rows})
                },
            }
            for problem in problems
        ],
        **{
            kind: [
                {
                    "id": line.row.optimizer,
                    "look": look_data(looks[line.row.optimizer]),
                    "entries": [
                        _summary(
                            problem,
                            found.get(line.row.optimizer),
                            own_ranks.get(line.row.optimizer),
                            curve=line.row.optimizer in drawn,
                        )
                        for problem, own_ranks, found in zip(problems, ranks, rows, strict=True)
                    ],
                }
                for line in lines
            ]
            for kind, lines in (("ranked", view.ranked), ("partial", view.partial))
        },
    }


def look_data(look: Look) -> list[Any]:
    """Write a look for the charts: number of the colour, lengths of the dash."""
    return [look.colour + 1, DASHES[look.dash]]


def _paper_ranks(problem: ProblemBoard, methods: Sequence[str]) -> dict[str, float]:
    """Rank the methods of a track on one problem under the paper's rule."""
    means = {row.optimizer: row.paper_mean for row in problem.rows}
    values = [math.inf if (mean := means.get(name)) is None else mean for name in methods]
    return dict(zip(methods, rankdata(values).tolist(), strict=True))


def _size(dim: int | None) -> str:
    """Name the class of a dimension, "" if it is not known."""
    return "" if dim is None else next(name for end, name in SIZES if dim <= end)


def _summary(
    problem: ProblemBoard, row: ProblemRow | None, rank: float | None, *, curve: bool
) -> dict[str, Any] | None:
    """Gather what the filters add up of one row, None if the optimizer was not run."""
    if row is None:
        return None
    return {
        "scores": [round(score or 0.0, 7) for score in row.outcomes.anytime],
        "rank": rank,
        "feasible": row.feasible_runs,
        "seconds": row.seconds_per_evaluation,
        "imputed": row.imputed,
        "curve": _course(problem, row) if curve else None,
    }


def _course(problem: ProblemBoard, row: ProblemRow) -> list[float]:
    """Return the share of targets reached at even shares of the budget after the design."""
    times = np.linspace(min(problem.n_init, problem.budget), problem.budget, NUM_SHARES)
    places = np.searchsorted(problem.evaluations, np.maximum(times, 1), side="right") - 1
    return [round(row.curves.targets[i] or 0.0, 3) for i in np.maximum(places, 0).tolist()]


@cache
def student() -> list[float]:
    """Return Student's 97.5 % quantiles for 1, 2, ... degrees of freedom."""
    quantiles = [t.ppf(0.975, freedom) for freedom in range(1, MOST_FREEDOM + 1)]
    return [float(f"{quantile:.9g}") for quantile in quantiles]
