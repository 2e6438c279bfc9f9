"""What the reproduction of the paper consists of: runs in stages, and what each is needed for.

A pair is a problem and an optimizer, run at the problem's protocol with seeds from 0 on. Stages are
the order of work; an artefact is a figure or a table of the paper, and names the pairs it is drawn
from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from cbo_suite.errors import UnknownId
from cbo_suite.records import BLOCK_SEEDS
from cbo_suite.scoring.tracks import TRACKS
from cbo_suite.tasks import (
    ABLATIONS,
    LUNAR,
    METHODS,
    PHYSICS,
    SCALABLE,
    TRANSFORMED,
    Block,
    Task,
    make_tasks,
)

Pair = tuple[str, str]

ACKLEY, KEANE, ROVER = "ackley-10d-v1", "keane-30d-v1", "rover-60d-v1"
OTHER_ROVER = "rover-60d-alt-v1"  # not the paper's; its best value is open
TOY, ROSENBROCK = "toy-2d-v1", "rosenbrock-5d-v1"
VEHICLE, MOPTA08 = "vehicle-124d-v1", "mopta08-124d-v1"
TRANSFORM_ABLATIONS = ("scbo", "scbo-copula-only", "scbo-bilog-only", "scbo-untransformed")
PERTURBATIONS = ("scbo", "scbo-no-perturbation")
# Methods that the paper does not have, for the ranking of the small track.
MORE_METHODS = ("cobyqa", "cma-es-violation", "cma-es-al", "cmes-ibo", "sobol-search")

SEEDS = 30
FEWER_SEEDS = 10  # where a run is long and its row needs no more


class Stage(NamedTuple):
    """Runs that are made together.

    Attributes:
        id: Its name on the command line.
        title: One line that says what it is.
        blocks: Problems and optimizers.
        optional: Whether it is run only when it is asked for by name.
    """

    id: str
    title: str
    blocks: Sequence[Block]
    optional: bool = False


class Artefact(NamedTuple):
    """A figure or a table of the paper.

    Attributes:
        id: What its files are called.
        number: Its number in the list of artefacts; two may share one.
        title: One line that says what it shows.
        pairs: The problems and optimizers whose runs it needs.
        measurement: Name of the file of measurements that it needs, "" for none.
    """

    id: str
    number: int
    title: str
    pairs: Sequence[Pair]
    measurement: str = ""


_SMALL = TRACKS[0].problems

STAGES: tuple[Stage, ...] = (
    Stage("small", "Physics and Ackley, seven methods", [Block([*PHYSICS, ACKLEY], METHODS)]),
    Stage("keane", "Keane's bump, five methods", [Block([KEANE], SCALABLE)]),
    Stage(
        "control",
        "Rover and lunar lander, without cEI",
        [Block([ROVER, *LUNAR], [id_ for id_ in SCALABLE if id_ != "cei"])],
    ),
    Stage(
        "ablations",
        "What the parts of SCBO contribute",
        [
            Block([TOY, ROSENBROCK, KEANE], ABLATIONS),
            Block([ROSENBROCK, KEANE], TRANSFORM_ABLATIONS),
            Block([KEANE], PERTURBATIONS),
        ],
    ),
    Stage("cei", "cEI on lunar lander and rover", [Block([*LUNAR, ROVER], ["cei"])]),
    Stage("vehicle", "The vehicle that ships, five methods", [Block([VEHICLE], SCALABLE)]),
    Stage("transformed", "Baselines on transformed values", [Block(PHYSICS, TRANSFORMED)]),
    Stage(
        "track",
        "The rest of the small track, and methods that the paper does not have",
        [Block([TOY, ROSENBROCK], METHODS), Block(_SMALL, MORE_METHODS)],
    ),
    Stage("other-rover", "SCBO on the rover's other map", [Block([OTHER_ROVER], ["scbo"])]),
    Stage(
        "mopta08",
        "MOPTA08, where its executable is installed",
        [Block([MOPTA08], SCALABLE)],
        optional=True,
    ),
)


def _pairs(problems: Iterable[str], optimizers: Iterable[str]) -> list[Pair]:
    """Combine problems and optimizers."""
    return list(product(problems, optimizers))


ARTEFACTS: tuple[Artefact, ...] = (
    Artefact("physics", 1, "Physics problems", _pairs(PHYSICS, METHODS)),
    Artefact(
        "synthetic",
        2,
        "Ackley and Keane",
        [*_pairs([ACKLEY], METHODS), *_pairs([KEANE], SCALABLE)],
    ),
    Artefact("lunar", 3, "Lunar lander, table", _pairs(LUNAR, SCALABLE)),
    Artefact("rover", 4, "Rover, with the best trajectory", _pairs([ROVER], SCALABLE)),
    Artefact("mopta08", 4, "MOPTA08", _pairs([MOPTA08], SCALABLE)),
    Artefact(
        "ablation",
        5,
        "Transforms, acquisition and trust region",
        _pairs([KEANE, TOY, ROSENBROCK], ABLATIONS),
    ),
    Artefact(
        "transforms",
        6,
        "Copula and bilog alone",
        _pairs([KEANE, ROSENBROCK], TRANSFORM_ABLATIONS),
    ),
    Artefact("perturbation", 7, "Few or all variables perturbed", _pairs([KEANE], PERTURBATIONS)),
    Artefact(
        "transformed",
        8,
        "cEI, PESC and SLACK on transformed values, the others as they are",
        _pairs(PHYSICS, [*METHODS, *TRANSFORMED]),
    ),
    Artefact("restarts", 9, "Evaluations between restarts", [(ROVER, "scbo")], "restarts"),
    Artefact("batch-gp", 10, "Many models at once", [], "batch-gp"),
    Artefact("feasibility", 11, "Random feasibility of Ackley", [], "feasibility"),
)


def num_seeds(problem: str, optimizer: str) -> int:
    """Return with how many seeds a pair is run."""
    few = (
        problem in (VEHICLE, OTHER_ROVER)
        or optimizer == "cmes-ibo"
        or (problem == ROVER and optimizer == "cei")
        or (problem in LUNAR and optimizer == "random-search")
    )
    return FEWER_SEEDS if few else SEEDS


def pair_tasks(pairs: Iterable[Pair]) -> list[Task]:
    """Write out the runs of pairs, each once."""
    return [
        task
        for problem, optimizer in dict.fromkeys(pairs)
        for task in make_tasks([problem], [optimizer], range(num_seeds(problem, optimizer)))
    ]


def stage_tasks(names: Sequence[str] = ()) -> list[Task]:
    """Write out the runs of stages in the order of work, each once.

    A stage goes problem by problem; on a problem all methods have ten seeds before any has twenty,
    so that comparisons are paired early and records can be sealed, which takes whole blocks.

    Args:
        names: Ids of stages; by default all that are not optional.

    Raises:
        UnknownId: There is no such stage.
    """
    known = {stage.id: stage for stage in STAGES}
    for name in names:
        if name not in known:
            raise UnknownId(f"unknown stage {name!r}: choose one of {', '.join(known)}")
    chosen = [s for s in STAGES if (s.id in names if names else not s.optional)]
    tasks: dict[Task, None] = {}
    for stage in chosen:
        pairs = dict.fromkeys(
            pair for block in stage.blocks for pair in product(block.problems, block.optimizers)
        )
        planned = pair_tasks(pairs)
        problems = list(dict.fromkeys(problem for problem, _ in pairs))
        # The sort is stable: methods stay in their order, and seeds too.
        planned.sort(key=lambda task: (problems.index(task.problem), task.seed // BLOCK_SEEDS))
        tasks |= dict.fromkeys(planned)
    return list(tasks)
