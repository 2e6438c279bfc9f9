"""Hidden constraints: what fails is part of the problem, is recorded, and stops nobody."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.checks import check_problem, problem_report
from cbo_suite.errors import InvalidTask, MissingExtra, PartialEvaluation
from cbo_suite.optimizers import OPTIMIZERS
from cbo_suite.problems.failing import Failing, FailingG19
from cbo_suite.problems.g_problems.large import G19
from cbo_suite.problems.toy import Toy
from cbo_suite.protocols import Array, BoolArray
from cbo_suite.registry import list_optimizers

METHODS = [row.id for row in list_optimizers() if row.method == row.id and row.id in OPTIMIZERS]


def left_half(x: Array) -> BoolArray:
    """Tell which points have a small first variable."""
    mask: BoolArray = x[:, 0] < 0.5
    return mask


@pytest.mark.parametrize("failure", ["raise", "nan"])
def test_it_is_a_problem(failure: Any) -> None:
    """It keeps the contract, whichever way it fails; the corners are no mistake."""
    problem = Failing(Toy(), left_half, failure=failure)
    check_problem(problem)
    outcomes = {finding.rule: finding.outcome for finding in problem_report(problem)}
    assert outcomes["corners"] == "skipped"
    assert outcomes["batch"] == outcomes["repeatable"] == "ok"
    assert problem.id == "failing-toy-2d-v1"


def test_failures_without_a_declaration_break_the_contract() -> None:
    """NaN at a corner is a mistake, unless the problem says that it may fail."""

    class Silent(Failing):
        may_fail = False

    findings = {f.rule: f.outcome for f in problem_report(Silent(Toy(), left_half, failure="nan"))}
    assert findings["corners"] == "failed"
    findings = {f.rule: f.outcome for f in problem_report(Silent(Toy(), left_half))}
    assert findings["evaluation"] == "failed"


def test_points_outside_the_region_have_their_values() -> None:
    """A failing batch carries the values of the others; NaN is all that a failure gives."""
    x = np.array([[0.2, 0.5], [0.7, 0.4], [0.4, 0.9], [0.9, 0.1]])
    exact = Toy().evaluate(x)
    with pytest.raises(PartialEvaluation, match="failing-toy-2d-v1 failed at 2 of 4") as caught:
        Failing(Toy(), left_half).evaluate(x)
    given_nan = Failing(Toy(), left_half, failure="nan").evaluate(x)
    assert sorted(caught.value.failures) == [0, 2]
    for values in (caught.value.evaluation, given_nan):
        assert np.array_equal(values.objective[[1, 3]], exact.objective[[1, 3]])
        assert np.array_equal(values.constraints[[1, 3]], exact.constraints[[1, 3]])
        assert np.isnan(values.objective[[0, 2]]).all()
        assert np.isnan(values.constraints[[0, 2]]).all()
        assert not values.feasible[[0, 2]].any()
    with pytest.raises(InvalidTask, match="'raise' or 'nan', got 'stop'"):
        Failing(Toy(), left_half, failure="stop")  # type: ignore[arg-type]


def test_the_registered_problem_fails_in_a_cylinder_beside_the_optimum() -> None:
    """The centre of the box fails, 42 % of it do, and the best known point is that of g19."""
    problem = FailingG19()
    centre = np.full((1, 15), 5.0)
    with pytest.raises(PartialEvaluation):
        problem.evaluate(centre)
    best, known = problem.best_known, G19().best_known
    assert best is not None
    assert known is not None
    assert best.objective == known.objective
    assert np.hypot(best.x[2] - 7, best.x[5] - 7) == pytest.approx(4.28, abs=0.01)
    x = np.random.default_rng(3).random((20_000, 15)) * 10
    with pytest.raises(PartialEvaluation) as caught:
        problem.evaluate(x)
    assert len(caught.value.failures) / len(x) == pytest.approx(0.42, abs=0.015)
    assert problem.feasible_fraction is not None
    share = caught.value.evaluation.feasible.mean()
    assert share == pytest.approx(problem.feasible_fraction, abs=0.015)


@pytest.mark.parametrize("optimizer", METHODS)
def test_every_method_goes_on_after_failures(optimizer: str) -> None:
    """The run ends with its budget, the failures on record, and a feasible point among it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run = cbo.run("failing-g19-15d-v1", optimizer, budget=23, n_init=18, seed=0)
        except MissingExtra as missing:
            pytest.skip(str(missing))
    assert len(run.x) == 23
    failed = np.isnan(run.objective)
    expected = np.hypot(run.x[:, 2] - 7, run.x[:, 5] - 7) < 4
    assert np.array_equal(failed, expected)
    assert 0 < failed.sum() < 23
    assert run.feasible
    assert np.isfinite(run.best_objective)
