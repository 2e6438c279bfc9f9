"""The contracts: what a problem is, what an optimizer is, what they exchange, and what a run is.

Everything is minimised; a point is feasible when every constraint value is at most zero; points
are always float64 arrays of shape `(n, d)`. One-letter names follow the mathematics: `x` points,
`n` points, `d` dimensions, `m` constraints.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec
import numpy as np

from cbo_suite.errors import InvalidTask
from cbo_suite.space import Array as Array
from cbo_suite.space import BoolArray as BoolArray
from cbo_suite.space import Space as Space


def whole_number(name: str, value: object, least: int) -> int:
    """Return a whole number of at least `least` that fits 63 bits, or refuse it by its name."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if isinstance(value, bool) or not least <= number < 2**63:
        raise InvalidTask(f"{name} must be a whole number >= {least}, got {value!r}")
    return number


class Evaluation(NamedTuple):
    """What one call of a problem gives for n points; feasible iff every constraint <= 0.

    Attributes:
        objective: Values to minimise, shape `(n,)`.
        constraints: Constraint values, shape `(n, m)`.
    """

    objective: Array
    constraints: Array

    @property
    def violation(self) -> Array:
        """Total violation, the sum of max(0, c) over the constraints, shape `(n,)`.

        It is infinite where the objective, a constraint or the sum is not finite.
        """
        finite = np.isfinite(self.objective) & np.isfinite(self.constraints).all(axis=1)
        excess = np.maximum(np.where(finite[:, None], self.constraints, 0.0), 0.0)
        with np.errstate(over="ignore"):
            total: Array = np.where(finite, excess.sum(axis=1), np.inf)
        return total

    @property
    def feasible(self) -> BoolArray:
        """Which points are feasible: all values finite, every constraint <= 0; shape `(n,)`."""
        mask: BoolArray = self.violation == 0.0
        return mask

    def best(self) -> int:
        """Index of the best point: feasible first, then least violation, then least objective.

        Ties go to the earliest point. At least one point is needed.
        """
        objective = np.where(np.isnan(self.objective), np.inf, self.objective)
        return int(np.lexsort((objective, self.violation))[0])


class Band(NamedTuple):
    """What a model says about values, each of shape `(p,)` or `(p, m)`.

    Attributes:
        mean: Expected value.
        deviation: Standard deviation.
        median: As probably too high as too low.
        lower: Lower end of the 90 % interval: the value is less with probability 5 %.
        upper: Upper end of it.
    """

    mean: Array
    deviation: Array
    median: Array
    lower: Array
    upper: Array


class Prediction(NamedTuple):
    """What the models of an optimizer say about p points, in the user's units and without noise.

    Attributes:
        x: The points, shape `(p, d)`.
        objective: Their objective, each part of shape `(p,)`.
        constraints: Their constraints, each part of shape `(p, m)`.
        feasible: Probability that an evaluation works and every constraint holds, shape `(p,)`.
    """

    x: Array
    objective: Band
    constraints: Band
    feasible: Array


@dataclass(frozen=True, eq=False)
class BestKnown:
    """The best feasible point that is known of a problem.

    Attributes:
        objective: Its objective value.
        x: The point, shape `(d,)`, read-only, which evaluates to that value and is feasible.
        source: Where it comes from.
    """

    objective: float
    x: Array
    source: str

    def __post_init__(self) -> None:
        """Keep a read-only copy of the point."""
        point = np.array(self.x, dtype=float)
        point.setflags(write=False)
        object.__setattr__(self, "x", point)


@runtime_checkable
class ConstrainedProblem(Protocol):
    """A function on a box: minimise the objective where every constraint is <= 0."""

    @property
    def id(self) -> str:
        """Frozen, versioned name such as "ackley-10d-v1"."""

    @property
    def space(self) -> Space:
        """The box and the number of constraints."""

    def evaluate(self, x: Array) -> Evaluation:
        """Evaluate points of shape `(n, d)`; one call gives objective and constraints."""


@runtime_checkable
class Optimizer(Protocol):
    """Ask and tell.

    The factory is the class itself, called as
    `(space, *, budget, batch_size, seed, **options)`. An optimizer is a function of these and of
    the told data. Before the first ask it is told an initial design that it did not ask for. If it
    offers `expect_design(n)`, it is told before that how many points the design has: whatever else
    is told before the first ask are data that were known beforehand.

    An optimizer may also offer `get_state() -> dict` and `set_state(dict)` with plain JSON. To
    resume, the harness tells the recorded data to a fresh optimizer, then calls `set_state`: the
    state replaces whatever the tells left behind, so it need not contain the data.

    It may offer `inspect() -> dict` (plain JSON: what it did last, kept in the journal),
    `recommend()` (the point, shape `(d,)`, that it would choose at the end), `predict(x)` (a
    `Prediction` for points `(p, d)`, which changes nothing that is asked later) and `close()`
    (called once when the run ends, however it ends).

    Limits are declared as class attributes: `sequential = True` (one point at a time, however
    many workers there are), `max_dim`, `max_batch_size`; and `deterministic_search = True` if the
    seed makes no difference.
    """

    def ask(self, n: int = 1) -> Array:
        """Propose between 1 and `n` points, shape `(k, d)`, inside the box."""

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results: any subset, in any order, also points that were never asked."""


class RunProtocol(NamedTuple):
    """How long and how parallel a problem is run.

    Attributes:
        budget: Number of evaluations, the initial design among them.
        batch_size: Number of points evaluated side by side.
        n_init: Number of points of the initial Latin hypercube design.
    """

    budget: int
    batch_size: int
    n_init: int


# For a problem that declares none: room for a model before the first proposal.
DEFAULT_PROTOCOL = RunProtocol(budget=100, batch_size=1, n_init=10)


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run to be made; two runs of equal tasks give equal results.

    Attributes:
        problem: Versioned id of the problem.
        optimizer: Id of the optimizer.
        budget: Number of evaluations, the initial design among them.
        batch_size: Number of points asked, evaluated and told together.
        n_init: Number of points of the initial design.
        seed: Whole number >= 0: fixes the design and the optimizer.
        workers: None for batches; k for k asynchronous workers, one point each.
    """

    problem: str
    optimizer: str
    budget: int
    batch_size: int
    n_init: int
    seed: int
    workers: int | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that make no run; take whole numbers of NumPy for Python's own."""
        for name, least in (("budget", 1), ("batch_size", 1), ("n_init", 0), ("seed", 0)):
            msgspec.structs.force_setattr(
                self, name, whole_number(name, getattr(self, name), least)
            )
        if self.workers is not None:
            workers = whole_number("workers", self.workers, 1)
            msgspec.structs.force_setattr(self, "workers", workers)

    @property
    def name(self) -> str:
        """A short name, fit for a file: problem, optimizer and seed."""
        return f"{self.problem}/{self.optimizer}/{self.seed}"


class ProblemEntry(NamedTuple):
    """A row of the table of problems: enough to list the problem without importing it.

    Attributes:
        target: "module:attribute" of the class or factory.
        dim: Number of variables.
        num_constraints: Number of constraints.
        title: One line that says what it is.
        protocol: How long and how parallel it is run.
        extra: The optional extra it needs, "" for none.
        options: Keyword arguments for the factory.
        seconds: What one evaluation takes, roughly, on one core of 2024.
    """

    target: str
    dim: int
    num_constraints: int
    title: str
    protocol: RunProtocol
    extra: str = ""
    options: Mapping[str, Any] = {}
    seconds: float = 1e-4


class FamilyEntry(NamedTuple):
    """A row of the table of families: problems that are made on demand, too many to list.

    Attributes:
        pattern: Their ids, with the names of the parameters in braces.
        parameters: What values each parameter, a whole number, may have.
        title: One line that says what they are.
        sizes: Numbers of variables and of constraints, in words.
        row: The parameters to the row of a problem, as the table of problems would have it.
    """

    pattern: str
    parameters: Mapping[str, Sequence[int]]
    title: str
    sizes: tuple[str, str]
    row: Callable[..., ProblemEntry]

    @property
    def shown_id(self) -> str:
        """The ids of its problems, as people read them: parameters in angle brackets."""
        return self.pattern.replace("{", "<").replace("}", ">")

    @property
    def values(self) -> str:
        """Which values the parameters have, in words."""
        words = []
        for name, numbers in self.parameters.items():
            ends = f"{numbers[0]} to {numbers[-1]}"
            words.append(f"{name} {ends if isinstance(numbers, range) else str([*numbers])[1:-1]}")
        return "; ".join(words)

    def find(self, id: str) -> ProblemEntry | None:
        """Return the row of one of its problems by the full id, None if it has none of this id."""
        parts = re.split(r"\{(\w+)\}", self.pattern)
        groups = [f"(?P<{p}>0|[1-9][0-9]*)" if i % 2 else re.escape(p) for i, p in enumerate(parts)]
        match = re.fullmatch("".join(groups), id)
        values = {name: int(text) for name, text in match.groupdict().items()} if match else {}
        known = match and all(value in self.parameters[name] for name, value in values.items())
        return self.row(**values) if known else None


class OptimizerEntry(NamedTuple):
    """A row of the table of optimizers.

    Attributes:
        target: "module:attribute" of the class or factory.
        title: One line that says what it is.
        extra: The optional extra it needs, "" for none.
        options: Keyword arguments for the factory, before the user's own.
    """

    target: str
    title: str
    extra: str = ""
    options: Mapping[str, Any] = {}
