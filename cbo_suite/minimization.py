"""Minimise a function of your own under constraints, with any registered optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from cbo_suite.files import move_aside
from cbo_suite.harness import Callback, Settings, execute, named_factory
from cbo_suite.harness.evaluate import evaluate_points
from cbo_suite.harness.user_function import (
    OnChange,
    UserProblem,
    check_on_change,
    describe_function,
    find_change,
    refuse_change,
)
from cbo_suite.journal import Contents, read_journal
from cbo_suite.protocols import Array, Space, Task, whole_number


def minimize(
    fun: Callable[[Array], Any],
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    num_constraints: int = 0,
    budget: int = 100,
    optimizer: str | Callable[..., Any] = "scbo",
    batch_size: int = 1,
    n_init: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    processes: int | None = None,
    evaluation_timeout: float | None = None,
    real_time: bool = False,
    journal: str | Path | None = None,
    on_change: OnChange = "error",
    recheck: bool = False,
    options: Mapping[str, Any] | None = None,
    callback: Callback | None = None,
) -> OptimizeResult:
    """Minimise `fun` over a box where every constraint is <= 0.

    Args:
        fun: Takes points of shape `(n, d)`, n at most `batch_size`, and gives `(f, c)` of shapes
            `(n,)` and `(n, m)`; with `num_constraints=0` it may give `f` alone. What it raises
            is an evaluation that failed: recorded, paid for, and the run goes on. If a call with
            several points raises, each of them is evaluated again alone, so that one bad point
            does not cost the others; the budget counts each point once. What gives no values of
            these shapes at the very first evaluation ends the run.
        lower: Lower bounds, shape `(d,)`.
        upper: Upper bounds, shape `(d,)`.
        num_constraints: Number of constraints m.
        budget: Number of evaluations, the initial design among them.
        optimizer: An optimizer's id, or a class or factory.
        batch_size: Number of points per call of `fun`.
        n_init: Number of points of the initial design; by default twice the dimension, at least
            10 and at most half the budget.
        seed: The same seed gives the same run.
        workers: Number of asynchronous workers instead of batches, on a virtual clock.
        processes: Number of processes that evaluate, None for this one, see `run`. Each is sent
            `fun`, which must be a function from the top level of a module, and calls it with one
            point at a time.
        evaluation_timeout: Seconds after which the evaluation of a point is killed, see `run`.
        real_time: Tell results in the order in which they really come, see `run`.
        journal: Where every evaluation is written; the same path again resumes, and with a larger
            budget goes on from there.
        on_change: What to do if the journal was made with another function, by its name or its
            source: "error" refuses, "keep" goes on with the values there, "restart" sets the
            journal aside and begins anew.
        recheck: Whether one recorded point is evaluated again before a journal is resumed, to be
            sure that the function still gives what it gave; that evaluation costs no budget.
        options: Options of the optimizer.
        callback: Called with a `Progress` after every batch.

    Returns:
        SciPy's result: `x` the best point, `fun` its objective, `constr` its constraints, `maxcv`
        its largest violation, `success` whether it is feasible, `message`, `nfev`; and `run`, the
        run with every evaluation. If nothing is feasible, `x` is the point of least violation;
        if the optimizer recommends a point of its own (noisy problems), `x` is that point, and
        `success` says whether its own result happened to be feasible.
    """
    space = Space(lower, upper, num_constraints)
    budget = whole_number("budget", budget, 1)
    problem, facts = UserProblem(fun, space), describe_function(fun)
    resumed = None
    if journal is not None:
        resumed, facts = _known_journal(
            Path(journal).expanduser(), problem, facts, check_on_change(on_change), recheck
        )
    if n_init is None:
        # A larger budget goes on from the design that is there.
        n_init = max(1, min(max(10, 2 * space.dim), budget // 2))
        n_init = n_init if resumed is None else resumed.header.task.n_init
    name, factory = named_factory(optimizer)
    task = Task(UserProblem.id, name, budget, batch_size, n_init, seed, workers)
    settings = Settings(
        options=options or {},
        journal=journal,
        callback=callback,
        processes=processes,
        evaluation_timeout=evaluation_timeout,
        real_time=real_time,
        more_facts=facts,
    )
    made = execute(task, problem, factory, settings)
    best = made.best_index
    if made.recommended_x is not None:
        best = int(np.argmin(np.abs(made.x - made.recommended_x).max(axis=1)))
    constraints = made.constraints[best]
    feasible = bool(made.evaluation.feasible[best])
    if feasible:
        message = "a feasible point was found"
    elif best == made.best_index:
        message = "no feasible point was found: x is the point of least violation"
    else:
        message = "x is the point that the optimizer recommends; its own result is not feasible"
    fields: dict[str, Any] = {
        "x": made.x[best],
        "fun": float(made.objective[best]),
        "constr": constraints,
        "maxcv": float(np.max(constraints, initial=0.0)),
        "success": feasible,
        "message": message,
        "nfev": len(made.x),
        "seconds_optimizer": made.seconds_optimizer,
        "seconds_evaluation": made.seconds_evaluation,
        "run": made,
    }
    return OptimizeResult(**fields)


def _known_journal(
    path: Path,
    problem: UserProblem,
    facts: dict[str, str],
    on_change: OnChange,
    recheck: bool,
) -> tuple[Contents | None, dict[str, str]]:
    """Look whether a journal is of this function.

    Returns:
        What it holds, None if a new one is begun; and the facts of the function that go into it.

    Raises:
        JournalError: It was made with another function, and nothing else was asked for.
    """
    if not path.is_file():
        return None, facts
    contents = read_journal(path)
    if contents is None:
        return None, facts
    change = find_change(contents.header, facts)
    if not change and recheck:
        change = _other_value(contents, problem)
    if not change or on_change == "keep":
        known = {name: text for name, text in contents.header.facts.items() if name in facts}
        return contents, known
    if on_change == "error":
        raise refuse_change(path, change)
    move_aside(path, "before")
    return None, facts


def _other_value(contents: Contents, problem: UserProblem) -> str:
    """Evaluate one recorded point again; say how it differs, "" if it does not."""
    for batch in contents.batches:
        for row, status in enumerate(batch.status):
            if status != "ok":
                continue
            x = batch.points[row : row + 1]
            before = batch.evaluation(problem.space.num_constraints)
            now = evaluate_points(problem, x).evaluation
            same = np.array_equal(now.objective[0], before.objective[row]) and np.array_equal(
                now.constraints[0], before.constraints[row]
            )
            return "" if same else f"at {x[0].tolist()} the function gives other values than then"
    return ""
