"""The comparison of two optimizers: how every run ended, as few bytes as it takes."""

from __future__ import annotations

import math
from typing import Any

from cbo_suite.scoring.board import Board, Outcomes, ProblemBoard
from cbo_suite.site.ranking_page import student
from cbo_suite.site.texts import page_name


def comparison_data(board: Board) -> dict[str, Any]:
    """Gather what the comparison computes with."""
    tracks = [{"id": track.track, "families": track.families} for track in board.tracks]
    problems = [_problem(problem) for problem in board.problems]
    return {"student": student(), "problems": problems, "tracks": tracks}


def _problem(problem: ProblemBoard) -> dict[str, Any]:
    """Gather the runs on one problem; instead of outcomes their places among all of them."""
    ends = [_ends(row.outcomes) for row in problem.rows]
    places = {end: place for place, end in enumerate(sorted({end for own in ends for end in own}))}
    return {
        "id": problem.problem,
        "page": f"problem/{page_name(problem.problem)}.html",
        "rows": [
            {
                "optimizer": row.optimizer,
                # Seeds are nearly always 0, 1, ...
                "seed": None if row.outcomes.seed == list(range(row.runs)) else row.outcomes.seed,
                "place": [places[end] for end in own],
                "anytime": [
                    None if score is None else round(score, 6) for score in row.outcomes.anytime
                ],
            }
            for row, own in zip(problem.rows, ends, strict=True)
        ],
    }


def _ends(outcomes: Outcomes) -> list[tuple[bool, float]]:
    """Return what orders the runs: feasible ones first, by value, then the others by violation."""
    return [
        (True, math.inf if violation is None else violation) if final is None else (False, final)
        for final, violation in zip(outcomes.final, outcomes.violation, strict=True)
    ]
