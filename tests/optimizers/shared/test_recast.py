"""A call-back solver turned into ask/tell."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize, rosen

from cbo_suite.errors import OptimizerFailed
from cbo_suite.optimizers.shared.recast import Evaluate, Recast, key_of
from cbo_suite.protocols import Array

NO_CONSTRAINTS = np.empty(0)


def solver_threads() -> list[threading.Thread]:
    """Return the threads of solvers that are alive."""
    return [thread for thread in threading.enumerate() if thread.name == "cbo-solver"]


def nelder_mead(evaluate: Evaluate) -> None:
    """Minimise by a real solver that knows nothing of ask/tell."""

    def objective(x: Array) -> float:
        return evaluate(x)[0]

    minimize(objective, [-1.0, 2.0], method="Nelder-Mead", options={"maxfev": 60})


def drive(recast: Recast, function: Callable[[np.ndarray], float]) -> list[np.ndarray]:
    """Ask and tell until the solver ends; return the points."""
    points = []
    while (point := recast.ask()) is not None:
        points.append(point)
        recast.tell((function(point), NO_CONSTRAINTS))
    return points


@pytest.fixture(autouse=True)
def _no_thread_stays() -> object:
    """Every test must leave no solver alive."""
    yield
    gc.collect()
    assert solver_threads() == []


def test_same_points_as_the_solver_itself() -> None:
    """Ask gives exactly the points that the solver evaluates when it is called directly."""
    direct: list[np.ndarray] = []

    def function(x: np.ndarray) -> float:
        direct.append(x.copy())
        return float(rosen(x))

    nelder_mead(lambda x: (function(x), NO_CONSTRAINTS))
    asked = drive(Recast(nelder_mead), lambda x: float(rosen(x)))
    distinct = list({key_of(x): x for x in direct}.values())
    assert np.array_equal(asked, distinct)
    assert len(asked) > 50


def test_one_evaluation_for_each_distinct_point() -> None:
    """A point that the solver evaluates again, also as -0.0, comes out once."""
    seen = []

    def solve(evaluate: Evaluate) -> None:
        for value in (0.0, 1.0, 0.0, -0.0, 1.0, 2.0):
            seen.append(evaluate(np.array([value]))[0])

    points = drive(Recast(solve), lambda x: 10.0 * x[0])
    assert [point[0] for point in points] == [0.0, 1.0, 2.0]
    assert seen == [0.0, 10.0, 0.0, 0.0, 10.0, 20.0]


def test_known_points_never_come_out() -> None:
    """Values in the memory are used, and new ones are added to it."""
    memory = {key_of(np.array([1.0])): (7.0, NO_CONSTRAINTS)}
    seen: list[float] = []

    def solve(evaluate: Evaluate) -> None:
        seen.extend(evaluate(np.array([value]))[0] for value in (1.0, 2.0))

    points = drive(Recast(solve, memory), lambda x: 5.0)
    assert [point[0] for point in points] == [2.0]
    assert seen == [7.0, 5.0]
    assert key_of(np.array([2.0])) in memory


def test_same_point_until_it_is_told() -> None:
    """Asking twice in a row does not move the solver."""
    recast = Recast(nelder_mead)
    assert recast.ask() is recast.ask()
    recast.close()


def test_points_do_not_change_afterwards() -> None:
    """A solver that re-uses its array does not change a point that was handed out."""

    def solve(evaluate: Evaluate) -> None:
        x = np.zeros(1)
        for _ in range(3):
            evaluate(x)
            x += 1.0

    points = drive(Recast(solve), lambda x: 0.0)
    assert [point[0] for point in points] == [0.0, 1.0, 2.0]


def test_solver_moves_only_inside_ask() -> None:
    """Solver and caller alternate strictly."""
    events: list[str] = []

    def solve(evaluate: Evaluate) -> None:
        for i in range(3):
            events.append(f"solver {i}")
            evaluate(np.array([float(i)]))
        events.append("solver ends")

    recast = Recast(solve)
    assert events == []
    for i in range(3):
        recast.ask()
        events.append(f"asked {i}")
        recast.tell((0.0, NO_CONSTRAINTS))
        events.append(f"told {i}")
    assert recast.ask() is None
    turns = [turn for i in range(3) for turn in (f"solver {i}", f"asked {i}", f"told {i}")]
    assert events == [*turns, "solver ends"]


def test_end_is_final() -> None:
    """After the solver has ended there are no more points, and its thread is gone."""
    recast = Recast(lambda evaluate: None)
    assert recast.ask() is None
    assert recast.ask() is None


def test_error_of_the_solver_reaches_ask() -> None:
    """What the solver raises arrives with its cause, again at every ask."""

    def solve(evaluate: Evaluate) -> None:
        evaluate(np.zeros(1))
        raise ZeroDivisionError("in the solver")

    recast = Recast(solve)
    recast.ask()
    recast.tell((0.0, NO_CONSTRAINTS))
    for _ in range(2):
        with pytest.raises(OptimizerFailed, match="ZeroDivisionError: in the solver") as caught:
            recast.ask()
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_tell_before_ask_is_refused() -> None:
    """Values without a waiting point are an error that says what to do."""
    with pytest.raises(OptimizerFailed, match="call ask first"):
        Recast(nelder_mead).tell((0.0, NO_CONSTRAINTS))


def test_close_ends_the_thread() -> None:
    """A run that ends early leaves no thread, and nothing more can be asked."""
    recast = Recast(nelder_mead)
    recast.ask()
    assert len(solver_threads()) == 1
    recast.close()
    assert solver_threads() == []
    assert recast.ask() is None
    recast.close()


def test_close_before_the_first_ask() -> None:
    """A solver that never ran has no thread to end."""
    recast = Recast(nelder_mead)
    assert solver_threads() == []
    recast.close()
    assert recast.ask() is None


def test_collection_ends_the_thread() -> None:
    """An optimizer that is simply dropped takes its thread with it."""
    recast = Recast(nelder_mead)
    recast.ask()
    watch = weakref.ref(recast)
    del recast
    gc.collect()
    assert watch() is None
    assert solver_threads() == []


@pytest.mark.parametrize("caught", [Exception, BaseException])
def test_solver_that_catches_everything_is_ended_too(caught: type[BaseException]) -> None:
    """A solver that swallows what its function raises gets it again at every call."""
    swallowed = []

    def solve(evaluate: Evaluate) -> None:
        for i in range(5):
            try:
                evaluate(np.array([float(i)]))
            except caught:
                swallowed.append(i)

    recast = Recast(solve)
    recast.ask()
    recast.close()
    assert solver_threads() == []
    assert swallowed == ([] if caught is Exception else [0, 1, 2, 3, 4])


def test_many_solvers_at_once_do_not_mix() -> None:
    """Solvers in turn give each the points it gives alone."""
    alone = drive(Recast(nelder_mead), lambda x: float(rosen(x)))
    recasts = [Recast(nelder_mead) for _ in range(4)]
    points: list[list[np.ndarray]] = [[] for _ in recasts]
    for _ in alone:
        for recast, own in zip(recasts, points, strict=True):
            point = recast.ask()
            assert point is not None
            own.append(point)
            recast.tell((float(rosen(point)), NO_CONSTRAINTS))
    assert [recast.ask() for recast in recasts] == [None] * 4
    assert all(np.array_equal(own, alone) for own in points)
