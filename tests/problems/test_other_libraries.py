"""Agreement with BoTorch and pymoo where they define the same function.

BoTorch returns slacks, at least zero where feasible: their negatives are our constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cbo_suite.problems.ackley import Ackley
from cbo_suite.problems.base import Problem
from cbo_suite.problems.keane import Keane
from cbo_suite.problems.pressure_vessel import PressureVessel
from cbo_suite.problems.rosenbrock import Rosenbrock
from cbo_suite.problems.speed_reducer import SpeedReducer
from cbo_suite.problems.tension_string import TensionString
from cbo_suite.problems.toy import Toy
from cbo_suite.problems.welded_beam import WeldedBeam
from cbo_suite.protocols import Array

POINTS = 100
TOLERANCE = 1e-10


def draw(lower: Array, upper: Array) -> Array:
    """Draw the points of a comparison, shape `(100, d)`."""
    return np.random.default_rng(5).uniform(lower, upper, (POINTS, lower.size))


def botorch_values(name: str, x: Array, **options: Any) -> Array:
    """Evaluate the objective of a BoTorch test function at points `(n, d)`."""
    functions, torch = (
        pytest.importorskip("botorch.test_functions.synthetic"),
        pytest.importorskip("torch"),
    )
    function = getattr(functions, name)(**options)
    values: Array = function.evaluate_true(torch.from_numpy(x)).numpy()
    return values


def botorch_constraints(name: str, x: Array, **options: Any) -> Array:
    """Evaluate the constraints of a BoTorch test function at points `(n, d)`, in our sign."""
    functions, torch = (
        pytest.importorskip("botorch.test_functions.synthetic"),
        pytest.importorskip("torch"),
    )
    function = getattr(functions, name)(**options)
    values: Array = -function.evaluate_slack_true(torch.from_numpy(x)).numpy()
    return values


@pytest.mark.parametrize(
    ("problem", "name", "options"),
    [
        (Toy(), "ConstrainedGramacy", {}),
        (SpeedReducer(), "SpeedReducer", {}),
        (Keane(), "KeaneBumpFunction", {"dim": 30}),
    ],
    ids=lambda value: value.id if isinstance(value, Problem) else "",
)
def test_same_problem_in_botorch(problem: Problem, name: str, options: dict[str, Any]) -> None:
    """Box, objective and constraints agree."""
    x = draw(problem.space.lower, problem.space.upper)
    evaluation = problem.evaluate(x)
    np.testing.assert_allclose(
        evaluation.objective, botorch_values(name, x, **options).ravel(), rtol=TOLERANCE
    )
    np.testing.assert_allclose(
        evaluation.constraints, botorch_constraints(name, x, **options), rtol=TOLERANCE
    )


def test_same_tension_string_in_botorch_below_its_clamp() -> None:
    """On the common part of the boxes, with our constraints cut at 100 as there."""
    x = draw(TensionString.space.lower, np.array([1.0, 1.0, 15.0]))
    evaluation = TensionString().evaluate(x)
    name = "TensionCompressionString"
    np.testing.assert_allclose(evaluation.objective, botorch_values(name, x), rtol=TOLERANCE)
    np.testing.assert_allclose(
        np.minimum(evaluation.constraints, 100.0), botorch_constraints(name, x), rtol=TOLERANCE
    )


def test_same_pressure_vessel_in_botorch_where_nothing_is_rounded() -> None:
    """With plates of whole sixteenths; elsewhere only the objectives agree."""
    x = draw(PressureVessel.space.lower, PressureVessel.space.upper)
    np.testing.assert_allclose(
        PressureVessel().evaluate(x).objective, botorch_values("PressureVessel", x), rtol=TOLERANCE
    )
    x[:, :2] = np.round(16 * x[:, :2]) / 16
    np.testing.assert_allclose(
        PressureVessel().evaluate(x).constraints,
        botorch_constraints("PressureVessel", x),
        rtol=TOLERANCE,
    )


def test_same_cost_bending_and_deflection_of_the_welded_beam_in_botorch() -> None:
    """The objective and the three constraints that all versions of the problem share."""
    x = draw(WeldedBeam.space.lower, WeldedBeam.space.upper)
    evaluation = WeldedBeam().evaluate(x)
    np.testing.assert_allclose(
        evaluation.objective, botorch_values("WeldedBeamSO", x), rtol=TOLERANCE
    )
    np.testing.assert_allclose(
        evaluation.constraints[:, [1, 2, 4]],
        botorch_constraints("WeldedBeamSO", x)[:, [1, 2, 4]],
        rtol=TOLERANCE,
    )


def test_same_ackley_function_in_botorch() -> None:
    """The constraints are not there."""
    x = draw(Ackley().space.lower, Ackley().space.upper)
    expected = botorch_values("Ackley", x, dim=10)
    np.testing.assert_allclose(Ackley().evaluate(x).objective, expected, rtol=TOLERANCE)


def test_same_rosenbrock_dixon_price_and_levy_functions_in_botorch() -> None:
    """The three functions the problem is made of."""
    problem = Rosenbrock()
    x = draw(problem.space.lower, problem.space.upper)
    evaluation = problem.evaluate(x)
    found = [evaluation.objective, *(evaluation.constraints + 10).T]
    for values, name in zip(found, ("Rosenbrock", "DixonPrice", "Levy"), strict=True):
        np.testing.assert_allclose(values, botorch_values(name, x, dim=5), rtol=TOLERANCE)


@pytest.mark.parametrize("dim", [20, 30])
def test_same_keane_function_in_pymoo(dim: int) -> None:
    """The problem is called G2 there."""
    problems: Any = pytest.importorskip("pymoo.problems.single.g")
    problem, other = Keane(dim=dim), problems.G2(n_var=dim)
    x = draw(problem.space.lower, problem.space.upper)
    evaluation = problem.evaluate(x)
    evaluate: Callable[..., dict[str, Array]] = other.evaluate
    expected = evaluate(x, return_as_dictionary=True)
    np.testing.assert_allclose(evaluation.objective, expected["F"].ravel(), rtol=TOLERANCE)
    np.testing.assert_allclose(evaluation.constraints, expected["G"], rtol=TOLERANCE)
