"""How `minimize` shows its progress: a bar on a terminal, few plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import deque
from types import TracebackType

from cbo_suite.errors import InvalidTask
from cbo_suite.harness import Progress

# Plain lines come at most so often, and so often in a whole run.
SECONDS_BETWEEN_LINES, LINES = 10.0, 20
# Evaluations whose pace says how long the rest will take: models grow slower as a run goes on.
PACE_BATCHES = 20


class Display:
    """Something that is called after every batch while it is open; this one shows nothing."""

    def __enter__(self) -> None:
        """Begin to show."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Show the end."""

    def __call__(self, progress: Progress) -> None:
        """Show how far the run is."""


def show_progress(wanted: bool | None, optimizer: str) -> Display:
    """Return what shows the progress of a run while it is open.

    Args:
        wanted: Whether it is shown; None shows it except in notebooks.
        optimizer: Name of the optimizer.

    Raises:
        InvalidTask: `wanted` is neither true nor false nor None.
    """
    if wanted is not None and not isinstance(wanted, bool):
        raise InvalidTask(f"progress must be True, False or None, got {wanted!r}")
    in_notebook = _in_notebook()
    if wanted is False or (wanted is None and in_notebook):
        return Display()
    title = optimizer.rpartition(":")[2]
    if sys.stderr is not None and sys.stderr.isatty() and not in_notebook:
        # Imported on use: it needs rich.
        from cbo_suite.minimization.progress_bar import Bar

        return Bar(title)
    return Lines(title, last=wanted is True)


def _in_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


class Pace:
    """How long the rest of a run will take, by the pace of its latest evaluations."""

    def __init__(self) -> None:
        self._seen = deque([(time.monotonic(), 0)], maxlen=PACE_BATCHES)

    def seconds_left(self, progress: Progress) -> float:
        """Take in how far the run is and estimate the rest."""
        now = time.monotonic()
        since, before = self._seen[0]
        self._seen.append((now, progress.done))
        made = max(1, progress.done - before)
        return (now - since) / made * (progress.budget - progress.done)


class Lines(Display):
    """Progress as plain lines on standard error: none in the first seconds, then few."""

    def __init__(self, title: str, *, last: bool) -> None:
        """Begin.

        Args:
            title: What the lines begin with.
            last: Whether there is a line at the end, however short the run was.
        """
        self._title, self._last = title, last
        self._began = self._printed = time.monotonic()
        self._pace = Pace()
        self._unprinted = ""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Print where the run ended, if there were lines before or it was asked for."""
        if self._unprinted and (self._last or self._printed > self._began):
            self._print(self._unprinted)

    def __call__(self, progress: Progress) -> None:
        """Print a line if it is time."""
        now, left = time.monotonic(), self._pace.seconds_left(progress)
        line = f"{self._title}: {progress.done}/{progress.budget} {progress.note}"
        between = max(SECONDS_BETWEEN_LINES, (now - self._began + left) / LINES)
        if now - self._printed >= between and progress.done < progress.budget:
            self._print(f"{line}, {in_words(left)} left")
            self._printed, self._unprinted = now, ""
        else:
            self._unprinted = line

    @staticmethod
    def _print(line: str) -> None:
        """Print a line at once; a log that is gone is no reason to stop."""
        if sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)


def in_words(seconds: float) -> str:
    """Write a time as people say it: 45 s, 12 min, 3.5 h."""
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    if seconds < 100.0 * 60.0:
        return f"{seconds / 60.0:.0f} min"
    return f"{seconds / 3600.0:.1f} h"
