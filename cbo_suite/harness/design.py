"""What chance decides in a run beside the optimizer: the initial design and the virtual clock.

Each is a function of the problem's id, the seed and nothing else, so that every optimizer of a
seed starts from the same points and comparisons are paired.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from cbo_suite.protocols import Array, Space, Task


def initial_design(problem_id: str, space: Space, n_init: int, seed: int) -> Array:
    """Draw the Latin hypercube of a problem and a seed: the same for every optimizer.

    What of it breaks a known linear constraint is drawn anew, uniformly among allowed points.

    Returns:
        Points of the box, shape `(n_init, d)`.
    """
    if n_init == 0:
        return np.empty((0, space.dim))
    # Imported on use: it takes longer than all the rest of a call of `cbo tell`.
    from scipy.stats import qmc

    generator = _generator(problem_id, "design", seed)
    x = space.from_unit(qmc.LatinHypercube(space.dim, rng=generator).random(n_init))
    return space.redraw(x, generator)


def full_design(task: Task, space: Space, first: Array) -> Array:
    """Return what a run evaluates before it asks: points `(k, d)` of the user's own, then others.

    All together are `n_init` points, or as many as the budget allows.
    """
    drawn = initial_design(task.problem, space, max(0, task.n_init - len(first)), task.seed)
    design: Array = np.concatenate([first.reshape(-1, space.dim), drawn])[: task.budget]
    return design


class Group(NamedTuple):
    """Points `(k, d)` under way together; a heap orders them by virtual end, then by number."""

    finish: float
    first: int
    x: Array

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        """Order by time, then by number; the points themselves are never compared."""
        return (self.finish, self.first) < (other[0], other[1])


def virtual_duration(problem_id: str, seed: int, number: int) -> float:
    """Draw how long evaluation `number` takes on the virtual clock: log-normal with median 1.

    The spread (0.5 in the logarithm) lets evaluations overtake each other, as they do on real
    workers.
    """
    generator = _generator(problem_id, "duration", seed, number)
    return math.exp(0.5 * float(generator.standard_normal()))


def _generator(problem_id: str, purpose: str, *numbers: int) -> np.random.Generator:
    """Make a generator that depends on its arguments only."""
    words = [*problem_id.encode(), 0, *purpose.encode(), 0, *numbers]
    return np.random.default_rng(np.random.SeedSequence(words))
