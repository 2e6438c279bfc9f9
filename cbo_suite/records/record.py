"""What is kept of a run, as arrays; how it is written is told by `lines`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from cbo_suite.protocols import Array, BoolArray, Evaluation, Task

# What the identity of the optimizer is called among the versions.
SOURCE = "optimizer-source"
# Above this many numbers (n * d) only improvements and a sample of the points of a run are kept.
MAX_POINT_NUMBERS = 10_000

Indices = np.ndarray[tuple[int], np.dtype[np.intp]]


class Improvement(msgspec.Struct, frozen=True, eq=False):
    """An evaluation that is better than all before it.

    Attributes:
        index: Number of the evaluation, counted from 0.
        x: The point, shape `(d,)`.
        objective: Its objective value.
        violation: Its total violation.
    """

    index: int
    x: Array
    objective: float
    violation: float


class Sample(NamedTuple):
    """Evaluations of a run that its block has drawn, and the proof that they were committed to.

    Attributes:
        points: Their points, shape `(k, d)`.
        constraints: Their constraint values, shape `(k, m)`.
        path: The hashes which lead from them to the root of the run's tree, 32 bytes each.
    """

    points: Array
    constraints: Array
    path: bytes


class Record(msgspec.Struct, frozen=True, eq=False, dict=True, kw_only=True):
    """What is kept of a run; two records are equal if their lines are.

    Attributes:
        schema: Version of the format; what version 1 lacks is None.
        task: What was run.
        options: Options of the optimizer.
        versions: Package name to version of what took part.
        machine: Facts of the machine.
        facts: Digests that pin the problem.
        status: "complete" or "failed".
        error: What ended a failed run, "" otherwise.
        dim: Number of variables; 0 if a record of version 1 does not tell.
        num_constraints: Number of constraints; 0 if a record of version 1 does not tell.
        objectives: Objective value of every evaluation, shape `(n,)`.
        violations: Total violation of every evaluation, infinite where a value is not finite.
        statuses: One letter per evaluation: o(k), n(onfinite), f(ailed) or t(imeout).
        points: The points that are kept, shape `(k, d)`: all, or those of the improvements.
        batches: Number of points of every batch in the order told; None if they are those of
            `regular_batches`.
        restarts: Numbers of the evaluations that are the first after a restart of the optimizer,
            None if it does not say.
        seconds_optimizer: Time spent in ask and tell.
        seconds_processor: Time of the processors in ask and tell, None if it was not measured.
        seconds_evaluation: Time spent in the problem.
        digest: Fingerprint of all points and values of the journal.
        root: Root of the Merkle tree over all evaluations.
        sample: What the block of this run has drawn; None before that, and where all points are
            kept.
        step_constraints: Constraint values of the improvements, shape `(k, m)`, in version 1.
    """

    schema: Literal[1, 2]
    task: Task
    options: dict[str, Any]
    versions: dict[str, str]
    machine: dict[str, str]
    facts: dict[str, str]
    status: Literal["complete", "failed"]
    error: str
    dim: int
    num_constraints: int
    objectives: Array
    violations: Array
    statuses: str | None
    points: Array
    batches: list[int] | None
    restarts: list[int] | None
    seconds_optimizer: float
    seconds_processor: float | None
    seconds_evaluation: float
    digest: str
    root: str | None
    sample: Sample | None = None
    step_constraints: Array | None = None

    def __post_init__(self) -> None:
        """Let nobody write into the arrays."""
        for name in ("objectives", "violations", "points", "step_constraints"):
            values = getattr(self, name)
            if values is not None and values.flags.writeable:
                view = values.view()
                view.setflags(write=False)
                msgspec.structs.force_setattr(self, name, view)

    def __eq__(self, other: object) -> bool:
        """Tell whether two records are written the same."""
        if not isinstance(other, Record):
            return NotImplemented
        from cbo_suite.records.lines import encode_record

        return encode_record(self) == encode_record(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def identity(self) -> str | None:
        """Identity of the optimizer, None if the record does not name it."""
        return self.versions.get(SOURCE)

    @property
    def feasible(self) -> BoolArray:
        """Which evaluations are feasible, shape `(n,)`."""
        mask: BoolArray = self.violations == 0.0
        return mask

    @cached_property
    def steps(self) -> Indices:
        """Numbers of the improvements, shape `(k,)`."""
        values = Evaluation(self.objectives, self.violations[:, None])
        return np.array(improvements(values), dtype=np.intp)

    @property
    def whole(self) -> bool:
        """Whether all points are kept."""
        return len(self.points) == len(self.objectives)

    @property
    def kept(self) -> Indices:
        """Numbers of the evaluations whose points are kept, shape `(k,)`."""
        return np.arange(len(self.objectives)) if self.whole else self.steps

    @property
    def x(self) -> Array | None:
        """All points, shape `(n, d)`, None if only some are kept."""
        return self.points if self.whole else None

    @property
    def improvements(self) -> list[Improvement]:
        """Every evaluation that is better than all before it."""
        points = self.points[self.steps] if self.whole else self.points
        values = self.objectives[self.steps].tolist(), self.violations[self.steps].tolist()
        return [
            Improvement(int(index), x, objective, violation)
            for index, x, objective, violation in zip(self.steps, points, *values, strict=True)
        ]

    @property
    def lacks(self) -> list[str]:
        """What a record of this version of the format does not tell."""
        if self.schema == 2:
            return []
        return ["space digest", "statuses", "restarts", "processor seconds", "tree"]


def improvements(evaluation: Evaluation) -> list[int]:
    """Number the evaluations that are better than all before them.

    Better is: feasible, else of less violation; among equals of less objective. What is not
    finite never counts.
    """
    violation, objective = evaluation.violation, evaluation.objective
    if not len(violation):
        return []
    candidates = np.flatnonzero(
        np.isfinite(violation) & (violation == np.minimum.accumulate(violation))
    )
    found, best = [], (np.inf, np.inf)
    for i in candidates.tolist():
        outcome = float(violation[i]), float(objective[i])
        if outcome < best:
            found.append(i)
            best = outcome
    return found


def regular_batches(task: Task, n: int) -> list[int]:
    """Return the sizes of the batches of n evaluations if every batch is as large as it may be.

    The design is told first, then what was asked; the last batch of either may be smaller.
    """
    size = 1 if task.workers is not None else task.batch_size
    design = min(task.n_init, n)
    starts: Sequence[int] = [*range(0, design, size), *range(design, n, size), n]
    return [int(step) for step in np.diff(starts)]
