"""Measure how hard the synthetic vehicle is, and print the numbers of docs/problems/vehicle.md.

Run from the root of the repository, about a quarter of an hour on one core:

    python -m tests.golden.measure_vehicle_difficulty

A million uniform points; then, with 2 000 evaluations each and starting at the least violated of
130 points of a Latin hypercube as in the paper's protocol: random search, SciPy's COBYLA, and
SciPy's SLSQP, which pays 124 evaluations for a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from cbo_suite.problems.vehicle import DIM, Vehicle
from cbo_suite.protocols import Array, Evaluation

SAMPLES = 1_000_000
BUDGET = 2000
DESIGN = 130
REPLICATIONS = {"random search": 10, "SLSQP": 10, "COBYLA": 3}


class BudgetSpent(Exception):
    """The evaluations of a run are used up."""


class Counted:
    """The problem as a solver sees it, one point at a time, with a budget and a memory."""

    def __init__(self, vehicle: Vehicle, seed: int) -> None:
        """Evaluate the Latin hypercube of a seed."""
        self.vehicle = vehicle
        self.generator = np.random.default_rng(seed)
        self.x = qmc.LatinHypercube(DIM, rng=self.generator).random(DESIGN)
        self.evaluation = vehicle.evaluate(self.x)
        # SLSQP asks for the differences of objective and constraints at the same points.
        self.known: dict[bytes, Evaluation] = {}

    def __call__(self, x: Array) -> Evaluation:
        """Evaluate one point, or remember it."""
        point = np.clip(x, 0.0, 1.0)[None, :]
        if point.tobytes() not in self.known:
            if len(self.evaluation.objective) >= BUDGET:
                raise BudgetSpent
            new = self.vehicle.evaluate(point)
            self.known[point.tobytes()] = new
            self.evaluation = Evaluation(
                np.concatenate([self.evaluation.objective, new.objective]),
                np.concatenate([self.evaluation.constraints, new.constraints]),
            )
        return self.known[point.tobytes()]

    def solve(self, method: Literal["SLSQP", "COBYLA"], options: Any) -> None:
        """Run one of SciPy's solvers from the best point of the design."""
        constraint: Any = {"type": "ineq", "fun": lambda x: -self(x).constraints[0]}
        try:
            minimize(
                lambda x: float(self(x).objective[0]),
                self.x[self.evaluation.best()],
                method=method,
                bounds=[(0.0, 1.0)] * DIM,
                constraints=constraint,
                options=options,
            )
        except BudgetSpent:
            return


def random_search(run: Counted) -> None:
    """Spend the budget on uniform points."""
    for x in run.generator.random((BUDGET - DESIGN, DIM)):
        run(x)


SOLVERS: dict[str, Callable[[Counted], None]] = {
    "random search": random_search,
    "SLSQP": lambda run: run.solve("SLSQP", {"maxiter": 1000, "ftol": 1e-9}),
    "COBYLA": lambda run: run.solve("COBYLA", {"maxiter": BUDGET, "rhobeg": 0.2, "tol": 1e-6}),
}


def main() -> None:
    """Print one line per measurement."""
    vehicle, generator = Vehicle(), np.random.default_rng(2008)
    feasible, counts = 0, np.zeros(69, dtype=int)
    for _ in range(SAMPLES // 1000):
        evaluation = vehicle.evaluate(generator.random((1000, DIM)))
        feasible += int(evaluation.feasible.sum())
        counts += np.bincount((evaluation.constraints > 0).sum(axis=1), minlength=69)
    fewest, mean = int(np.flatnonzero(counts)[0]), float(counts @ np.arange(69)) / SAMPLES
    print(f"uniform: {feasible} of {SAMPLES} feasible, at least {fewest} violated, mean {mean:.1f}")
    for name, solver in SOLVERS.items():
        for seed in range(REPLICATIONS[name]):
            run = Counted(vehicle, seed)
            solver(run)
            objective, violation = run.evaluation.objective, run.evaluation.violation
            best = run.evaluation.best()
            print(
                f"{name}, seed {seed}: {objective[best]:.3f}, violation {violation[best]:.3g}, "
                f"{objective.size} evaluations",
                flush=True,
            )


if __name__ == "__main__":
    main()
