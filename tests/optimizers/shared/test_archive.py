"""The archive keeps the best told point and makes values finite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cbo_suite import Evaluation, Space
from cbo_suite.optimizers.shared.archive import LARGEST, Archive

SPACE = Space(np.zeros(1), np.ones(1), 2)
VALUES = st.floats(allow_nan=True, allow_infinity=True, width=64)


def told(objective: list[float], constraints: list[list[float]]) -> Evaluation:
    """Return an evaluation of plain lists."""
    return Evaluation(np.array(objective), np.array(constraints))


def test_no_best_before_data() -> None:
    """Nothing told, or told nothing, leaves no best point."""
    archive = Archive(SPACE)
    archive.add(np.empty((0, 1)), Evaluation(np.empty(0), np.empty((0, 2))))
    assert archive.best_x is None
    assert not archive.has_feasible


def test_best_is_feasible_then_least_violated_then_lowest() -> None:
    """The order of points is the one of `Evaluation.best`, across calls."""
    archive = Archive(SPACE)
    archive.add(np.array([[0.1], [0.2]]), told([1.0, 5.0], [[3.0, 0.0], [1.0, 0.0]]))
    assert archive.best_x == pytest.approx([0.2])
    archive.add(np.array([[0.3]]), told([4.0], [[1.0, -1.0]]))
    assert archive.best_x == pytest.approx([0.3])
    assert not archive.has_feasible
    archive.add(np.array([[0.4]]), told([9.0], [[0.0, 0.0]]))
    archive.add(np.array([[0.5], [0.6]]), told([9.0, 8.0], [[-1.0, -1.0], [1e-9, -1.0]]))
    assert archive.best_x == pytest.approx([0.4])
    assert archive.has_feasible


def test_values_that_are_not_finite_become_the_worst_seen() -> None:
    """NaN and infinities of both signs count as the worst seen so far."""
    archive = Archive(SPACE)
    first = archive.add(np.array([[0.1]]), told([np.nan], [[np.nan, -np.inf]]))
    assert first.objective == pytest.approx([0.0])
    assert first.constraints == pytest.approx(np.array([[1.0, 1.0]]))
    archive.add(np.array([[0.2], [0.3]]), told([7.0, -8.0], [[-5.0, 0.5], [2.0, 0.25]]))
    later = archive.add(
        np.array([[0.4], [0.5]]), told([-np.inf, 3.0], [[np.inf, np.nan], [-1.0, -2.0]])
    )
    assert later.objective == pytest.approx([7.0, 3.0])
    # The row beside it was told in the same call: its magnitude 2 counts too.
    assert later.constraints == pytest.approx(np.array([[5.0, 2.0], [-1.0, -2.0]]))


@given(
    objective=arrays(float, 4, elements=VALUES), constraints=arrays(float, (4, 2), elements=VALUES)
)
def test_result_is_finite_and_keeps_the_feasible_set(
    objective: np.ndarray, constraints: np.ndarray
) -> None:
    """Whatever is told, the answer is finite, and a constraint keeps its sign where it had one."""
    finite = Archive(SPACE).add(np.zeros((4, 1)), Evaluation(objective, constraints))
    assert np.isfinite(finite.objective).all()
    assert np.isfinite(finite.constraints).all()
    assert np.abs(finite.constraints).max() <= LARGEST
    valid = np.isfinite(constraints)
    assert ((finite.constraints > 0) == (constraints > 0))[valid].all()
    assert (finite.constraints > 0)[~valid].all()
