"""What steers a run beside its task: options, where points are evaluated, and who hears of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cbo_suite.errors import InvalidTask
from cbo_suite.journal import Given
from cbo_suite.protocols import Array, Optimizer, Task
from cbo_suite.system import cores

# The fact that says how many seconds an evaluation may take.
TIME_LIMIT = "evaluation_timeout"

Factory = Callable[..., Optimizer]


class Progress(NamedTuple):
    """What a callback is told after every batch.

    Attributes:
        done: Number of evaluations told.
        budget: Number of evaluations of the whole run.
        best_x: The best point so far, shape `(d,)`.
        best_objective: Its objective value.
        best_violation: Its total violation: 0 if it is feasible.
        inspection: What the optimizer says of itself, None if it says nothing.
        failures: Number of evaluations that raised, were late or gave no finite numbers.
    """

    done: int
    budget: int
    best_x: Array
    best_objective: float
    best_violation: float
    inspection: dict[str, Any] | None
    failures: int = 0

    @property
    def note(self) -> str:
        """The best so far in a few words, and how many evaluations failed."""
        if self.best_violation == 0.0:
            note = f"best {self.best_objective:.6g} feasible"
        elif math.isinf(self.best_violation):
            note = "no values yet"
        else:
            note = f"infeasible, violation {self.best_violation:.3g}"
        return f"{note}, {self.failures} failed" if self.failures else note


Callback = Callable[[Progress], object]


@dataclass(frozen=True)
class Settings:
    """What steers a run beside its task.

    Attributes:
        options: Options of the optimizer.
        journal: Where every evaluation is written, None for nowhere; the same path again resumes.
        callback: Called with a `Progress` after every batch; if it returns True, the run stops.
        processes: Number of processes that evaluate, None to leave it to `processes_for`.
        evaluation_timeout: Seconds after which the evaluation of a point is killed, None for never.
        real_time: Whether results of asynchronous workers are told in the order in which they come.
        more_facts: Further facts for the header of the journal, which a resumed run must have too.
        registered: Whether the problem is the registered one of its id, which other processes make
            for themselves; any other is sent to them.
        given: What the user knows beforehand: results, and points to evaluate first.
        stop_at: The run stops when a feasible point has an objective of at most this.
        stop_after: The run stops when so many seconds have passed and a batch is told.
        keep_interrupted: Whether Ctrl-C stops the run instead of being raised.

    Raises:
        InvalidTask: The options are no mapping, a time is no number of seconds above 0, or the
            target is no number.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    journal: str | Path | None = None
    callback: Callback | None = None
    processes: int | None = None
    evaluation_timeout: float | None = None
    real_time: bool = False
    registered: bool = False
    more_facts: Mapping[str, str] = field(default_factory=dict)
    given: Given = field(default_factory=Given)
    stop_at: float | None = None
    stop_after: float | None = None
    keep_interrupted: bool = False

    def __post_init__(self) -> None:
        """Refuse options, times and a target that are none."""
        if not isinstance(self.options, Mapping):
            raise InvalidTask(f"options must be a mapping of names to values, got {self.options!r}")
        for name in ("evaluation_timeout", "stop_after"):
            value = getattr(self, name)
            if value is not None:
                if not 0.0 < (seconds := _number(value)) < math.inf:
                    raise InvalidTask(f"{name} must be seconds above 0, got {value!r}")
                object.__setattr__(self, name, seconds)
        if self.stop_at is not None:
            if math.isnan(target := _number(self.stop_at)):
                raise InvalidTask(f"stop_at must be a number, got {self.stop_at!r}")
            object.__setattr__(self, "stop_at", target)

    def processes_for(self, task: Task) -> int | None:
        """Return the number of processes that evaluate, None for the process of the run itself.

        A time-out and the real order of results need other processes: if their number is not
        given it is that of the workers, or as many of the batch as there are cores.

        Raises:
            InvalidTask: Results shall come in real time, but there are no workers.
        """
        if self.real_time and task.workers is None:
            raise InvalidTask("real_time orders the results of asynchronous workers: give workers")
        if self.processes is not None:
            return self.processes
        if self.evaluation_timeout is None and not self.real_time:
            return None
        return task.workers or min(task.batch_size, cores())

    def facts(self) -> dict[str, str]:
        """Return what of these settings can change a result, for the header of the journal."""
        facts = dict(self.more_facts)
        if self.given != Given():
            facts["given"] = self.given.digest
        if self.evaluation_timeout is not None:
            facts[TIME_LIMIT] = str(self.evaluation_timeout)
        if self.real_time:
            facts["order"] = "real-time"
        return facts


def _number(value: object) -> float:
    """Return a number as a float, NaN for what is none."""
    try:
        return math.nan if isinstance(value, bool | str) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
