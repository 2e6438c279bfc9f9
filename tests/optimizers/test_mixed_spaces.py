"""Optimizers on whole numbers, logarithmic scales and known linear constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from cbo_suite.harness.design import initial_design
from cbo_suite.protocols import Array, Evaluation, Space
from cbo_suite.registry import make_optimizer


class Mixed(NamedTuple):
    """A small problem: its space, objective and constraints of points `(n, d)`."""

    space: Space
    objective: Callable[[Array], Array]
    constraints: Callable[[Array], Array]


def shells(x: Array) -> Array:
    """A bowl whose lowest point depends on two whole numbers."""
    value: Array = ((x[:, :3] - 0.3 - 0.04 * x[:, 3:4]) ** 2).sum(axis=1)
    return value + 0.05 * (x[:, 3] - 4.0) ** 2 + 0.1 * np.abs(x[:, 4] - 1.0)


# Three continuous variables and two whole numbers under one linear constraint.
BOWL = Mixed(
    Space(
        [0] * 3 + [0, -5], [1] * 3 + [9, 5], 1, integer=[3, 4], linear=([[1, 1, 1, 0.1, 0]], [2])
    ),
    shells,
    lambda x: 0.5 - x[:, :1] * x[:, 1:2] * 4.0,
)
# A number of stages, a rate over five decades, a share, and what they cost together.
STAGES = Mixed(
    Space(
        [1, 1e-4, 0, 1],
        [32, 10, 1, 8],
        1,
        integer=[0, 3],
        log_scale=[0, 1],
        linear=([[1.0, 2.0, 5.0, 0.0]], [24.0]),
    ),
    lambda x: (
        np.log10(x[:, 1] / 0.03) ** 2
        + (np.log2(x[:, 0]) - 3.3) ** 2
        + 4.0 * (x[:, 2] - 0.7) ** 2
        + 0.3 * np.abs(x[:, 3] - 6.0)
    ),
    lambda x: (x[:, 2] * x[:, 3] - 4.0)[:, None],
)


def run(problem: Mixed, optimizer: str, seed: int, budget: int = 30) -> tuple[float, Array]:
    """Run an optimizer; give the best feasible objective and the points, `(budget, d)`."""
    space = problem.space
    made = make_optimizer(optimizer, space, budget=budget, seed=seed)
    points = initial_design("mixed", space, 10, seed)
    told = Evaluation(problem.objective(points), problem.constraints(points))
    made.tell(points, told)
    while len(points) < budget:
        x = space.validate(made.ask(1))
        assert space.allows(x).all()
        new = Evaluation(problem.objective(x), problem.constraints(x))
        made.tell(x, new)
        points = np.concatenate([points, x])
        told = Evaluation(*(np.concatenate(pair) for pair in zip(told, new, strict=True)))
    feasible = told.objective[told.feasible]
    return float(feasible.min(initial=np.inf)), points


@pytest.mark.slow
@pytest.mark.parametrize("problem", [BOWL, STAGES], ids=["bowl", "stages"])
def test_models_beat_random_points_and_repeat_none(problem: Mixed) -> None:
    """Over five seeds the medians of SCBO and of cEI are below that of random search."""
    median = {}
    for optimizer in ("random-search", "scbo", "cei"):
        results = [run(problem, optimizer, seed) for seed in range(5)]
        median[optimizer] = float(np.median([best for best, _ in results]))
        if optimizer != "random-search":
            assert all(len(np.unique(points, axis=0)) == len(points) for _, points in results)
    assert max(median["scbo"], median["cei"]) < 0.5 * median["random-search"], median


@pytest.mark.parametrize("optimizer", ["scbo", "scbo-ei", "cei", "slack", "pesc", "cmes-ibo"])
def test_a_grid_is_searched_to_its_last_point(optimizer: str) -> None:
    """No point comes twice, pending or told, while there is another; then the run goes on."""
    space = Space([0, 0], [3, 2], 1, integer=[0, 1], linear=([[1, 1]], [4]))
    made = make_optimizer(optimizer, space, budget=14, seed=0)
    points: list[tuple[float, ...]] = []
    under_way: list[Array] = []
    for number in range(13):
        x = space.validate(made.ask(1))
        points.append(tuple(x[0].tolist()))
        under_way.append(x)
        # Results come two asks late.
        if number >= 2:
            late = under_way.pop(0)
            value = ((late - 1.2) ** 2).sum(axis=1)
            made.tell(late, Evaluation(value, 1.0 - late[:, :1]))
    assert len(set(points[:11])) == 11
    assert set(points[11:]) <= set(points[:11])


@pytest.mark.parametrize("optimizer", ["scbo", "scbo-global", "cei", "sobol-search"])
def test_a_resumed_run_goes_on_as_if_it_had_not_stopped(optimizer: str) -> None:
    """Also where points are rounded, pulled inside or drawn anew."""
    space = STAGES.space

    def tell(made: Any, x: Array) -> None:
        made.tell(x, Evaluation(STAGES.objective(x), STAGES.constraints(x)))

    first, second = (
        make_optimizer(optimizer, space, budget=40, batch_size=4, seed=2) for _ in range(2)
    )
    told = [space.validate(first.ask(4))]
    for _ in range(3):
        tell(first, told[-1])
        told.append(space.validate(first.ask(4)))
    for x in told[:-1]:
        tell(second, x)
    second.set_state(first.get_state())  # type: ignore[attr-defined]
    for _ in range(2):
        for made in (first, second):
            tell(made, told[-1])
        told.append(first.ask(4))
        np.testing.assert_array_equal(second.ask(4), told[-1])
