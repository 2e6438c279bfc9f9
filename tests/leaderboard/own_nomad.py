"""NOMAD by itself on a problem of the suite; `tests.leaderboard.own_loops` runs this file.

Takes a task as JSON and the file that every evaluation's values are written to, line by line; its
working folder is a temporary one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PyNomad

import cbo_suite as cbo
from cbo_suite.registry import protocol_of


def main(task: dict[str, Any], file: Path) -> None:
    """Run at the problem's budget; the points of the design are the starting points."""
    problem = cbo.make_problem(task["problem"])
    space = problem.space
    with file.open("w", encoding="utf-8") as out:

        def evaluate(point: Any) -> int:
            x = np.array([[point.get_coord(i) for i in range(space.dim)]])
            found = problem.evaluate(np.clip(x, space.lower, space.upper))
            values = [float(found.objective[0]), *found.constraints[0].tolist()]
            print(json.dumps(values), file=out, flush=True)
            point.setBBO(" ".join(map(repr, values)).encode())
            return 1

        starts = "".join(f"{' '.join(map(repr, x))}\n" for x in task["design"])
        Path("starts.txt").write_text(starts, encoding="utf-8")
        PyNomad.optimize(
            evaluate,
            [],
            space.lower.tolist(),
            space.upper.tolist(),
            [
                f"DIMENSION {space.dim}",
                f"BB_OUTPUT_TYPE OBJ {' '.join(['PB'] * space.num_constraints)}",
                f"MAX_BB_EVAL {protocol_of(problem.id).budget}",
                f"SEED {task['seed']}",
                "DISPLAY_DEGREE 0",
                "NB_THREADS_PARALLEL_EVAL 1",
                "X0 starts.txt",
            ],
        )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
