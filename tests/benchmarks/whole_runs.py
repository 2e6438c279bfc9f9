"""Whole runs of SCBO at the paper's protocols: final values and processor seconds, by version.

The same seeds with two versions of the code make pairs: all else is equal. Run it with the checkout
of each version in turn; what is in the file already is not run again.

    git worktree add ../older 6d80291
    PYTHONPATH=../older python tests/benchmarks/whole_runs.py 6d80291 keane-30d-v1 20 FILE
    PYTHONPATH=. python tests/benchmarks/whole_runs.py newer keane-30d-v1 20 FILE

The first argument names the version, then come the problem, the number of seeds and the file. A
file of records as a last argument spares the runs that it has, of the version that made it:

    python tests/benchmarks/whole_runs.py newer rover-60d-v1 5 FILE runs/rover-60d-v1/scbo.jsonl
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

import cbo_suite as cbo

# Budget, batch size and initial design; versions differ in how they tell it.
PROTOCOLS = {
    "ackley-10d-v1": (200, 1, 10),
    "keane-30d-v1": (1000, 50, 100),
    "lunar-lander-m50-v1": (1000, 50, 50),
    "rover-60d-v1": (5000, 100, 100),
    "vehicle-124d-v1": (2000, 10, 130),
}


def whole_run(problem_id: str, seed: int) -> dict[str, Any]:
    """Run once; the seconds are those of this process, less those of evaluations."""
    budget, batch_size, n_init = PROTOCOLS[problem_id]
    problem: Any = cbo.make_problem(problem_id)
    evaluate, evaluating = problem.evaluate, 0.0

    def timed(x: Any) -> Any:
        nonlocal evaluating
        started = time.process_time()
        evaluation = evaluate(x)
        evaluating += time.process_time() - started
        return evaluation

    problem.evaluate = timed
    started = time.process_time()
    run = cbo.run(problem, "scbo", budget=budget, batch_size=batch_size, n_init=n_init, seed=seed)
    seconds = time.process_time() - started - evaluating
    return {"best": run.best_objective if run.feasible else None, "seconds": round(seconds, 2)}


def recorded_runs(file: Path) -> dict[str, dict[str, Any]]:
    """Read what runs on record found, and their seconds in ask and tell, by seed."""
    from cbo_suite.records import read_records  # older versions have no such room

    runs = {}
    for record in read_records(file):
        feasible = record.objectives[record.feasible]
        runs[str(record.task.seed)] = {
            "best": float(feasible.min()) if len(feasible) else None,
            "seconds": round(record.seconds_processor or 0.0, 2),
        }
    return runs


def main() -> None:
    """Make the runs that are missing."""
    version, problem_id, seeds, file = *sys.argv[1:3], int(sys.argv[3]), Path(sys.argv[4])
    known = recorded_runs(Path(sys.argv[5])) if len(sys.argv) > 5 else {}
    torch.set_num_threads(1)
    for seed in range(seeds):
        found = json.loads(file.read_text("utf-8")) if file.exists() else {}
        runs = found.setdefault(problem_id, {}).setdefault(version, {})
        if str(seed) not in runs:
            runs[str(seed)] = known.get(str(seed)) or whole_run(problem_id, seed)
            file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
