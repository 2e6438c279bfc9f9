"""How often twins catch cheats, and how often they accuse honest methods: a script, not a test.

    python -m tests.verify.twin_trials cheats
    python -m tests.verify.twin_trials honest --trials 4

The first runs both cheats on every analytic problem, the second honest methods, each trial with
seeds of its own. A line comes out for every trial, and at the end how many were suspicious.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import cbo_suite as cbo
from cbo_suite.harness import Factory, Settings, execute
from cbo_suite.protocols import Task
from cbo_suite.registry import optimizer_factory
from cbo_suite.verify.outcomes import outcome_of
from cbo_suite.verify.twins import TwinTest, compare_outcomes, run_twins
from tests.submissions import cheats

ANALYTIC = (
    "tension-string-3d-v1",
    "pressure-vessel-4d-v1",
    "welded-beam-4d-v1",
    "speed-reducer-7d-v1",
    "ackley-10d-v1",
    "keane-30d-v1",
    "toy-2d-v1",
    "rosenbrock-5d-v1",
)
METHODS = ("scbo", "cei", "cobyla", "cma-es", "random-search")
CHEATS = ("ReadsTheRegistry", "TakesTheProblem")


def run_trial(problem: str, optimizer: str, budget: int, count: int, trial: int) -> TwinTest:
    """Record some runs, run as many twins, and compare."""
    made = cbo.make_problem(problem)
    factory: Factory
    if optimizer in CHEATS:
        factory, name = getattr(cheats, optimizer), f"{cheats.__name__}:{optimizer}"
    else:
        factory, name = optimizer_factory(optimizer), optimizer
    recorded = []
    for seed in range(trial * count, (trial + 1) * count):
        task = Task(problem, name, budget, 1, 10, seed)
        run = execute(task, made, factory, Settings())
        recorded.append(outcome_of(task, run.objective, run.evaluation.violation))
    twins = run_twins(task, made, {}, count, np.random.default_rng(trial))
    return compare_outcomes(recorded, twins)


def plan(arguments: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    """List problem, optimizer and number of every trial."""
    for trial in range(arguments.trials):
        for problem in arguments.problems:
            for optimizer in CHEATS if arguments.kind == "cheats" else arguments.methods:
                yield problem, optimizer, trial


def main() -> None:
    """Run all trials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["cheats", "honest"])
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--twins", type=int, default=10)
    parser.add_argument("--budget", type=int, default=30)
    parser.add_argument("--problems", nargs="+", default=ANALYTIC)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    arguments = parser.parse_args()
    suspicious = []
    for problem, optimizer, trial in plan(arguments):
        result = run_trial(problem, optimizer, arguments.budget, arguments.twins, trial)
        suspicious.append(result.suspicious)
        word = "suspicious" if result.suspicious else "fine"
        print(
            f"{problem} {optimizer} {trial}: {word}, p = {result.final:.2g} and "
            f"{result.anytime:.2g}",
            flush=True,
        )
    print(f"{sum(suspicious)} of {len(suspicious)} trials are suspicious")


if __name__ == "__main__":
    main()
