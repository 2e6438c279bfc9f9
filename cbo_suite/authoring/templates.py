"""What `cbo new` writes: files that run, to be filled in. Words in braces are replaced."""

from __future__ import annotations

from typing import NamedTuple


class Template(NamedTuple):
    """The files of one kind of thing.

    Attributes:
        code: Path of the file with the thing itself.
        files: Path to text, of the code and its test.
        package: Text of a pyproject.toml, which gives the thing its id.
    """

    code: str
    files: dict[str, str]
    package: str


_OPTIMIZER_CODE = '''\
"""{title}: say here in a sentence or two what it is, where it comes from and what is special."""

import numpy as np

from cbo_suite import Evaluation, Space


class {name}:
    """Proposes a random step from the best point told so far: replace it with your idea."""

    # Declare limits if there are any, and runs that do not fit are skipped with the reason:
    # sequential = True      one point at a time
    # max_dim = 20           at most 20 variables
    # max_batch_size = 10    at most 10 points at once

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Prepare; nothing but these arguments and the told data may decide what is asked."""
        self.space = space
        self.random = np.random.default_rng(seed)
        self.x = np.empty((0, space.dim))
        self.objective = np.empty(0)
        self.constraints = np.empty((0, space.num_constraints))

    def ask(self, n: int = 1) -> np.ndarray:
        """Propose between 1 and n points inside the box, shape (k, d)."""
        if len(self.x) == 0:
            return self.space.sample(n, self.random)
        # Feasible first, then least violation, then least objective.
        best = Evaluation(self.objective, self.constraints).best()
        step = self.random.normal(scale=0.1, size=(n, self.space.dim))
        unit = self.space.to_unit(self.x[best]) + step
        # Back to the box, whole where a variable is, and inside known linear constraints.
        return self.space.place(np.clip(unit, 0.0, 1.0))

    def tell(self, x: np.ndarray, evaluation: Evaluation) -> None:
        """Take in results: any subset, any order, also points never asked; values may be NaN."""
        self.x = np.concatenate([self.x, x])
        self.objective = np.concatenate([self.objective, evaluation.objective])
        self.constraints = np.concatenate([self.constraints, evaluation.constraints])
'''

_OPTIMIZER_TEST = '''\
"""{title} keeps the contract and runs."""

import cbo_suite as cbo
from cbo_suite.checks import check_optimizer

from {module} import {name}


def test_conformance():
    """Every rule of the contract holds."""
    check_optimizer({name})


def test_run_spends_the_budget():
    """A short run on the toy problem evaluates exactly the budget."""
    run = cbo.run("toy-2d-v1", {name}, budget=30, n_init=10, seed=0)
    assert len(run.x) == 30
'''

_PROBLEM_CODE = '''\
"""{title}: say here in a sentence or two what it is, and where every constant comes from."""

import numpy as np

from cbo_suite import Evaluation, Space
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, BestKnown, RunProtocol


class {name}(Problem):
    """Minimise x1 + x2 between two circles: replace it with your problem."""

    id = "{id}"
    space = Space(np.array([-2.0, -2.0]), np.array([2.0, 2.0]), num_constraints=2)
    # How long and how parallel it is run on a board.
    protocol = RunProtocol(budget=100, batch_size=1, n_init=10)
    # The best feasible point known; without this line `cbo references` searches one.
    best_known = BestKnown(
        objective=-2.121320343559642,
        x=np.array([-1.060660171779821, -1.060660171779821]),
        source="the outer circle where x1 = x2, rounded inwards",
    )
    # cheap = False    if one evaluation takes more than milliseconds

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points, shape (n, 2): objective (n,) and constraints (n, 2), c <= 0."""
        squared = (x**2).sum(axis=1)
        constraints = np.column_stack([squared - 2.25, 1.0 - squared])
        return Evaluation(x.sum(axis=1), constraints)
'''

_PROBLEM_TEST = '''\
"""{title} keeps the contract, computes its formula and runs."""

from collections.abc import Sequence

import cbo_suite as cbo
from cbo_suite.authoring import golden_values
from cbo_suite.checks import check_problem
from cbo_suite.registry import protocol_of
from {module} import {name}


def formula(x: Sequence[float]) -> tuple[float, list[float]]:
    """Evaluate one point by the formula, typed a second time: objective and constraints."""
    x1, x2 = x
    squared = x1 * x1 + x2 * x2
    return x1 + x2, [squared - 2.25, 1.0 - squared]


def test_conformance() -> None:
    """Every rule of the contract holds."""
    check_problem({name}())


def test_values_are_those_of_the_formula() -> None:
    """They agree to nine digits, else this raises."""
    assert len(golden_values({name}(), formula)) >= 5


def test_run_follows_the_protocol() -> None:
    """A run on it evaluates exactly its budget."""
    run = cbo.run({name}(), "random-search", seed=0)
    assert len(run.x) == protocol_of({name}()).budget
'''

_PACKAGE = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{title}"
version = "0.1.0"
dependencies = ["cbo-suite"]

"""

TEMPLATES = {
    "optimizer": Template(
        "{module}.py",
        {"{module}.py": _OPTIMIZER_CODE, "test_{module}.py": _OPTIMIZER_TEST},
        _PACKAGE
        + """\
# The name is the id of the optimizer: what `cbo list` shows and `cbo run` takes.
[project.entry-points."cbo_suite.optimizers"]
{id} = "{module}:{name}"

[tool.setuptools]
py-modules = ["{module}"]
""",
    ),
    "problem": Template(
        "{module}/__init__.py",
        {"{module}/__init__.py": _PROBLEM_CODE, "test_{module}.py": _PROBLEM_TEST},
        _PACKAGE
        + """\
# The name is the id of the problem: what `cbo list` shows and `cbo run` takes.
[project.entry-points."cbo_suite.problems"]
{id} = "{module}:{name}"

[tool.setuptools]
packages = ["{module}"]

# references.json, which `cbo references` writes.
[tool.setuptools.package-data]
{module} = ["*.json"]
""",
    ),
}
