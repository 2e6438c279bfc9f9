"""A small problem and short runs of SCBO for its tests."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cbo_suite.optimizers.scbo import SCBO
from cbo_suite.protocols import Array, Evaluation, Space

SPACE = Space(np.array([-2.0, 0.0]), np.array([2.0, 4.0]), 2)
Evaluate = Callable[[Array], Evaluation]


def bowl(x: Array) -> Evaluation:
    """A bowl whose minimum (1, 1) lies on the boundary of the first constraint."""
    objective = (x[:, 0] - 2.0) ** 2 + (x[:, 1] - 2.0) ** 2
    return Evaluation(objective, np.column_stack([x.sum(axis=1) - 2.0, x[:, 0] - 1.5]))


def hopeless(x: Array) -> Evaluation:
    """The bowl with its second constraint violated by the same amount everywhere."""
    values = bowl(x)
    return Evaluation(
        values.objective, np.column_stack([values.constraints[:, 0], np.full(len(x), 3.0)])
    )


def flat(x: Array) -> Evaluation:
    """Nothing ever improves."""
    return Evaluation(np.ones(len(x)), np.full((len(x), 2), -1.0))


def make(space: Space = SPACE, **options: Any) -> SCBO:
    """A small SCBO."""
    return SCBO(space, **{"budget": 60, "batch_size": 1, "seed": 3, "num_candidates": 60} | options)


def design(count: int = 6, space: Space = SPACE, seed: int = 0) -> Array:
    """Random points to begin with."""
    return space.from_unit(np.random.default_rng(seed).random((count, space.dim)))


def begun(evaluate: Evaluate = bowl, count: int = 6, **options: Any) -> SCBO:
    """An SCBO that was told a design."""
    optimizer = make(**options)
    x = design(count)
    optimizer.expect_design(count)
    optimizer.tell(x, evaluate(x))
    return optimizer


def advance(optimizer: SCBO, rounds: int, n: int = 1, evaluate: Evaluate = bowl) -> list[Array]:
    """Ask, evaluate and tell, `rounds` times."""
    asked = []
    for _ in range(rounds):
        x = optimizer.ask(n)
        optimizer.tell(x, evaluate(x))
        asked.append(x)
    return asked
