"""Names, kinds of variables, known linear constraints, and the styles of a function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.errors import EvaluationFailed, InvalidSpace, MalformedEvaluation
from cbo_suite.protocols import Array


def beam(x: Array) -> dict[str, Any]:
    """A beam of a width and a height, one at a time."""
    return {
        "objective": x[0] * x[1],
        "constraints": {"stress": 6.0 - x[0] * x[1] ** 2, "buckling": x[1] - 3.0 * x[0]},
    }


def beams(x: Array) -> tuple[Array, Array]:
    """The same, many at a time."""
    width, height = x.T
    return width * height, np.column_stack([6.0 - width * height**2, height - 3.0 * width])


NAMED: dict[str, Any] = {
    "names": ["width", "height"],
    "constraint_names": ["stress", "buckling"],
}


def minimize(fun: Any = beams, **settings: Any) -> Any:
    """Minimise over widths and heights from 1 to 5."""
    given: dict[str, Any] = {"budget": 30, "optimizer": "random-search", "num_constraints": 2}
    return cbo.minimize(fun, [1, 1], [5, 5], **(given | settings))


@pytest.mark.parametrize("batch_size", [1, 4])
def test_all_styles_give_the_same_run(batch_size: int) -> None:
    """One point or many, a pair or words: the optimizer sees no difference."""
    expected = minimize(batch_size=batch_size).run.digest

    def in_words(x: Array) -> dict[str, Any]:
        f, c = beams(x)
        return {"objective": f, "constraints": {"buckling": c[:, 1], "stress": c[:, 0]}}

    def half_in_words(x: Array) -> dict[str, Any]:
        f, c = beams(x)
        return {"objective": f, "constraints": c}

    def pair(x: Array) -> tuple[float, list[float]]:
        f, c = beams(x[None])
        return float(f[0]), c[0].tolist()

    for fun, scalar in ((in_words, False), (half_in_words, False), (beam, True), (pair, True)):
        made = minimize(fun, vectorized=not scalar, batch_size=batch_size, **NAMED)
        assert made.run.digest == expected


def test_a_single_constraint_or_none_may_be_written_plainly() -> None:
    """A number for one constraint, the objective alone without any."""
    one = minimize(lambda x: (x[0], 2.0 - x[1]), vectorized=False, num_constraints=1)
    assert one.constr.shape == (1,)
    plain = minimize(lambda x: x[0], vectorized=False, num_constraints=0)
    word = minimize(lambda x: {"objective": x[0]}, vectorized=False, num_constraints=0)
    assert plain.run.digest == word.run.digest


def test_a_point_that_raises_costs_nothing_else_and_is_not_tried_twice() -> None:
    """A function of single points is called once for each, whatever its neighbours do."""
    calls: list[Array] = []

    def fun(x: Array) -> float:
        calls.append(x)
        if x[0] > 4.0:
            raise ValueError("the mesh is degenerate")
        return float(x.sum())

    result = minimize(fun, vectorized=False, num_constraints=0, batch_size=5)
    assert len(calls) == 30
    assert result.failures["failed"] == int((result.run.x[:, 0] > 4.0).sum()) > 0


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize(
    ("fun", "settings", "words"),
    [
        (beam, {"vectorized": False}, r"pass constraint_names=\['stress', 'buckling'\]"),
        (
            beam,
            {"vectorized": False, "constraint_names": ["stress", "weight"]},
            r"must be named \['stress', 'weight'\], got \['stress', 'buckling'\]",
        ),
        (lambda x: {"value": x[0]}, {"vectorized": False}, r"keys \"objective\" and"),
        (lambda x: x[0], {"vectorized": False}, r"\(objective, constraints\), got float64"),
        (lambda x: (x, [0, 0]), {"vectorized": False}, r"objective must have shape \(1,\)"),
        (lambda x: (0.0, [0, 0]), {}, "pass vectorized=False"),
    ],
)
def test_a_function_of_the_wrong_style_is_told_at_once(
    fun: Any, settings: dict[str, Any], words: str, batch_size: int
) -> None:
    """The message says what to write instead."""
    with pytest.raises(MalformedEvaluation, match=words):
        minimize(fun, batch_size=batch_size, **settings)


def test_the_number_of_constraints_follows_from_their_names() -> None:
    """It need not be said twice, but it must not contradict them."""
    assert minimize(**(NAMED | {"num_constraints": 0})).constr.shape == (2,)
    with pytest.raises(InvalidSpace, match="constraint_names must name all 3 constraints, got 2"):
        minimize(**(NAMED | {"num_constraints": 3}))


def test_variables_are_told_by_name_or_by_index() -> None:
    """Whole numbers, logarithms and linear constraints; both ways are the same run."""
    by_index = minimize(integer=[1], log_scale=[0, 1], linear=([[1.0, 2.0]], [9.0]))
    assert (by_index.run.x[:, 1] % 1 == 0).all()
    assert (by_index.run.x @ [1.0, 2.0] <= 9.0).all()
    by_name = minimize(
        integer=["height"],
        log_scale=["width", 1],
        linear=([{"width": 1, "height": 2}], [9.0]),
        **NAMED,
    )
    assert by_name.run.digest == by_index.run.digest
    assert minimize(integer="height", **NAMED).model.space.integer.tolist() == [False, True]
    assert minimize(integer=np.array([True, False])).model.space.integer.tolist() == [True, False]
    by_place = minimize(
        integer=np.array(["height"]),
        log_scale={"width": 0, "height": 1}.keys(),
        linear=([{0: 1, np.int64(1): 2}], [9.0]),
        **NAMED,
    )
    assert by_place.run.digest == by_index.run.digest


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"integer": ["heigth"]}, "integer: no variable is named 'heigth'; did you mean 'height'"),
        ({"log_scale": ["depth"]}, "no variable is named 'depth'"),
        ({"integer": [2]}, "integer must be indices from 0 to 1, got"),
        ({"linear": ([{"depth": 1.0}], [1.0])}, "linear: no variable is named 'depth'"),
        ({"linear": ([{2: 1.0}], [1.0])}, "linear: .* its index from 0 to 1, got 2; there are wid"),
        ({"linear": ([{1.5: 1.0}], [1.0])}, "its name or its index from 0 to 1, got 1.5"),
        ({"linear": ([[1.0, 1.0]], [1.0])}, "no point"),
        ({"linear": 3}, r"linear must be \(A, b\)"),
        ({"linear": ([[1.0]], [1.0])}, r"A of shape \(k, 2\)"),
        ({"names": ["width"]}, "names must name all 2 variables, got 1"),
        ({"names": ["width", "width"]}, "'width' is there twice"),
        ({"names": ["width", "stress"]}, "'stress' is there twice"),
        ({"names": ["width", "objective"]}, "'objective' is the head of a column"),
        ({"names": "wh"}, "names must be a list of words, got 'wh'"),
        ({"names": ["width", 3]}, "names must be a list of words"),
        ({"constraint_names": 3}, "constraint_names must be a list of words, got 3"),
        ({"constraint_names": (name for name in "ab")}, "must be a list of words, got <generator"),
        ({"constraint_names": "stress"}, "must be a list of words, got 'stress'"),
        ({"constraint_names": "stress", "num_constraints": 0}, "must be a list of words, got 's"),
        ({"constraint_names": 3, "num_constraints": 0}, "must be a list of words, got 3"),
    ],
)
def test_contradictions_are_refused_before_the_first_evaluation(
    settings: dict[str, Any], words: str
) -> None:
    """By their names."""
    with pytest.raises(InvalidSpace, match=words):
        minimize(lambda x: pytest.fail("was evaluated"), **(NAMED | settings))


def test_an_error_of_every_point_of_a_scalar_function_is_told() -> None:
    """The design is tried, then the run ends with the function's own words."""

    def fun(x: Array) -> float:
        raise OSError("no licence")

    with pytest.raises(EvaluationFailed, match="no licence"):
        minimize(fun, vectorized=False, num_constraints=0, batch_size=5)
