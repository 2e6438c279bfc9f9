"""What steers a run: where it is evaluated follows from the settings, and results do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.errors import InvalidTask
from cbo_suite.harness import Settings, execute
from cbo_suite.protocols import Array, Task
from cbo_suite.registry import make_problem, optimizer_factory
from cbo_suite.system import cores

TASK = Task("toy-2d-v1", "random-search", 12, 3, 4, 5)
WORKERS = Task("toy-2d-v1", "random-search", 12, 1, 4, 5, workers=7)


def test_other_processes_are_used_where_something_needs_them() -> None:
    """Their number is what was given, else the workers or as many of the batch as cores."""
    assert Settings().processes_for(TASK) is None
    assert Settings(options={"a": 1}, journal="run.jsonl").processes_for(WORKERS) is None
    assert Settings(processes=2).processes_for(TASK) == 2
    assert Settings(evaluation_timeout=9).processes_for(TASK) == min(3, cores())
    assert Settings(evaluation_timeout=9).processes_for(WORKERS) == 7
    assert Settings(real_time=True).processes_for(WORKERS) == 7
    with pytest.raises(InvalidTask, match="give workers"):
        Settings(real_time=True).processes_for(TASK)


def test_what_can_change_a_result_is_a_fact() -> None:
    """The rest can be another when the run is resumed."""
    assert Settings({"a": 1}, "run.jsonl", print, processes=3, registered=True).facts() == {}
    facts = Settings(evaluation_timeout=60, real_time=True).facts()
    assert facts == {"evaluation_timeout": "60.0", "order": "real-time"}


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "soon"])
def test_a_time_out_is_seconds_above_zero(value: Any) -> None:
    """The message says what was got."""
    with pytest.raises(InvalidTask, match="evaluation_timeout must be seconds above 0, got"):
        Settings(evaluation_timeout=value)


def test_every_entrance_leads_to_the_same_run() -> None:
    """A task that is executed, `run` and `minimize` differ in the arguments they build only."""
    problem = make_problem(TASK.problem)
    seen: list[int] = []
    settings = Settings(callback=lambda progress: seen.append(progress.done))
    made = execute(TASK, problem, optimizer_factory(TASK.optimizer), settings)
    assert seen == [3, 4, 7, 10, 12]
    numbers: dict[str, Any] = {"budget": 12, "batch_size": 3, "n_init": 4, "seed": 5}
    for which in (TASK.problem, problem):
        again = cbo.run(which, "random-search", **numbers)
        assert (again.task, again.digest) == (made.task, made.digest)

    def values(x: Array) -> tuple[Array, Array]:
        return problem.evaluate(x).objective, problem.evaluate(x).constraints

    space = problem.space
    found = cbo.minimize(
        values, space.lower, space.upper, num_constraints=space.num_constraints,
        optimizer="random-search", **numbers,
    ).run  # fmt: skip
    assert found.task == Task("user-function-v0", "random-search", 12, 3, 4, 5)
    # The design is another one, because it is that of another problem.
    assert found.x.shape == made.x.shape
    assert np.array_equal(found.x[4:], made.x[4:])
