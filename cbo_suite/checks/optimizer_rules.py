"""The rules that an optimizer keeps; `cbo_suite.checks.check_optimizer` runs them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import msgspec
import numpy as np

from cbo_suite.checks.rules import Rule, RuleSkipped, copied, same
from cbo_suite.checks.session import (
    BATCH,
    DESIGN,
    LONG_RUN,
    OptimizerSubject,
    mixed_space,
    small_grid,
)
from cbo_suite.errors import ConformanceError, InvalidPoint, describe
from cbo_suite.protocols import Evaluation


def _constructor(subject: OptimizerSubject) -> None:
    """It is made as (space, budget=..., batch_size=..., seed=...) and has ask and tell."""
    try:
        optimizer = subject.probe
    except TypeError as error:
        raise ConformanceError(
            f"calling it as (space, budget=..., batch_size=..., seed=...) raised "
            f"{describe(error)}: take these names and give every other argument a default"
        ) from error
    for name in ("ask", "tell"):
        if not callable(getattr(optimizer, name, None)):
            raise ConformanceError(
                f"{type(optimizer).__name__} has no method {name}: write it, see "
                "cbo_suite.protocols.Optimizer"
            )


def _limits(subject: OptimizerSubject) -> None:
    """Declared limits are true or false, or whole numbers from one."""
    for name in ("sequential", "deterministic_search"):
        flag = subject.declared(name)
        if not isinstance(flag, bool | None):
            raise ConformanceError(f"{name} is {flag!r}: declare True or False")
    for name in ("max_dim", "max_batch_size"):
        limit = subject.declared(name)
        if limit is not None and (type(limit) is not int or limit < 1):
            raise ConformanceError(f"{name} is {limit!r}: declare a whole number from 1, or None")


def _ask_first(subject: OptimizerSubject) -> None:
    """It proposes points before it was told any."""
    for dim in subject.dims:
        subject.session(dim).ask()


def _proposals(subject: OptimizerSubject) -> None:
    """It proposes float64 points (k, d) inside the box, one at a time, told a design first."""
    for dim, m in ((1, 1), (2, 1), (5, 3)):
        session = subject.session(dim, m)
        session.tell(session.design)
        session.advance(subject.rounds)


def _long_run(subject: OptimizerSubject) -> None:
    """It keeps to the box through a run of at least 30 evaluations."""
    n = subject.batch_size
    rounds = -(-(max(subject.budget, LONG_RUN) - DESIGN) // n)
    session = subject.session(dim=3, batch_size=n, rounds=rounds)
    session.tell(session.design)
    session.advance(rounds, n)


def _no_constraints(subject: OptimizerSubject) -> None:
    """It works without constraints, m = 0."""
    session = subject.session(m=0)
    session.tell(session.design)
    session.advance(subject.rounds)


def _batch(subject: OptimizerSubject) -> None:
    """Asked for four points it returns one to four, not all the same."""
    if subject.batch_obstacle:
        raise RuleSkipped(subject.batch_obstacle)
    session = subject.session(batch_size=BATCH)
    session.tell(session.design)
    for x in session.advance(subject.rounds, BATCH):
        if len(x) > 1 and (x == x[0]).all():
            raise ConformanceError(
                f"ask({BATCH}) returned the same point {len(x)} times: "
                "propose different points, or fewer"
            )


def _budget_remainder(subject: OptimizerSubject) -> None:
    """The last batch may be smaller than the others."""
    if subject.batch_obstacle:
        raise RuleSkipped(subject.batch_obstacle)
    session = subject.session(batch_size=BATCH, remainder=1)
    session.tell(session.design)
    session.advance(subject.rounds - 1, BATCH)
    session.advance(1, BATCH - 1)


def _repeatable(subject: OptimizerSubject) -> None:
    """The same seed and data give the same proposals, to the last bit."""
    n = subject.batch_size
    twins = [subject.session(batch_size=n) for _ in range(2)]
    for twin in twins:
        twin.tell(twin.design)
    # In lock step, so that twins that share a global generator take each other's numbers.
    for step in range(subject.rounds):
        first, second = (twin.advance(1, n)[0] for twin in twins)
        if not np.array_equal(first, second):
            raise ConformanceError(
                f"two optimizers with the same seed and data differ at ask {step + 1}: draw "
                "every random number from one generator per optimizer, made from the seed"
            )


def _seeds_differ(subject: OptimizerSubject) -> None:
    """Another seed gives other proposals."""
    if subject.declared("deterministic_search"):
        raise RuleSkipped("the optimizer declares deterministic_search = True")
    n = subject.batch_size
    traces = []
    for seed in (0, 1):
        session = subject.session(batch_size=n, seed=seed)
        session.tell(session.design)
        traces.append(session.advance(subject.rounds, n))
    if all(np.array_equal(a, b) for a, b in zip(*traces, strict=True)):
        raise ConformanceError(
            "seeds 0 and 1 give the same proposals: draw random numbers from the seed, or "
            "declare the class attribute deterministic_search = True"
        )


def _foreign_points(subject: OptimizerSubject) -> None:
    """It takes in points that it never asked for, also between ask and tell."""
    session = subject.session()
    session.tell(session.design)
    x = session.ask()
    session.tell(session.draw(2, seed=1))
    session.tell(x)
    session.tell(session.draw(1, seed=2))
    session.ask()


def _tell_order(subject: OptimizerSubject) -> None:
    """Results may come in any order and in parts."""
    n = subject.batch_size
    session = subject.session(batch_size=n)
    session.tell(session.design[:1:-1])
    session.tell(session.design[:2])
    session.tell(session.ask(n)[::-1])
    x = session.ask(n)
    half = len(x) // 2
    session.tell(x[half:])
    if half:
        session.tell(x[:half])
    session.ask(n)


def _pending(subject: OptimizerSubject) -> None:
    """Asked again before it was told, it proposes another point."""
    if subject.batch_obstacle:
        raise RuleSkipped(subject.batch_obstacle)
    session = subject.session(batch_size=BATCH)
    session.tell(session.design)
    first, second = session.ask(), session.ask()
    if np.array_equal(first, second):
        raise ConformanceError(
            f"the second ask repeated {first[0].tolist()}, whose result is still to come: keep "
            "the points that were asked and not yet told, and propose others"
        )
    session.tell(second)
    session.ask()


def _mixed_space(subject: OptimizerSubject) -> None:
    """It keeps to whole numbers and known linear constraints, also on a logarithmic scale."""
    n, space = subject.batch_size, mixed_space(subject.dims[-1])
    subject.session(batch_size=n, space=space).ask(n)
    session = subject.session(batch_size=n, space=space)
    session.tell(session.design)
    session.advance(subject.rounds, n)
    # Once more while points are under way.
    for x in [session.ask(n), session.ask(n)]:
        session.tell(x)
    session.ask(n)


def _small_grid(subject: OptimizerSubject) -> None:
    """It goes on when every point of a small grid of whole numbers is known."""
    space = small_grid(subject.dims[-1])
    grid = np.array(list(product([-1.0, 0.0, 1.0], repeat=space.dim)))
    session = subject.session(space=space)
    session.tell(grid)
    session.advance(subject.rounds)


def _go_on(
    subject: OptimizerSubject, change: Callable[[Evaluation], Evaluation], m: int = 1
) -> None:
    """Run a session whose every evaluation is changed before it is told."""
    session = subject.session(m=m)
    session.tell(session.design, change(session.evaluate(session.design)))
    for _ in range(subject.rounds):
        x = session.ask()
        session.tell(x, change(session.evaluate(x)))


def _infeasible_only(subject: OptimizerSubject) -> None:
    """It goes on while every point is infeasible."""
    _go_on(subject, lambda values: values._replace(constraints=values.constraints + 2.0), m=3)


def _constant_data(subject: OptimizerSubject) -> None:
    """It goes on while every point has the same values."""
    _go_on(
        subject,
        lambda values: Evaluation(
            np.zeros_like(values.objective), np.full_like(values.constraints, -1.0)
        ),
    )


def _nonfinite_data(subject: OptimizerSubject) -> None:
    """It goes on when some or all values are NaN or infinite."""

    def broken(values: Evaluation) -> Evaluation:
        objective, constraints = copied(values)
        objective[::5], objective[1::5], objective[2::5] = np.nan, np.inf, -np.inf
        constraints[3::5] = np.nan
        return Evaluation(objective, constraints)

    _go_on(subject, broken)
    _go_on(subject, lambda values: Evaluation(*(np.full_like(part, np.nan) for part in values)))


def _duplicates(subject: OptimizerSubject) -> None:
    """It goes on when the same points are told again."""
    session = subject.session()
    session.tell(session.design)
    session.tell(np.repeat(session.design[:2], 2, axis=0))
    session.tell(session.advance(1)[0])
    session.ask()


def _told_arrays(subject: OptimizerSubject) -> None:
    """It does not modify the arrays it is told."""
    session = subject.session()
    x, values = session.design, session.evaluate(session.design)
    told = (x.copy(), copied(values))
    session.optimizer.tell(*told)
    session.ask()
    if not (np.array_equal(told[0], x) and same(told[1], values)):
        raise ConformanceError("tell or ask modified the told arrays: work on a copy of them")


def _asked_arrays(subject: OptimizerSubject) -> None:
    """It does not modify the arrays it returned."""
    session = subject.session()
    session.tell(session.design)
    returned = session.optimizer.ask(1)
    before = returned.copy()
    session.tell(before)
    session.ask()
    if not np.array_equal(returned, before):
        raise ConformanceError(
            "a later tell or ask modified the array that ask returned: return a new array"
        )


def _state(subject: OptimizerSubject) -> None:
    """A fresh optimizer with the told data and the state goes on as the first one, bit by bit."""
    n = subject.batch_size
    session, fresh = (subject.session(batch_size=n) for _ in range(2))
    names = ("get_state", "set_state")
    offered = [name for name in names if callable(getattr(session.optimizer, name, None))]
    if not offered:
        raise RuleSkipped("the optimizer offers no get_state and set_state")
    if len(offered) == 1:
        raise ConformanceError(f"{offered[0]} stands alone: offer get_state and set_state, or none")
    session.tell(session.design)
    # As the harness resumes: the data up to the last batch, the state after it was asked, then
    # the results of that batch. Other workers may have points under way meanwhile.
    fresh.tell(fresh.design)
    for x in session.advance(subject.rounds - 1, n):
        fresh.tell(x)
    under_way = [] if subject.batch_obstacle else [session.ask()]
    under_way.append(session.ask(n))
    state = _through_json(session.optimizer.get_state(), "the state")
    fresh.optimizer.set_state(state)
    for step in range(2):
        told = under_way.pop()
        session.tell(told)
        fresh.tell(told)
        expected, resumed = session.ask(n), fresh.ask(n)
        if not np.array_equal(expected, resumed):
            raise ConformanceError(
                f"ask {step + 1} after resuming differs from the run that was not interrupted: "
                "put into the state all that telling the data does not make again, such as the "
                "random generator and the points asked and not yet told"
            )
        under_way.insert(0, expected)


def _inspection(subject: OptimizerSubject) -> None:
    """What it says of itself is plain JSON."""
    session = subject.session()
    if not hasattr(session.optimizer, "inspect"):
        raise RuleSkipped("the optimizer offers no inspect")
    session.tell(session.design)
    session.ask()
    _through_json(session.optimizer.inspect(), "the answer of inspect")


def _recommendation(subject: OptimizerSubject) -> None:
    """The point it recommends, shape (d,), lies inside the box."""
    session = subject.session()
    if not hasattr(session.optimizer, "recommend"):
        raise RuleSkipped("the optimizer offers no recommend")
    session.tell(session.design)
    point = np.asarray(session.optimizer.recommend())
    try:
        session.space.validate(point[None])
    except InvalidPoint as error:
        raise ConformanceError(f"recommend returned {point.tolist()}: {error}") from error


def _through_json(value: object, name: str) -> object:
    """Write and read a value as the journal does, or say why it is not plain JSON."""
    advice = "use only dict with text keys, list, str, int, finite float, bool and None"
    try:
        read = msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ConformanceError(f"{name} is not plain JSON, {describe(error)}: {advice}") from error
    if not isinstance(value, dict) or read != value:
        raise ConformanceError(f"{name} does not come back from JSON as the dict it was: {advice}")
    return read


# What each of these finds would also show in others, so they wait for the plain case to work.
_AFTER_PROPOSALS = {
    "long-run": _long_run,
    "no-constraints": _no_constraints,
    "batch": _batch,
    "budget-remainder": _budget_remainder,
    "repeatable": _repeatable,
    "seeds-differ": _seeds_differ,
    "foreign-points": _foreign_points,
    "tell-order": _tell_order,
    "pending": _pending,
    "infeasible-only": _infeasible_only,
    "constant-data": _constant_data,
    "nonfinite-data": _nonfinite_data,
    "duplicates": _duplicates,
    "told-arrays": _told_arrays,
    "asked-arrays": _asked_arrays,
    "state": _state,
    "inspection": _inspection,
    "recommendation": _recommendation,
}

OPTIMIZER_RULES: tuple[Rule[OptimizerSubject], ...] = (
    Rule("constructor", _constructor),
    Rule("limits", _limits, ("constructor",)),
    Rule("ask-first", _ask_first, ("limits",)),
    Rule("proposals", _proposals, ("limits",)),
    *(Rule(name, check, ("proposals",)) for name, check in _AFTER_PROPOSALS.items()),
    Rule("mixed-space", _mixed_space, ("ask-first", "long-run")),
    Rule("small-grid", _small_grid, ("mixed-space", "duplicates")),
)
