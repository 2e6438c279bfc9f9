"""Runs: budget, batches, workers, failures of problems and of optimizers."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.errors import (
    EvaluationFailed,
    InvalidTask,
    OptimizerFailed,
    PartialEvaluation,
    UnsupportedTask,
)
from cbo_suite.harness.design import initial_design
from cbo_suite.protocols import Array, Evaluation
from tests.doubles import Disc, Hill, Scripted, defective


@given(
    budget=st.integers(1, 40),
    batch_size=st.integers(1, 12),
    n_init=st.integers(0, 15),
    workers=st.one_of(st.none(), st.integers(1, 5)),
)
@settings(deadline=None, max_examples=60)
def test_the_budget_is_exact(budget, batch_size, n_init, workers):
    """Exactly the budget is evaluated, whatever the batch, the design or the workers."""
    problem = Disc()
    run = cbo.run(
        problem, Hill, budget=budget, batch_size=batch_size, n_init=n_init, workers=workers
    )
    assert len(run.x) == len(run.objective) == len(run.constraints) == budget
    assert len(problem.points) == budget
    design = initial_design(problem.id, problem.space, n_init, 0)[:budget]
    first = {point.tobytes() for point in run.x[: len(design)]}
    assert first == {point.tobytes() for point in design}


def test_every_optimizer_of_a_seed_starts_from_the_same_design():
    """The design depends on problem and seed, not on the optimizer."""
    one = cbo.run("toy-2d-v1", "random-search", budget=12, n_init=10, seed=3)
    other = cbo.run("toy-2d-v1", Hill, budget=30, n_init=10, seed=3)
    assert np.array_equal(one.x[:10], other.x[:10])
    third = cbo.run("toy-2d-v1", Hill, budget=30, n_init=10, seed=4)
    assert not np.array_equal(third.x[:10], other.x[:10])


def test_the_design_is_a_latin_hypercube():
    """Each coordinate has one point in each of n slices."""
    space = cbo.Space(np.array([0.0, -3.0]), np.array([1.0, 5.0]), 0)
    unit = space.to_unit(initial_design("any-v1", space, 20, 7))
    assert (np.sort((unit * 20).astype(int), axis=0) == np.arange(20)[:, None]).all()


def test_the_design_is_told_before_the_first_ask():
    """No ask comes before all design points are told, with workers too."""
    log = []

    def ask(self, n):
        log.append("ask")
        return Hill.ask(self, n)

    cls = defective(ask=ask, tell=lambda self, x, e: log.extend(["tell"] * len(x)))
    cbo.run(Disc(), cls, budget=20, n_init=7, workers=3)
    assert log[:7] == ["tell"] * 7
    assert log.index("ask") == 7


def test_fewer_points_than_wanted_are_fine():
    """An optimizer may give fewer points; the budget is still exact."""
    cls = defective(ask=lambda self, n: Hill.ask(self, 1))
    assert len(cbo.run(Disc(), cls, budget=23, batch_size=5, n_init=3).x) == 23


def test_asynchronous_runs_are_reproducible_and_overtake():
    """Twice the same run; some evaluations end before others that began earlier."""
    first = cbo.run(Disc(), Hill, budget=40, n_init=5, workers=4, seed=1)
    second = cbo.run(Disc(), Hill, budget=40, n_init=5, workers=4, seed=1)
    assert first.digest == second.digest
    synchronous = cbo.run(Disc(), Hill, budget=40, n_init=5, seed=1)
    assert {p.tobytes() for p in first.x[:5]} == {p.tobytes() for p in synchronous.x[:5]}
    assert not np.array_equal(first.x[:5], synchronous.x[:5])


def test_asynchronous_workers_are_kept_busy():
    """With k workers, k - 1 other points are under way whenever one is told."""
    under_way = []

    def ask(self, n):
        assert n == 1
        self.open = getattr(self, "open", 0) + 1
        return Hill.ask(self, n)

    def tell(self, x, evaluation):
        if hasattr(self, "open"):
            under_way.append(self.open)
            self.open -= 1

    cbo.run(Disc(), defective(ask, tell), budget=30, n_init=0, workers=4)
    assert under_way == [4] * 27 + [3, 2, 1]


def test_sequential_optimizers_are_run_one_by_one():
    """A class that declares itself sequential is asked for one point at a time."""
    sizes = []

    class OneByOne(Hill):
        """Handles one point at a time."""

        sequential = True

        def ask(self, n=1):
            sizes.append(n)
            return super().ask(n)

    cbo.run(Disc(), OneByOne, budget=20, n_init=4, batch_size=8)
    assert sizes == [1] * 16


def test_declared_limits_are_answered_with_the_reason():
    """What an optimizer cannot handle is refused before anything runs."""

    class Small(Hill):
        """Handles one dimension and two points."""

        max_dim = 1

    problem = Disc()
    with pytest.raises(UnsupportedTask, match="at most 1 dimensions, the problem has 2"):
        cbo.run(problem, Small, budget=5, n_init=1)
    Small.max_dim, Small.max_batch_size = 5, 2
    with pytest.raises(UnsupportedTask, match="at most 2 points at once, the task has 3"):
        cbo.run(problem, Small, budget=5, n_init=1, batch_size=3)
    assert problem.points == []


@pytest.mark.parametrize(
    ("setting", "value"),
    [("budget", 0), ("batch_size", 0), ("n_init", -1), ("seed", -1), ("seed", 1.5), ("workers", 0)],
)
def test_numbers_that_make_no_run_are_refused(setting, value):
    """The message names the setting and what was got."""
    with pytest.raises(InvalidTask, match=rf"{setting} must be a whole number.*got {value}"):
        cbo.run(Disc(), Hill, **{"budget": 5, setting: value})


def test_whole_numbers_of_numpy_are_welcome():
    """Seeds often come from np.arange."""
    assert cbo.run(Disc(), Hill, budget=np.int64(6), seed=np.arange(3)[1]).task.seed == 1


NAN, INF = float("nan"), float("inf")
ODD_ANSWERS = {
    "nan objective": (lambda x: (np.full(len(x), NAN), np.zeros((len(x), 1))), "nonfinite"),
    "inf constraint": (lambda x: (np.zeros(len(x)), np.full((len(x), 1), INF)), "nonfinite"),
    "-inf objective": (lambda x: (np.full(len(x), -INF), np.zeros((len(x), 1))), "nonfinite"),
    "none": (lambda x: None, "failed"),
    "complex": (lambda x: (np.zeros(len(x), complex), np.zeros((len(x), 1))), "failed"),
    "integers": (lambda x: (np.zeros(len(x), int), np.zeros((len(x), 1), int)), "ok"),
    "wrong number of constraints": (lambda x: (np.zeros(len(x)), np.zeros((len(x), 3))), "failed"),
    "too few values": (lambda x: (np.zeros(len(x) - 1), np.zeros((len(x), 1))), "failed"),
    "ragged": (lambda x: ([[1], [1, 2]], np.zeros((len(x), 1))), "failed"),
    "strings": (lambda x: (["one"] * len(x), np.zeros((len(x), 1))), "failed"),
    "exception": (lambda x: 1 / 0, "failed"),
}


@pytest.mark.parametrize("name", ODD_ANSWERS)
@pytest.mark.parametrize("batch_size", [1, 4])
def test_odd_answers_of_a_problem_are_recorded(name, batch_size, tmp_path):
    """After a good design, an odd answer has its status, costs one evaluation, and the run ends."""
    odd, status = ODD_ANSWERS[name]

    def answer(x):
        good = len(problem.points) <= 4
        return (x.sum(axis=1), x[:, :1]) if good else odd(x)

    problem = Scripted(answer)
    settings_ = {"budget": 12, "n_init": 4, "batch_size": batch_size}
    run = cbo.run(problem, Hill, journal=tmp_path / "run.jsonl", **settings_)
    assert run.statuses == ["ok"] * 4 + [status] * 8
    assert len(run.x) == 12
    assert run.status == "complete"
    assert (status == "failed") == bool(run.messages)
    again = cbo.run(problem, Hill, journal=tmp_path / "run.jsonl", **settings_)
    assert again.digest == run.digest
    assert np.array_equal(again.objective, run.objective, equal_nan=True)


def test_one_bad_point_does_not_cost_the_others_of_its_batch():
    """When a batch raises, its points are evaluated one by one."""

    def answer(x):
        if (x[:, 0] > 0).any():
            raise ValueError("too far right")
        return x.sum(axis=1), x[:, :1]

    run = cbo.run(Scripted(answer), "random-search", budget=40, n_init=0, batch_size=10)
    right = run.x[:, 0] > 0
    assert 0 < right.sum() < 40
    assert [status == "failed" for status in run.statuses] == right.tolist()
    assert set(run.messages.values()) == {"ValueError: too far right"}


def test_a_partial_evaluation_keeps_its_results():
    """A problem that knows which rows failed is not called again."""

    def answer(x):
        values = cbo.Evaluation(x.sum(axis=1), x[:, :1].copy())
        values.objective[1] = np.nan
        raise PartialEvaluation("row 1", values, {1: EvaluationFailed("the simulator crashed")})

    problem = Scripted(answer)
    run = cbo.run(problem, Hill, budget=6, n_init=0, batch_size=3)
    assert run.statuses == ["ok", "failed", "ok"] * 2
    assert run.messages == {1: "the simulator crashed", 4: "the simulator crashed"}
    assert len(problem.points) == 6


def test_a_problem_that_never_works_ends_the_run(tmp_path):
    """If the whole design fails, the error says why, and what was tried is on record."""
    path = tmp_path / "run.jsonl"
    problem = Scripted(lambda x: 1 / 0)
    with pytest.raises(EvaluationFailed, match="every point of the initial design: ZeroDivision"):
        cbo.run(problem, Hill, budget=50, n_init=5, journal=path)
    assert len(problem.points) == 5
    assert path.read_text().count('"failed"') == 6


DEFECTS = {
    "one-dimensional": (lambda self, n: np.zeros(2), "array of shape"),
    "too many points": (lambda self, n: np.zeros((n + 1, 2)), "array of shape"),
    "a million points": (lambda self, n: np.zeros((10**6, 2)), "array of shape"),
    "no points": (lambda self, n: np.zeros((0, 2)), "array of shape"),
    "wrong dimension": (lambda self, n: np.zeros((n, 3)), "array of shape"),
    "nan": (lambda self, n: np.full((n, 2), np.nan), "finite and inside the box"),
    "outside": (lambda self, n: np.full((n, 2), 1.01), "outside"),
    "generator": (lambda self, n: (i for i in range(n)), "got generator"),
    "list": (lambda self, n: [[0.0, 0.0]], "got list"),
    "strings": (lambda self, n: np.full((n, 2), "a"), "real numbers"),
    "none": (lambda self, n: None, "got NoneType"),
    "raises": (lambda self, n: 1 / 0, "ZeroDivisionError"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defective_optimizers_fail_by_name_and_lose_nothing(name, tmp_path):
    """A defect in ask is a typed error that names the optimizer; the design stays on record."""
    ask, message = DEFECTS[name]
    path = tmp_path / "run.jsonl"
    with pytest.raises(OptimizerFailed, match=message) as caught:
        cbo.run(Disc(), defective(ask=ask), budget=12, n_init=4, journal=path)
    assert "Defective failed in ask" in str(caught.value)
    assert caught.value.run.status == "failed"
    assert len(caught.value.run.x) == 4
    assert path.read_text().splitlines()[-1].startswith('{"type":"end","status":"failed"')


def test_an_optimizer_that_raises_in_tell_or_in_its_constructor_fails():
    """Both are named."""
    cls = defective(tell=lambda self, x, evaluation: 1 / 0)
    with pytest.raises(OptimizerFailed, match="failed in tell: ZeroDivisionError") as caught:
        cbo.run(Disc(), cls, budget=12, n_init=4)
    assert len(caught.value.run.x) == 1
    with pytest.raises(OptimizerFailed, match="failed in the constructor: TypeError"):
        cbo.run(Disc(), Hill, budget=12, options={"nonsense": 1})


def test_a_failed_run_goes_on_once_the_optimizer_is_fixed(tmp_path):
    """The journal of a failed run resumes where it failed."""
    path = tmp_path / "run.jsonl"
    broken = {"now": True}

    def ask(self, n):
        if self.asks == 5 and broken["now"]:
            raise RuntimeError("broken")
        return Hill.ask(self, n)

    cls = defective(ask=ask)
    with pytest.raises(OptimizerFailed):
        cbo.run(Disc(), cls, budget=20, n_init=4, journal=path)
    broken["now"] = False
    resumed = cbo.run(Disc(), cls, budget=20, n_init=4, journal=path)
    fresh = cbo.run(Disc(), cls, budget=20, n_init=4)
    assert resumed.digest == fresh.digest


def test_rounding_past_the_edge_is_clipped():
    """A point outside by rounding is put on the edge, one that is further out is refused."""
    cls = defective(ask=lambda self, n: np.full((n, 2), 1.0 + 1e-12))
    assert cbo.run(Disc(), cls, budget=3, n_init=1).x[-1].tolist() == [1.0, 1.0 + 1e-12]


def test_a_problem_that_writes_into_its_input_changes_nothing_on_record():
    """The recorded points are those that were asked."""

    def answer(x):
        values = x.sum(axis=1)
        x[:] = 99.0
        return values, np.zeros((len(x), 1))

    run = cbo.run(Scripted(answer), Hill, budget=8, n_init=4)
    assert np.array_equal(run.objective, run.x.sum(axis=1))


def test_the_best_point_is_feasible_first():
    """Feasibility decides, then violation, then the objective."""
    run = cbo.run("toy-2d-v1", "random-search", budget=50, seed=2)
    feasible = run.evaluation.feasible
    assert run.feasible
    assert run.best_objective == run.objective[feasible].min()
    only = Scripted(lambda x: (x[:, 0], np.abs(x[:, 1:]) + 0.1))
    infeasible = cbo.run(only, "random-search", budget=30, n_init=5)
    assert not infeasible.feasible
    assert infeasible.best_index == int(np.argmin(np.abs(infeasible.x[:, 1])))
    assert "infeasible" in repr(infeasible)


def test_a_callback_sees_progress_and_inspection():
    """After every batch: how much is done, the best so far, what the optimizer says."""

    class Talkative(Hill):
        """Says how often it was asked."""

        def inspect(self):
            return {"asks": self.asks}

    seen = []
    run = cbo.run(Disc(), Talkative, budget=20, n_init=5, batch_size=5, callback=seen.append)
    assert [progress.done for progress in seen] == [5, 10, 15, 20]
    assert [progress.inspection["asks"] for progress in seen] == [0, 1, 2, 3]
    assert seen[-1].best_objective == run.best_objective
    assert run.inspections[-1] == {"asks": 3}


def test_optimizer_and_problem_time_are_apart():
    """The seconds of the problem are not the optimizer's."""
    run = cbo.run(Disc(pause=0.01), Hill, budget=10, n_init=2)
    assert run.seconds_evaluation >= 0.1
    assert 0 < run.seconds_optimizer < run.seconds_evaluation


def test_processor_time_is_that_of_all_threads_and_not_of_sleep(tmp_path: Path) -> None:
    """What a thread of the optimizer works counts, sleep and evaluations do not."""
    worked: list[float] = []

    def work() -> None:
        sum(range(10**6))
        worked.append(time.thread_time())

    class Busy(Hill):
        """Sleeps, and works in a thread while it waits."""

        def ask(self, n: int = 1) -> Array:
            time.sleep(0.05)
            return super().ask(n)

        def tell(self, x: Array, evaluation: Evaluation) -> None:
            super().tell(x, evaluation)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

    before = time.process_time()
    run = cbo.run(Disc(), Busy, budget=6, n_init=2, journal=tmp_path / "run.jsonl")
    spent = time.process_time() - before
    assert run.seconds_optimizer >= 0.2
    assert run.seconds_processor is not None
    assert sum(worked) <= run.seconds_processor <= spent
    again = cbo.run(Disc(), Busy, budget=6, n_init=2, journal=tmp_path / "run.jsonl")
    assert again.seconds_processor == run.seconds_processor


def test_states_must_be_plain_json():
    """What JSON cannot hold is refused with the name of the method."""

    class Odd(Hill):
        """Gives a state that is no JSON."""

        def get_state(self):
            return {"space": self.space}

    with pytest.raises(OptimizerFailed, match="get_state must be plain JSON"):
        cbo.run(Disc(), Odd, budget=5, n_init=1)


def test_a_recommendation_is_kept():
    """What the optimizer recommends at the end is in the run."""

    class Advisor(Hill):
        """Recommends the corner."""

        def recommend(self):
            return self.space.lower

    assert cbo.run(Disc(), Advisor, budget=5, n_init=1).recommended_x.tolist() == [-1.0, -1.0]


def test_optimizers_are_closed_however_a_run_ends():
    """An optimizer that holds something lets go of it, after success and after failure."""
    closed = []

    class Holder(Hill):
        """Remembers that it was closed."""

        def ask(self, n=1):
            if self.asks == limit:
                raise RuntimeError("no more")
            return super().ask(n)

        def close(self):
            closed.append(self)

    limit = 100
    cbo.run(Disc(), Holder, budget=5, n_init=1)
    assert len(closed) == 1
    limit = 2
    with pytest.raises(OptimizerFailed):
        cbo.run(Disc(), Holder, budget=5, n_init=1)
    assert len(closed) == 2
