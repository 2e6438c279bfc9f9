"""What is seen of a run from outside: the best so far, failures, progress, and when to stop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cbo_suite.harness.settings import Progress, Settings
from cbo_suite.protocols import Array, Evaluation


class _Best(NamedTuple):
    """The best point so far, in the words of `Progress`."""

    x: Array
    objective: float
    violation: float


class Watch:
    """Keeps count of a run, reports it to the callback, and says when it has been enough."""

    def __init__(self, settings: Settings, budget: int) -> None:
        """Begin with the data that were known beforehand; the clock of `stop_after` starts."""
        self._settings, self._budget = settings, budget
        self._enough = False
        self.start_clock()
        self.reset()

    def start_clock(self) -> None:
        """Let the time of `stop_after` begin now: what is on record takes none of it."""
        self._began = time.monotonic()

    def reset(self) -> None:
        """Forget all evaluations: the run is told again from its beginning."""
        self._done = self._failures = 0
        self._best: _Best | None = None
        given = self._settings.given
        if given.x:
            self._take(given.points, given.evaluation)

    def add(self, x: Array, evaluation: Evaluation, statuses: Sequence[str]) -> None:
        """Take in the results of a batch, points of shape `(k, d)`."""
        self._done += len(x)
        self._failures += sum(status != "ok" for status in statuses)
        self._take(x, evaluation)

    def _take(self, x: Array, evaluation: Evaluation) -> None:
        """Keep the better of the best so far and the best of some results."""
        row = evaluation.best()
        found = _Best(x[row], float(evaluation.objective[row]), float(evaluation.violation[row]))
        best = self._best
        if best is None or (found.violation, found.objective) < (best.violation, best.objective):
            self._best = found

    def report(self, inspection: dict[str, Any] | None) -> None:
        """Tell the callback how far the run is; if that answers True, it has been enough."""
        callback = self._settings.callback
        if callback is None or self._best is None:
            return
        progress = Progress(self._done, self._budget, *self._best, inspection, self._failures)
        # Nothing but True counts: a callback may well return what something else has returned.
        self._enough = isinstance(answer := callback(progress), bool | np.bool_) and bool(answer)

    def stop_reason(self, any_new: bool) -> str:
        """Say why the run shall stop before its budget is spent, "" to go on.

        Args:
            any_new: Whether anything was evaluated since the run began or went on.
        """
        target, seconds = self._settings.stop_at, self._settings.stop_after
        best = self._best
        if self._enough:
            return "the callback returned True"
        if target is not None and best is not None:
            if best.violation == 0.0 and best.objective <= target:
                return f"a feasible value of at most {target:g} was reached"
        # However short the time is, every call gets further.
        if seconds is not None and any_new and time.monotonic() - self._began >= seconds:
            return f"{seconds:g} s have passed"
        return ""
