"""The G problems against published optima, pymoo and 40 digits; golden values are elsewhere.

problems/g_problems/best_known.json is written by `python -m tests.golden.derive_g_best_known`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mpmath import mpf

import cbo_suite as cbo
from cbo_suite.problems import PROBLEMS
from cbo_suite.problems.base import Problem
from cbo_suite.problems.g_problems import G08, G12
from cbo_suite.protocols import Array
from tests.golden.g_formulas import G_REFERENCES

IDS = list(G_REFERENCES)
ROOT = Path(__file__).parents[2]
KNOWN: dict[str, Any] = json.loads(
    (ROOT / "problems" / "g_problems" / "best_known.json").read_text(encoding="utf-8")
)
# The optima of the report of CEC 2006 with ten decimals, as many public codes repeat them.
REPORT = {
    "g01-13d-v1": -15.0,
    "g02-20d-v1": -0.8036191042,
    "g04-5d-v1": -30665.5386717834,
    "g06-2d-v1": -6961.8138755802,
    "g07-10d-v1": 24.3062090681,
    "g08-2d-v1": -0.0958250415,
    "g09-7d-v1": 680.6300573745,
    "g10-8d-v1": 7049.2480205286,
    "g12-3d-v1": -1.0,
    "g16-5d-v1": -1.9051552586,
    "g18-9d-v1": -0.8660254038,
    "g19-15d-v1": 32.6555929502,
    "g24-2d-v1": -5.5080132716,
}


def make(problem_id: str) -> Problem:
    """Make a problem with what is known of it."""
    problem = cbo.make_problem(problem_id)
    assert isinstance(problem, Problem)
    return problem


def test_the_family_is_complete() -> None:
    """Thirteen problems: those of the report without equality constraints."""
    assert [id_ for id_ in PROBLEMS if id_[0] == "g" and id_[1].isdigit()] == IDS == list(REPORT)
    assert set(KNOWN) == set(IDS) - {"g02-20d-v1"}


@pytest.mark.parametrize("problem_id", IDS)
def test_optima_agree_with_the_report(problem_id: str) -> None:
    """To one unit of its last digit; the point is feasible in doubles and in exact arithmetic."""
    problem = make(problem_id)
    best = problem.best_known
    assert best is not None
    values = problem.evaluate(best.x[None])
    assert values.feasible[0]
    assert values.objective[0] == pytest.approx(best.objective, rel=1e-14)
    exact, constraints = G_REFERENCES[problem_id].evaluate([mpf(value) for value in best.x])
    assert max(constraints) <= 0
    assert float(exact) == pytest.approx(best.objective, rel=1e-12)
    optimum = float(KNOWN.get(problem_id, {"optimum": best.objective})["optimum"])
    assert optimum == pytest.approx(REPORT[problem_id], abs=1.5e-10)
    assert 0.0 <= best.objective - optimum <= 2e-12 * max(1.0, abs(optimum))


@pytest.mark.parametrize("problem_id", IDS)
def test_no_feasible_point_nearby_is_better(problem_id: str) -> None:
    """Random steps of many lengths and into few coordinates find nothing below the optimum."""
    problem = make(problem_id)
    best, space, random = problem.best_known, problem.space, np.random.default_rng(7)
    assert best is not None
    shape = (30_000, space.dim)
    lengths = 10.0 ** random.uniform(-9.0, -0.5, size=(shape[0], 1))
    moved = random.random(shape) < 2 / space.dim
    steps = np.where(moved, lengths * random.standard_normal(shape), 0.0)
    values = problem.evaluate(
        np.clip(best.x + steps * (space.upper - space.lower), space.lower, space.upper)
    )
    assert values.feasible.any()
    margin = 1e-11 * max(1.0, abs(best.objective))
    assert values.objective[values.feasible].min() >= best.objective - margin


@pytest.mark.parametrize("problem_id", IDS)
def test_same_problem_in_pymoo(problem_id: str) -> None:
    """Box, objective and constraints agree; g04 has its pairs of constraints the other way round.

    Lower bounds of zero are 1e-16 in pymoo's g02 and 1e-5 in its g08.
    """
    problems: Any = pytest.importorskip("pymoo.problems.single.g")
    problem, other = make(problem_id), getattr(problems, f"G{int(problem_id[1:3])}")()
    np.testing.assert_allclose(other.xl, problem.space.lower, atol=1e-5)
    np.testing.assert_array_equal(other.xu, problem.space.upper)
    x = np.random.default_rng(5).uniform(other.xl, other.xu, (100, problem.space.dim))
    values = problem.evaluate(x)
    evaluate: Callable[..., dict[str, Array]] = other.evaluate
    expected = evaluate(x, return_as_dictionary=True)
    order = [1, 0, 3, 2, 5, 4] if problem_id == "g04-5d-v1" else slice(None)
    np.testing.assert_allclose(values.objective, expected["F"].ravel(), rtol=1e-10)
    np.testing.assert_allclose(values.constraints, expected["G"][:, order], rtol=1e-10)


@pytest.mark.parametrize("problem_id", IDS)
@given(data=st.data())
@settings(max_examples=15)
def test_a_batch_equals_its_points_one_by_one_bit_by_bit(
    problem_id: str, data: st.DataObject
) -> None:
    """What else is in a batch does not change a point's values, and all values are finite."""
    problem = make(problem_id)
    shapes = st.tuples(st.integers(1, 20), st.just(problem.space.dim))
    unit = data.draw(arrays(np.float64, shapes, elements=st.floats(0.0, 1.0)))
    x = problem.space.from_unit(unit)
    batch = problem.evaluate(x)
    single = [problem.evaluate(row[None]) for row in x]
    assert np.isfinite(batch.objective).all()
    assert np.isfinite(batch.constraints).all()
    assert np.array_equal(batch.objective, [one.objective[0] for one in single])
    assert np.array_equal(batch.constraints, [one.constraints[0] for one in single])


@pytest.mark.parametrize("problem_id", [id_ for id_ in IDS if id_ != "g18-9d-v1"])
def test_feasible_fraction_agrees_with_random_points(problem_id: str) -> None:
    """A quarter of a million points, within 4.5 standard errors, a chance of 1e-5."""
    problem = make(problem_id)
    share = problem.feasible_fraction
    assert share is not None
    random, hits, samples = np.random.default_rng(11), 0, 250_000
    for _ in range(5):
        unit = random.random((samples // 5, problem.space.dim))
        hits += int(problem.evaluate(problem.space.from_unit(unit)).feasible.sum())
    error = max(1.0, (share * (1 - share) * samples) ** 0.5)
    assert abs(hits - share * samples) <= 4.5 * error + 0.005 * share * samples, hits / samples


def test_g08_is_continuous_where_its_formula_divides_by_zero() -> None:
    """At x1 = 0 the ratio has its limit, and the origin a value."""
    values = G08().evaluate([[0.0, 0.3], [1e-9, 0.3], [0.0, 0.0]]).objective
    assert values[0] == pytest.approx(values[1], rel=1e-7)
    assert values[2] == 0.0


@given(x=arrays(np.float64, (5, 3), elements=st.floats(0.0, 10.0)))
def test_g12_measures_the_distance_to_the_nearest_of_all_balls(x: Array) -> None:
    """The nearest centre is found by rounding, here by looking at all 729."""
    centres = np.stack(np.meshgrid(*[np.arange(1.0, 10.0)] * 3), axis=-1).reshape(-1, 3)
    squares = np.square(x[:, None] - centres).sum(axis=2).min(axis=1)
    np.testing.assert_array_equal(G12().evaluate(x).constraints[:, 0], squares - 0.0625)
