"""`cbo check`: does a user's own optimizer or problem keep the contract?"""

from __future__ import annotations

from collections import Counter

import click

from cbo_suite.cli.targets import load_target


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
    which is made without arguments. MODULE is found from the current folder; it may also be a file,
    as in my_search.py:MySearch.
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
