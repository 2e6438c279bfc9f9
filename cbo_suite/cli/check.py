"""`cbo check`: does a user's own optimizer or problem keep the contract?"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("target", metavar="MODULE:CLASS")
@click.option(
    "--budget",
    type=click.IntRange(30),
    default=30,
    show_default=True,
    help="Evaluations of each short run of an optimizer; more reach deeper.",
)
def check(target: str, budget: int) -> None:
    """Check the class MODULE:CLASS, an optimizer or a problem.

    A class with `ask` and `tell` is checked as an optimizer, one with `evaluate` as a problem,
    which is made without arguments. MODULE is found from the current folder.
    """
    from cbo_suite.checks import optimizer_report, problem_report
    from cbo_suite.cli.tables import print_table

    subject = load_target(target)
    if hasattr(subject, "ask") and hasattr(subject, "tell"):
        findings = optimizer_report(subject, budget=budget)
    elif hasattr(subject, "evaluate"):
        findings = problem_report(subject() if isinstance(subject, type) else subject)
    else:
        raise click.ClickException(
            f"{target} is no optimizer (ask, tell) and no problem (evaluate): name a class that is"
        )
    rows = [(finding.rule, finding.outcome, finding.detail) for finding in findings]
    print_table(target, ("rule", "outcome", "detail"), rows)
    counts = Counter(finding.outcome for finding in findings)
    click.echo(f"{counts['ok']} ok, {counts['skipped']} skipped, {counts['failed']} failed")
    if counts["failed"]:
        raise click.exceptions.Exit(1)


def load_target(target: str) -> Any:
    """Import MODULE:CLASS, from the current folder too."""
    module, _, name = target.partition(":")
    if not module or not name:
        raise click.UsageError(f"write it as module:Class, got {target!r}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"cannot import {error.name!r}: is {module} in this folder or installed?"
        ) from error
    except AttributeError as error:
        raise click.ClickException(f"module {module} has no {name!r}") from error
