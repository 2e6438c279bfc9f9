"""The progress of `minimize` on a terminal; needs rich."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Column

from cbo_suite.harness import Progress
from cbo_suite.minimization.progress import Display, Pace, in_words

# Columns of a terminal that has room for a bar and the name of the optimizer.
_WIDE_ENOUGH = 78
_TITLE_LENGTH = 13


class Bar(Display):
    """A bar on standard error with the best so far; what the function prints stands above it."""

    def __init__(self, title: str) -> None:
        """Prepare the bar."""
        if len(title) > _TITLE_LENGTH:
            title = f"{title[: _TITLE_LENGTH - 1]}…"
        self._pace = Pace()
        console = Console(stderr=True)
        bar = BarColumn(bar_width=None, table_column=Column(min_width=4, ratio=1))
        columns: list[ProgressColumn] = [
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[note]}", markup=False, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[left]}", markup=False, table_column=Column(no_wrap=True)),
        ]
        if console.width >= _WIDE_ENOUGH:
            columns = [TextColumn("{task.description}", markup=False), bar, *columns]
        self._bar = RichProgress(*columns, console=console, expand=True)
        self._line = self._bar.add_task(title, total=None, note="", left="")

    def __enter__(self) -> None:
        """Show the bar."""
        self._bar.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the bar as it is, nothing if the run was there already; give the terminal back."""
        nothing_done = self._bar.tasks[0].completed == 0
        self._bar.update(self._line, left="", visible=not nothing_done)
        self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Move the bar."""
        left = self._pace.seconds_left(progress)
        self._bar.update(
            self._line,
            total=progress.budget,
            completed=progress.done,
            note=progress.note,
            left=f"{in_words(left)} left",
        )
