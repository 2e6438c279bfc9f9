"""Large models: the work of an iteration against what an older SCBO did, and cEI beside SCBO.

The older one is commit 6d80291, which fitted hyperparameters to all data and drew all constraints;
`compare_versions.py` counted its work on the same results once, as it stands in the table.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

import cbo_suite as cbo
from cbo_suite.protocols import Evaluation, Optimizer
from tests.benchmarks.compare_versions import CASES, CountWork, first_results

OLDER = json.loads(Path(__file__).with_name("compare_versions.json").read_text("utf-8"))

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    ("case", "ratio"), [("vehicle", 2.5), ("rover", 5.0), ("keane", 1.5), ("ackley", 0.99)]
)
def test_work_against_the_older_scbo(benchmark: BenchmarkFixture, case: str, ratio: float) -> None:
    """Over a growth of the data that makes both fit, the work is less by this factor at least."""
    problem, settings = cbo.make_problem(CASES[case].problem), CASES[case]
    optimizer = begin("scbo", case)

    def measure() -> float:
        counter = CountWork()
        with counter:
            for _ in range(settings.batches):
                x = optimizer.ask(settings.batch_size)
                optimizer.tell(x, problem.evaluate(x))
        return counter.total

    work = benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info["ratio"] = OLDER[case]["older"]["work"] / work
    assert OLDER[case]["older"]["work"] >= ratio * work


@pytest.mark.parametrize("case", ["vehicle", "rover"])
def test_cei_beside_scbo_with_many_results(benchmark: BenchmarkFixture, case: str) -> None:
    """Iterations of cEI take at most twice as long as those of SCBO, in turns."""
    problem, settings = cbo.make_problem(CASES[case].problem), CASES[case]
    rivals = {name: begin(name, case) for name in ("cei", "scbo")}

    def measure() -> dict[str, float]:
        seconds = dict.fromkeys(rivals, 0.0)
        for _ in range(3):
            for name, optimizer in rivals.items():
                started = time.process_time()
                x = optimizer.ask(settings.batch_size)
                seconds[name] += time.process_time() - started
                optimizer.tell(x, problem.evaluate(x))
        return seconds

    seconds = benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info.update(seconds)
    assert seconds["cei"] <= 2.0 * seconds["scbo"], seconds


def begin(name: str, case: str) -> Optimizer:
    """Make an optimizer that has asked once, so that its models are fitted."""
    torch.set_num_threads(1)
    settings, problem = CASES[case], cbo.make_problem(CASES[case].problem)
    optimizer = cbo.make_optimizer(
        name, problem.space, budget=10**6, batch_size=settings.batch_size, seed=0
    )
    x, objective, constraints = first_results(settings)
    optimizer.tell(x, Evaluation(objective, constraints))
    x = np.asarray(optimizer.ask(settings.batch_size))
    optimizer.tell(x, problem.evaluate(x))
    return optimizer
