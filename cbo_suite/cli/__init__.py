"""The `cbo` command: one file per subcommand, imported when it is called.

`cbo --help` imports click and nothing of the suite but this table.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import NamedTuple

import click

from cbo_suite._version import __version__


class _Command(NamedTuple):
    """Where a subcommand is and what it does, in the words of `cbo --help`."""

    target: str
    summary: str


_COMMANDS = {
    "list": _Command("cbo_suite.cli.list:list_command", "List problems and optimizers."),
    "run": _Command(
        "cbo_suite.cli.run:run_command", "Run an optimizer, or a campaign of many runs."
    ),
    "ask": _Command("cbo_suite.cli.ask:ask", "Get points for your own simulator to evaluate."),
    "tell": _Command("cbo_suite.cli.tell:tell", "Tell the results of these points."),
    "status": _Command(
        "cbo_suite.cli.status:status", "Show what a campaign, or a study, has done."
    ),
    "export": _Command("cbo_suite.cli.export:export", "Collect the records of finished runs."),
    "leaderboard": _Command("cbo_suite.cli.leaderboard:leaderboard", "Build the leaderboard."),
    "verify": _Command("cbo_suite.cli.verify:verify", "Verify results: read and replay them."),
    "plot": _Command("cbo_suite.cli.plot:plot", "Draw figures for papers."),
    "paper": _Command("cbo_suite.cli.paper:paper", "Reproduce the SCBO paper, claim by claim."),
    "check": _Command("cbo_suite.cli.check:check", "Check your own optimizer or problem."),
    "new": _Command("cbo_suite.cli.new:new", "Start an optimizer or a problem of your own."),
    "references": _Command(
        "cbo_suite.cli.references:references", "Make what the scores of a problem are measured by."
    ),
    "golden": _Command(
        "cbo_suite.cli.golden:golden", "Write down the values that a problem must give for ever."
    ),
    "mopta08": _Command("cbo_suite.cli.mopta08:mopta08", "Install the MOPTA08 executable."),
}


class _LazyGroup(click.Group):
    """A group whose subcommands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the subcommands in the order of the table."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one subcommand."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.summary) for name, row in _COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run a subcommand; an error of ours is a message, not a traceback."""
        from cbo_suite.errors import CboError

        try:
            return super().invoke(ctx)
        except CboError as error:
            raise click.ClickException(str(error)) from error


@click.command(cls=_LazyGroup)
@click.version_option(__version__, prog_name="cbo-suite")
def main() -> None:
    """Benchmark constrained black-box optimizers."""
    # What a person should know of while waiting, such as a compilation.
    logging.basicConfig(format="note: %(message)s")
    logging.getLogger("cbo_suite").setLevel(logging.INFO)
