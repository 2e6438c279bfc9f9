"""SCBO against SCBO from BoTorch's own parts: `python -m tests.benchmarks.compare_botorch`.

Both sides run in one process, on one thread, on the same data. Times are seconds of the processor
(`time.process_time`), which other programs on the machine change little. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

import cbo_suite
from cbo_suite.harness.design import initial_design
from cbo_suite.optimizers.models.surrogate import Transform
from cbo_suite.optimizers.scbo import SCBO
from cbo_suite.optimizers.scbo.candidates import candidate_count, candidates
from cbo_suite.optimizers.scbo.trust_region import TrustRegion
from cbo_suite.protocols import Array, Evaluation
from tests.benchmarks.batch_gp_table import table_rows
from tests.benchmarks.botorch_scbo import BotorchSCBO, draw_one, fit_one

Row = dict[str, Any]
T = TypeVar("T")


class Case(NamedTuple):
    """A problem and the paper's protocol for it.

    Attributes:
        problem: Its id.
        n_init: Points of the initial design.
        budget: Number of evaluations.
        batch_size: Points of a batch.
        counts: Numbers of data at which an iteration of the rival is timed.
    """

    problem: str
    n_init: int
    budget: int
    batch_size: int
    counts: tuple[int, ...]


CASES = {
    "ackley": Case("ackley-10d-v1", 10, 200, 1, (20, 60, 110, 160, 199)),
    "keane": Case("keane-30d-v1", 100, 1000, 50, (100, 300, 500, 700, 950)),
    # One iteration: a run of the rival would take a day.
    "lunar": Case("lunar-lander-m50-v1", 50, 1000, 50, (500,)),
    "rover": Case("rover-60d-v1", 100, 5000, 100, (500,)),
}
# Final values of the rival by case and seed; a seed that is taken out is run anew.
FINALS = Path(__file__).with_name("botorch_finals.json")
# Iterations of ours this near to one of the rival's are averaged, as only some of them fit: by
# evaluations, and by batches.
WINDOW, WINDOW_BATCHES = 5, 2
VEHICLE_DATA, VEHICLE_KNOWN, VEHICLE_BATCH = 500, 450, 10
# The rival is timed on about this number of the 69 models, unless asked in full.
VEHICLE_SAMPLE = 5


class Step(NamedTuple):
    """One iteration of a run that models chose: data told and state before it, seconds it took."""

    told: int
    state: dict[str, Any]
    seconds: float


class Trajectory(NamedTuple):
    """A whole run."""

    x: Array
    evaluation: Evaluation
    steps: list[Step]

    @property
    def best(self) -> float:
        """The best feasible objective, infinite if there is none."""
        index = self.evaluation.best()
        return (
            float(self.evaluation.objective[index]) if self.evaluation.feasible[index] else np.inf
        )


def timed(function: Callable[..., T], *arguments: Any) -> tuple[T, float]:
    """Result of a call, and the seconds that the processor spent on it."""
    started = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - started


def run(factory: type[SCBO], case: Case, seed: int, budget: int | None = None) -> Trajectory:
    """Run a whole loop from the task's own initial design."""
    problem = cbo_suite.make_problem(case.problem)
    budget = budget or case.budget
    optimizer = factory(problem.space, budget=budget, batch_size=case.batch_size, seed=seed)
    x = initial_design(problem.id, problem.space, case.n_init, seed)
    evaluation = problem.evaluate(x)
    optimizer.tell(x, evaluation)
    steps = []
    while len(x) < budget:
        count, state = len(x), optimizer.get_state()
        size = min(case.batch_size, budget - count)
        new, seconds = timed(optimizer.ask, size)
        result = problem.evaluate(new)
        optimizer.tell(new, result)
        # The points of a design after a restart cost nothing and say nothing.
        if "seconds_fit" in optimizer.inspect():
            steps.append(Step(count, state, seconds))
        x = np.concatenate([x, new])
        evaluation = Evaluation(
            np.concatenate([evaluation.objective, result.objective]),
            np.concatenate([evaluation.constraints, result.constraints]),
        )
    return Trajectory(x, evaluation, steps)


def warm_up() -> None:
    """Let BoTorch do what it does once only, so that no iteration pays for it."""
    x = torch.rand(10, 2, dtype=torch.float64)
    draw_one(fit_one(x, x.sum(-1)), x, 1)


def rival_seconds(case: Case, trajectory: Trajectory, step: Step, seed: int) -> float:
    """Seconds of the rival for the iteration that ours made in `step`: same data, same box."""
    problem = cbo_suite.make_problem(case.problem)
    rival = BotorchSCBO(problem.space, budget=case.budget, batch_size=case.batch_size, seed=seed)
    told = Evaluation(*(values[: step.told] for values in trajectory.evaluation))
    rival.tell(trajectory.x[: step.told], told)
    rival.set_state(step.state)
    return timed(rival.ask, case.batch_size)[1]


def loop_rows(name: str, seed: int, counts: Sequence[int]) -> Iterator[Row]:
    """Seconds per iteration along one run of ours, and of the rival at some of its points."""
    case = CASES[name]
    trajectory = run(SCBO, case, seed, max(counts) + WINDOW_BATCHES * case.batch_size)
    warm_up()
    rivals, ours = [], []
    for count in counts:
        step = min(trajectory.steps, key=lambda step: abs(step.told - count))
        window = max(WINDOW, WINDOW_BATCHES * case.batch_size)
        near = [s.seconds for s in trajectory.steps if abs(s.told - step.told) <= window]
        ours.append(float(np.mean(near)))
        rivals.append(rival_seconds(case, trajectory, step, seed))
        yield _row(name, f"n = {step.told}", ours[-1], rivals[-1])
    width = max(counts) - min(counts)
    if width:
        # The mean over the run, of straight lines between the points.
        means = (float(np.trapezoid(side, counts)) / width for side in (ours, rivals))
        yield _row(name, "mean", *means)


def vehicle_rows(seed: int, full: bool) -> Iterator[Row]:
    """One iteration at the scale of the vehicle problem: 69 models of 500 points in 124-D."""
    problem = cbo_suite.make_problem("vehicle-124d-v1")
    space, count = problem.space, problem.space.num_constraints + 1
    x = initial_design(problem.id, space, VEHICLE_DATA, seed)
    evaluation = problem.evaluate(x)
    cold = SCBO(space, budget=2000, batch_size=VEHICLE_BATCH, seed=seed)
    cold.tell(x, evaluation)
    _, first = timed(cold.ask, VEHICLE_BATCH)
    # In a run the models were fitted before, when there were a tenth fewer data.
    ours, known = SCBO(space, budget=2000, batch_size=VEHICLE_BATCH, seed=seed), VEHICLE_KNOWN
    ours.tell(x[:known], Evaluation(*(part[:known] for part in evaluation)))
    ours.ask(VEHICLE_BATCH)
    ours.tell(x[known:], Evaluation(*(part[known:] for part in evaluation)))
    points, fitting = timed(ours.ask, VEHICLE_BATCH)
    ours.tell(points, problem.evaluate(points))
    _, keeping = timed(ours.ask, VEHICLE_BATCH)
    warm_up()
    if full:
        rival = BotorchSCBO(space, budget=2000, batch_size=VEHICLE_BATCH, seed=seed)
        rival.tell(x, evaluation)
        seconds = timed(rival.ask, VEHICLE_BATCH)[1]
        how = "measured in full"
    else:
        inputs = torch.as_tensor(space.to_unit(x))
        seen = Transform(use_copula=True, use_bilog=True)
        series = np.column_stack(
            [seen.objective(evaluation.objective), seen.constraints(evaluation.constraints)]
        )
        sample = torch.as_tensor(series[:, :: count // VEHICLE_SAMPLE].T.copy())
        fits = [timed(fit_one, inputs, values) for values in sample]
        fit_seconds = float(np.mean([seconds for _, seconds in fits]))
        box = TrustRegion(space.dim, VEHICLE_BATCH).box(inputs[0].numpy())
        generator = np.random.default_rng(seed)
        number, share = candidate_count(space.dim), min(1.0, 20.0 / space.dim)
        chosen = torch.as_tensor(candidates(number, inputs[0].numpy(), *box, generator, share))
        draw_seconds = timed(draw_one, fits[0][0], chosen, VEHICLE_BATCH)[1]
        seconds = count * (fit_seconds + draw_seconds)
        how = f"{count} times a fit ({fit_seconds:.1f} s) and a draw ({draw_seconds:.1f} s)"
    # Models of this size are fitted when the data have grown by a tenth: every fifth iteration.
    share = VEHICLE_BATCH / (VEHICLE_DATA - VEHICLE_KNOWN)
    mean = share * fitting + (1.0 - share) * keeping
    yield _row("vehicle", f"mean of five iterations of a run; rival: {how}", mean, seconds)
    yield _row("vehicle", "the one that fits", fitting, seconds)
    yield _row("vehicle", "the others", keeping, seconds)
    yield _row("vehicle", "the first of all, nothing known", first, seconds)


def quality_rows(name: str, seeds: Iterable[int]) -> Iterator[Row]:
    """Final values of both whole loops from the same designs."""
    ours, rivals = [], []
    for seed in seeds:
        ours.append(run(SCBO, CASES[name], seed).best)
        rivals.append(rival_best(name, seed))
        yield {"case": name, "what": f"seed {seed}", "ours": ours[-1], "rival": rivals[-1]}
    medians = {"ours": float(np.median(ours)), "rival": float(np.median(rivals))}
    yield {"case": name, "what": "median", **medians}


def rival_best(name: str, seed: int) -> float:
    """Final value of the rival's run, kept in `FINALS`: it takes up to twenty minutes."""
    known: dict[str, dict[str, float]] = json.loads(FINALS.read_text(encoding="utf-8"))
    if str(seed) not in known[name]:
        best = run(BotorchSCBO, CASES[name], seed).best
        # Read again: another process may have added seeds in the meantime.
        known = json.loads(FINALS.read_text(encoding="utf-8"))
        known[name][str(seed)] = best
        FINALS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return known[name][str(seed)]


def _row(case: str, what: str, ours: float, rival: float) -> Row:
    """A row of seconds and their ratio."""
    return {"case": case, "what": what, "ours": ours, "rival": rival, "ratio": rival / ours}


def _rows(arguments: argparse.Namespace) -> Iterator[Row]:
    """All rows that the arguments ask for."""
    names = [*CASES, "vehicle", "table"] if arguments.case == "all" else [arguments.case]
    for name in names:
        if arguments.quality:
            if name in CASES:
                first = arguments.seed
                yield from quality_rows(name, range(first, first + arguments.quality))
        elif name == "vehicle":
            yield from vehicle_rows(arguments.seed, arguments.full)
        elif name == "table":
            yield from table_rows(arguments.quick, arguments.full)
        else:
            counts = CASES[name].counts
            chosen = counts[1::2] if arguments.quick and len(counts) > 1 else counts
            yield from loop_rows(name, arguments.seed, chosen)


def _text(row: Row) -> str:
    """One line for a person."""
    numbers = [f"{key} {value:.4g}" for key, value in row.items() if isinstance(value, float)]
    return f"{row['case']:8} {row['what']:12} " + "  ".join(numbers)


def main(words: Sequence[str] | None = None) -> list[Row]:
    """Run the comparison that the words of the command line ask for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.compare_botorch")
    parser.add_argument("--case", choices=["all", *CASES, "vehicle", "table"], default="all")
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    parser.add_argument("--full", action="store_true", help="extrapolate nothing (takes hours)")
    parser.add_argument(
        "--quality", type=int, default=0, metavar="SEEDS", help="whole runs of this number of seeds"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here too")
    arguments = parser.parse_args(words)
    torch.set_num_threads(1)
    if os.environ.get("OMP_NUM_THREADS") != "1":
        print("note: set OMP_NUM_THREADS=1 for times of one thread")
    unit = "best feasible objective" if arguments.quality else "seconds of the processor"
    print(f"{unit}; ours and SCBO from BoTorch's parts, CPU, one thread")
    rows = []
    for row in _rows(arguments):
        print(_text(row), flush=True)
        rows.append(row)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return rows


if __name__ == "__main__":
    main()
