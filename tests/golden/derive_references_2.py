"""Second version of the references: where the paper's campaign found better points than version 1.

Run it once, from the root of the repository, when the campaign has ended and its rows are verified:

    python -m tests.golden.derive_references_2

It takes the lowest value among the verified rows of each problem that lies below its best known
value in version 1, evaluates its point again, and writes `cbo_suite/scoring/references-2.json` and
the best known points of the problems. Worst value and level stay what they were: the scale above
the best known value is no result of optimizers. Once the file is published it never changes; then
the script says whether the records still give it.

The values in docs/problems/README.md and on the pages of these problems are changed by hand; a test
names those of the former that are not what the problem says.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

import cbo_suite as cbo
from cbo_suite.leaderboard import build_board
from cbo_suite.records import read_records
from cbo_suite.scoring.board import ProblemBoard
from cbo_suite.scoring.references import (
    Reference,
    encode_references,
    found_by,
    load_references,
    read_references,
    suite_file,
)
from cbo_suite.scoring.runs import beats_reference
from tests.golden.known_points import write_known_points

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "leaderboard" / "runs"
VERSION = 2
SCRIPT = "tests/golden/derive_references_2.py"
# Where problems keep their best known points, by the first word of their id.
KNOWN = {
    "lunar": ROOT / "problems" / "lunar_lander" / "best_known.json",
    "rover": ROOT / "problems" / "rover_best_known.json",
}


def find_better(runs: Path, references: Mapping[str, Reference]) -> dict[str, Reference]:
    """Return new references of the problems whose best known value a verified run went below.

    Args:
        runs: Folder with `<problem>/<optimizer>.jsonl`, and `verified.json` beside it.
        references: The values before.

    Raises:
        ValueError: A point, evaluated again, does not have its value.
    """
    found = {}
    for problem in build_board(runs, references=references).problems:
        reference = references.get(problem.problem)
        if reference is not None and (better := _improve(problem, reference, runs)) is not None:
            found[problem.problem] = better
    return found


def _improve(problem: ProblemBoard, before: Reference, runs: Path) -> Reference | None:
    """Return the references with the best point of the verified rows, None if it is no better."""
    rows = [row for row in problem.rows if row.verified and row.best is not None]
    if not rows:
        return None
    path = runs / problem.problem / f"{min(rows, key=lambda row: row.best or 0.0).optimizer}.jsonl"
    ends = [record for record in read_records(path) if record.improvements]
    ends = [record for record in ends if record.improvements[-1].violation == 0.0]
    record = min(ends, key=lambda record: record.improvements[-1].objective)
    best = record.improvements[-1]
    if not beats_reference(best.objective, before):
        return None
    values = cbo.make_problem(problem.problem).evaluate(np.array([best.x]))
    if not values.feasible[0] or values.objective[0] != best.objective:
        raise ValueError(
            f"{problem.problem}: the best point of {path.stem}, seed {record.task.seed}, gives "
            f"{values.objective[0]} with violation {values.violation[0]}, recorded is "
            f"{best.objective}: verify {path}"
        )
    return msgspec.structs.replace(
        before,
        best=best.objective,
        best_x=best.x.tolist(),
        source=f"{found_by(record.task.optimizer, record.task.seed)} {SCRIPT}; "
        "worst and level: as in version 1",
        version=VERSION,
    )


def main() -> None:
    """Write the second version, or compare with it."""
    first = load_references(1)
    made = find_better(RUNS, first)
    for id_, reference in made.items():
        print(f"{id_}: {first[id_].best!r} -> {reference.best!r}, {reference.source}")
    path = suite_file(VERSION)
    if path.exists():
        same = read_references(path) == made
        sys.exit(None if same else f"{path} is not what the records give; it stays as it is")
    files = {id_: KNOWN.get(id_.partition("-")[0]) for id_ in made}
    for id_, file in files.items():
        if file is None:
            print(f"{id_}: change the best known point of the problem by hand")
            continue
        point = {"objective": made[id_].best, "x": made[id_].best_x, "source": SCRIPT}
        write_known_points(file, {id_: point})
    path.write_bytes(encode_references(made))


if __name__ == "__main__":
    main()
