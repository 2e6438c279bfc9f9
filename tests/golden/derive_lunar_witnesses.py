"""Find the best known points of the lunar lander and write `problems/lunar_lander/best_known.json`.

Run from the root of the repository with the extras `cma` and `lunar`, some ten minutes:

    python -m tests.golden.derive_lunar_witnesses

CMA-ES minimises the objective plus the total violation. It starts from the heuristic for m = 10 and
from the best point of the problem before for m = 50 and m = 30. Better points that are known since
stay.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cma
import numpy as np

from cbo_suite.problems.lunar_lander import HEURISTIC, LunarLander
from cbo_suite.protocols import Array
from tests.golden.known_points import write_known_points

TARGET = Path(__file__).parents[2] / "problems" / "lunar_lander" / "best_known.json"
# Number of terrains, of terrains of the problem whose best point is the start, and evaluations.
STAGES = ((10, 0, 1200), (50, 10, 500), (30, 50, 500))


def search(problem: LunarLander, start: Array, evaluations: int) -> tuple[float, Array]:
    """Return the best feasible objective that CMA-ES finds, infinite for none, and its point."""
    options = {"bounds": [0, 2], "seed": 1, "popsize": 20, "verbose": -9, "maxfevals": evaluations}
    strategy = cma.CMAEvolutionStrategy(start, 0.1, options)
    best, best_x = np.inf, start
    while not strategy.stop():
        x = np.array(strategy.ask())
        evaluation = problem.evaluate(x)
        strategy.tell(list(x), list(evaluation.objective + evaluation.violation))
        winner = evaluation.best()
        if evaluation.feasible[winner] and evaluation.objective[winner] < best:
            best, best_x = float(evaluation.objective[winner]), x[winner]
            print(f"{problem.id}: reward {-best!r} after {strategy.countevals}", flush=True)
    return best, best_x


def main() -> None:
    """Search stage by stage and write the best point of each problem."""
    found: dict[int, tuple[float, Array]] = {0: (np.inf, np.array(HEURISTIC))}
    for terrains, origin, evaluations in STAGES:
        found[terrains] = search(LunarLander(terrains), found[origin][1], evaluations)
        rows: dict[str, Any] = {
            f"lunar-lander-m{m}-v1": {"objective": objective, "x": x.tolist()}
            for m, (objective, x) in sorted(found.items())
            if np.isfinite(objective)
        }
        write_known_points(TARGET, rows)


if __name__ == "__main__":
    main()
