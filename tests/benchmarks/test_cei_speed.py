"""Speed of cEI beside SCBO on the same data, and of SLACK, on one thread.

Processor time is measured, so that other programs of the machine do not count.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import cbo_suite as cbo
from cbo_suite.protocols import Array, Optimizer

SLACK_SECONDS = 1.0


pytestmark = pytest.mark.usefixtures("one_thread")


class Problem:
    """A bowl with m wavy constraints, each of which holds on a little more than half of the box."""

    def __init__(self, dim: int, m: int) -> None:
        """Draw the directions of the waves."""
        self.space = cbo.Space(np.zeros(dim), np.ones(dim), m)
        self._directions = np.random.default_rng(0).standard_normal((dim, m))

    def evaluate(self, x: Array) -> cbo.Evaluation:
        """Evaluate points (n, d)."""
        waves = np.sin((x - 0.5) @ self._directions) - 0.1
        return cbo.Evaluation(((x - 0.3) ** 2).sum(axis=1), waves)


def begin(name: str, problem: Problem, n: int, batch_size: int) -> Optimizer:
    """Make an optimizer that was told n points and has asked once, so that it is warm."""
    optimizer = cbo.make_optimizer(
        name, problem.space, budget=10 * n, batch_size=batch_size, seed=0
    )
    x = np.random.default_rng(1).random((n, problem.space.dim))
    optimizer.tell(x, problem.evaluate(x))
    advance(optimizer, problem, batch_size)
    return optimizer


def advance(optimizer: Optimizer, problem: Problem, batch_size: int) -> float:
    """Ask and tell one batch; return the seconds of the processor."""
    start = time.process_time()
    x = optimizer.ask(batch_size)
    seconds = time.process_time() - start
    optimizer.tell(x, problem.evaluate(x))
    return seconds


@pytest.mark.parametrize(
    ("n", "dim", "m", "batch_size", "rounds", "limit"),
    [
        pytest.param(100, 4, 4, 1, 10, 2.0, id="one-point"),
        pytest.param(500, 30, 2, 50, 4, 3.0, id="batch-of-50"),
    ],
)
def test_cei_beside_scbo(
    benchmark: BenchmarkFixture,
    n: int,
    dim: int,
    m: int,
    batch_size: int,
    rounds: int,
    limit: float,
) -> None:
    """An iteration of cEI takes at most `limit` times as long as one of SCBO, in turns."""
    problem = Problem(dim, m)
    rivals = {name: begin(name, problem, n, batch_size) for name in ("cei", "scbo")}

    def measure() -> dict[str, float]:
        seconds: dict[str, list[float]] = {name: [] for name in rivals}
        for _ in range(rounds):
            for name, optimizer in rivals.items():
                seconds[name].append(advance(optimizer, problem, batch_size))
        # The mean, since only some iterations fit the models anew.
        return {name: float(np.mean(values)) for name, values in seconds.items()}

    means = benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info.update(means)
    assert means["cei"] <= limit * means["scbo"], means


def test_slack_seconds_per_iteration(benchmark: BenchmarkFixture) -> None:
    """At most one second at n = 100, m = 11 and the seven variables of the speed reducer."""
    problem = Problem(7, 11)
    optimizer = begin("slack", problem, 100, 1)

    def measure() -> float:
        return float(np.median([advance(optimizer, problem, 1) for _ in range(5)]))

    seconds = benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info["seconds"] = seconds
    assert seconds <= SLACK_SECONDS
