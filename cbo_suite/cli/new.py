"""`cbo new`: a ready-to-fill file for an optimizer of one's own, its test and its package."""

from __future__ import annotations

import re
from pathlib import Path

import click

_OPTIMIZER = '''\
"""{title}: say here in a sentence or two what it is, where it comes from and what is special."""

import numpy as np

from cbo_suite import Evaluation, Space


class {name}:
    """Proposes a random step from the best point told so far: replace it with your idea."""

    # Declare limits if there are any, and runs that do not fit are skipped with the reason:
    # sequential = True      one point at a time
    # max_dim = 20           at most so many variables
    # max_batch_size = 10    at most so many points at once

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
            return self.space.from_unit(self.random.random((n, self.space.dim)))
        # Feasible first, then least violation, then least objective.
        best = Evaluation(self.objective, self.constraints).best()
        step = self.random.normal(scale=0.1, size=(n, self.space.dim))
        unit = self.space.to_unit(self.x[best]) + step
        return self.space.from_unit(np.clip(unit, 0.0, 1.0))

    def tell(self, x: np.ndarray, evaluation: Evaluation) -> None:
        """Take in results: any subset, any order, also points never asked; values may be NaN."""
        self.x = np.concatenate([self.x, x])
        self.objective = np.concatenate([self.objective, evaluation.objective])
        self.constraints = np.concatenate([self.constraints, evaluation.constraints])
'''

_TEST = '''\
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


_PACKAGE = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{title}"
version = "0.1.0"
dependencies = ["cbo-suite"]

# The name is the id of the optimizer: what `cbo list` shows and `cbo run` takes.
[project.entry-points."cbo_suite.optimizers"]
{title} = "{module}:{name}"

[tool.setuptools]
py-modules = ["{module}"]
"""


@click.group()
def new() -> None:
    """Start something of your own."""


@new.command()
@click.argument("name")
def optimizer(name: str) -> None:
    """Write NAME.py, an optimizer that runs, and test_NAME.py into this folder.

    A folder that has no pyproject.toml gets one too, which gives the optimizer its id.
    """
    module = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", module):
        raise click.ClickException(
            f"{name!r} cannot be a name: use lower-case letters, digits and hyphens, such as "
            "my-optimizer"
        )
    words = {
        "module": module,
        "name": "".join(part.capitalize() for part in module.split("_")),
        "title": module.replace("_", "-"),
    }
    files = {Path(f"{module}.py"): _OPTIMIZER, Path(f"test_{module}.py"): _TEST}
    for path in files:
        if path.exists():
            raise click.ClickException(f"{path} exists already: choose another name or remove it")
    package = Path("pyproject.toml")
    register = f"register {words['title']!r} in {package}, or in the table of optimizers/"
    if not package.exists():
        files[package] = _PACKAGE
        register = "`pip install --editable .` gives it its id"
    for path, text in files.items():
        path.write_text(text.format(**words))
        click.echo(f"wrote {path}")
    click.echo(f"next: fill in {module}.py, then `cbo check {module}:{words['name']}`; {register}")
