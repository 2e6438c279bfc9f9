"""How often twins catch cheats, and how often they accuse honest methods: a script, not a test.

    python -m tests.verify.twin_trials

It runs both cheats on every analytic problem, and honest methods in 100 trials, each with seeds of
its own. Results go to `twin_trials.json` beside it, trial by trial: those that are there are not
made again, so remove the file when the code has changed. `test_twin_trials.py` holds the counts to
what docs/submit-results.md says.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

import cbo_suite as cbo
from cbo_suite.files import write_whole
from cbo_suite.harness import Factory, Settings, execute
from cbo_suite.protocols import Task
from cbo_suite.registry import optimizer_factory
from cbo_suite.verify.outcomes import outcome_of
from cbo_suite.verify.twins import TwinTest, compare_outcomes, draw_twin, run_twins
from tests.submissions import cheats

RESULTS = Path(__file__).with_suffix(".json")
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
# Trials of each method, dealt to the problems in turn.
HONEST = {"scbo": 14, "cei": 14, "cobyla": 24, "cma-es": 24, "random-search": 24}
CHEATS = {"ReadsTheRegistry": len(ANALYTIC), "TakesTheProblem": len(ANALYTIC)}
# Runs on record, and as many on twins.
TWINS = 10
BUDGET = 30


class Trial(NamedTuple):
    """What to compare: a method on a problem, with the seeds of a number."""

    optimizer: str
    problem: str
    number: int

    @property
    def name(self) -> str:
        """Its name in the file of the results."""
        return f"{self.optimizer}/{self.problem}/{self.number}"


def plan() -> Iterator[Trial]:
    """List all trials, the methods by turns."""
    counts = CHEATS | HONEST
    for place in range(max(counts.values())):
        for optimizer, count in counts.items():
            if place < count:
                problem = ANALYTIC[place % len(ANALYTIC)]
                yield Trial(optimizer, problem, place // len(ANALYTIC))


def run_trial(trial: Trial) -> TwinTest:
    """Record some runs, run as many twins, and compare."""
    made = cbo.make_problem(trial.problem)
    factory: Factory
    if trial.optimizer in CHEATS:
        name = f"{cheats.__name__}:{trial.optimizer}"
        factory = getattr(cheats, trial.optimizer)
    else:
        name, factory = trial.optimizer, optimizer_factory(trial.optimizer)
    recorded = []
    for seed in range(trial.number * TWINS, (trial.number + 1) * TWINS):
        task = Task(trial.problem, name, BUDGET, 1, 10, seed)
        run = execute(task, made, factory, Settings())
        recorded.append(outcome_of(task, run.objective, run.evaluation.violation))
    random = np.random.default_rng(trial.number)
    if trial.optimizer in CHEATS:
        return compare_outcomes(recorded, run_twins(task, made, {}, TWINS, random))
    twins = []
    for _ in range(TWINS):
        # As `run_twins` does, but here: apart an honest method does the same and starts slowly.
        twin = draw_twin(made, random)
        own = msgspec.structs.replace(task, seed=int(random.integers(2**32, 2**62)))
        run = execute(own, twin, factory, Settings())
        twins.append(outcome_of(own, run.objective, run.evaluation.violation))
    return compare_outcomes(recorded, twins)


def read_results() -> dict[str, TwinTest]:
    """Read the p-values of the trials that were made."""
    if not RESULTS.exists():
        return {}
    return msgspec.json.decode(RESULTS.read_bytes(), type=dict[str, TwinTest])


def main() -> None:
    """Make the trials that are not there yet."""
    results = read_results()
    for trial in plan():
        if trial.name not in results:
            results[trial.name] = run_trial(trial)
            rows = [
                f" {msgspec.json.encode(n).decode()}: {list(map(float, r))}"
                for n, r in sorted(results.items())
            ]
            write_whole(RESULTS, ("{\n" + ",\n".join(rows) + "\n}\n").encode())
        word = "suspicious" if results[trial.name].suspicious else "fine"
        print(f"{trial.name}: {word}, p = {results[trial.name]}", flush=True)


if __name__ == "__main__":
    main()
