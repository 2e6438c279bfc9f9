"""How long runs take: from runs that are done, else as published ones did, else roughly.

`durations.json` has the seconds of one core that optimizers took on the problems of published runs,
whole runs at the problem's protocol, as tests/write_durations.py finds them in their records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from cbo_suite.registry import problem_info, protocol_of
from cbo_suite.tasks import Task

FILE = Path(__file__).with_name("durations.json")
# For what was never published: seconds of one ask and tell with four constraints and few data, on
# one core of 2024.
_SECONDS_PER_CALL = {
    "random-search": 5e-5,
    "sobol-search": 5e-5,
    "cobyla": 1e-3,
    "cobyqa": 2e-3,
    "cma-es": 3e-3,
    "scbo": 0.015,
    "cei": 0.04,
    "slack": 0.15,
    "pesc": 0.12,
    "cmes-ibo": 0.5,
}
_UNKNOWN_OPTIMIZER = 0.03
_UNKNOWN_PROBLEM = 1e-4  # seconds of one evaluation
# Those with a model of each function, whose work grows with constraints and data.
_MODELS = ("scbo", "cei", "slack", "pesc", "cmes-ibo")
_SECONDS_PER_LINE = 0.003  # of waiting for the disk, a line of the journal
_SECONDS_PER_RUN = 0.1  # of starting and ending


class Estimate(NamedTuple):
    """How long some runs will take.

    Attributes:
        seconds: Sum over the runs, on one core.
        measured: How many of them are of a problem and an optimizer with runs done.
        guessed: How many are not.
    """

    seconds: float
    measured: int
    guessed: int


@cache
def published_seconds() -> dict[str, dict[str, float]]:
    """Seconds of one core that an optimizer took, by problem and optimizer, for a whole run."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, dict[str, float]])


class Estimator:
    """Learns from runs that are done how long others will take."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], list[float]] = defaultdict(list)

    def learn(self, task: Task, seconds: float) -> None:
        """Take note of how long a run took."""
        self._seen[task.problem, task.optimizer].append(seconds / task.budget)

    def seconds(self, task: Task) -> float:
        """Say how long a run will take."""
        seen = self._seen.get((task.problem, task.optimizer))
        return task.budget * sum(seen) / len(seen) if seen else self._guess(task)

    def estimate(self, tasks: Iterable[Task]) -> Estimate:
        """Say how long runs will take, one after the other."""
        total, measured, guessed = 0.0, 0, 0
        for task in tasks:
            total += self.seconds(task)
            known = (task.problem, task.optimizer) in self._seen
            measured, guessed = measured + known, guessed + (not known)
        return Estimate(total, measured, guessed)

    def _guess(self, task: Task) -> float:
        """Guess from published runs, or from the rough table."""
        problem = problem_info(task.problem)
        evaluation = (problem and problem.seconds) or _UNKNOWN_PROBLEM
        calls = task.budget / (1 if task.workers is not None else task.batch_size)
        beside = _SECONDS_PER_RUN + task.budget * evaluation + calls * _SECONDS_PER_LINE
        published = published_seconds().get(task.problem, {}).get(task.optimizer)
        if published is not None:
            return beside + published * task.budget / protocol_of(task.problem).budget
        # "scbo-ei" and the like cost what "scbo" does.
        names = [name for name in _SECONDS_PER_CALL if f"{task.optimizer}-".startswith(f"{name}-")]
        name = max(names, key=len, default="")
        call = _SECONDS_PER_CALL.get(name, _UNKNOWN_OPTIMIZER)
        if name in _MODELS:
            functions = 1 + ((problem and problem.num_constraints) or 0)
            call *= functions / 5 * (1 + task.budget / 400)
        return beside + calls * call
