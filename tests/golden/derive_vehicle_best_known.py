"""Find the best known design of the synthetic vehicle and write its JSON file beside the problem.

Run from the root of the repository, about ten minutes on one core:

    python -m tests.golden.derive_vehicle_best_known

SLSQP with central differences starts at the witness, at uniform random points and, for a second
round, near the best designs found. Every response is asked to stay 1e-7 of its magnitude inside
its limit; the best design is rounded to twelve digits and must still be feasible.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from cbo_suite.problems.vehicle import DIM, Vehicle
from cbo_suite.protocols import Array

TARGET = Path(__file__).parents[2] / "problems" / "vehicle_best_known.json"
RANDOM_STARTS = 120
NEAR_STARTS = 60
MARGIN = 1e-7
STEP = 1e-6


def descend(vehicle: Vehicle, start: Array) -> tuple[float, Array]:
    """Return mass and design that SLSQP reaches from a start, mass infinite if infeasible."""
    mass, scale = vehicle.coefficients.mass, vehicle.coefficients.scale
    steps = STEP * np.eye(DIM)

    def slack(x: Array) -> Array:
        """Return how far each response is inside its limit, in units of its magnitude."""
        inside = np.clip(x, 0.0, 1.0)
        result: Array = -vehicle.evaluate(inside[None, :]).constraints[0] / scale - MARGIN
        return result

    def slack_slopes(x: Array) -> Array:
        """Return the derivatives of the slacks by differences that stay in the box."""
        above, below = np.clip(x + steps, 0.0, 1.0), np.clip(x - steps, 0.0, 1.0)
        span = (above - below).diagonal()
        values = vehicle.evaluate(np.vstack([above, below])).constraints / scale
        slopes: Array = -(values[:DIM] - values[DIM:]).T / span
        return slopes

    result = minimize(  # type: ignore[call-overload] # the stubs refuse these types
        lambda x: float(mass @ x),
        start,
        jac=lambda x: mass,
        bounds=[(0.0, 1.0)] * DIM,
        method="SLSQP",
        constraints={"type": "ineq", "fun": slack, "jac": slack_slopes},
        options={"maxiter": 400, "ftol": 1e-9},
    )
    x = np.round(np.clip(result.x, 0.0, 1.0), 12)
    evaluation = vehicle.evaluate(x[None, :])
    return (float(evaluation.objective[0]) if evaluation.feasible[0] else np.inf), x


def main() -> None:
    """Search, report and write."""
    vehicle, generator = Vehicle(), np.random.default_rng(124068)
    start_mass = float(vehicle.evaluate(vehicle.witness[None, :]).objective[0])
    found = [descend(vehicle, vehicle.witness)]
    print(f"witness {start_mass:.6f}, SLSQP from it {found[0][0]:.6f}")
    found += [descend(vehicle, generator.random(DIM)) for _ in range(RANDOM_STARTS)]
    found.sort(key=lambda pair: pair[0])
    masses = np.array([mass for mass, _ in found])
    print(f"random starts: feasible {np.isfinite(masses).sum()} of {masses.size}")
    print("quantiles", np.quantile(masses, [0.0, 0.1, 0.5, 0.9, 1.0]))
    for index in range(NEAR_STARTS):
        nearby = found[index % 10][1] + generator.normal(0.0, 0.15, DIM)
        found.append(descend(vehicle, np.clip(nearby, 0.0, 1.0)))
    objective, x = min(found, key=lambda pair: pair[0])
    constraints = vehicle.evaluate(x[None, :]).constraints[0]
    active = int((constraints / vehicle.coefficients.scale > -1e-4).sum())
    print(f"best {objective!r}, largest constraint {constraints.max():.3g}, {active} active")
    known = {vehicle.id: {"objective": objective, "x": x.tolist()}}
    TARGET.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
