"""Runs: budget, design, batches, workers, times and what a run tells."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.errors import (
    InvalidTask,
    UnsupportedTask,
)
from cbo_suite.harness.design import initial_design
from cbo_suite.harness.settings import Progress
from cbo_suite.protocols import Array, Evaluation
from tests.doubles import Disc, Expectant, Hill, Scripted, defective


@given(
    budget=st.integers(1, 40),
    batch_size=st.integers(1, 12),
    n_init=st.integers(0, 15),
    workers=st.one_of(st.none(), st.integers(1, 5)),
)
@settings(deadline=None, max_examples=60)
def test_the_budget_is_exact(
    budget: int, batch_size: int, n_init: int, workers: int | None
) -> None:
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


def test_every_optimizer_of_a_seed_starts_from_the_same_design() -> None:
    """The design depends on problem and seed, not on the optimizer."""
    one = cbo.run("toy-2d-v1", "random-search", budget=12, n_init=10, seed=3)
    other = cbo.run("toy-2d-v1", Hill, budget=30, n_init=10, seed=3)
    assert np.array_equal(one.x[:10], other.x[:10])
    third = cbo.run("toy-2d-v1", Hill, budget=30, n_init=10, seed=4)
    assert not np.array_equal(third.x[:10], other.x[:10])


@pytest.mark.parametrize(("n_init", "budget", "expected"), [(6, 9, 6), (6, 4, 4), (0, 5, None)])
def test_the_size_of_the_design_is_said_before_it_is_told(
    n_init: int, budget: int, expected: int | None, tmp_path: Path
) -> None:
    """Once to every optimizer that wants to know, also to that of a resumed run."""
    numbers: list[int | None] = []

    class Listening(Expectant):
        def expect_design(self, n: int) -> None:
            super().expect_design(n)
            numbers.append(n)

    path = tmp_path / "run.jsonl"
    options: dict[str, Any] = {"budget": budget, "n_init": n_init}
    whole = cbo.run(Disc(), Listening, journal=path, **options)
    assert numbers == ([] if expected is None else [expected])
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    assert cbo.run(Disc(), Listening, journal=path, **options).digest == whole.digest
    assert numbers == ([] if expected is None else [expected] * 2)


def test_the_design_is_a_latin_hypercube() -> None:
    """Each coordinate has one point in each of n slices."""
    space = cbo.Space(np.array([0.0, -3.0]), np.array([1.0, 5.0]), 0)
    unit = space.to_unit(initial_design("any-v1", space, 20, 7))
    assert (np.sort((unit * 20).astype(int), axis=0) == np.arange(20)[:, None]).all()


def test_the_design_is_told_before_the_first_ask() -> None:
    """No ask comes before all design points are told, with workers too."""
    log: list[str] = []

    def ask(self: Hill, n: int) -> Array:
        log.append("ask")
        return Hill.ask(self, n)

    cls = defective(ask=ask, tell=lambda self, x, e: log.extend(["tell"] * len(x)))
    cbo.run(Disc(), cls, budget=20, n_init=7, workers=3)
    assert log[:7] == ["tell"] * 7
    assert log.index("ask") == 7


def test_fewer_points_than_wanted_are_fine() -> None:
    """An optimizer may give fewer points; the budget is still exact."""
    cls = defective(ask=lambda self, n: Hill.ask(self, 1))
    assert len(cbo.run(Disc(), cls, budget=23, batch_size=5, n_init=3).x) == 23


def test_asynchronous_runs_are_reproducible_and_overtake() -> None:
    """Twice the same run; some evaluations end before others that began earlier."""
    first = cbo.run(Disc(), Hill, budget=40, n_init=5, workers=4, seed=1)
    second = cbo.run(Disc(), Hill, budget=40, n_init=5, workers=4, seed=1)
    assert first.digest == second.digest
    synchronous = cbo.run(Disc(), Hill, budget=40, n_init=5, seed=1)
    assert {p.tobytes() for p in first.x[:5]} == {p.tobytes() for p in synchronous.x[:5]}
    assert not np.array_equal(first.x[:5], synchronous.x[:5])


def test_asynchronous_workers_are_kept_busy() -> None:
    """With k workers, k - 1 other points are under way whenever one is told."""
    under_way: list[int] = []
    asked_and_not_told = 0

    def ask(self: Hill, n: int) -> Array:
        nonlocal asked_and_not_told
        assert n == 1
        asked_and_not_told += 1
        return Hill.ask(self, n)

    def tell(self: Hill, x: Array, evaluation: Evaluation) -> None:
        nonlocal asked_and_not_told
        under_way.append(asked_and_not_told)
        asked_and_not_told -= 1

    cbo.run(Disc(), defective(ask, tell), budget=30, n_init=0, workers=4)
    assert under_way == [4] * 27 + [3, 2, 1]


def test_sequential_optimizers_are_run_one_by_one() -> None:
    """A class that declares itself sequential is asked for one point at a time."""
    sizes: list[int] = []

    class OneByOne(Hill):
        """Handles one point at a time."""

        sequential = True

        def ask(self, n: int = 1) -> Array:
            sizes.append(n)
            return super().ask(n)

    cbo.run(Disc(), OneByOne, budget=20, n_init=4, batch_size=8)
    assert sizes == [1] * 16


def test_declared_limits_are_answered_with_the_reason() -> None:
    """What an optimizer cannot handle is refused before anything runs."""

    class Small(Hill):
        """Handles one dimension and two points."""

        max_dim = 1
        max_batch_size = 2

    problem = Disc()
    with pytest.raises(UnsupportedTask, match="at most 1 dimensions, the problem has 2"):
        cbo.run(problem, Small, budget=5, n_init=1)
    Small.max_dim = 5
    with pytest.raises(UnsupportedTask, match="at most 2 points at once, the task has 3"):
        cbo.run(problem, Small, budget=5, n_init=1, batch_size=3)
    assert problem.points == []


@pytest.mark.parametrize(
    ("setting", "value"),
    [("budget", 0), ("batch_size", 0), ("n_init", -1), ("seed", -1), ("seed", 1.5), ("workers", 0)],
)
def test_numbers_that_make_no_run_are_refused(setting: str, value: float) -> None:
    """The message names the setting and what was got."""
    with pytest.raises(InvalidTask, match=rf"{setting} must be a whole number.*got {value}"):
        cbo.run(Disc(), Hill, **{"budget": 5, setting: value})  # type: ignore[arg-type]


def test_whole_numbers_of_numpy_are_welcome() -> None:
    """Seeds often come from np.arange."""
    six: Any = np.int64(6)
    assert cbo.run(Disc(), Hill, budget=six, seed=np.arange(3)[1]).task.seed == 1


def test_rounding_past_the_edge_is_clipped() -> None:
    """A point outside by rounding is put on the edge, one that is further out is refused."""
    cls = defective(ask=lambda self, n: np.full((n, 2), 1.0 + 1e-12))
    assert cbo.run(Disc(), cls, budget=3, n_init=1).x[-1].tolist() == [1.0, 1.0 + 1e-12]


def test_a_problem_that_writes_into_its_input_changes_nothing_on_record() -> None:
    """The recorded points are those that were asked."""

    def answer(x: Array) -> tuple[Array, Array]:
        values = x.sum(axis=1)
        x[:] = 99.0
        return values, np.zeros((len(x), 1))

    run = cbo.run(Scripted(answer), Hill, budget=8, n_init=4)
    assert np.array_equal(run.objective, run.x.sum(axis=1))


def test_the_best_point_is_feasible_first() -> None:
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


def test_a_callback_sees_progress_and_inspection() -> None:
    """After every batch: how much is done, the best so far, what the optimizer says."""

    class Talkative(Hill):
        """Says how often it was asked."""

        def inspect(self) -> dict[str, int]:
            return {"asks": self.asks}

    seen: list[Progress] = []
    run = cbo.run(Disc(), Talkative, budget=20, n_init=5, batch_size=5, callback=seen.append)
    assert [progress.done for progress in seen] == [5, 10, 15, 20]
    assert [progress.inspection for progress in seen] == [{"asks": n} for n in range(4)]
    assert seen[-1].best_objective == run.best_objective
    assert run.inspections[-1] == {"asks": 3}


def test_optimizer_and_problem_time_are_apart() -> None:
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


def test_processor_time_of_an_optimizers_own_processes_counts() -> None:
    """What it says of them is added, call by call; a number that falls adds nothing."""

    class Remote(Hill):
        """Lets others work for ten seconds an ask, and forgets it at the third one."""

        asks = 0
        seconds_elsewhere = 1.0

        def ask(self, n: int = 1) -> Array:
            self.asks += 1
            self.seconds_elsewhere = 0.0 if self.asks == 3 else self.seconds_elsewhere + 10.0
            return super().ask(n)

    run = cbo.run(Disc(), Remote, budget=6, n_init=2)
    assert run.seconds_processor == pytest.approx(30.0, abs=1.0)
    assert run.seconds_optimizer < 1.0


def test_a_recommendation_is_kept() -> None:
    """What the optimizer recommends at the end is in the run."""

    class Advisor(Hill):
        """Recommends the corner."""

        def recommend(self) -> Array:
            return self.space.lower

    run = cbo.run(Disc(), Advisor, budget=5, n_init=1)
    assert run.recommended_x is not None
    assert run.recommended_x.tolist() == [-1.0, -1.0]
