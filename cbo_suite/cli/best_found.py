"""What the site shows of records beside their scores: the best points, and paths on maps."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cbo_suite.scoring.board import Board
    from cbo_suite.site import Bests

Trail = list[tuple[float, float]]
# Of all points on a path: enough to see its bends.
_STRIDE = 9


def find_bests(board: Board, folders: Iterable[Path]) -> Bests:
    """Find the best points and paths among the records of a board.

    Args:
        board: Who found the best value of each problem.
        folders: Folders with `<problem>/<optimizer>.jsonl`.
    """
    from cbo_suite.site import Bests

    places = list(folders)
    return Bests(best_points(board, places), best_trails(places))


def best_trails(folders: Iterable[Path]) -> dict[str, dict[str, Trail]]:
    """Find the best path of each optimizer on each problem of the suite that has paths.

    Args:
        folders: Folders with `<problem>/<optimizer>.jsonl`.

    Returns:
        Problem to optimizer to the points of its path, on a map of side 1.
    """
    from cbo_suite.problems.rover import Rover
    from cbo_suite.records import read_records
    from cbo_suite.registry import OWN_PACKAGE, list_problems, make_problem

    own = {info.id for info in list_problems() if info.package == OWN_PACKAGE}
    best: dict[tuple[str, str], tuple[float, float, int]] = {}
    trails: dict[str, dict[str, Trail]] = {}
    for path in sorted(path for folder in folders for path in folder.glob("rover-*/*.jsonl")):
        problem = make_problem(path.parent.name) if path.parent.name in own else None
        if not isinstance(problem, Rover):
            continue
        for record in read_records(path):
            steps = record.improvements
            key = problem.id, record.task.optimizer
            if not steps:
                continue
            last = steps[-1]
            if last.x.shape != problem.space.lower.shape:  # no record of this problem
                continue
            outcome = last.violation, last.objective, record.task.seed
            if key not in best or outcome < best[key]:
                best[key] = outcome
                points = problem.trajectory(last.x[None])[0][::_STRIDE]
                trails.setdefault(problem.id, {})[key[1]] = [
                    (round(float(x), 4), round(float(y), 4)) for x, y in points
                ]
    return trails


def best_points(board: Board, folders: Iterable[Path]) -> dict[str, list[float]]:
    """Find the best point of each problem among the runs of its first optimizer that has it.

    Args:
        board: Who found the best value of each problem.
        folders: Folders with `<problem>/<optimizer>.jsonl`.
    """
    from cbo_suite.records import read_records

    paths = [path for folder in folders for path in folder.glob("*/*.jsonl")]
    files = {f"{path.parent.name}/{path.stem}": path for path in paths}
    points = {}
    for problem in board.problems:
        found = problem.best_found
        path = files.get(f"{problem.problem}/{found.optimizer}") if found else None
        for record in read_records(path) if path else ():
            if found and record.task.seed == found.seeds[0] and record.improvements:
                points[problem.problem] = record.improvements[-1].x.tolist()
    return points
