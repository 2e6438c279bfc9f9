"""Write cbo_suite/scoring/references.json: best, worst and level of every problem.

Run from the root of the repository, some minutes on one core for all, or name problems:

    python -m tests.golden.derive_references [ID...]

- best: the best known point of the problem, derived by the other scripts of this folder.
- worst: the largest feasible objective that a bounded search finds. Smooth problems: SLSQP from
  random points, corners and feasible points, then from the best of these shaken again and again.
  The rovers, whose objectives have steps: an evolution strategy that accepts feasible points only,
  from the worst random point. The lunar landers need no search: the objective is minus the mean
  of rewards that are at least 200 where all constraints hold, so -200 is never exceeded.
- level: the median final value of those of 30 runs of random search at the paper's protocol that
  end feasible, or the worst value if none does. The lunar landers take the worst value: in the
  paper's table random search is feasible in 0 of 30 runs.

MOPTA08 can only be evaluated with its own executable, which cannot be shipped. Its best value is
that of problems/mopta08/reference.json, and its worst value is that of the centre of the box,
which stands in the same file: it violates constraints and bounds nothing, and feasible values above
it are clipped. The problem is optional, so that no overall score depends on it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

import cbo_suite as cbo
from cbo_suite.problems import PROBLEMS
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, Evaluation
from cbo_suite.registry import protocol_of
from cbo_suite.scoring.references import Reference

SEEDS = range(30)
ROOT = Path(__file__).parents[2]
TARGET = ROOT / "cbo_suite" / "scoring" / "references.json"
MOPTA08 = "mopta08-124d-v1"


class Effort(NamedTuple):
    """How long the worst point of a problem is searched.

    Attributes:
        samples: Number of points all over the box, and as many of three other kinds.
        starts: Number of them that SLSQP starts from.
        hops: Number of times that it starts again near the best point.
        generations: Number of generations of the evolution strategy, 0 for smooth problems.
        children: Number of points in a generation.
    """

    samples: int = 2**14
    starts: int = 60
    hops: int = 60
    generations: int = 0
    children: int = 0


EFFORTS = {
    "ackley-10d-v1": Effort(hops=600),
    "rosenbrock-5d-v1": Effort(hops=300),
    "vehicle-124d-v1": Effort(starts=2, hops=2),
    "rover-60d-v1": Effort(generations=300, children=50),
    "rover-60d-alt-v1": Effort(generations=300, children=50),
}


def worst_point(problem: Problem, effort: Effort, known: Array) -> Array:
    """Search the feasible point of largest objective, shape `(d,)`.

    Args:
        problem: The problem.
        effort: How long to search.
        known: Points that an earlier search found, shape `(k, d)`; the result is no worse.
    """
    assert problem.best_known is not None
    space, random = problem.space, np.random.default_rng(0)
    known = np.concatenate([[problem.best_known.x], known])
    pool = np.concatenate([sample(problem, effort.samples, random), known])
    values = problem.evaluate(pool)
    # The largest feasible objectives first, then the least violations.
    order = np.lexsort((-values.objective, values.violation))
    starts = np.concatenate([pool[order[: effort.starts]], known])
    best = largest(problem, starts)
    if effort.generations:
        return evolve(problem, effort, best)
    best = largest(problem, [best, *(climb(problem, start) for start in starts)])
    for _ in range(effort.hops):
        scale = 10 ** random.uniform(-2.0, -0.3)
        shaken = space.to_unit(best) + random.normal(scale=scale, size=space.dim)
        best = largest(problem, [best, climb(problem, space.from_unit(np.clip(shaken, 0, 1)))])
    return best


def sample(problem: Problem, n: int, random: np.random.Generator) -> Array:
    """Draw four times n points: all over the box, corners, a mixture, and near the best point."""
    assert problem.best_known is not None
    space = problem.space
    unit = qmc.Sobol(space.dim, rng=random).random(n)
    corners = (random.random(unit.shape) < 0.5).astype(float)
    mixed = np.where(random.random(unit.shape) < 0.5, unit, corners)
    near = space.to_unit(problem.best_known.x) + random.normal(scale=0.1, size=unit.shape)
    return space.from_unit(np.clip(np.concatenate([unit, corners, mixed, near]), 0, 1))


def climb(problem: Problem, start: Array) -> Array:
    """Improve a point by SLSQP, with the least of three margins that ends feasible."""
    for margin in (1e-9, 1e-6, 1e-4):
        point = climb_within(problem, start, margin)
        if problem.evaluate(point[None]).feasible[0]:
            break
    return point


def climb_within(problem: Problem, start: Array, margin: float) -> Array:
    """Improve a point by SLSQP in the unit cube; constraints are squashed to one scale.

    Args:
        problem: The problem.
        start: Where to start, shape `(d,)`.
        margin: How far below zero the squashed constraints are held.
    """
    space, step = problem.space, 1e-7

    def evaluate(unit: Array) -> Evaluation:
        values = problem.evaluate(space.from_unit(np.clip(unit, 0, 1)))
        squashed = np.sign(values.constraints) * np.log1p(np.abs(values.constraints))
        return Evaluation(-values.objective / scale, -margin - squashed)

    def slopes(unit: Array) -> Evaluation:
        # Steps lead into the cube, all of them in one call.
        steps = np.where(unit < 0.5, step, -step)
        values = evaluate(np.concatenate([unit[None], unit + np.diag(steps)]))
        return Evaluation(
            (values.objective[1:] - values.objective[0]) / steps,
            ((values.constraints[1:] - values.constraints[0]) / steps[:, None]).T,
        )

    unit = space.to_unit(start)
    scale = 1.0
    scale = max(1e-9, abs(float(evaluate(unit[None]).objective[0])))
    result = minimize(  # type: ignore[call-overload]
        lambda u: float(evaluate(u[None]).objective[0]),
        unit,
        jac=lambda u: slopes(u).objective,
        bounds=[(0, 1)] * space.dim,
        constraints={
            "type": "ineq",
            "fun": lambda u: evaluate(u[None]).constraints[0],
            "jac": lambda u: slopes(u).constraints,
        },
        method="SLSQP",
        options={"maxiter": 200},
    )
    point: Array = space.from_unit(np.clip(result.x, 0, 1))
    return point


def evolve(problem: Problem, effort: Effort, best: Array) -> Array:
    """Walk uphill from a feasible point through feasible points, shape `(d,)`.

    The spread grows when a generation improves and shrinks when it does not. A child changes a
    random part of the variables, because a change of all is seldom feasible.
    """
    space, random = problem.space, np.random.default_rng(0)
    spread, value = 0.02, float(problem.evaluate(best[None]).objective[0])
    for _ in range(effort.generations):
        moved = random.random((effort.children, space.dim)) < random.uniform(0.1, 1.0)
        moves = moved * random.normal(scale=spread, size=moved.shape)
        children = space.from_unit(np.clip(space.to_unit(best) + moves, 0, 1))
        values = problem.evaluate(children)
        objective = np.where(values.feasible, values.objective, -np.inf)
        i = int(np.argmax(objective))
        if objective[i] > value:
            best, value, spread = children[i], objective[i], min(0.3, 1.3 * spread)
        else:
            spread = max(1e-4, 0.9 * spread)
    return best


def largest(problem: Problem, points: Iterable[Array] | Array) -> Array:
    """Return the feasible point of largest objective; one of them must be feasible."""
    candidates = np.stack(list(points))
    values = problem.evaluate(candidates)
    point: Array = candidates[np.argmax(np.where(values.feasible, values.objective, -np.inf))]
    return point


def random_level(problem: Problem, worst: float) -> float:
    """Return the median final value of feasible runs of random search, else the worst value."""
    runs = [cbo.run(problem, "random-search", seed=seed) for seed in SEEDS]
    finals = [run.best_objective for run in runs if run.feasible]
    print(f"{problem.id}: random search is feasible in {len(finals)} of {len(runs)} runs")
    return float(np.median(finals)) if finals else worst


def derive(problem_id: str, before: Reference | None) -> Reference:
    """Derive the reference of one problem; what was found before is not lost."""
    problem = cbo.make_problem(problem_id)
    assert isinstance(problem, Problem)
    assert problem.best_known is not None
    known = np.array([before.worst_x] if before and before.worst_x else [])
    known = known.reshape(-1, problem.space.dim)
    worst_x = worst_point(problem, EFFORTS.get(problem_id, Effort()), known)
    worst = float(problem.evaluate(worst_x[None]).objective[0])
    budget, _, n_init = protocol_of(problem_id)
    return Reference(
        best=problem.best_known.objective,
        best_x=problem.best_known.x.tolist(),
        worst=worst,
        worst_x=worst_x.tolist(),
        level=random_level(problem, worst),
        budget=budget,
        n_init=n_init,
        feasibility_tolerance=0.0,
        optional=False,
        source=f"best: {problem.best_known.source}; others: tests/golden/derive_references.py",
    )


def derive_lunar(problem_id: str) -> Reference:
    """Take the proven worst value of a lunar lander."""
    problem = cbo.make_problem(problem_id)
    assert isinstance(problem, Problem)
    assert problem.best_known is not None
    budget, _, n_init = protocol_of(problem_id)
    return Reference(
        best=problem.best_known.objective,
        best_x=problem.best_known.x.tolist(),
        worst=-200.0,
        worst_x=None,
        level=-200.0,
        budget=budget,
        n_init=n_init,
        feasibility_tolerance=0.0,
        optional=False,
        source=f"best: {problem.best_known.source}; worst: bound, as every reward of a feasible "
        "point is at least 200; level: as worst, because random search is never feasible",
    )


def derive_mopta08(problem_id: str) -> Reference:
    """Take the values of MOPTA08 from its reference points."""
    file = ROOT / "problems" / "mopta08" / "reference.json"
    points = {point["name"]: point for point in json.loads(file.read_text("utf-8"))["points"]}
    budget, _, n_init = protocol_of(problem_id)
    return Reference(
        best=points["best-known"]["objective"],
        best_x=points["best-known"]["x"],
        worst=points["half"]["objective"],
        worst_x=None,
        level=points["half"]["objective"],
        budget=budget,
        n_init=n_init,
        feasibility_tolerance=0.0,
        optional=True,
        source="best: problems/mopta08/reference.json; worst and level: the value of the centre of "
        "the box in that file, which is not feasible",
    )


def read() -> dict[str, Reference]:
    """Read what was derived before."""
    if not TARGET.exists():
        return {}
    return msgspec.json.decode(TARGET.read_bytes(), type=dict[str, Reference])


def main(ids: list[str]) -> None:
    """Derive the named problems, by default all, and keep the others."""
    for problem_id in ids or PROBLEMS:
        if problem_id == MOPTA08:
            row = derive_mopta08(problem_id)
        elif problem_id.startswith("lunar"):
            row = derive_lunar(problem_id)
        else:
            row = derive(problem_id, read().get(problem_id))
        print(f"{problem_id}: best {row.best:.10g} worst {row.worst:.10g} level {row.level:.10g}")
        # Read again: another process may have derived another problem meanwhile.
        known = read() | {problem_id: row}
        ordered = {key: known[key] for key in PROBLEMS if key in known}
        TARGET.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
