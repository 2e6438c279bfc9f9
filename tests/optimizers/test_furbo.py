"""FuRBO: the ball, its inspectors and the trust region that the best of them span."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite import Evaluation, Space
from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.furbo import (
    Ball,
    FuRBO,
    ball_points,
    best_inspectors,
    posterior_means,
)
from cbo_suite.optimizers.models.fit import NOISE_FREE
from cbo_suite.optimizers.models.surrogate import Surrogate, Transform
from cbo_suite.protocols import Array

SPACE = Space([0.0, 0.0], [1.0, 1.0], 1)


def evaluate(x: Array) -> Evaluation:
    """A bowl at the origin, feasible above a diagonal: the minimum is 0.5, at (0.5, 0.5)."""
    return Evaluation((x**2).sum(axis=1), 1.0 - x.sum(axis=1, keepdims=True))


def test_the_ball_grows_after_two_successes_and_shrinks_after_three_failures() -> None:
    """It is never larger than at first, whatever the dimension and the batch."""
    for dim, batch_size in ((2, 1), (60, 100)):
        ball = Ball(dim, batch_size, 1.0)
        for success, radius in [
            (True, 1.0),
            (True, 1.0),
            (False, 1.0),
            (False, 1.0),
            (False, 0.5),
            (False, 0.5),
            (True, 0.5),
            (True, 1.0),
        ]:
            ball.update(success)
            assert ball.length == radius


def test_the_ball_ends_below_two_to_the_minus_seven() -> None:
    """Eight halvings of three failures each."""
    ball = Ball(5, 1, 1.0)
    failures = 0
    while not ball.finished:
        ball.update(False)
        failures += 1
    assert (failures, ball.length) == (24, 2.0**-8)


@given(
    dim=st.integers(1, 8),
    radius=st.floats(0.01, 1.0),
    seed=st.integers(0, 1000),
)
def test_inspectors_lie_in_the_ball_and_in_the_cube(dim: int, radius: float, seed: int) -> None:
    """Moving a point into the cube brings it no farther from a centre in the cube."""
    random = np.random.default_rng(seed)
    centre = random.random(dim)
    points = ball_points(50, centre, radius, random)
    assert points.min() >= 0.0
    assert points.max() <= 1.0
    assert np.linalg.norm(points - centre, axis=1).max() <= radius * (1.0 + 1e-9)


def test_inspectors_are_uniform_in_direction_and_in_distance() -> None:
    """Half of them lie within half the radius, in three dimensions as well."""
    points = ball_points(40_000, np.full(3, 0.5), 0.4, np.random.default_rng(0))
    assert len(points) == 40_000
    within = np.linalg.norm(points - 0.5, axis=1) < 0.2
    assert within.mean() == pytest.approx(0.5, abs=0.01)
    assert points.mean(axis=0) == pytest.approx(0.5, abs=0.01)


def test_inspectors_outside_the_cube_are_dropped_unless_hardly_one_is_left() -> None:
    """In a corner of the plane a quarter stays; in that of 60 variables all are moved."""
    random = np.random.default_rng(0)
    assert len(ball_points(40_000, np.zeros(2), 0.5, random)) == pytest.approx(10_000, rel=0.05)
    moved = ball_points(1000, np.zeros(60), 0.5, random)
    assert moved.shape == (1000, 60)
    assert moved.min() == 0.0


def test_feasible_inspectors_come_first_then_the_least_violated() -> None:
    """Ten of a hundred are taken; each constraint is measured by its own largest magnitude."""
    random = np.random.default_rng(1)
    means = random.standard_normal((3, 100))
    means[2] *= 1000.0  # a constraint in other units counts no more than the first
    means[1, 6:] = np.abs(means[1, 6:])  # at most six satisfy the first one
    scaled = means[1:] / np.abs(means[1:]).max(axis=1, keepdims=True)
    worst = scaled.max(axis=0)
    feasible = [i for i in range(100) if worst[i] <= 0.0]
    assert 0 < len(feasible) < 10
    expected = sorted(feasible, key=lambda i: means[0, i])
    others = sorted(set(range(100)) - set(feasible), key=lambda i: worst[i])
    assert best_inspectors(means, 10).tolist() == (expected + others)[:10]


def test_without_constraints_the_objective_decides() -> None:
    """The best are those of the least means, all if there are no more."""
    means = np.arange(40.0)[::-1][None]
    assert best_inspectors(means, 4).tolist() == [39, 38, 37, 36]
    assert best_inspectors(means[:, :3], 4).tolist() == [2, 1, 0]


def test_means_are_those_of_the_models() -> None:
    """They are computed without variances, and agree with what predicts both."""
    x = np.random.default_rng(2).random((15, 2))
    surrogate = Surrogate(2, 1, NOISE_FREE, Transform(False, False), torch.zeros(()).double())
    with torch.inference_mode():
        model = surrogate.update(x, *evaluate(x))
        points = surrogate.tensor(np.random.default_rng(3).random((30, 2)))
        assert posterior_means(model, points) == pytest.approx(model.predict(points)[0], abs=1e-9)


def test_the_region_follows_the_models_to_the_feasible_side() -> None:
    """Though the best point is infeasible, most of what is asked is feasible soon."""
    optimizer = FuRBO(SPACE, budget=30, seed=0)
    design = np.random.default_rng(0).random((8, 2)) * 0.45
    assert not evaluate(design).feasible.any()
    optimizer.tell(design, evaluate(design))
    found = []
    for _ in range(12):
        x = optimizer.ask(1)
        optimizer.tell(x, evaluate(x))
        found.append(x)
    values = evaluate(np.vstack(found))
    assert values.feasible.any()
    assert values.objective[values.feasible].min() < 0.6
    assert 0.0 < optimizer.inspect()["sides"] <= 1.0


def test_restarts_with_a_fresh_design() -> None:
    """After many failures a region ends; what follows are as many Sobol points as at first."""
    optimizer = FuRBO(SPACE, budget=200, batch_size=1, seed=3)
    design = np.random.default_rng(1).random((4, 2))
    worse = Evaluation(np.full(1, 9.0), np.full((1, 1), -1.0))
    optimizer.expect_design(4)
    optimizer.tell(design, Evaluation(np.zeros(4), np.full((4, 1), -1.0)))
    for _ in range(24):
        assert optimizer.inspect()["restarts"] == 0
        optimizer.tell(optimizer.ask(1), worse)
    assert optimizer.inspect() == {"radius": 1.0, "successes": 0, "failures": 0, "restarts": 1} | {
        key: optimizer.inspect()[key] for key in ("sides", "feasible_candidates")
    }
    fresh = optimizer.ask(10)
    assert len(fresh) == 4
    assert "sides" not in optimizer.inspect()


@pytest.mark.parametrize("transformed", [False, True])
def test_finds_the_optimum_of_the_toy(transformed: bool) -> None:
    """With and without transforms; the minimum is 0.5998."""
    run = cbo.run(
        "toy-2d-v1", "furbo", budget=50, n_init=10, seed=0, options={"transformed": transformed}
    )
    assert run.best_objective == pytest.approx(0.5998, abs=0.02)


def test_goes_as_far_as_the_tutorial_of_its_authors() -> None:
    """Their example, 10 variables in batches of 10: after 70 evaluations theirs is at 13.5.

    The tutorial is that of the BoTorch repository, notebooks_community/FuRBO; it maximises.
    """
    space = Space([-5.0] * 10, [10.0] * 10, 2)

    def shifted_ackley(x: Array) -> Evaluation:
        z = x - 4.5
        waves = np.exp(np.cos(2.0 * np.pi * z).mean(axis=1))
        bowl = 20.0 * np.exp(-0.2 * np.sqrt((z**2).mean(axis=1)))
        limits = np.column_stack([x.sum(axis=1), np.linalg.norm(x, axis=1) - 5.0])
        return Evaluation(20.0 + np.e - bowl - waves, limits)

    ends = []
    for seed in range(5):
        optimizer = FuRBO(space, budget=70, batch_size=10, seed=seed)
        x = space.sample(10, np.random.default_rng(seed))
        told = [shifted_ackley(x)]
        for _ in range(6):
            optimizer.tell(x, told[-1])
            x = optimizer.ask(10)
            told.append(shifted_ackley(x))
        ends.append(
            min(values.objective.min(where=values.feasible, initial=np.inf) for values in told)
        )
    assert np.median(ends) == pytest.approx(13.5, abs=0.3)


def test_impossible_options_are_refused() -> None:
    """With what was got."""
    with pytest.raises(InvalidTask, match="num_inspectors must be a whole number >= 1, got -3"):
        FuRBO(SPACE, budget=10, num_inspectors=-3)
