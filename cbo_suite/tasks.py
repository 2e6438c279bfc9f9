"""What is planned: a task is one problem, one optimizer, one seed; a suite is a set of tasks.

Each problem is run at its own protocol, which the registry knows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import NamedTuple

import msgspec

from cbo_suite.errors import InvalidTask, UnknownId
from cbo_suite.protocols import Task
from cbo_suite.registry import protocol_of

__all__ = [
    "ABLATIONS",
    "LUNAR",
    "METHODS",
    "PHYSICS",
    "SCALABLE",
    "SUITES",
    "TRANSFORMED",
    "Block",
    "Suite",
    "Task",
    "change_task",
    "get_suite",
    "make_tasks",
    "shard",
]


class Block(NamedTuple):
    """A part of a suite: every one of its problems with every one of its optimizers.

    Attributes:
        problems: Ids of the problems, each run at its protocol.
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

    @property
    def problems(self) -> list[str]:
        """Ids of its problems, each once."""
        return list(dict.fromkeys(id_ for block in self.blocks for id_ in block.problems))

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


PHYSICS = (
    "tension-string-3d-v1",
    "pressure-vessel-4d-v1",
    "welded-beam-4d-v1",
    "speed-reducer-7d-v1",
)
LUNAR = ("lunar-lander-m10-v1", "lunar-lander-m30-v1", "lunar-lander-m50-v1")
# Of most variables: 30, 60 and 124.
_LARGEST = ("keane-30d-v1", "rover-60d-v1", "mopta08-124d-v1")

# The methods of the paper that are for many variables and batches; all its methods; SCBO without
# transforms, Thompson sampling or trust region, in all combinations; others on transformed values.
SCALABLE = ("scbo", "cei", "cobyla", "cma-es", "random-search")
METHODS = (*SCALABLE, "pesc", "slack")
ABLATIONS = (
    "scbo",
    "scbo-ei",
    "scbo-global",
    "scbo-ei-global",
    "scbo-untransformed",
    "scbo-untransformed-ei",
    "scbo-untransformed-global",
    "scbo-untransformed-ei-global",
)
TRANSFORMED = ("cei-transformed", "pesc-transformed", "slack-transformed")

_PAPER = Suite(
    "every problem, method and ablation of the paper, 30 replications: days of computing",
    [
        # Physics and synthetic figures: all seven methods.
        Block([*PHYSICS, "ackley-10d-v1"], METHODS),
        # Keane, lunar lander, rover, MOPTA08: PESC and SLACK are not for batches or many variables.
        Block(["keane-30d-v1", *LUNAR, "rover-60d-v1", "mopta08-124d-v1"], SCALABLE),
        # All combinations of transforms, acquisition and trust region.
        Block(
            ["toy-2d-v1", "rosenbrock-5d-v1", "keane-30d-v1"],
            ABLATIONS,
        ),
        # Which of the transforms matters; whether candidates should leave few variables.
        Block(["rosenbrock-5d-v1", "keane-30d-v1"], ["scbo-copula-only", "scbo-bilog-only"]),
        Block(["keane-30d-v1"], ["scbo-no-perturbation"]),
        # The other model-based methods on transformed values.
        Block(PHYSICS, TRANSFORMED),
    ],
    range(30),
)

_G_PROBLEMS = (
    "g01-13d-v1",
    "g02-20d-v1",
    "g04-5d-v1",
    "g06-2d-v1",
    "g07-10d-v1",
    "g08-2d-v1",
    "g09-7d-v1",
    "g10-8d-v1",
    "g12-3d-v1",
    "g16-5d-v1",
    "g18-9d-v1",
    "g19-15d-v1",
    "g24-2d-v1",
)
_BBOB_CONSTRAINED = [
    f"bbob-constrained-f{k}-{d}d-i1-v1" for d in (10, 20, 40) for k in range(1, 55)
]
_SEQUENTIAL = ("random-search", "cobyla", "cma-es-violation", "cei", "scbo")

SUITES: dict[str, Suite] = {
    "quick": Suite(
        "the six small problems, a few minutes on two cores",
        [
            Block(
                [*PHYSICS, "toy-2d-v1", "rosenbrock-5d-v1"],
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
    "g-problems": Suite(
        "the G problems of CEC 2006, one point at a time, 10 replications",
        [Block(_G_PROBLEMS, _SEQUENTIAL)],
        range(10),
    ),
    "bbob-constrained": Suite(
        "COCO's 54 constrained functions in 10, 20 and 40 dimensions, 10 replications: days",
        [Block(_BBOB_CONSTRAINED, _SEQUENTIAL)],
        range(10),
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


def make_tasks(
    problems: Iterable[str], optimizers: Iterable[str], seeds: Iterable[int], **changes: int | None
) -> list[Task]:
    """Combine problems, by their full ids, with optimizers and seeds at their protocols.

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
