"""`cbo mopta08`: install the user's MOPTA08 executable and say what is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cbo_suite.problems.mopta08.install import Executable


@click.group()
def mopta08() -> None:
    """Install the MOPTA08 executable, which you supply.

    MOPTA08 is third-party software: cbo-suite neither contains nor downloads it. The environment
    variable CBO_MOPTA08 goes before what is installed.
    """


@mopta08.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def install(path: Path) -> None:
    """Check that PATH is MOPTA08 and copy it into your data folder."""
    from cbo_suite.errors import CboError
    from cbo_suite.problems.mopta08.install import install as install_executable

    try:
        executable = install_executable(path)
    except CboError:
        raise
    except OSError as error:
        raise click.ClickException(f"cannot install {path}: {error}") from error
    _show(executable)


@mopta08.command()
def status() -> None:
    """Say which executable is used and whether it is sound."""
    from cbo_suite.problems.mopta08.install import locate

    _show(locate())


def _show(executable: Executable) -> None:
    """Print an executable that passed its check."""
    click.echo(f"MOPTA08 is ready, {executable.origin}")
    click.echo(f"path    {executable.path}")
    click.echo(f"sha256  {executable.sha256}")
