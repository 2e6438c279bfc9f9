"""SciPy's other processes and batches, and BoTorch's own tests, on the problems of the suite."""

from __future__ import annotations

import unittest
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import differential_evolution

import cbo_suite as cbo
from cbo_suite.interop import as_botorch, as_scipy
from cbo_suite.problems import PROBLEMS
from cbo_suite.scoring.references import load_references

ANALYTIC = [
    id_
    for id_ in PROBLEMS
    if not id_.startswith(("lunar", "mopta08", "rover", "vehicle", "failing"))
]


def evolve(problem_id: str, **options: Any) -> Any:
    """Run SciPy's differential evolution for a few generations."""
    p = as_scipy(problem_id)
    constraints: Any = p.constraints
    settings: dict[str, Any] = {
        "rng": 0,
        "maxiter": 8,
        "popsize": 5,
        "polish": False,
        "updating": "deferred",
    }
    with warnings.catch_warnings():
        # From Python 3.12 on, starting processes by fork beside threads warns.
        warnings.simplefilter("ignore", DeprecationWarning)
        return differential_evolution(
            p.fun, p.bounds, constraints=constraints, **settings | options
        )


@pytest.mark.parametrize("problem_id", ["toy-2d-v1", "g09-7d-v1"])
def test_scipy_gets_the_same_from_two_processes_and_from_batches(problem_id: str) -> None:
    """Whether points are evaluated one by one, in other processes or all at once."""
    alone, processes, batches = (
        evolve(problem_id),
        evolve(problem_id, workers=2),
        evolve(problem_id, vectorized=True),
    )
    assert processes.fun == batches.fun == alone.fun
    assert np.array_equal(processes.x, alone.x)
    assert np.array_equal(batches.x, alone.x)


def test_scipy_batches_have_the_shapes_that_it_documents() -> None:
    """Points (d, n) give objectives (n,) and constraints (m, n), those of the single points."""
    p = as_scipy("g09-7d-v1")
    x = np.random.default_rng(0).uniform(-10, 10, (7, 5))
    objective, constraints = p.fun(x), np.asarray(p.constraints[0].fun(x))
    assert objective.shape == (5,)
    assert constraints.shape == (4, 5)
    for i in range(5):
        assert p.fun(x[:, i]) == objective[i]
        assert np.array_equal(np.asarray(p.constraints[0].fun(x[:, i])), constraints[:, i])


@pytest.fixture
def testing() -> Any:
    """BoTorch's mix-ins for tests, whose import warns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*torch\.jit", category=DeprecationWarning)
        return pytest.importorskip("botorch.utils.testing")


@pytest.mark.parametrize("negate", [False, True])
def test_botorch_passes_its_own_tests_on_every_analytic_problem(testing: Any, negate: bool) -> None:
    """Values and shapes, bounds, optimum, slack and worst feasible value."""

    class Case(
        testing.BotorchTestCase,  # type: ignore[misc]
        testing.BaseTestProblemTestCaseMixIn,  # type: ignore[misc]
        testing.SyntheticTestFunctionTestCaseMixin,  # type: ignore[misc]
        testing.ConstrainedTestProblemTestCaseMixin,  # type: ignore[misc]
    ):
        """All problems in all the tests that BoTorch has for its own."""

        functions = [as_botorch(id_, negate=negate) for id_ in ANALYTIC]  # noqa: RUF012

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.testsRun >= 6
    assert not result.failures + result.errors, (result.failures + result.errors)[0][1]


def test_botorch_has_the_worst_feasible_value_of_the_references(testing: Any) -> None:
    """Of a problem without references it has none, and says so."""
    worst = load_references()["speed-reducer-7d-v1"].worst
    assert as_botorch("speed-reducer-7d-v1").worst_feasible_value == worst
    assert as_botorch("speed-reducer-7d-v1", negate=True).worst_feasible_value == -worst
    with pytest.raises(NotImplementedError, match="worst feasible value"):
        as_botorch(cbo.make_problem("keane-30d-v1", dim=7)).worst_feasible_value  # noqa: B018
