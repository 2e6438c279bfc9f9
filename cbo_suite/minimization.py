"""Minimise a function of your own under constraints, with any registered optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from cbo_suite.harness import Callback, Settings, execute, named_factory
from cbo_suite.protocols import Array, Evaluation, Space, Task, whole_number


class UserProblem:
    """A function of the user's own as a problem."""

    id = "user-function-v0"

    def __init__(self, fun: Callable[[Array], Any], space: Space) -> None:
        """Keep the function and its box."""
        self.space = space
        self._fun = fun

    def evaluate(self, x: Array) -> Evaluation:
        """Call the function; without constraints it may give the objective alone."""
        values = self._fun(x)
        if self.space.num_constraints == 0 and not isinstance(values, tuple):
            values = values, np.empty((len(x), 0))
        # Whether these are values is looked at where every problem's are.
        return cast(Evaluation, values)


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
        journal: Where every evaluation is written; the same path again resumes.
        options: Options of the optimizer.
        callback: Called with a `Progress` after every batch.

    Returns:
        SciPy's result: `x` the best point, `fun` its objective, `constr` its constraints, `maxcv`
        its largest violation, `success` whether it is feasible, `message`, `nfev`; and `run`, the
        run with every evaluation. If nothing is feasible, `x` is the point of least violation;
        if the optimizer recommends a point of its own (noisy problems), `x` is that point, and
        `success` says whether its own result happened to be feasible.
    """
    space = Space(np.asarray(lower), np.asarray(upper), num_constraints)
    budget = whole_number("budget", budget, 1)
    if n_init is None:
        n_init = max(1, min(max(10, 2 * space.dim), budget // 2))
    name, factory = named_factory(optimizer)
    task = Task(UserProblem.id, name, budget, batch_size, n_init, seed, workers)
    settings = Settings(options or {}, journal, callback, processes, evaluation_timeout, real_time)
    made = execute(task, UserProblem(fun, space), factory, settings)
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
