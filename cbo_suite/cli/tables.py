"""Tables and progress on a terminal, plain text elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich.cells import cell_len
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
    *,
    names: Collection[int] = (0,),
    keep: int | None = None,
) -> None:
    """Print a table; title and cells are text, never markup.

    Args:
        title: What stands above it.
        columns: Heads of the columns.
        rows: Cells of each row.
        right: Places of the columns that are aligned to the right and do not break.
        names: Places of the columns with ids, which are kept whole: they are there to be copied.
        keep: Number of columns that always stand there; of those after them as many are left out,
            from the right, as a narrow terminal asks. By default all stand there.
    """
    console, cells = make_console(), list(rows)
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    shown = len(columns)
    while keep is not None and shown > keep and _table_width(widths[:shown]) > console.width:
        shown -= 1
    table = Table(title=Text(title, "bold"), title_justify="left", header_style="bold")
    for i, column in enumerate(columns[:shown]):
        table.add_column(
            column,
            justify="right" if i in right else "left",
            no_wrap=i in names or i in right,
            min_width=widths[i] if i in names else None,
        )
    for row in cells:
        table.add_row(*(Text(cell) for cell in row[:shown]))
    console.print(table)
    if shown < len(columns):
        console.print(Text(f"A wider terminal also shows: {', '.join(columns[shown:])}."))


def _table_width(widths: Sequence[int]) -> int:
    """Return the width of a table whose columns are this wide: two spaces and a line for each."""
    return sum(widths) + 3 * len(widths) + 1


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
