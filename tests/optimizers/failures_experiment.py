"""How often optimizers ask where evaluations fail.

    python -m tests.optimizers.failures_experiment

Three problems whose evaluation raises on 30 % of the box: a slab that begins close to the optimum
and stands between it and the middle of the box. Counted are the failures in the second half of a
run; random search fails there in 30 % of its evaluations. It prints one line of JSON per
optimizer and problem.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import qmc

import cbo_suite as cbo
from cbo_suite.protocols import Array, Evaluation, Space

BUDGET, N_INIT = 60, 10
# Share of the box where evaluations fail, and how far from the optimum that begins.
SHARE, MARGIN = 0.3, 0.03
OPTIMIZERS = ("random-search", "scbo", "cei", "slack", "pesc", "cmes-ibo")


class Case(NamedTuple):
    """A function that fails in a slab.

    Attributes:
        space: Its box and the number of constraints.
        evaluate: The function where it does not fail.
        direction: Normal of the slab in the unit cube, shape `(d,)`.
        begin: Where the slab begins along it.
        end: Where it ends.
    """

    space: Space
    evaluate: Callable[[Array], Evaluation]
    direction: Array
    begin: float
    end: float

    def fails(self, x: Array) -> Array:
        """Which of points `(n, d)` cannot be evaluated, shape `(n,)`."""
        along = self.space.to_unit(x) @ self.direction
        return np.asarray((along > self.begin) & (along < self.end))

    def try_it(self, x: Array) -> Evaluation:
        """Evaluate points `(n, d)`; raise if one of them lies in the slab."""
        if self.fails(x).any():
            raise RuntimeError("the simulation did not converge")
        return self.evaluate(x)


def put_slab(space: Space, evaluate: Callable[[Array], Evaluation], optimum: Array) -> Case:
    """Let a function of optimum `(d,)` fail in a slab towards the middle of the box."""
    place = space.to_unit(optimum)
    direction = 0.5 - place
    direction /= np.linalg.norm(direction)
    begin = float(place @ direction) + MARGIN
    points = qmc.Sobol(space.dim, rng=0).random_base2(14)
    along = np.sort(points @ direction)
    first = int(np.searchsorted(along, begin))
    end = along[first + round(SHARE * len(along))]
    return Case(space, evaluate, direction, begin, float(end))


def unconstrained(x: Array) -> Evaluation:
    """Rosenbrock's valley in three dimensions, least at ones."""
    steps = 100.0 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1.0 - x[:, :-1]) ** 2
    return Evaluation(np.log1p(steps.sum(axis=1)), np.empty((len(x), 0)))


def cases() -> dict[str, Case]:
    """The problems by name."""
    found = {}
    for name in ("toy-2d-v1", "pressure-vessel-4d-v1"):
        problem = cbo.make_problem(name)
        best = problem.best_known  # type: ignore[attr-defined]
        found[name] = put_slab(problem.space, problem.evaluate, best.x)
    space = Space(np.full(3, -2.0), np.full(3, 2.0), 0)
    found["valley-3d"] = put_slab(space, unconstrained, np.ones(3))
    return found


def measure(case: Case, optimizer: str, seed: int, budget: int = BUDGET) -> tuple[int, float]:
    """Failures in the second half of a run, and the best feasible objective, infinite if none."""
    result = cbo.minimize(
        case.try_it,
        case.space.lower,
        case.space.upper,
        num_constraints=case.space.num_constraints,
        budget=budget,
        n_init=N_INIT,
        optimizer=optimizer,
        seed=seed,
    )
    failed = case.fails(result.run.x)
    return int(failed[budget // 2 :].sum()), float(result.fun) if result.success else np.inf


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--optimizers", nargs="+", default=OPTIMIZERS)
    parser.add_argument("--problems", nargs="+", default=list(cases()))
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    for optimizer in arguments.optimizers:
        for name in arguments.problems:
            case = cases()[name]
            both = [measure(case, optimizer, seed) for seed in range(arguments.seeds)]
            counts, ends = (np.array(part, dtype=float) for part in zip(*both, strict=True))
            row: dict[str, Any] = {
                "optimizer": optimizer,
                "problem": name,
                "failures": counts.sum(),
                "of": arguments.seeds * (BUDGET - BUDGET // 2),
                "share": round(counts.sum() / (arguments.seeds * (BUDGET - BUDGET // 2)), 3),
                "median": float(np.median(ends)),
                "feasible": int(np.isfinite(ends).sum()),
            }
            sys.stdout.write(json.dumps(row) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
