"""Minimising a function of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.errors import (
    EvaluationFailed,
    InvalidSpace,
    InvalidTask,
    MalformedEvaluation,
    OptimizerFailed,
)
from cbo_suite.optimizers.random_search import RandomSearch
from cbo_suite.protocols import Array, Evaluation
from tests.doubles import Hill


def disc(x: Array) -> tuple[Array, Array]:
    """Minimise x1 + x2 in a disc of radius 1: the best value is -sqrt(2)."""
    return x.sum(axis=1), (x**2).sum(axis=1)[:, None] - 1.0


def test_the_result_has_scipys_fields() -> None:
    """Point, value, constraints, success, message and number of evaluations."""
    result = cbo.minimize(
        disc, [-2, -2], [2, 2], num_constraints=1, budget=400, optimizer=Hill, seed=1
    )
    assert result.success
    assert result.message == "a feasible point was found"
    assert result.nfev == 400
    assert result.fun == pytest.approx(-np.sqrt(2), abs=0.05)
    assert result.constr[0] <= 0
    assert result.maxcv == 0.0
    assert np.array_equal(result.x, result.run.best_x)
    assert result.fun == disc(result.x[None])[0][0]


def test_without_constraints_the_objective_alone_will_do() -> None:
    """Both forms give the same run."""

    def pair_of(x: Array) -> tuple[Array, Array]:
        return x.sum(axis=1), np.empty((len(x), 0))

    alone = cbo.minimize(lambda x: x.sum(axis=1), [0], [1], budget=30, optimizer=Hill)
    pair = cbo.minimize(pair_of, [0], [1], budget=30, optimizer=Hill)
    assert alone.run.digest == pair.run.digest
    assert alone.success


def test_nothing_feasible_is_said_clearly() -> None:
    """Success is False and x is the point of least violation."""
    result = cbo.minimize(
        lambda x: (x[:, 0], x + 1.0), [0], [1], num_constraints=1, budget=20, optimizer=Hill
    )
    assert not result.success
    assert "no feasible point was found" in result.message
    assert result.maxcv == pytest.approx(1.0 + result.run.x.min())


def test_a_recommendation_is_what_is_returned() -> None:
    """An optimizer for noisy problems knows better than the least value seen."""

    class Advisor(Hill):
        """Recommends the second point it was told."""

        def tell(self, x: Array, evaluation: Evaluation) -> None:
            super().tell(x, evaluation)
            self.told: list[Array] = [*getattr(self, "told", []), *x]

        def recommend(self) -> Array:
            return self.told[1]

    result = cbo.minimize(lambda x: x.sum(axis=1), [0, 0], [1, 1], budget=20, optimizer=Advisor)
    assert np.array_equal(result.x, result.run.x[1])

    def only_the_second_is_infeasible(x: Array) -> tuple[Array, Array]:
        return x.sum(axis=1), np.where(x == result.run.x[1], 1.0, -1.0)

    result = cbo.minimize(
        only_the_second_is_infeasible,
        [0, 0],
        [1, 1],
        num_constraints=2,
        budget=20,
        optimizer=Advisor,
    )
    assert np.array_equal(result.x, result.run.x[1])
    assert not result.success
    assert result.message.startswith("x is the point that the optimizer recommends")


def test_the_budget_bounds_the_design() -> None:
    """By default at most half the budget goes into the initial design."""
    for budget, n_init in ((1, 1), (8, 4), (100, 10)):
        result = cbo.minimize(lambda x: x.sum(axis=1), [0], [1], budget=budget, optimizer=Hill)
        assert result.run.task.n_init == n_init
        assert result.nfev == budget
    wide = cbo.minimize(lambda x: x.sum(axis=1), [0] * 20, [1] * 20, optimizer=Hill)
    assert wide.run.task.n_init == 40


def test_a_function_that_always_fails_says_why() -> None:
    """The error of the user's own function is in the message."""
    with pytest.raises(EvaluationFailed, match="NameError: no such simulator"):
        cbo.minimize(failing, [0], [1], optimizer=Hill)
    with pytest.raises(EvaluationFailed, match=r"must give \(objective, constraints\), got list"):
        cbo.minimize(lambda x: [1.0], [0], [1], num_constraints=1, optimizer=Hill)


def failing(x: Array) -> None:
    """Fail."""
    raise NameError("no such simulator")


def test_swapped_bounds_are_noticed() -> None:
    """The message asks the likely question."""
    with pytest.raises(InvalidSpace, match="did you swap"):
        cbo.minimize(disc, [2, 2], [-2, -2], num_constraints=1)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (lambda x: (1.0, np.zeros((len(x), 1))), r"objective must have shape \(1,\), got \(\)"),
        (lambda x: (np.zeros(1), np.zeros(1)), r"constraints must have shape \(1, 1\), got \(1,\)"),
        (lambda x: None, "got NoneType"),
    ],
)
@pytest.mark.parametrize("batch_size", [1, 4])
def test_wrong_shapes_end_the_run_at_once(
    values: Callable[[Array], object], words: str, batch_size: int
) -> None:
    """Not after the whole design: the fault is that of the function, not of a point."""
    calls = []

    def fun(x: Array) -> object:
        calls.append(x)
        return values(x)

    with pytest.raises(MalformedEvaluation, match=words):
        cbo.minimize(
            fun, [0.0], [1.0], num_constraints=1, optimizer="random-search", batch_size=batch_size
        )
    assert sum(map(len, calls)) <= 2 * batch_size


def test_a_batch_that_fails_is_evaluated_again_point_by_point_and_counted_once() -> None:
    """The budget is one of points; a bad point costs itself only."""
    calls: list[int] = []

    def fun(x: Array) -> Array:
        calls.append(len(x))
        if (x[:, 0] > 0.5).any():
            raise ValueError("too large")
        return x[:, 0]

    result = cbo.minimize(
        fun, [0.0], [1.0], budget=24, batch_size=4, n_init=8, optimizer="random-search"
    )
    assert result.nfev == 24
    assert sum(calls) > 24
    assert {status == "failed" for status in result.run.statuses} == {True, False}
    np.testing.assert_array_equal(
        result.run.x[:, 0] > 0.5, [status == "failed" for status in result.run.statuses]
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"num_constraints": None}, InvalidSpace),
        ({"num_constraints": float("nan")}, InvalidSpace),
        ({"budget": "12"}, InvalidTask),
        ({"budget": 12.5}, InvalidTask),
        ({"options": [1]}, InvalidTask),
        ({"upper": [1e308]}, InvalidSpace),
    ],
)
def test_bad_arguments_are_typed_errors(arguments: dict[str, Any], error: type[Exception]) -> None:
    """Each before the first evaluation."""
    given: dict[str, Any] = {"lower": [0.0], "upper": [1.0], "optimizer": "random-search"}
    with pytest.raises(error):
        cbo.minimize(lambda x: pytest.fail("was evaluated"), **(given | arguments))


def test_masked_values_are_no_values() -> None:
    """What a mask hides is an evaluation that gave nothing finite."""

    def fun(x: Array) -> Array:
        return np.ma.masked_array(x[:, 0], x[:, 0] < 0.5)

    result = cbo.minimize(fun, [0.0], [1.0], budget=20, optimizer="random-search")
    assert result.fun >= 0.5
    assert set(result.run.statuses) == {"ok", "nonfinite"}


def test_an_optimizer_cannot_change_what_it_is_told() -> None:
    """Points and values are read-only."""

    class Vandal(RandomSearch):
        def tell(self, x: Array, evaluation: Evaluation) -> None:
            x[:] = 0.0

    with pytest.raises(OptimizerFailed, match="read-only"):
        cbo.run("toy-2d", Vandal, budget=3, n_init=2)
