"""Write cbo_suite/references.json: best, worst and level of each problem that is cheap.

Run as `python -m tests.golden.derive_references`, a few minutes on one core.

- best: the best known point of the problem, derived by the other scripts of this folder.
- worst: the largest feasible objective. Random points and the corners of the box, the best of
  them improved by SLSQP under the constraints, from many starts.
- level: the median final value of random search at the paper's protocol over seeds 0 to 29, or
  the worst value where fewer than half of these runs find a feasible point.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import numpy as np
from scipy.optimize import NonlinearConstraint, minimize
from scipy.stats import qmc

import cbo_suite as cbo
from cbo_suite.problems import PROBLEMS
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array
from cbo_suite.references import Reference
from cbo_suite.tasks import PAPER

SAMPLES = 2**16
STARTS = 40
SEEDS = range(30)
TARGET = Path(__file__).parents[2] / "cbo_suite" / "references.json"


def worst_point(problem: Problem) -> Array:
    """Search the feasible point of largest objective, shape `(d,)`."""
    space = problem.space
    random = np.random.default_rng(0)
    unit = qmc.Sobol(space.dim, rng=random).random(SAMPLES)
    corners = (random.random((SAMPLES, space.dim)) < 0.5).astype(float)
    mixed = np.where(random.random(unit.shape) < 0.5, unit, corners)
    assert problem.best_known is not None
    around = space.to_unit(problem.best_known.x) + random.normal(scale=0.1, size=unit.shape)
    pool = space.from_unit(np.clip(np.concatenate([unit, corners, mixed, around]), 0, 1))
    best = problem.best_known.x
    starts = pool[np.argsort(problem.evaluate(pool).violation)[:STARTS]]
    feasible = pool[problem.evaluate(pool).feasible]
    if len(feasible):
        order = np.argsort(-problem.evaluate(feasible).objective)[:STARTS]
        starts = np.concatenate([feasible[order], starts[:STARTS]])
        best = feasible[order[0]]
    for start in [*starts, problem.best_known.x]:
        best = better(problem, best, climb(problem, start))
    return best


def climb(problem: Problem, start: Array) -> Array:
    """Improve a point by SLSQP in the unit cube; constraints are squashed to one scale."""
    space = problem.space

    def evaluate(unit: Array) -> tuple[float, Array]:
        values = problem.evaluate(space.from_unit(np.clip(unit, 0, 1))[None])
        squashed = np.sign(values.constraints[0]) * np.log1p(np.abs(values.constraints[0]))
        return float(values.objective[0]), squashed

    unit = space.to_unit(start)
    scale = max(1e-9, abs(evaluate(unit)[0]))
    result = minimize(
        lambda u: -evaluate(u)[0] / scale,
        unit,
        bounds=[(0, 1)] * space.dim,
        constraints=NonlinearConstraint(lambda u: evaluate(u)[1], -np.inf, -1e-9),
        method="SLSQP",
        options={"maxiter": 200},
    )
    point: Array = space.from_unit(np.clip(result.x, 0, 1))
    return point


def better(problem: Problem, best: Array, point: Array) -> Array:
    """Return the feasible one of larger objective."""
    values = problem.evaluate(np.stack([best, point]))
    larger = values.objective[1] > values.objective[0] or not values.feasible[0]
    return point if values.feasible[1] and larger else best


def random_level(problem: Problem, worst: float) -> float:
    """Return the median final value of random search, or the worst value if it mostly fails."""
    runs = [cbo.run(problem, "random-search", seed=seed) for seed in SEEDS]
    finals = [run.best_objective if run.feasible else np.inf for run in runs]
    median = float(np.median(finals))
    return median if np.isfinite(median) else worst


def derive(problem_id: str) -> Reference:
    """Derive the reference of one problem."""
    problem = cbo.make_problem(problem_id)
    assert isinstance(problem, Problem)
    assert problem.best_known is not None
    worst_x = worst_point(problem)
    worst = float(problem.evaluate(worst_x[None]).objective[0])
    budget, _, n_init = PAPER[problem_id]
    return Reference(
        best=problem.best_known.objective,
        best_x=problem.best_known.x.tolist(),
        worst=worst,
        worst_x=worst_x.tolist(),
        level=random_level(problem, worst),
        budget=budget,
        n_init=n_init,
        feasibility_tolerance=0.0,
        source=f"best: {problem.best_known.source}; others: tests/golden/derive_references.py",
    )


def main(ids: list[str]) -> None:
    """Derive the named problems, by default all that are cheap, and keep the others."""
    known = {}
    if TARGET.exists():
        known = msgspec.json.decode(TARGET.read_bytes(), type=dict[str, Reference])
    for problem_id in ids or [i for i in PROBLEMS if not i.startswith(("mopta", "lunar"))]:
        known[problem_id] = derive(problem_id)
        row = known[problem_id]
        print(f"{problem_id}: best {row.best:.10g} worst {row.worst:.10g} level {row.level:.10g}")
        text = msgspec.json.format(msgspec.json.encode(known), indent=1)
        TARGET.write_bytes(text + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
