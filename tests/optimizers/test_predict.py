"""What every model-based optimizer says about points that were not evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cbo_suite.errors import InvalidPoint, InvalidTask
from cbo_suite.optimizers import OPTIMIZERS
from cbo_suite.protocols import Array, Evaluation, Space
from cbo_suite.registry import optimizer_factory
from tests.optimizers.scbo_runs import SPACE, Evaluate, advance, begun, bowl, design, flat, hopeless

MODEL_BASED = [name for name, entry in OPTIMIZERS.items() if entry.extra == "scbo"]


def made(name: str, evaluate: Evaluate = bowl, space: Space = SPACE, count: int = 12) -> Any:
    """An optimizer that was told some points."""
    optimizer: Any = optimizer_factory(name)(space, budget=60, batch_size=1, seed=1)
    x = design(count, space)
    optimizer.tell(x, evaluate(x))
    return optimizer


@pytest.mark.parametrize("name", MODEL_BASED)
def test_what_was_told_is_known(name: str) -> None:
    """Medians at the data are the data, and the deviations there are small; shapes are right."""
    optimizer, x = made(name), design(12)
    found, told = optimizer.predict(x), bowl(x)
    np.testing.assert_array_equal(found.x, x)
    np.testing.assert_allclose(found.objective.median, told.objective, atol=0.3)
    np.testing.assert_allclose(found.constraints.median, told.constraints, atol=0.1)
    for band, shape in ((found.objective, (12,)), (found.constraints, (12, 2))):
        assert {part.shape for part in band} == {shape}
        assert (band.deviation < 0.5).all()
    clear = np.abs(told.constraints).min(axis=1) > 0.2
    np.testing.assert_array_equal(found.feasible[clear] > 0.5, told.feasible[clear])


@pytest.mark.parametrize("name", ["scbo", "scbo-ei", "cei", "slack", "pesc", "cmes-ibo"])
def test_asking_what_it_thinks_changes_nothing(name: str) -> None:
    """Bit by bit, whenever it is asked, also what it keeps as its state."""
    silent, asked = made(name), made(name)
    for _ in range(3):
        asked.predict(design(5, seed=4))
        x, y = silent.ask(), asked.ask()
        np.testing.assert_array_equal(x, y)
        asked.predict(design(5, seed=5))
        assert silent.get_state() == asked.get_state()
        silent.tell(x, bowl(x))
        asked.tell(y, bowl(y))


@pytest.mark.parametrize("name", ["scbo", "pesc"])
def test_nothing_is_predicted_from_nothing_or_outside(name: str) -> None:
    """Both are errors that say so."""
    optimizer = optimizer_factory(name)(SPACE, budget=60, batch_size=1, seed=1)
    with pytest.raises(InvalidTask, match="before a result was told"):
        optimizer.predict(design(2))  # type: ignore[attr-defined]
    with pytest.raises(InvalidPoint):
        made(name).predict(np.array([[9.0, 9.0]]))
    with pytest.raises(InvalidPoint):
        made(name).predict(np.zeros((2, 3)))


@pytest.mark.parametrize("name", ["scbo", "cei"])
def test_a_constant_constraint_is_known(name: str) -> None:
    """It is predicted as it is, and if it is violated nothing is feasible."""
    found = made(name, hopeless).predict(design(4, seed=9))
    np.testing.assert_allclose(found.constraints.mean[:, 1], 3.0)
    np.testing.assert_array_equal(found.constraints.deviation[:, 1], 0.0)
    np.testing.assert_array_equal(found.feasible, 0.0)


@pytest.mark.parametrize("name", ["scbo", "cei"])
def test_failures_are_no_more_feasible_than_violations(name: str) -> None:
    """On a problem without constraints only they make a difference."""
    space = Space(np.zeros(2), np.ones(2), 0)

    def evaluate(x: Array) -> Evaluation:
        objective = np.square(x - 0.2).sum(axis=1)
        return Evaluation(np.where(x[:, 0] > 0.6, np.nan, objective), np.empty((len(x), 0)))

    places = np.random.default_rng(9).random((400, 2))
    found, truth = made(name, evaluate, space, 30).predict(places).feasible, places[:, 0] <= 0.6
    assert np.square(found - truth).mean() < 0.5 * truth.mean() * (1.0 - truth.mean())
    fine = made(name, lambda x: evaluate(0.5 * x), space).predict(places)
    np.testing.assert_array_equal(fine.feasible, 1.0)
    assert fine.constraints.mean.shape == (400, 0)


def test_a_region_without_results_thinks_with_all() -> None:
    """After a restart the models of all data answer, until the new region has some."""
    optimizer = begun(flat)
    special = np.array([[0.25, 1.0]])
    optimizer.tell(special, Evaluation(np.array([-5.0]), np.array([[-1.0, -1.0]])))
    while optimizer.inspect()["restarts"] == 0:
        advance(optimizer, 1, evaluate=flat)
    assert optimizer.predict(special).objective.median[0] < 0.0
    advance(optimizer, 1, evaluate=flat)
    assert optimizer.predict(special).objective.median[0] == pytest.approx(1.0)
