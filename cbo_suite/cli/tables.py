"""Tables and progress on a terminal, plain text elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

# A pipe or a file gets the whole table: rich would otherwise cut it to 80 columns.
_WIDE = 200


def make_console() -> Console:
    """Make a console for standard output, wide where that is not a terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDE, soft_wrap=True)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Collection[int] = (),
) -> None:
    """Print a table; title and cells are text, never markup."""
    table = Table(title=Text(title, "bold"), title_justify="left", header_style="bold")
    for i, column in enumerate(columns):
        # Ids are kept whole: they are there to be copied.
        table.add_column(
            column, justify="right" if i in right else "left", no_wrap=i == 0 or i in right
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    make_console().print(table)


def make_progress() -> Progress:
    """Make a progress bar with a free text, a count and the time that is left."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=make_console(),
    )
