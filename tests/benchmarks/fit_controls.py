"""Two controls of SCBO's hyperparameters, on the data of real runs; see docs/optimizers/scbo.md.

Above 512 results hyperparameters are fitted to part of the data, and a fit begins where the last
one ended. Both save time. What they cost is measured here, on the results of the first trust
region of one run of SCBO each, 1000 at most: the log likelihood of all data, model by model, and
predictions for the next results.

    python -m tests.benchmarks.fit_controls --out tests/benchmarks/fit_controls.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import cbo_suite as cbo
from cbo_suite.harness.design import initial_design
from cbo_suite.optimizers.models.batch_gp import BatchGP
from cbo_suite.optimizers.models.fit import NOISE_FREE, default_parameters, fit
from cbo_suite.optimizers.models.surrogate import Surrogate, Transform
from cbo_suite.protocols import Array
from cbo_suite.registry import protocol_of

PROBLEMS = ("keane-30d-v1", "rover-60d-v1", "vehicle-124d-v1", "lunar-lander-m50-v1")
DATA, HELD_OUT = 1000, 100
# A fit to all data that is as good as done.
FULL_STEPS, FULL_TOLERANCE = 60, 0.02
# A prediction has moved if it did so by more than this share of the observations' deviation.
MOVED = 0.05


class Data:
    """The results of the first trust region of a run, in the unit cube.

    Attributes:
        count: How many of them the models see; the next ones are to be predicted.
    """

    def __init__(self, problem_id: str) -> None:
        """Run SCBO with the problem's protocol, as far as it is needed."""
        problem, protocol = cbo.make_problem(problem_id), protocol_of(problem_id)
        self.first, self.batch_size = protocol.n_init, protocol.batch_size
        optimizer = cbo.make_optimizer(
            "scbo", problem.space, budget=protocol.budget, batch_size=self.batch_size, seed=0
        )
        x = initial_design(problem_id, problem.space, self.first, 0)
        parts: list[tuple[Array, Array, Array]] = []
        while sum(len(part[0]) for part in parts) < DATA + HELD_OUT:
            evaluation = problem.evaluate(x)
            optimizer.tell(x, evaluation)
            if optimizer.inspect()["restarts"]:  # type: ignore[attr-defined]
                break
            parts.append((problem.space.to_unit(x), *evaluation))
            x = optimizer.ask(self.batch_size)
        self.x, self.objective, self.constraints = map(np.concatenate, zip(*parts, strict=True))
        self.count = len(self.x) - HELD_OUT

    def parts(self, count: int) -> tuple[Array, Array, Array]:
        """The first results."""
        return self.x[:count], self.objective[:count], self.constraints[:count]

    def steps(self) -> Iterator[int]:
        """Numbers of results at which the optimizer was asked."""
        yield from range(self.first, self.count, self.batch_size)
        yield self.count


def surrogate(data: Data) -> Surrogate:
    """Models as SCBO has them, without data."""
    zero = torch.zeros((), dtype=torch.float64)
    dim, m = data.x.shape[1], data.constraints.shape[1]
    return Surrogate(dim, m, NOISE_FREE, Transform(True, True), zero)


def compare(first: BatchGP, second: BatchGP, points: torch.Tensor) -> dict[str, Any]:
    """How much less likely the data are by `first`, and how predictions differ."""
    lost = (second.log_likelihood() - first.log_likelihood()).numpy() / first.x.shape[0]
    means = [gp.predict(points)[0] for gp in (first, second)]
    difference = (means[0] - means[1]).abs().numpy()
    return {
        "models": len(lost),
        "nats_lost_per_result": {
            name: float(np.quantile(lost, share))
            for name, share in (("median", 0.5), ("90 %", 0.9), ("largest", 1.0))
        },
        "median_difference_of_means": float(np.median(difference)),
        "share_moved": float((difference > MOVED).mean()),
    }


def errors(gp: BatchGP, data: Data, points: torch.Tensor) -> dict[str, float]:
    """Errors of predictions of the next constraint values, in deviations of the data."""
    transform = Transform(True, True)
    seen = transform.constraints(data.constraints[: data.count])
    new = transform.constraints(data.constraints[data.count :])
    varying = np.ptp(seen, axis=0) > 0
    scaled = ((new - seen.mean(axis=0)) / np.maximum(seen.std(axis=0), 1e-6))[:, varying]
    mean, variance = (part.numpy()[1:] for part in gp.predict(points))
    error = scaled.T - mean
    density = -0.5 * error**2 / (variance + 1e-6) - 0.5 * np.log(2 * np.pi * (variance + 1e-6))
    return {
        "root_mean_square": float(np.sqrt((error**2).mean())),
        "median_log_density": float(np.median(density)),
    }


def measure(problem_id: str) -> dict[str, Any]:
    """Both controls on one problem."""
    data = Data(problem_id)
    points = torch.as_tensor(data.x[data.count :])
    warm = surrogate(data)
    started = time.process_time()
    for count in data.steps():
        model = warm.update(*data.parts(count))
    warm_seconds = time.process_time() - started
    cold = surrogate(data).update(*data.parts(data.count)).dense
    gp = model.dense
    zero = torch.zeros((), dtype=torch.float64)
    start = default_parameters(gp.y.shape[0], gp.x.shape[1], NOISE_FREE, zero)
    started = time.process_time()
    best, _ = fit(gp.x, gp.y, start, NOISE_FREE, steps=FULL_STEPS, tolerance=FULL_TOLERANCE)
    full = BatchGP(gp.x, gp.y, best)
    return {
        "results": data.count,
        "part_against_all": compare(cold, full, points),
        "warm_against_cold": compare(gp, cold, points),
        "warm_against_all": compare(gp, full, points),
        "errors": {
            name: errors(one, data, points)
            for name, one in (("warm", gp), ("cold", cold), ("all", full))
        },
        "seconds": {"all_warm_fits": warm_seconds, "one_full_fit": time.process_time() - started},
    }


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    for problem_id in arguments.problems:
        with torch.inference_mode():
            found[problem_id] = measure(problem_id)
        print(problem_id, json.dumps(found[problem_id], indent=1), flush=True)
        arguments.out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
