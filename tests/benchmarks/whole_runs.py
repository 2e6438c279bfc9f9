"""Whole runs of SCBO at the paper's protocols: final values and processor seconds, by version.

The same seeds with two versions of the code make pairs: all else is equal. Run it with the checkout
of each version in turn; what is in the file already is not run again.

    git worktree add ../older 6d80291
    PYTHONPATH=../older python tests/benchmarks/whole_runs.py 6d80291 keane-30d-v1 20 FILE
    PYTHONPATH=. python tests/benchmarks/whole_runs.py newer keane-30d-v1 20 FILE

The first argument names the version, then come the problem, the number of seeds and the file.
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
    """Run once; the seconds include evaluations, which only count for the lunar lander."""
    budget, batch_size, n_init = PROTOCOLS[problem_id]
    problem, started = cbo.make_problem(problem_id), time.process_time()
    run = cbo.run(problem, "scbo", budget=budget, batch_size=batch_size, n_init=n_init, seed=seed)
    best = run.best_objective if run.feasible else None
    return {"best": best, "seconds": round(time.process_time() - started, 2)}


def main() -> None:
    """Make the runs that are missing."""
    version, problem_id, seeds, file = *sys.argv[1:3], int(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    for seed in range(seeds):
        found = json.loads(file.read_text("utf-8")) if file.exists() else {}
        runs = found.setdefault(problem_id, {}).setdefault(version, {})
        if str(seed) not in runs:
            runs[str(seed)] = whole_run(problem_id, seed)
            file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
