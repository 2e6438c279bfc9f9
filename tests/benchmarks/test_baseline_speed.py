"""Speed of the optimizers without a surrogate: below 5 ms an evaluation at d = 124, m = 68.

Processor time of the whole process is measured: solvers run on a thread of their own, and other
programs of the machine should not count. Run with one thread for linear algebra.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import cbo_suite as cbo
from cbo_suite.protocols import Optimizer

DIM, NUM_CONSTRAINTS = 124, 68
DESIGN, EVALUATIONS = 130, 1000
SECONDS_EACH = 5e-3
SPACE = cbo.Space(np.zeros(DIM), np.ones(DIM), NUM_CONSTRAINTS)
_RANDOM = np.random.default_rng(0)
_NORMALS = _RANDOM.standard_normal((DIM, NUM_CONSTRAINTS))
_OFFSETS, _CENTRE = _RANDOM.random(NUM_CONSTRAINTS), _RANDOM.random(DIM)
POINTS = _RANDOM.random((DESIGN, DIM))


def evaluate(x: np.ndarray) -> cbo.Evaluation:
    """Evaluate points (n, d): a bowl, and curved constraints in every direction."""
    curve = 0.1 * ((x - 0.5) ** 2).sum(axis=1)[:, None]
    return cbo.Evaluation(((x - _CENTRE) ** 2).sum(axis=1), (x - 0.5) @ _NORMALS - _OFFSETS + curve)


def make(name: str, batch_size: int) -> Optimizer:
    """Return an optimizer that was told the design; what it imports is not part of the speed."""
    optimizer = cbo.make_optimizer(
        name, SPACE, budget=DESIGN + EVALUATIONS, batch_size=batch_size, seed=0
    )
    optimizer.tell(POINTS, evaluate(POINTS))
    return optimizer


def run(optimizer: Optimizer, batch_size: int) -> int:
    """Run an optimizer; return the number of evaluations after the design."""
    done = 0
    while done < EVALUATIONS:
        x = optimizer.ask(min(batch_size, EVALUATIONS - done))
        optimizer.tell(x, evaluate(x))
        done += len(x)
    return done


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(
    ("name", "batch_size"),
    [
        ("random-search", 10),
        ("cobyla", 1),
        ("cma-es", 10),
        ("cma-es-violation", 10),
        ("cma-es-al", 10),
    ],
)
def test_seconds_per_evaluation(benchmark: BenchmarkFixture, name: str, batch_size: int) -> None:
    """The whole run at the size of the vehicle problem, the cheap function included."""
    optimizer = make(name, batch_size)
    done = benchmark.pedantic(run, args=(optimizer, batch_size), rounds=1, warmup_rounds=0)
    assert done == EVALUATIONS
    if benchmark.stats is not None:  # None with --benchmark-disable
        assert benchmark.stats.stats.mean / done < SECONDS_EACH
