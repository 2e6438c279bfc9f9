"""The bbob-constrained suite of COCO: 54 functions in 2 to 40 dimensions, 15 instances of each.

Nine functions (sphere, ellipsoid, linear slope, rotated ellipsoid, discus, bent cigar, sum of
different powers, Rastrigin, rotated Rastrigin) are combined with six numbers of constraints, 1, 3,
9, 9 + [3d/4], 9 + [3d/2] and 9 + [9d/2], of which some are active at the optimum. The constraints
are linear, bent by a map that leaves the optimum where it is, and an instance is a shift and a
rotation. Everything is computed by COCO itself [COCO], whose values these are to the last bit: a
constraint is feasible at 0 or below there too. The box is COCO's region of interest, [-5, 5]^d.

Best known. COCO places the optimum itself; it tells it by a file in the working folder, so that it
is asked for in a process of its own, when `best_known` is first read. The suite's experiments count
evaluations of constraints too; here objective and constraints of a point are one evaluation.

References:
    [COCO] Hansen, Auger, Ros, Mersmann, Tusar, Brockhoff: COCO: a platform for comparing continuous
        optimizers in a black-box setting. Optimization Methods and Software 36 (2021). Version
        2.8.2 of the package coco-experiment.
    [Dufosse2022] Dufossé, Hansen, Brockhoff, Sampaio, Atamna, Auger: Building scalable test
        problems for benchmarking constrained optimizers. 2022.

Version history:
    v1: First release.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cbo_suite.errors import EvaluationFailed, MissingExtra
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space

NAME = "bbob-constrained"

# Function, dimension and instance to the optimum that COCO tells.
_optima: dict[tuple[int, int, int], Array] = {}


class BbobConstrained(Problem):
    """A function of the bbob-constrained suite."""

    libraries: ClassVar[tuple[str, ...]] = ("coco-experiment",)

    def __init__(self, *, function: int, dim: int, instance: int) -> None:
        """Choose a function, a dimension and an instance; the registry knows which there are.

        Raises:
            MissingExtra: coco-experiment is not installed.
        """
        self.id = f"{NAME}-f{function}-{dim}d-i{instance}-v1"
        if find_spec("cocoex") is None:
            raise MissingExtra.of(self.id, "cocoex", "coco")
        self._key = (function, dim, instance)
        problem = self._coco[1]
        self.space = Space(
            problem.lower_bounds, problem.upper_bounds, problem.number_of_constraints
        )

    @cached_property
    def best_known(self) -> BestKnown | None:  # type: ignore[override]
        """The optimum, as COCO places it."""
        load_optima([self._key])
        x = _optima[self._key]
        return BestKnown(float(self.evaluate(x[None]).objective[0]), x, "COCO")

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, d)` by COCO, one by one."""
        problem = self._coco[1]
        objective = np.array([problem(row) for row in x], dtype=float)
        constraints = np.array([problem.constraint(row) for row in x], dtype=float)
        return Evaluation(objective, constraints.reshape(len(x), self.space.num_constraints))

    @cached_property
    def _coco(self) -> tuple[Any, Any]:
        """The suite of COCO, which must live as long as its problem, and the problem."""
        import cocoex

        function, dim, instance = self._key
        suite = cocoex.Suite(
            NAME, f"instances: {instance}", f"dimensions: {dim} function_indices: {function}"
        )
        return suite, suite[0]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the problem of COCO, which is memory of this process; a copy makes its own."""
        return {name: value for name, value in vars(self).items() if name != "_coco"}


def load_optima(keys: Iterable[tuple[int, int, int]]) -> None:
    """Ask COCO for the optima of some functions, dimensions and instances, all at once.

    Raises:
        EvaluationFailed: It tells none.
    """
    missing = [key for key in keys if key not in _optima]
    if not missing:
        return
    script = str(Path(__file__).with_name("print_optima.py"))
    with tempfile.TemporaryDirectory(prefix="cbo-coco-") as folder:
        done = subprocess.run(
            [sys.executable, script],
            input=json.dumps(missing),
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise EvaluationFailed(f"COCO does not tell the optimum: {done.stderr}")
    for key, x in zip(missing, json.loads(done.stdout), strict=True):
        _optima[key] = np.array(x)
