"""NOMAD, mesh adaptive direct search with the progressive barrier, as ask/tell.

Source: C. Audet, S. Le Digabel, V. Rochon Montplaisir and C. Tribes, "Algorithm 1027: NOMAD version
4", ACM Transactions on Mathematical Software, 2022, doi:10.1145/3544489; C. Audet and J. E. Dennis,
"A progressive barrier for derivative-free nonlinear programming", SIAM Journal on Optimization,
2009, doi:10.1137/070692662. The method card is docs/optimizers/nomad.md.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cbo_suite.errors import OptimizerFailed
from cbo_suite.optimizers.nomad import solver
from cbo_suite.optimizers.shared.library import Library
from cbo_suite.optimizers.shared.recast import CallbackOptimizer, Evaluate, Solve, key_of
from cbo_suite.protocols import Array, Evaluation, Space

LIBRARY = Library("PyNomad", "PyNomadBBO", "4.6.0", "nomad")
# NOMAD takes larger values for infinite, and an infinite value for a failure.
LARGEST = 1e19
# NOMAD draws and throws away as many random numbers as the seed says: 2**31 take 14 seconds.
MOST_SEEDS = 2**16


class Nomad(CallbackOptimizer):
    """NOMAD 4 at its own settings, started from the whole initial design."""

    # In two variables quadratic models choose the first points, and the seed those after them.
    deterministic_search: ClassVar[bool] = True

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Prepare a run.

        Args:
            space: The box and the number of constraints.
            budget: Evaluations of the run.
            batch_size: Not used: the solver goes point by point.
            seed: Seed of NOMAD, of the restarts and of the points asked while another is pending.

        Raises:
            MissingExtra: PyNomadBBO is not installed.
        """
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        LIBRARY.load("nomad")
        self._seeds = np.random.default_rng(np.random.SeedSequence(seed).spawn(3)[2])
        self._design: list[list[float]] = []
        self._seconds: dict[int, float] = {}

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results for points `(n, d)`; those told before the first ask are a design."""
        super().tell(x, evaluation)
        if self._starts == 0:
            units = np.clip(self._space.to_unit(np.asarray(x, dtype=float)), 0.0, 1.0)
            self._design += units.tolist()
            for told, back in zip(np.asarray(x), self._space.place(units), strict=True):
                # To the unit cube and back is a rounding away: still the same point.
                self._memory.setdefault(key_of(back), self._memory[key_of(told)])

    @property
    def seconds_elsewhere(self) -> float:
        """Processor time of NOMAD's own processes so far, for the harness to count."""
        return sum(self._seconds.values())

    def _solver(self, start: Array) -> Solve:
        """Return the solver from this start `(d,)` of the unit cube, and from the design."""
        others = [unit for unit in self._design if unit != start.tolist()]
        limits, seconds, number = self._space.num_constraints, self._seconds, self._starts
        task = {
            "dim": start.size,
            "num_constraints": limits,
            "seed": int(self._seeds.integers(MOST_SEEDS)),
            # More than it can use, as the budget is the harness's: known points count.
            "evaluations": self._budget + len(self._design) + 1,
            "starts": [start.tolist(), *(others if number == 1 else [])],
        }
        return lambda evaluate: _solve(task, evaluate, seconds, number)


def _solve(
    task: dict[str, Any], evaluate: Evaluate, seconds: dict[int, float], number: int
) -> None:
    """Run NOMAD in a process of its own and answer it, until it ends.

    Args:
        task: What NOMAD is told.
        evaluate: Gives the values of points `(d,)` of the unit cube.
        seconds: Processor time by number of start, kept up to date.
        number: Number of this start.
    """
    size = task["dim"]
    with tempfile.TemporaryDirectory(prefix="cbo-nomad-") as folder:
        process = subprocess.Popen(
            [sys.executable, str(Path(solver.__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )
        questions, answers = process.stdout, process.stdin
        try:
            if questions is None or answers is None:
                raise OptimizerFailed("NOMAD's process has no pipes")
            answers.write(json.dumps(task).encode() + b"\n")
            answers.flush()
            while len(data := questions.read(8 * (1 + size))) == 8 * (1 + size):
                seconds[number], *x = struct.unpack(f"<{1 + size}d", data)
                objective, constraints = evaluate(np.array(x))
                values = np.clip([objective, *constraints], -LARGEST, LARGEST)
                answers.write(struct.pack(f"<{values.size}d", *values))
                answers.flush()
            if len(data) == 8:
                (seconds[number],) = struct.unpack("<d", data)
            status = process.wait()
            if status != 0:
                raise OptimizerFailed(f"NOMAD's process ended with status {status}")
        finally:
            process.kill()
            process.communicate()
