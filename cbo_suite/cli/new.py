"""`cbo new`: ready-to-fill files for an optimizer or a problem, with test and package."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Literal

import click

Kind = Literal["optimizer", "problem"]

# Module names that mean something else: to pytest and pip, and in the file that is written.
_IN_USE = {"conftest", "setup", "evaluation", "space", "problem", "best_known", "run_protocol"}
_VERSION = re.compile(r"-v[0-9]+$")


@click.group()
def new() -> None:
    """Start something of your own."""


@new.command()
@click.argument("name")
def optimizer(name: str) -> None:
    """Write NAME.py, an optimizer that runs, and test_NAME.py into this folder.

    A folder that has no pyproject.toml gets one too, which gives the optimizer its id.
    """
    _start("optimizer", name)


@new.command()
@click.argument("name")
def problem(name: str) -> None:
    """Write NAME/__init__.py, a problem that runs, and test_NAME.py into this folder.

    Its id is NAME-v1. A folder that has no pyproject.toml gets one too, which gives the problem its
    id.
    """
    _start("problem", name)


def _start(kind: Kind, name: str) -> None:
    """Write the files of a new thing, none over another, and say what comes next."""
    from cbo_suite.authoring.templates import TEMPLATES

    reason = _objection(kind, name)
    if reason:
        raise click.ClickException(
            f"{name!r} cannot be a name: {reason}; choose another one{_suggestion(kind, name)}"
        )
    words, template = _words(kind, name), TEMPLATES[kind]
    files = dict(template.files)
    package = Path("pyproject.toml")
    register = f"register {words['id']!r} in {package}, or in the table of {kind}s/"
    if not package.exists():
        files[str(package)] = template.package
        register = "`pip install --editable .` gives it its id"
    for pattern, text in files.items():
        path = Path(pattern.format(**words))
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(**words), encoding="utf-8")
        click.echo(f"wrote {path}")
    code, target = template.code.format(**words), f"{words['module']}:{words['name']}"
    click.echo(f"next: fill in {code}, then `cbo check {target}`; {register}")


def _words(kind: Kind, name: str) -> dict[str, str]:
    """Return what the templates call things: title, id, module, and the class as name."""
    title = name.replace("_", "-")
    if kind == "problem":
        title = _VERSION.sub("", title)
    return {
        "title": title,
        "id": f"{title}-v1" if kind == "problem" else title,
        "module": title.replace("-", "_"),
        "name": "".join(part.capitalize() for part in title.split("-")),
    }


def _objection(kind: Kind, name: str) -> str:
    """Say why a name cannot be at once an id, a module and a class, "" if it can."""
    from cbo_suite.registry import OptimizerInfo, ProblemInfo, list_optimizers, list_problems
    from cbo_suite.verify.submission import MAX_NAME, NAME, RESERVED

    words = _words(kind, name)
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
    for path in (Path(f"{module}.py"), Path(module), Path(f"test_{module}.py")):
        if path.exists():
            return f"{path} exists already"
    known: list[OptimizerInfo] | list[ProblemInfo]
    known = list_optimizers() if kind == "optimizer" else list_problems()
    for row in known:
        if row.id == words["id"]:
            return f"{row.package} has {words['id']} already"
    return f"a module {module} is installed here already" if find_spec(module) else ""


def _suggestion(kind: Kind, name: str) -> str:
    """Give an example of a name like this one that would do."""
    tidy = re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-")
    longer = f"{tidy}-2" if tidy.startswith("my-") else f"my-{tidy}"
    example = "my-search" if kind == "optimizer" else "my-problem-2d"
    for title in (tidy, longer, example):
        if not _objection(kind, title):
            return f", such as {title}"
    return ""
