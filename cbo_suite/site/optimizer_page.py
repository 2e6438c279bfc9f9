"""The page of an optimizer: how it did everywhere, and what made its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cbo_suite.leaderboard.looks import Look
from cbo_suite.leaderboard.number_format import RowTexts
from cbo_suite.records import SOURCE
from cbo_suite.scoring.board import Board, ProblemBoard, ProblemRow, RankingRow, TrackBoard
from cbo_suite.site.ranking_page import look_data
from cbo_suite.site.texts import Library, as_json


class Entry(NamedTuple):
    """A problem and an optimizer's row on it.

    Attributes:
        problem: The board of the problem.
        row: The row of the optimizer.
        texts: Its values as text.
        rival: The best of the other methods under the paper's rule, None if there is none.
    """

    problem: ProblemBoard
    row: ProblemRow
    texts: RowTexts
    rival: ProblemRow | None


class Standing(NamedTuple):
    """An optimizer's row in a track.

    Attributes:
        track: The ranking of the track.
        row: The row of the optimizer.
    """

    track: TrackBoard
    row: RankingRow


def optimizer_context(
    name: str,
    board: Board,
    texts: Mapping[str, Mapping[str, RowTexts]],
    methods: Mapping[str, str],
    library: Library,
    look: Look,
) -> dict[str, Any]:
    """Gather what the page of an optimizer shows.

    Args:
        name: Id of the optimizer.
        board: The board.
        texts: Its values as text, by problem and optimizer.
        methods: Id of an optimizer to the id of its method.
        library: What is written about it.
        look: How it is drawn.
    """
    others = {id_ for id_, method in methods.items() if id_ == method != methods[name]}
    entries = [
        Entry(
            problem,
            row,
            texts[problem.problem][name],
            next((rival for rival in problem.rows if rival.optimizer in others), None),
        )
        for problem in board.problems
        for row in problem.rows
        if row.optimizer == name
    ]
    return {
        "name": name,
        "title": library.title(name),
        "text": library.optimizer(name),
        "install": library.install(name),
        "kind": library.kind(name),
        "entries": entries,
        "standings": [
            Standing(track, row)
            for track in board.tracks
            for row in track.rows
            if row.optimizer == name
        ],
        "overall": next((row for row in board.overall if row.optimizer == name), None),
        "versions": _versions(entries),
        "identities": _identities(entries),
        "data": as_json({"look": look_data(look), "problems": _problems(entries)}),
    }


def _problems(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Gather what the charts of an optimizer draw."""
    return [
        {
            "problem": entry.problem.problem,
            "anytime": entry.row.anytime,
            "interval": entry.row.anytime_interval or (entry.row.anytime, entry.row.anytime),
            "seconds": entry.row.seconds_per_evaluation,
            "n_init": entry.problem.n_init,
            "course": _course(entry) if entry.problem.best is not None else None,
        }
        for entry in entries
    ]


def _course(entry: Entry) -> dict[str, Any]:
    """Gather the regret of an optimizer and of the best of the others over the evaluations."""
    own, rival = entry.row.curves, entry.rival
    return {
        "evaluations": entry.problem.evaluations,
        "mean": own.regret_mean,
        "error": own.regret_error,
        "rival": rival and {"name": rival.optimizer, "mean": rival.curves.regret_mean},
    }


def _versions(entries: Sequence[Entry]) -> dict[str, str]:
    """Join the versions of all rows: package to its versions, each once, in order."""
    found: dict[str, dict[str, None]] = {}
    for _, row, *_ in entries:
        for package, version in row.versions.items():
            if package != SOURCE:
                found.setdefault(package, {}).update(dict.fromkeys(version.split(", ")))
    return {package: ", ".join(versions) for package, versions in sorted(found.items())}


def _identities(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """Name the problems of each identity of the code that made the runs, "" where it is unknown."""
    found: dict[str, list[str]] = {}
    for problem, row, *_ in entries:
        for identity in row.versions.get(SOURCE, "").split(", "):
            found.setdefault(identity, []).append(problem.problem)
    return found
