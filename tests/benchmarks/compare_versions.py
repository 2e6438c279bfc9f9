"""Two versions of SCBO side by side, on the same told data: seconds of the processor and work.

Each version runs in a process of its own, one thread each, and they take turns. Both are told the
same results: first as many as a run has after a while, from points around the best known one, then
batch after batch what the newer version asks for, until the data have grown by a fifth, so that
every version fits its models at least once. The work is the number of multiplications of the linear
algebra and of evaluated exponentials, sines and the like (counted as ten), which depends on no
machine: tests/benchmarks/test_scbo_scale.py compares it with what was counted once.

    git worktree add ../older 6d80291
    python -m tests.benchmarks.compare_versions --older ../older --out comparison.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._python_dispatch import TorchDispatchMode

import cbo_suite as cbo

HERE = Path(__file__).resolve().parents[2]
Array = NDArray[np.float64]


class Case(NamedTuple):
    """What is compared.

    Attributes:
        problem: Id of a problem, whose evaluations are real.
        batch_size: Points of a batch, as in the paper.
        told: Results that are there at first.
        batches: Batches that are timed.
    """

    problem: str
    batch_size: int
    told: int
    batches: int


CASES = {
    "vehicle": Case("vehicle-124d-v1", 10, 1200, 24),
    "rover": Case("rover-60d-v1", 100, 1500, 3),
    "lunar": Case("lunar-lander-m50-v1", 50, 600, 3),
    "keane": Case("keane-30d-v1", 50, 500, 3),
    "ackley": Case("ackley-10d-v1", 1, 100, 40),
}


class CountWork(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts multiplications while it is entered.

    Attributes:
        total: Their number so far.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0.0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Count one operation, then do it."""
        result = func(*args, **(kwargs or {}))
        count = COUNTS.get(func.overloadpacket.__name__)
        if count is not None:
            self.total += count(args)
        return result


def _cube(share: float) -> Callable[[Any], float]:
    """Work on square matrices: a share of their size's cube each."""
    return lambda args: share * args[0].numel() * args[0].shape[-1]


def _product(left: int, right: int) -> Callable[[Any], float]:
    """Work of a matrix product of two arguments."""
    return lambda args: float(args[left].numel() * args[right].shape[-1])


def _each(args: Any) -> float:
    """Work of a function of every number."""
    return 10.0 * float(args[0].numel())


COUNTS: dict[str, Callable[[Any], float]] = {
    "linalg_cholesky_ex": _cube(1 / 3),
    "cholesky_inverse": _cube(2 / 3),
    "cholesky_solve": lambda args: 2.0 * args[1].numel() * args[0].shape[-1],
    "linalg_solve_triangular": lambda args: 0.5 * args[0].numel() * args[1].shape[-1],
    "linalg_qr": _cube(4 / 3),
    "mm": _product(0, 1),
    "bmm": _product(0, 1),
    "addmm_": _product(1, 2),
    "baddbmm_": _product(1, 2),
    **dict.fromkeys(("exp", "exp_", "cos", "cos_", "sin", "sin_", "sqrt", "sqrt_"), _each),
    "special_log_ndtr": _each,
}


def first_results(case: Case) -> tuple[Array, Array, Array]:
    """Results around the best known point, near and far, the same ones always."""
    problem = cbo.make_problem(case.problem)
    random = np.random.default_rng(0)
    best = problem.best_known  # type: ignore[attr-defined]
    centre = problem.space.to_unit(best.x[None])
    spread = 0.3 * random.random((case.told, 1))
    steps = random.standard_normal((case.told, problem.space.dim))
    x = problem.space.from_unit(np.clip(centre + spread * steps, 0.0, 1.0))
    evaluation = problem.evaluate(x)
    return x, evaluation.objective, evaluation.constraints


def serve(case: Case) -> None:
    """Be the process of one version: results come in as lines, proposals and costs go out."""
    torch.set_num_threads(1)
    space = cbo.make_problem(case.problem).space
    optimizer = cbo.make_optimizer("scbo", space, budget=10**6, batch_size=case.batch_size, seed=0)
    for line in sys.stdin:
        message = json.loads(line)
        x, objective, constraints = (np.array(message[key]) for key in ("x", "f", "c"))
        started, counter = time.process_time(), CountWork()
        optimizer.tell(x, cbo.Evaluation(objective, constraints.reshape(len(x), -1)))
        if message["count"]:
            with counter:
                asked = optimizer.ask(case.batch_size)
        else:
            asked = optimizer.ask(case.batch_size)
        seconds = time.process_time() - started
        reply = {"x": asked.tolist(), "seconds": seconds, "work": counter.total}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


class Version:
    """A process with one version of the package."""

    def __init__(self, name: str, checkout: Path) -> None:
        """Start it."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(checkout)}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def tell_and_ask(self, results: tuple[Array, Array, Array], count: bool) -> dict[str, Any]:
        """Tell results and ask for the next batch; `count` its work, which takes time itself."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        message = dict(zip("xfc", (part.tolist() for part in results), strict=True), count=count)
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        reply: dict[str, Any] = json.loads(self._process.stdout.readline())
        return reply

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def compare(name: str, checkouts: dict[str, Path]) -> dict[str, Any]:
    """Seconds and work of all versions in one case."""
    case, problem = CASES[name], cbo.make_problem(CASES[name].problem)
    found: dict[str, Any] = {version: {"seconds": 0.0, "work": 0.0} for version in checkouts}
    for count in (False, True):
        versions = {version: Version(name, path) for version, path in checkouts.items()}
        results = first_results(case)
        for number in range(case.batches + 1):
            replies = {
                version: process.tell_and_ask(results, count)
                for version, process in versions.items()
            }
            if number > 0:  # the first fit, to all data at once, is none of a run
                for version, reply in replies.items():
                    key = "work" if count else "seconds"
                    found[version][key] += reply[key]
            x = np.array(replies["newer"]["x"])
            results = (x, *problem.evaluate(x))
        for process in versions.values():
            process.close()
    return found


def main() -> None:
    """Compare, or be one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--older", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--serve")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(CASES[arguments.serve])
        return
    checkouts = {"newer": HERE}
    if arguments.older:
        checkouts["older"] = arguments.older.resolve()
    found = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    for name in arguments.cases:
        found[name] = compare(name, checkouts)
        print(name, json.dumps(found[name]), flush=True)
        arguments.out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
