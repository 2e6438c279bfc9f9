"""`cbo new`: a ready-to-fill file for an optimizer of one's own, its test and its package."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from keyword import iskeyword
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

# Module names that mean something else: to pytest and pip, and in the file that is written.
_IN_USE = {"conftest", "setup", "evaluation", "space"}


@click.group()
def new() -> None:
    """Start something of your own."""


@new.command()
@click.argument("name")
def optimizer(name: str) -> None:
    """Write NAME.py, an optimizer that runs, and test_NAME.py into this folder.

    A folder that has no pyproject.toml gets one too, which gives the optimizer its id.
    """
    reason = _objection(name)
    if reason:
        raise click.ClickException(
            f"{name!r} cannot be a name: {reason}; choose another one{_suggestion(name)}"
        )
    words = _words(name)
    module = words["module"]
    files = {Path(f"{module}.py"): _OPTIMIZER, Path(f"test_{module}.py"): _TEST}
    package = Path("pyproject.toml")
    register = f"register {words['title']!r} in {package}, or in the table of optimizers/"
    if not package.exists():
        files[package] = _PACKAGE
        register = "`pip install --editable .` gives it its id"
    for path, text in files.items():
        path.write_text(text.format(**words))
        click.echo(f"wrote {path}")
    click.echo(f"next: fill in {module}.py, then `cbo check {module}:{words['name']}`; {register}")


def _words(name: str) -> dict[str, str]:
    """Return what the templates call things: the id as title, the module, and the class as name."""
    title = name.replace("_", "-")
    class_name = "".join(part.capitalize() for part in title.split("-"))
    return {"title": title, "module": title.replace("-", "_"), "name": class_name}


def _objection(name: str) -> str:
    """Say why a name cannot be at once an id, a module and a class, "" if it can."""
    from cbo_suite.registry import list_optimizers
    from cbo_suite.verify.submission import MAX_NAME, NAME, RESERVED

    words = _words(name)
    title, module = words["title"], words["module"]
    if not NAME.fullmatch(title) or not title[0].isalpha() or len(title) > MAX_NAME:
        return (
            f"an id begins with a letter and has at most {MAX_NAME} lower-case letters, digits "
            "and single hyphens"
        )
    if RESERVED.fullmatch(title):
        return "Windows cannot have a file of this name"
    if iskeyword(module) or iskeyword(words["name"]):
        return "it is a word of Python itself"
    if module in _IN_USE or module in sys.stdlib_module_names:
        return f"{module}.py would stand in the way of something else of this name"
    for path in (Path(f"{module}.py"), Path(f"test_{module}.py")):
        if path.exists():
            return f"{path} exists already"
    for known in list_optimizers():
        if known.id == title:
            return f"the id is taken by an optimizer of {known.package}"
    return f"a module {module} is installed here already" if find_spec(module) else ""


def _suggestion(name: str) -> str:
    """Give an example of a name like this one that would do."""
    tidy = re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-")
    longer = f"{tidy}-2" if tidy.startswith("my-") else f"my-{tidy}"
    for title in (tidy, longer, "my-search"):
        if not _objection(title):
            return f", such as {title}"
    return ""
