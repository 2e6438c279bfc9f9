"""Second version of the references: where the paper's campaign found better points than version 1.

Run it once, from the root of the repository, when the campaign has ended and its rows are verified:

    python -m tests.golden.derive_references_2

It scores `leaderboard/runs` with version 1, takes the lowest value of each problem whose best known
value a run went below, evaluates its point again, and writes `cbo_suite/scoring/references-2.json`
and the best known points of the lunar landers. Worst value and level stay what they were: they are
no results of optimizers. Once the file is published it never changes; then the script says whether
the records still give it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

import cbo_suite as cbo
from cbo_suite.cli.best_found import best_points
from cbo_suite.leaderboard import build_board
from cbo_suite.scoring.board import ProblemBoard
from cbo_suite.scoring.references import (
    Reference,
    encode_references,
    load_references,
    read_references,
    suite_file,
)

ROOT = Path(__file__).parents[2]
VERSION = 2
LANDERS = ROOT / "problems" / "lunar_lander" / "best_known.json"
SCRIPT = "tests/golden/derive_references_2.py"


def find_better(runs: Path, references: Mapping[str, Reference]) -> dict[str, Reference]:
    """Return new references of the problems whose best known value a run went below.

    Args:
        runs: Folder with `<problem>/<optimizer>.jsonl`.
        references: The values before.

    Raises:
        AssertionError: A point, evaluated again, does not have its value.
    """
    board = build_board(runs, references=references)
    beaten = {event.problem for event in board.new_best}
    points = best_points(board, [runs])
    return {
        problem.problem: _improve(problem, references[problem.problem], points[problem.problem])
        for problem in board.problems
        if problem.problem in beaten
    }


def _improve(problem: ProblemBoard, before: Reference, x: list[float]) -> Reference:
    """Return the references of a problem with the best point that its runs found."""
    found = problem.best_found
    assert found is not None
    values = cbo.make_problem(problem.problem).evaluate(np.array([x]))
    assert values.feasible[0], f"{problem.problem}: the best point is not feasible"
    value = float(values.objective[0])
    # The board rounds to ten digits.
    assert np.isclose(value, found.value, rtol=1e-9, atol=0), f"{problem.problem}: {value} again"
    origin = f"best: found by {found.optimizer} with seed {found.seeds[0]}, {SCRIPT}"
    rest = before.source.partition("; ")[2]
    return msgspec.structs.replace(
        before, best=value, best_x=x, source=f"{origin}; {rest}", version=VERSION
    )


def main() -> None:
    """Write the second version, or compare with it."""
    made = find_better(ROOT / "leaderboard" / "runs", load_references(1))
    for id_, reference in made.items():
        print(f"{id_}: {load_references(1)[id_].best!r} -> {reference.best!r}, {reference.source}")
    path = suite_file(VERSION)
    if path.exists():
        same = read_references(path) == made
        sys.exit(None if same else f"{path} is not what the records give; it stays as it is")
    path.write_bytes(encode_references(made))
    known = json.loads(LANDERS.read_text("utf-8"))
    for id_ in known.keys() & made.keys():
        known[id_] = {"objective": made[id_].best, "x": made[id_].best_x, "source": SCRIPT}
    LANDERS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
