"""What is run: a task is one problem, one optimizer, one seed; a suite is a named list of tasks.

The budgets, batch sizes and initial designs are those of the SCBO paper (Eriksson and Poloczek,
2021); where its text gives none the comment says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import NamedTuple

import msgspec

from cbo_suite.errors import InvalidTask, UnknownId
from cbo_suite.protocols import whole_number


class Protocol(NamedTuple):
    """How long and how parallel a problem is run.

    Attributes:
        budget: Number of evaluations, the initial design among them.
        batch_size: Number of points evaluated side by side.
        n_init: Number of points of the initial Latin hypercube design.
    """

    budget: int
    batch_size: int
    n_init: int


PAPER: dict[str, Protocol] = {
    "tension-string-3d-v1": Protocol(100, 1, 10),
    "pressure-vessel-4d-v1": Protocol(100, 1, 10),
    "welded-beam-4d-v1": Protocol(100, 1, 10),
    "speed-reducer-7d-v1": Protocol(100, 1, 10),
    "ackley-10d-v1": Protocol(200, 1, 10),
    "keane-30d-v1": Protocol(1000, 50, 100),  # the budget is ours, the text gives none
    "lunar-lander-m10-v1": Protocol(1000, 50, 50),
    "lunar-lander-m30-v1": Protocol(1000, 50, 50),
    "lunar-lander-m50-v1": Protocol(1000, 50, 50),
    "rover-60d-v1": Protocol(5000, 100, 100),
    "rover-60d-alt-v1": Protocol(5000, 100, 100),
    "mopta08-124d-v1": Protocol(2000, 10, 130),
    "vehicle-124d-v1": Protocol(2000, 10, 130),  # not in the paper: as its vehicle problem
    "toy-2d-v1": Protocol(100, 1, 10),  # the budget is ours, the text gives none
    "rosenbrock-5d-v1": Protocol(100, 1, 10),  # the budget is ours, the text gives none
}

# For a problem of the user's own: room for a model before the first proposal.
DEFAULT = Protocol(budget=100, batch_size=1, n_init=10)


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


class Block(NamedTuple):
    """A part of a suite: every one of its problems with every one of its optimizers.

    Attributes:
        problems: Ids of the problems, each run at the paper's protocol.
        optimizers: Ids of the optimizers.
    """

    problems: Sequence[str]
    optimizers: Sequence[str]


class Suite(NamedTuple):
    """A named set of tasks: all its blocks with every seed.

    Attributes:
        title: One line that says what it is for.
        blocks: Which problems are run with which optimizers.
        seeds: The seeds.
    """

    title: str
    blocks: Sequence[Block]
    seeds: Sequence[int]

    def tasks(self) -> list[Task]:
        """Write out the tasks, each once: seeds outermost, so that replications finish whole."""
        tasks = [
            task
            for seed in self.seeds
            for block in self.blocks
            for task in make_tasks(block.problems, block.optimizers, [seed])
        ]
        return list(dict.fromkeys(tasks))

    def without(self, problems: Collection[str], seeds: Sequence[int], title: str) -> Suite:
        """Make a smaller suite: without some problems, with other seeds."""
        blocks = [
            Block([id_ for id_ in block.problems if id_ not in problems], block.optimizers)
            for block in self.blocks
        ]
        return Suite(title, [block for block in blocks if block.problems], seeds)


_PHYSICS = (
    "tension-string-3d-v1",
    "pressure-vessel-4d-v1",
    "welded-beam-4d-v1",
    "speed-reducer-7d-v1",
)
_LUNAR = ("lunar-lander-m10-v1", "lunar-lander-m30-v1", "lunar-lander-m50-v1")
# Of most variables: 30, 60 and 124.
_LARGEST = ("keane-30d-v1", "rover-60d-v1", "mopta08-124d-v1")

_SCALABLE = ("scbo", "cei", "cobyla", "cma-es", "random-search")

_PAPER = Suite(
    "every problem, method and ablation of the paper, 30 replications: days of computing",
    [
        # Physics and synthetic figures: all seven methods.
        Block([*_PHYSICS, "ackley-10d-v1"], [*_SCALABLE, "pesc", "slack"]),
        # Keane, lunar lander, rover, MOPTA08: PESC and SLACK are not for batches or many variables.
        Block(["keane-30d-v1", *_LUNAR, "rover-60d-v1", "mopta08-124d-v1"], _SCALABLE),
        # All combinations of transforms, acquisition and trust region.
        Block(
            ["toy-2d-v1", "rosenbrock-5d-v1", "keane-30d-v1"],
            [
                "scbo",
                "scbo-ei",
                "scbo-global",
                "scbo-ei-global",
                "scbo-untransformed",
                "scbo-untransformed-ei",
                "scbo-untransformed-global",
                "scbo-untransformed-ei-global",
            ],
        ),
        # Which of the transforms matters; whether candidates should leave few variables.
        Block(["rosenbrock-5d-v1", "keane-30d-v1"], ["scbo-copula-only", "scbo-bilog-only"]),
        Block(["keane-30d-v1"], ["scbo-no-perturbation"]),
        # The other model-based methods on transformed values.
        Block(_PHYSICS, ["cei-transformed", "pesc-transformed", "slack-transformed"]),
    ],
    range(30),
)

SUITES: dict[str, Suite] = {
    "quick": Suite(
        "the six small problems, a few minutes on two cores",
        [
            Block(
                [*_PHYSICS, "toy-2d-v1", "rosenbrock-5d-v1"],
                ["random-search", "sobol-search", "cobyla", "cma-es", "scbo"],
            )
        ],
        range(10),
    ),
    "paper": _PAPER,
    "paper-small": _PAPER.without(
        _LARGEST,
        range(5),
        "the paper's suite at 5 replications, without the three largest problems",
    ),
}


def get_suite(name: str) -> Suite:
    """Return the suite of this name.

    Raises:
        UnknownId: No such suite; the message lists them.
    """
    if name not in SUITES:
        raise UnknownId(f"unknown suite {name!r}: choose one of {', '.join(SUITES)}")
    return SUITES[name]


def protocol_of(problem_id: str) -> Protocol:
    """Return the paper's protocol of a problem, or the default of problems it does not have."""
    return PAPER.get(problem_id, DEFAULT)


def make_tasks(
    problems: Iterable[str], optimizers: Iterable[str], seeds: Iterable[int], **changes: int | None
) -> list[Task]:
    """Combine problems, by their full ids, with optimizers and seeds at the paper's protocol.

    Args:
        problems: Full ids of problems.
        optimizers: Ids of optimizers.
        seeds: Seeds.
        changes: Fields of the tasks that differ from the protocol.
    """
    return [
        change_task(Task(problem, optimizer, *protocol_of(problem), seed), **changes)
        for seed, problem, optimizer in product(seeds, problems, optimizers)
    ]


def change_task(task: Task, **changes: int | None) -> Task:
    """Return a task with some of its numbers changed; None leaves one as it is."""
    wanted = {name: value for name, value in changes.items() if value is not None}
    return msgspec.structs.replace(task, **wanted) if wanted else task


def shard(tasks: Sequence[Task], part: int, parts: int) -> list[Task]:
    """Return one of several parts of about equal work: parts 1 to `parts` hold every task once.

    Raises:
        InvalidTask: There is no such part.
    """
    if not 1 <= part <= parts:
        raise InvalidTask(f"a shard is i/n with i from 1 to n, got {part}/{parts}")
    # By a digest of the name, because suites repeat themselves: no shard gets one optimizer only.
    mixed = sorted(tasks, key=lambda task: hashlib.sha256(task.name.encode()).digest())
    chosen = set(mixed[part - 1 :: parts])
    return [task for task in tasks if task in chosen]
