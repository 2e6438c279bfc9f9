"""Twins: who knows the answer by heart does worse on them, who does not does the same."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.apart.client import OptimizerProcess
from cbo_suite.errors import CboError, MissingExtra
from cbo_suite.harness import Settings, execute
from cbo_suite.protocols import Evaluation, Space, Task
from cbo_suite.records import Record
from cbo_suite.registry import optimizer_factory
from cbo_suite.verify import verify_file
from cbo_suite.verify.outcomes import Outcome, outcome_of, rank_sum_test
from cbo_suite.verify.twins import compare_outcomes, draw_twin, run_twins
from tests.doubles import Expectant, Scripted
from tests.submissions import cheats
from tests.submissions.honest import put, run_records

PLACE = "tests.submissions.cheats"


@pytest.mark.parametrize("problem", ["welded-beam-4d-v1", "ackley-10d-v1"])
def test_a_twin_is_the_problem_in_another_place(problem: str) -> None:
    """The same space and the same values, at reflected and permuted points."""
    original = cbo.make_problem(problem)
    random = np.random.default_rng(0)
    x = original.space.from_unit(random.random((50, original.space.dim)))
    places = set()
    for _ in range(10):
        twin = draw_twin(original, random)
        assert twin.space == original.space
        back = twin.original(x)
        assert original.space.validate(back) is not None
        values, expected = twin.evaluate(x), original.evaluate(back)
        assert np.array_equal(values.objective, expected.objective)
        assert np.array_equal(values.constraints, expected.constraints)
        places.add(back.tobytes())
    assert len(places) == 10


def test_variables_are_exchanged_only_among_their_equals() -> None:
    """Whole numbers, scales and linear constraints go with them."""
    space = Space(
        [1, 0, 0, 1, 1],
        [9, 1, 1, 9, 9],
        0,
        integer=[0],
        log_scale=[3, 4],
        linear=([[0.0, 1.0, 0.5, 0.0, 0.0]], [1.2]),
    )
    problem = Scripted(lambda x: (x @ np.arange(1.0, 6.0), np.empty((len(x), 0))))
    problem.space = space
    random = np.random.default_rng(3)
    seen = set()
    for _ in range(20):
        twin = draw_twin(problem, random)
        x = twin.space.place(random.random((20, 5)))
        back = twin.original(twin.space.validate(x))
        assert space.validate(back) is not None
        # A whole number stays one, and a logarithmic variable is not reflected here.
        assert set(np.sort(back[0, 3:]).tolist()) == set(np.sort(x[0, 3:]).tolist())
        seen.add(tuple(np.round(twin.space.linear_matrix[0], 3).tolist()))
    assert len(seen) > 3


def test_whole_numbers_on_a_logarithmic_scale_are_not_reflected() -> None:
    """They would not stay whole; what else there is moves, and nothing need be found to move."""
    problem = Scripted(lambda x: (x.sum(axis=1), np.empty((len(x), 0))))
    random = np.random.default_rng(4)
    problem.space = Space([1, 1e-3], [64, 1e2], 0, integer=[0], log_scale=[0, 1])
    for _ in range(10):
        twin = draw_twin(problem, random)
        x = twin.space.sample(20, random)
        back = twin.original(x)
        problem.space.validate(back)
        np.testing.assert_array_equal(back[:, 0], x[:, 0])
        np.testing.assert_allclose(back[:, 1] * x[:, 1], 0.1)
    problem.space = Space([1], [64], 0, integer=[0], log_scale=[0])
    assert draw_twin(problem, random).moved


@given(st.integers(1, 5), st.integers(1, 5), st.data())
@settings(deadline=None, max_examples=50)
def test_the_rank_sum_is_exact(n: int, k: int, data: st.DataObject) -> None:
    """As if every way to deal the ranks had been tried, ties and all."""
    values = np.array(data.draw(st.lists(st.integers(0, 6), min_size=n + k, max_size=n + k)))
    ranks = np.array([(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values])
    sums = [sum(choice) for choice in combinations(ranks.tolist(), k)]
    expected = np.mean([total >= ranks[n:].sum() - 1e-9 for total in sums])
    assert rank_sum_test(ranks[:n], ranks[n:]) == pytest.approx(float(expected), abs=1e-12)


def test_ends_and_courses_are_tested_together() -> None:
    """Either of them alone is enough; without a reference only the ends count."""
    alike = [Outcome(float(i), 0.0, 50.0 + i) for i in range(20)]
    assert not compare_outcomes(alike[::2], alike[1::2]).suspicious
    fast = [Outcome(float(i), 0.0, 90.0 + i) for i in range(0, 20, 2)]
    result = compare_outcomes(fast, alike[1::2])
    assert result.suspicious
    assert result.anytime < 0.005 < result.final
    infeasible = [Outcome(np.nan, 0.1 * i, np.nan) for i in range(10)]
    result = compare_outcomes([Outcome(5.0, 0.0, np.nan)] * 10, infeasible)
    assert result.suspicious
    assert np.isnan(result.anytime)


def trial(optimizer: str, problem: str) -> bool:
    """Record ten short runs, run ten twins, and tell whether that is suspicious."""
    made, factory = cbo.make_problem(problem), getattr(cheats, optimizer)
    recorded = []
    for seed in range(10):
        task = Task(problem, f"{PLACE}:{optimizer}", 30, 1, 10, seed)
        run = execute(task, made, factory, Settings())
        recorded.append(outcome_of(task, run.objective, run.evaluation.violation))
    twins = run_twins(task, made, {}, 10, np.random.default_rng(1))
    return compare_outcomes(recorded, twins).suspicious


@pytest.mark.parametrize("problem", ["toy-2d-v1", "speed-reducer-7d-v1"])
@pytest.mark.parametrize(
    ("optimizer", "caught"),
    [("ReadsTheRegistry", True), ("TakesTheProblem", True), ("Honest", False)],
)
def test_cheats_are_caught_and_honest_methods_pass(
    optimizer: str, caught: bool, problem: str
) -> None:
    """tests/verify/twin_trials.py does the same for all problems and real methods."""
    assert trial(optimizer, problem) == caught


def test_the_process_of_an_optimizer_holds_no_problem() -> None:
    """What is raised there comes back as an error, and what is printed there disturbs nothing."""
    space = Space([0.0], [1.0], 1)
    with OptimizerProcess(f"{PLACE}:TakesTheProblem") as process:
        optimizer = process.factory(space, budget=5, batch_size=1, seed=0)
        optimizer.tell(np.array([[0.2]]), Evaluation(np.array([1.0]), np.array([[np.nan]])))
        points = optimizer.ask(3)
        assert points.shape == (3, 1)
        assert np.array_equal(space.validate(points), points)
        with pytest.raises(CboError, match="negative dimensions"):
            optimizer.ask(-1)
    with pytest.raises(MissingExtra, match="unknown optimizer 'scbo2'"):
        OptimizerProcess("scbo2")
    with pytest.raises(CboError, match="nowhere"):
        OptimizerProcess("nowhere:Nobody")
    with OptimizerProcess(f"{PLACE}:Honest") as process:
        process.close()
        with pytest.raises(CboError, match="broke off"):
            process.factory(space, budget=5, batch_size=1, seed=0)


def test_an_optimizer_apart_does_what_it_does_here() -> None:
    """The same points and values, to the bit, also in batches, and knowing of the design."""
    problem = cbo.make_problem("welded-beam-4d-v1")
    for optimizer, factory in (
        (f"{PLACE}:Honest", cheats.Honest),
        ("tests.doubles:Expectant", Expectant),
        ("cobyla", optimizer_factory("cobyla")),
    ):
        task = Task(problem.id, optimizer, 20, 3, 8, 5)
        here = execute(task, problem, factory, Settings())
        with OptimizerProcess(optimizer) as process:
            apart = execute(task, problem, process.factory, Settings())
        assert apart.digest == here.digest


def test_twins_are_part_of_verifying(tmp_path: Path) -> None:
    """An honest row stays verified; one that does better than its method is not."""
    records = run_records(tmp_path, "toy-2d-v1", "sobol-search", range(10))
    path = put(tmp_path / "runs", records)
    verdict = verify_file(path, twins=2, salt="5eed")
    assert (verdict.status, verdict.findings[-1][:2]) == ("verified", ("twins", "ok"))
    assert "recorded runs do no better than 2 on twins: p = " in verdict.findings[-1].detail
    better = run_records(tmp_path, "toy-2d-v1", "cobyla", range(10))
    claimed: list[Record] = [
        msgspec.structs.replace(
            record,
            task=msgspec.structs.replace(record.task, optimizer="sobol-search"),
            versions=records[0].versions,
        )
        for record in better
    ]
    verdict = verify_file(put(tmp_path / "forged", claimed), twins=10, salt="5eed")
    assert (verdict.status, verdict.complaints) == ("unverified", [])
    assert verdict.findings[-1][:2] == ("twins", "failed")
    assert "recorded runs do better than 10 on twins" in verdict.findings[-1].detail
