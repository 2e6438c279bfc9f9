"""What libraries do by their own loops, told the designs of the board's runs.

An adapter is not to blame where a rival does badly and the library by itself does no better. Run
from the root of the repository, with all rivals or some, a quarter of an hour for all:

    python -m tests.leaderboard.own_loops [isres] [nomad] [bayesqp] [egobox]

It writes `tests/leaderboard/own_loops.json`, from which docs/rivals.md is made: by rival, problem
and way of running the best feasible value of each seed, null where there is none. The libraries'
loops for `optuna-gp`, `optuna-tpe` and `botorch-logcei` need no numbers: tests show that they
choose the same points.

- isres: pymoo's loop with the design as first parents, by generations of 14 and by its own 200,
  whose first is random. Its ranking draws from a generator that no seed reaches.
- nomad: in the problem's units, the points of the design as starting points.
- bayesqp: repaired as ours is, from the best point of the design, in the problem's units and
  divided by the deviations over the design.
- egobox: its `minimize`, which has no ask and tell, in the problem's units.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import cbo_suite as cbo
from cbo_suite.harness.design import initial_design
from cbo_suite.protocols import Array, ConstrainedProblem, Evaluation
from cbo_suite.registry import protocol_of
from cbo_suite.scoring.tracks import TRACKS

FILE = Path(__file__).with_name("own_loops.json")
SMALL = TRACKS[0].problems
SEEDS, FEW_SEEDS = range(10), range(3)
# A run of NOMAD that takes longer is ended: in some units it finds no next point for hours.
NOMAD_SECONDS = 60.0

# Rival to problem to way of running to the best feasible value of each seed.
Finals = dict[str, dict[str, dict[str, list[float | None]]]]


def load_finals() -> Finals:
    """Read what was measured."""
    return msgspec.json.decode(FILE.read_bytes(), type=Finals)


def best_of(seen: Sequence[Evaluation], budget: int | None = None) -> float | None:
    """Return the best feasible value of all evaluations or the first ones, None if none is."""
    rows = (np.concatenate(parts)[:budget] for parts in zip(*seen, strict=True))
    evaluation = Evaluation(*rows)
    feasible = evaluation.objective[evaluation.feasible]
    return float(feasible.min()) if len(feasible) else None


def run_isres(problem: ConstrainedProblem, design: Array, seed: int, offspring: int | None) -> Any:
    """Run pymoo's own loop; without a size of its generations at its own settings."""
    from pymoo.algorithms.soo.nonconvex.isres import ISRES
    from pymoo.core.population import Population
    from pymoo.core.problem import Problem as PymooProblem
    from pymoo.optimize import minimize

    space, seen = problem.space, []

    class Ours(PymooProblem):  # type: ignore[misc]
        def __init__(self) -> None:
            m = space.num_constraints
            super().__init__(
                n_var=space.dim, n_obj=1, n_ieq_constr=m, xl=space.lower, xu=space.upper
            )

        def _evaluate(self, x: Array, out: dict[str, Any], *_: Any, **__: Any) -> None:
            values = problem.evaluate(x)
            seen.append(values)
            out["F"], out["G"] = values.objective[:, None], values.constraints

    budget = protocol_of(problem.id).budget
    if offspring is None:
        algorithm = ISRES()
    else:
        algorithm = ISRES(n_offsprings=offspring, sampling=Population.new(X=design))
    minimize(Ours(), algorithm, ("n_eval", budget), seed=seed, verbose=False)
    return best_of(seen, budget)


def run_nomad(problem: ConstrainedProblem, design: Array, seed: int) -> float | None:
    """Run NOMAD in a process of its own, which has room for one."""
    task = {"problem": problem.id, "design": design.tolist(), "seed": seed}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.jsonl"
        script = Path(__file__).with_name("own_nomad.py")
        command = [sys.executable, str(script), json.dumps(task), str(path)]
        try:
            subprocess.run(
                command, check=True, capture_output=True, timeout=NOMAD_SECONDS, cwd=folder
            )
        except subprocess.TimeoutExpired:
            pass  # what it had evaluated until then counts
        lines = path.read_text("utf-8").splitlines()
    values = [json.loads(line) for line in lines if line.endswith("]")]
    made = Evaluation(np.array([v[0] for v in values]), np.array([v[1:] for v in values]))
    return best_of([made])


def run_bayesqp(problem: ConstrainedProblem, design: Array, seed: int, scaled: bool) -> Any:
    """Run BayeSQP's own loop; None where it ends with an error before anything is feasible."""
    import bayesqp
    import torch

    from cbo_suite.optimizers.bayesqp import _repaired

    first = problem.evaluate(design)
    matrix = np.column_stack([first.objective, first.constraints])
    scales = matrix.std(axis=0) if scaled else np.ones(matrix.shape[1])
    scales[scales == 0.0] = 1.0
    seen: list[Evaluation] = [first]

    def value(x: Any, column: int) -> float:
        values = problem.evaluate(np.clip(np.asarray(x, float), *box)[None])
        if column == 0:
            seen.append(values)
            return float(values.objective[0] / scales[0])
        return float(-values.constraints[0, column - 1] / scales[column])

    box = problem.space.lower, problem.space.upper
    wrapped = bayesqp.NumpyToConstrainedBoTorchProblem(
        objective_func=lambda x: value(x, 0),
        constraint_funcs=[
            lambda x, column=column: value(x, column)
            for column in range(1, 1 + problem.space.num_constraints)
        ],
        bounds=list(zip(*(side.tolist() for side in box), strict=True)),
    )
    left = protocol_of(problem.id).budget - len(design)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(seed)
    np.random.seed(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solver = _repaired(bayesqp)(objective_function=wrapped)
            solver.minimize(torch.tensor(design[first.best()][None]), max_evals=left + 1)
    except Exception as error:
        print(f"{problem.id}, seed {seed}: {error!r:.100}")
    return best_of(seen)


def run_egobox(problem: ConstrainedProblem, design: Array, seed: int) -> float | None:
    """Run egobox's `minimize`, at a tolerance of 0; points that it repeats are evaluated again."""
    import egobox

    space, first = problem.space, problem.evaluate(design)
    seen = [first]

    def values(x: Array) -> Array:
        seen.append(problem.evaluate(np.clip(np.atleast_2d(x), space.lower, space.upper)))
        return np.column_stack([seen[-1].objective, seen[-1].constraints])

    solver = egobox.Egor(
        np.column_stack([space.lower, space.upper]).tolist(),
        cstr_specs=[egobox.CstrSpec.leq(0.0, tol=0.0)] * space.num_constraints,
        x_doe=design,
        y_doe=np.column_stack([first.objective, first.constraints]),
    )
    budget = protocol_of(problem.id).budget
    solver.minimize(values, max_iters=budget - len(design), seed=seed)
    return best_of(seen, budget)


Run = Callable[[ConstrainedProblem, Array, int], float | None]
# Rival to its problems, seeds, and ways of running.
LOOPS: dict[str, tuple[tuple[str, ...], range, dict[str, Run]]] = {
    "isres": (
        SMALL,
        SEEDS,
        {
            "generations of 14": lambda p, d, s: run_isres(p, d, s, 14),
            "its own of 200": lambda p, d, s: run_isres(p, d, s, None),
        },
    ),
    "nomad": (SMALL, SEEDS, {"in the problem's units": run_nomad}),
    "bayesqp": (
        ("rosenbrock-5d-v1",),
        FEW_SEEDS,
        {
            "in the problem's units": lambda p, d, s: run_bayesqp(p, d, s, False),
            "scaled as ours": lambda p, d, s: run_bayesqp(p, d, s, True),
        },
    ),
    "egobox": (SMALL, FEW_SEEDS, {"its `minimize`": run_egobox}),
}


def measure(rivals: list[str]) -> Iterator[Finals]:
    """Run the loops of some rivals, problem by problem, and give what there is so far."""
    finals = load_finals() if FILE.exists() else {}
    for id_ in rivals:
        problems, seeds, ways = LOOPS[id_]
        for problem_id in problems:
            problem = cbo.make_problem(problem_id)
            n_init = protocol_of(problem_id).n_init
            designs = {
                seed: initial_design(problem_id, problem.space, n_init, seed) for seed in seeds
            }
            finals.setdefault(id_, {})[problem_id] = {
                way: [_rounded(run(problem, designs[seed], seed)) for seed in seeds]
                for way, run in ways.items()
            }
            print(id_, problem_id, finals[id_][problem_id], flush=True)
            yield finals


def _rounded(value: float | None) -> float | None:
    """Keep ten digits."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.10g}")


def main() -> None:
    """Measure and write after every problem."""
    for finals in measure(sys.argv[1:] or list(LOOPS)):
        data = msgspec.json.encode(finals, order="sorted")
        FILE.write_bytes(msgspec.json.format(data, indent=1) + b"\n")


if __name__ == "__main__":
    main()
