"""Classes of the user's own, named on the command line as module:Class or file.py:Class."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import click


def load_target(target: str) -> Any:
    """Import MODULE:CLASS, from the current folder too, or FILE.py:CLASS.

    Raises:
        click.UsageError: It is not written like that.
        click.ClickException: There is no such file, module or class.
    """
    module, _, name = target.rpartition(":")
    if not module or not name:
        raise click.UsageError(f"write it as module:Class or file.py:Class, got {target!r}")
    file = Path(module).expanduser().resolve() if module.endswith(".py") else None
    if file is not None and not file.is_file():
        raise click.ClickException(f"there is no file {module}")
    sys.path.insert(0, str(Path.cwd() if file is None else file.parent))
    try:
        loaded = importlib.import_module(module if file is None else file.stem)
        found = getattr(loaded, name)
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"cannot import {error.name!r}: is {module} in this folder or installed?"
        ) from error
    except AttributeError as error:
        raise click.ClickException(f"module {module} has no {name!r}") from error
    except SyntaxError as error:
        raise click.ClickException(f"{module} is no Python: {error}") from error
    if file is not None and Path(loaded.__file__ or "").resolve() != file:
        raise click.ClickException(
            f"{module} has the name of another module, {loaded.__file__}: rename it"
        )
    return found
