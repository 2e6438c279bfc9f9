"""Minimise a function of your own under constraints, with any registered optimizer.

`minimize` checks what it is handed (`inputs`), finds out whether a journal is one to go on from
(`journals`), runs the optimizer, shows how far it is (`progress`), and puts the `Result` together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import ArrayLike

from cbo_suite.choice import AUTO, choose_optimizer
from cbo_suite.errors import EvaluationFailed, InvalidTask, MalformedEvaluation
from cbo_suite.harness import Callback, Progress, Settings, execute
from cbo_suite.harness.loop import INTERRUPTED
from cbo_suite.harness.user_function import (
    OnChange,
    UserProblem,
    check_on_change,
    describe_function,
)
from cbo_suite.journal import Contents, Given
from cbo_suite.minimization.inputs import (
    Data,
    Names,
    choose_n_init,
    count_constraints,
    make_given,
    make_space,
)
from cbo_suite.minimization.journals import known_journal
from cbo_suite.minimization.progress import show_progress
from cbo_suite.minimization.result import Model, Result, make_result
from cbo_suite.protocols import Array, Space, Task, whole_number

__all__ = ["Data", "Model", "Result", "minimize"]

_log = logging.getLogger(__name__)


def minimize(
    fun: Callable[[Array], Any],
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    num_constraints: int = 0,
    budget: int = 100,
    optimizer: str | Callable[..., Any] = AUTO,
    names: Sequence[str] | None = None,
    constraint_names: Sequence[str] | None = None,
    integer: ArrayLike | Sequence[int | str] = (),
    log_scale: ArrayLike | Sequence[int | str] = (),
    linear: tuple[Any, ArrayLike] | None = None,
    vectorized: bool = True,
    x0: ArrayLike | None = None,
    data: tuple[ArrayLike, ...] | None = None,
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
    stop_at: float | None = None,
    stop_after: float | None = None,
    progress: bool | None = None,
) -> Result:
    """Minimise `fun` over a box where every constraint is <= 0.

    Ctrl-C ends the run and returns what there is; `message` says how to go on.

    Args:
        fun: Takes points of shape `(n, d)`, n at most `batch_size`, and gives `(f, c)` of shapes
            `(n,)` and `(n, m)`, or `{"objective": f, "constraints": {"name": c1, ...}}`; with
            `num_constraints=0` it may give `f` alone. What it raises is an evaluation that failed:
            recorded, paid for, and the run goes on. If a call with several points raises, each of
            them is evaluated again alone, so that one bad point does not cost the others; the
            budget counts each point once. What gives no values of these shapes at the very first
            evaluation ends the run.
        lower: Lower bounds, shape `(d,)`.
        upper: Upper bounds, shape `(d,)`.
        num_constraints: Number of constraints m; by default that of `constraint_names`, else 0.
        budget: Number of evaluations, the initial design among them.
        optimizer: An optimizer's id, or a class or factory; "auto" takes one that suits the
            numbers of variables, constraints, evaluations and points at once, and noise. The result
            says which and why. With a journal that is there it is that of the journal.
        names: Names of the variables, for results, figures, messages and tables.
        constraint_names: Names of the constraints, in the order of their values.
        integer: Indices or names of the variables that are whole numbers.
        log_scale: Indices or names of the variables on a logarithmic scale.
        linear: A of shape `(k, d)` and b of shape `(k,)`: only points with A x <= b are evaluated.
            A row of A may be a mapping of names to coefficients.
        vectorized: False if `fun` takes one point of shape `(d,)` and gives a number and m numbers.
        x0: A point `(d,)` or several `(k, d)` that the initial design begins with.
        data: Results that are known, `(X, F, C)` of shapes `(n, d)`, `(n,)`, `(n, m)`: the
            optimizer is told them before it is first asked, and they cost no budget.
        batch_size: Number of points per call of `fun`.
        n_init: Number of points of the initial design, those of `x0` among them; by default twice
            the dimension, at least 10 and at most half the budget, less those of `data`.
        seed: The same seed gives the same run.
        workers: Number of asynchronous workers instead of batches, on a virtual clock.
        processes: Number of processes that evaluate, None for this one, see `run`. Each is sent
            `fun`, which must be a function from the top level of a module, and calls it with one
            point at a time.
        evaluation_timeout: Seconds after which the evaluation of a point is killed, see `run`.
        real_time: Tell results in the order in which they really come, see `run`.
        journal: Where every evaluation is written; the same path again resumes, and with a larger
            budget goes on from there. `x0` and `data` are in it and may then be left out.
        on_change: What to do if the journal was made with another function, by its name or its
            source: "error" refuses, "keep" goes on with the values there, "restart" sets the
            journal aside and begins anew.
        recheck: Whether one recorded point is evaluated again before a journal is resumed, to be
            sure that the function still gives what it gave; that evaluation costs no budget.
        options: Options of the optimizer. `{"noisy": True}` says that results are noisy, and is
            all that "auto" takes.
        callback: Called with a `Progress` after every batch; if it returns True, the run stops.
        stop_at: Stop when a feasible point has an objective value of at most this.
        stop_after: Stop when so many seconds have passed and the batch under way is told.
        progress: Whether progress is shown on standard error: a bar on a terminal, a plain line
            now and then elsewhere. By default it is, but not in notebooks.

    Returns:
        SciPy's result: `x` the best point, `fun` its objective, `constr` its constraints, `maxcv`
        its largest violation, `success` whether it is feasible, `message`, `nfev`; and more, see
        `Result`. If nothing is feasible, `x` is the point of least violation; if the optimizer
        recommends a point of its own (noisy problems), `x` is that point, and `success` says
        whether its own result happened to be feasible. Points of `data` count.

    Raises:
        InvalidSpace: Bounds, kinds of variables, linear constraints or names contradict each other.
        InvalidPoint: `x0` or a point of `data` leaves the space.
        InvalidData: The results of `data` have other shapes or are not finite.
        InvalidTask: Some other argument makes no run.
        Further errors are those of `run`.
    """
    if not callable(fun):
        raise InvalidTask(f"fun must be a function, got {fun!r:.80}")
    box = Space(lower, upper, count_constraints(num_constraints, constraint_names))
    labels = Names.of(box.dim, box.num_constraints, names, constraint_names)
    space = make_space(box, labels, integer, log_scale, linear)
    given = make_given(data, x0, space, labels)
    budget = whole_number("budget", budget, 1)
    problem = UserProblem(fun, space, vectorized=vectorized, constraint_names=constraint_names)
    facts, resumed = describe_function(fun, constraint_names), None
    if journal is not None:
        resumed, facts = known_journal(
            Path(journal).expanduser(), problem, facts, check_on_change(on_change), recheck
        )
    given = _recorded(given, resumed, space)
    if resumed is not None and not resumed.batches:
        # A call that evaluated nothing, perhaps because of a mistake, binds nobody.
        resumed = None
    if n_init is None and resumed is not None:
        # A larger budget goes on from the design that is there.
        n_init = resumed.header.task.n_init
    n_init = choose_n_init(n_init, budget, space.dim, given)
    task = Task(UserProblem.id, AUTO, budget, batch_size, n_init, seed, workers)
    header = None if resumed is None else resumed.header
    recorded = None if header is None else (header.task.optimizer, header.options)
    choice = choose_optimizer(optimizer, options, space, task, recorded)
    task = msgspec.structs.replace(task, optimizer=choice.name)
    display = show_progress(progress, choice.name)
    settings = Settings(
        options=choice.options,
        journal=journal,
        callback=_both(display, callback),
        processes=processes,
        evaluation_timeout=evaluation_timeout,
        real_time=real_time,
        more_facts=facts,
        given=given,
        stop_at=stop_at,
        stop_after=stop_after,
        keep_interrupted=True,
    )
    try:
        with display:
            run = execute(task, problem, choice.factory, settings)
    except EvaluationFailed as error:
        if not vectorized or isinstance(error, MalformedEvaluation):
            raise
        # By far the most frequent reason, and what the function raises does not tell it.
        raise EvaluationFailed(
            f"{error}; if the function takes one point of shape (d,) at a time, pass "
            "vectorized=False"
        ) from error
    known = Data(given.points, *given.evaluation) if given.x else None
    model = Model(run, known, space, choice.factory, settings.options)
    result = make_result(run, labels, known, model, journal, choice.reason)
    if run.status == "stopped" and run.error == INTERRUPTED:
        _log.warning("%s", result.message)
    return result


def _recorded(given: Given, resumed: Contents | None, space: Space) -> Given:
    """Return what is known beforehand: that of the journal where nothing else was said."""
    if resumed is None or isinstance(resumed.header.given, msgspec.UnsetType):
        return given
    if resumed.header.facts.get("space") != space.digest:
        # It is refused as another run, or begun anew.
        return given
    before = resumed.header.given
    if not given.x:
        given = msgspec.structs.replace(
            given, x=before.x, objective=before.objective, constraints=before.constraints
        )
    return given if given.first else msgspec.structs.replace(given, first=before.first)


def _both(display: Callback, callback: Callback | None) -> Callback:
    """Return a callback that shows progress and asks the user's own whether to stop."""
    if callback is None:
        return display
    if not callable(callback):
        raise InvalidTask(f"callback must be a function, got {callback!r}")

    def call(progress: Progress) -> object:
        display(progress)
        return callback(progress)

    return call
