"""Tasks and suites: what is planned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbo_suite.campaign.durations import Estimator, published_seconds
from cbo_suite.errors import InvalidTask, UnknownId
from cbo_suite.optimizers import OPTIMIZERS
from cbo_suite.registry import list_problems, problem_info, protocol_of
from cbo_suite.tasks import SUITES, Task, change_task, get_suite, make_tasks, shard


def test_every_suite_names_what_exists() -> None:
    """Every suite gives tasks of registered ids."""
    assert list(SUITES) == ["quick", "paper", "paper-small", "g-problems", "bbob-constrained"]
    for suite in SUITES.values():
        tasks = suite.tasks()
        assert len({task.name for task in tasks}) == len(tasks) > 0
        assert all(problem_info(task.problem) for task in tasks)
        assert {task.optimizer for task in tasks} <= OPTIMIZERS.keys()


def test_the_paper_protocol() -> None:
    """The numbers of the paper's text."""
    assert protocol_of("ackley-10d-v1") == (200, 1, 10)
    assert protocol_of("mopta08-124d-v1") == (2000, 10, 130)
    assert protocol_of("rover-60d-v1") == (5000, 100, 100)
    [task] = make_tasks(["toy-2d-v1"], ["random-search"], [3])
    assert task == Task("toy-2d-v1", "random-search", 100, 1, 10, 3)
    with pytest.raises(UnknownId, match="unknown suite 'qick': choose one of quick"):
        get_suite("qick")


def test_the_suite_of_the_paper() -> None:
    """Thirteen problems, seven methods where the paper has seven, five where it has five."""
    tasks = get_suite("paper").tasks()
    assert len({task.problem for task in tasks}) == 13
    assert {task.seed for task in tasks} == set(range(30))
    methods = {"scbo", "cei", "pesc", "slack", "cobyla", "cma-es", "random-search"}

    def of(problem: str) -> set[str]:
        return {task.optimizer for task in tasks if task.problem == problem}

    assert of("ackley-10d-v1") == methods
    assert of("speed-reducer-7d-v1") & methods == methods
    for problem in ("lunar-lander-m50-v1", "rover-60d-v1", "mopta08-124d-v1"):
        assert of(problem) == methods - {"pesc", "slack"}
    # Eight ablations on three problems.
    for problem in ("toy-2d-v1", "rosenbrock-5d-v1", "keane-30d-v1"):
        assert len([id_ for id_ in of(problem) if id_.startswith("scbo")]) >= 8


def test_the_small_suite_is_a_part_of_the_large_one() -> None:
    """Five seeds, ten problems, the same tasks: what is done for one is done for the other."""
    small, large = (get_suite(name).tasks() for name in ("paper-small", "paper"))
    assert set(small) < set(large)
    assert {task.seed for task in small} == set(range(5))
    missing = {task.problem for task in large} - {task.problem for task in small}
    assert missing == {"keane-30d-v1", "rover-60d-v1", "mopta08-124d-v1"}
    assert {t for t in large if t.seed < 5 and t.problem not in missing} == set(small)


@given(st.integers(1, 40))
def test_shards_hold_every_task_once(parts: int) -> None:
    """Their union is the plan, in the order of the plan, and none is much larger than another."""
    tasks = get_suite("quick").tasks()
    shards = [shard(tasks, part, parts) for part in range(1, parts + 1)]
    assert sorted(t.name for s in shards for t in s) == sorted(t.name for t in tasks)
    sizes = [len(s) for s in shards]
    assert max(sizes) - min(sizes) <= 1
    for part in shards:
        assert part == [task for task in tasks if task in part]


def test_no_shard_gets_one_optimizer_only() -> None:
    """As many shards as optimizers: a plain stride would give each one kind of work."""
    tasks = get_suite("quick").tasks()
    for part in range(1, 6):
        assert len({task.optimizer for task in shard(tasks, part, 5)}) == 5
    with pytest.raises(InvalidTask, match="got 6/5"):
        shard(tasks, 6, 5)


def test_changes_of_the_protocol() -> None:
    """None leaves a number as it is."""
    [task] = make_tasks(["toy-2d-v1"], ["scbo"], [1], budget=30, n_init=None)
    assert task == Task("toy-2d-v1", "scbo", 30, 1, 10, 1)
    assert change_task(task) is task
    with pytest.raises(InvalidTask, match="budget must be"):
        change_task(task, budget=0)


def test_estimates_learn_from_what_is_done() -> None:
    """A measured pair is scaled by the budget; the table has an answer for everything."""
    estimator = Estimator()
    short, long = (Task("toy-2d-v1", "scbo", budget, 1, 10, 0) for budget in (50, 100))
    guess = estimator.estimate([short, long])
    assert (guess.measured, guess.guessed) == (0, 2)
    estimator.learn(short, 10.0)
    assert estimator.seconds(long) == pytest.approx(20.0)
    learned = estimator.estimate([short, long])
    assert learned.seconds == pytest.approx(30.0)
    assert (learned.measured, learned.guessed) == (2, 0)
    for task in get_suite("paper").tasks():
        assert 0.0 < estimator.seconds(task) < 10 * 86400
    slow = Task("lunar-lander-m50-v1", "random-search", 1000, 50, 50, 0)
    assert estimator.seconds(slow) > 100
    unmeasured = next(row.id for row in list_problems() if row.id not in published_seconds())
    variant, method = make_tasks([unmeasured], ["scbo-ei", "scbo"], [0])
    assert estimator.seconds(variant) == estimator.seconds(method)
