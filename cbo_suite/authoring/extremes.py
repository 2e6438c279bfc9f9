"""Search the best and the worst feasible point of a problem, without knowing anything of it.

Three searches take turns: points all over the box; SLSQP from the best of them and from their
neighbours, for smooth problems; an evolution strategy that accepts feasible points only, for
problems with steps and whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from cbo_suite.errors import EvaluationFailed
from cbo_suite.harness.evaluate import evaluate_points
from cbo_suite.protocols import Array, ConstrainedProblem, Evaluation

# 1 searches the least objective, -1 the largest.
Sign = Literal[1, -1]


class Effort(NamedTuple):
    """How long an extreme point of a problem is searched.

    Attributes:
        samples: Number of points all over the box, and as many of each other kind.
        starts: Number of them that SLSQP starts from.
        hops: Number of times that it starts again near the best point.
        generations: Number of generations of the evolution strategy.
        children: Number of points in a generation.
    """

    samples: int = 2**14
    starts: int = 60
    hops: int = 60
    generations: int = 200
    children: int = 50


# Some thousand evaluations in all, for a problem that takes long over one.
FEW_EVALUATIONS = Effort(samples=2**8, starts=1, hops=0, generations=20, children=10)


def search_extreme(problem: ConstrainedProblem, sign: Sign, effort: Effort, known: Array) -> Array:
    """Search the feasible point of least or largest objective, shape `(d,)`.

    Args:
        problem: The problem.
        sign: 1 for the least objective, -1 for the largest.
        effort: How long to search.
        known: Points that are known already, the best first, shape `(k, d)`; the result is no
            worse than the feasible ones of them.

    Raises:
        EvaluationFailed: No feasible point is known or was found.
    """
    space, random = problem.space, np.random.default_rng(0)
    pool = np.concatenate([_sample(problem, effort.samples, known, random), known])
    values = _evaluate(problem, pool)
    # The best feasible objectives first, then the least violations.
    order = np.lexsort((sign * values.objective, values.violation))
    starts = np.concatenate([pool[order[: effort.starts]], known])
    candidates = [pool[order[0]], *known]
    if effort.starts:
        candidates += [_climb(problem, sign, start) for start in starts]
    best = _best(problem, sign, candidates)
    for _ in range(effort.hops):
        scale = 10 ** random.uniform(-2.0, -0.3)
        shaken = space.to_unit(best) + random.normal(scale=scale, size=space.dim)
        start = space.place(np.clip(shaken, 0, 1)[None])[0]
        best = _best(problem, sign, [best, _climb(problem, sign, start)])
    return _evolve(problem, sign, effort, best)


def _sample(
    problem: ConstrainedProblem, n: int, known: Array, random: np.random.Generator
) -> Array:
    """Draw n points of each kind: all over the box, corners, a mixture, near the best known."""
    space = problem.space
    unit = qmc.Sobol(space.dim, rng=random).random(n)
    corners = (random.random(unit.shape) < 0.5).astype(float)
    mixed = np.where(random.random(unit.shape) < 0.5, unit, corners)
    kinds = [unit, corners, mixed]
    if len(known):
        kinds.append(space.to_unit(known[0]) + random.normal(scale=0.1, size=unit.shape))
    points = space.from_unit(np.clip(np.concatenate(kinds), 0, 1))
    allowed = space.allows(points)
    if allowed.all():
        return points
    # To move thousands of points into a polytope takes long; to draw them there does not.
    return np.concatenate([points[allowed], space.sample(n, random)])


def _climb(problem: ConstrainedProblem, sign: Sign, start: Array) -> Array:
    """Improve a point by SLSQP, with the least of three margins that ends feasible."""
    for margin in (1e-9, 1e-6, 1e-4):
        point = _climb_within(problem, sign, start, margin)
        if _evaluate(problem, point[None]).feasible[0]:
            break
    return point


def _climb_within(problem: ConstrainedProblem, sign: Sign, start: Array, margin: float) -> Array:
    """Improve a point by SLSQP in the unit cube; constraints are squashed to one scale.

    Args:
        problem: The problem.
        sign: 1 for the least objective, -1 for the largest.
        start: Where to start, shape `(d,)`.
        margin: How far below zero the squashed constraints are held.
    """
    space, step = problem.space, 1e-7

    def evaluate(unit: Array) -> Evaluation:
        values = _evaluate(problem, space.place(np.clip(unit, 0, 1)))
        squashed = np.sign(values.constraints) * np.log1p(np.abs(values.constraints))
        return Evaluation(sign * values.objective / scale, -margin - squashed)

    def slopes(unit: Array) -> Evaluation:
        # Steps lead into the cube, all of them in one call.
        steps = np.where(unit < 0.5, step, -step)
        values = evaluate(np.concatenate([unit[None], unit + np.diag(steps)]))
        return Evaluation(
            (values.objective[1:] - values.objective[0]) / steps,
            ((values.constraints[1:] - values.constraints[0]) / steps[:, None]).T,
        )

    def objective(unit: Array) -> float:
        return float(evaluate(unit[None]).objective[0])

    def objective_slope(unit: Array) -> Array:
        return slopes(unit).objective

    unit = space.to_unit(start)
    scale = 1.0
    scale = max(1e-9, abs(objective(unit)))
    # A dictionary with keys of its own in SciPy's type stubs.
    inequality: Any = {
        "type": "ineq",
        "fun": lambda u: evaluate(u[None]).constraints[0],
        "jac": lambda u: slopes(u).constraints,
    }
    result = minimize(
        objective,
        unit,
        jac=objective_slope,
        bounds=[(0.0, 1.0)] * space.dim,
        constraints=inequality,
        method="SLSQP",
        options={"maxiter": 200},
    )
    point: Array = space.place(np.clip(result.x, 0, 1)[None])[0]
    return point


def _evolve(problem: ConstrainedProblem, sign: Sign, effort: Effort, best: Array) -> Array:
    """Walk from a feasible point through ever better feasible points, shape `(d,)`.

    The spread grows when a generation improves and shrinks when it does not. A child changes a
    random part of the variables, because a change of all is seldom feasible.
    """
    space, random = problem.space, np.random.default_rng(0)
    spread, value = 0.02, sign * float(_evaluate(problem, best[None]).objective[0])
    for _ in range(effort.generations):
        moved = random.random((effort.children, space.dim)) < random.uniform(0.1, 1.0)
        moves = moved * random.normal(scale=spread, size=moved.shape)
        children = space.place(np.clip(space.to_unit(best) + moves, 0, 1))
        values = _evaluate(problem, children)
        objective = np.where(values.feasible, sign * values.objective, np.inf)
        i = int(np.argmin(objective))
        if objective[i] < value:
            best, value, spread = children[i], objective[i], min(0.3, 1.3 * spread)
        else:
            spread = max(1e-4, 0.9 * spread)
    return best


def _evaluate(problem: ConstrainedProblem, x: Array) -> Evaluation:
    """Evaluate points `(n, d)`; where the problem fails the values are NaN, which is infeasible."""
    return evaluate_points(problem, x).evaluation


def _best(problem: ConstrainedProblem, sign: Sign, points: Iterable[Array]) -> Array:
    """Return the feasible point of least or largest objective.

    Raises:
        EvaluationFailed: None of them is feasible.
    """
    candidates = np.stack(list(points))
    values = _evaluate(problem, candidates)
    if not values.feasible.any():
        raise EvaluationFailed(
            f"no feasible point of {problem.id} was found: give the problem a `best_known`, or "
            "search longer"
        )
    objective = np.where(values.feasible, sign * values.objective, np.inf)
    point: Array = candidates[np.argmin(objective)]
    return point
