"""Find the best known points of the rover problems and write `problems/rover_best_known.json`.

Run from the root of the repository with the extra `cma`, about ten minutes:

    python -m tests.golden.derive_rover_witnesses

A point acts only through the two inner control points of its curve. So CMA-ES searches these four
numbers from many random starts; then Newton's method moves 30 way-points until their curve has the
control points found. Better points that are known since stay. At last it prints which share of
uniform points is feasible.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cma
import numpy as np

from cbo_suite.problems.rover import Rover
from cbo_suite.protocols import Array
from tests.golden.known_points import write_known_points

TARGET = Path(__file__).parents[2] / "problems" / "rover_best_known.json"
STARTS = 40
RESTARTS = 9
SAMPLES = 300_000


def curves(rover: Rover, inner: Array) -> Array:
    """Complete inner control points `(n, 4)` to control points `(n, 4, 2)` of pinned curves."""
    control = np.empty((len(inner), 4, 2))
    control[:, 0], control[:, 1:3], control[:, 3] = rover.start, inner.reshape(-1, 2, 2), rover.goal
    return control


def loss(rover: Rover, inner: Array) -> Array:
    """Return the objective of curves `(n, 4)`, punished for collisions; shape `(n,)`."""
    evaluation = rover.evaluate_curves(curves(rover, inner))
    excess = np.maximum(evaluation.constraints, 0.0)
    punished: Array = evaluation.objective + 100.0 * excess.sum(axis=1) + (excess > 0).sum(axis=1)
    return punished


def descend(rover: Rover, start: Array, sigma: float, population: int, seed: int) -> Array:
    """Return the best inner control points `(4,)` that one run of CMA-ES finds from a start."""
    options = {
        "seed": seed + 1,
        "popsize": population,
        "maxfevals": 80 * population,
        "verbose": -9,
    }
    strategy = cma.CMAEvolutionStrategy(start, sigma, options)
    while not strategy.stop():
        inner = np.array(strategy.ask())
        strategy.tell(list(inner), list(loss(rover, inner)))
    best: Array = np.array(strategy.result.xbest)
    return best


def search(rover: Rover) -> list[Array]:
    """Return good inner control points, best first: random starts, then restarts at the best."""
    found = []
    for seed in range(STARTS):
        pool = np.random.default_rng(seed).uniform(-0.5, 1.5, size=(500, 4))
        start = pool[np.argmin(loss(rover, pool))]
        found.append(descend(rover, start, 0.1, 60, seed))
    # The samples step over the corners of trees, which makes the best valley rugged.
    for seed in range(RESTARTS):
        best = min(found, key=lambda inner: float(loss(rover, inner[None])[0]))
        found.append(descend(rover, best, (0.03, 0.01, 0.003)[seed % 3], 300, seed))
    return sorted(found, key=lambda inner: float(loss(rover, inner[None])[0]))


def way_points(rover: Rover, inner: Array) -> Array | None:
    """Return a point `(60,)` whose curve has these inner control points `(4,)`, None if none."""
    t = np.linspace(0.0, 1.0, 1000)[:, None]
    basis = np.hstack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
    path = basis @ curves(rover, inner[None])[0]
    # Equal steps in t, then Newton's method: the fit uses chord lengths, which differ.
    x: Array = np.clip((path[np.linspace(0, 999, 32).astype(int)[1:-1]] + 0.1) / 1.2, 0, 1).ravel()
    for _ in range(100):
        steps = x + 1e-6 * np.vstack([np.zeros(60), np.eye(60), -np.eye(60)])
        fitted = rover.control_points(steps)[:, 1:3].reshape(-1, 4)
        if np.abs(fitted[0] - inner).max() < 1e-13:
            return x
        slope = (fitted[1:61] - fitted[61:]) / 2e-6
        x = np.clip(x + np.linalg.lstsq(slope.T, inner - fitted[0], rcond=None)[0], 0.0, 1.0)
    return x if np.abs(fitted[0] - inner).max() < 1e-9 else None


def witness(rover: Rover) -> dict[str, Any]:
    """Return the best feasible point found for one layout."""
    for inner in search(rover):
        x = way_points(rover, inner)
        if x is None:
            continue
        evaluation = rover.evaluate(x[None])
        if evaluation.feasible[0]:
            print(f"{rover.id}: reward {-float(evaluation.objective[0])}, control points {inner}")
            return {"objective": float(evaluation.objective[0]), "x": x.tolist()}
    raise SystemExit(f"no feasible point found for {rover.id}")


def feasible_share(rover: Rover) -> float:
    """Return which share of uniform points is feasible."""
    random = np.random.default_rng(0)
    batches = [rover.evaluate(random.random((1000, 60))) for _ in range(SAMPLES // 1000)]
    return sum(int(batch.feasible.sum()) for batch in batches) / SAMPLES


def main() -> None:
    """Write the file and print the shares."""
    rovers = [Rover("default"), Rover("furbo")]
    witnesses = {rover.id: witness(rover) for rover in rovers}
    write_known_points(TARGET, witnesses)
    for rover in rovers:
        print(f"{rover.id}: feasible share {feasible_share(rover)}")


if __name__ == "__main__":
    main()
