"""COBYLA and COBYQA as optimizers."""

from __future__ import annotations

import gc
import importlib.util
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy._lib.pyprima.cobyla import cobylb
from scipy._lib.pyprima.cobyla.trustregion import trstlp

from cbo_suite import Evaluation, Space
from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers import cobyla
from cbo_suite.optimizers.cobyla import Cobyla, Cobyqa
from cbo_suite.optimizers.shared.recast import CallbackOptimizer

OPTIMIZERS: list[Callable[..., CallbackOptimizer]] = [Cobyla, Cobyqa]
# Hock and Schittkowski's problem 22: the solution is (1, 1) with value 1.
SPACE = Space(np.array([-2.0, -1.0]), np.array([2.0, 4.0]), 2)
SOLUTION = np.array([1.0, 1.0])


def evaluate(x: np.ndarray) -> Evaluation:
    """Evaluate points (n, 2): a distance to minimise below a line and above a parabola."""
    objective = (x[:, 0] - 2.0) ** 2 + (x[:, 1] - 1.0) ** 2
    return Evaluation(objective, np.column_stack([x.sum(axis=1) - 2.0, x[:, 0] ** 2 - x[:, 1]]))


def design(space: Space = SPACE) -> np.ndarray:
    """Return six random points of the box."""
    return space.from_unit(np.random.default_rng(3).random((6, space.dim)))


def make(
    factory: Callable[..., CallbackOptimizer], budget: int = 100, seed: int = 0, **options: object
) -> CallbackOptimizer:
    """Return an optimizer that was told the design."""
    optimizer = factory(SPACE, budget=budget, batch_size=1, seed=seed, **options)
    optimizer.tell(design(), evaluate(design()))
    return optimizer


def run(optimizer: CallbackOptimizer, count: int) -> np.ndarray:
    """Ask and tell one by one; return the points (count, 2)."""
    points = []
    for _ in range(count):
        x = optimizer.ask()
        points.append(x[0])
        optimizer.tell(x, evaluate(x))
    return np.array(points)


@pytest.fixture(autouse=True)
def _no_thread_stays() -> Iterator[None]:
    """Every test must leave no solver alive."""
    yield
    gc.collect()
    assert [t for t in threading.enumerate() if t.name == "cbo-solver"] == []


@pytest.mark.parametrize("factory", OPTIMIZERS)
def test_finds_the_constrained_minimum(factory: Callable[..., CallbackOptimizer]) -> None:
    """The active corner is found to 1e-3 within 60 evaluations."""
    points = run(make(factory), 60)
    values = evaluate(points)
    assert np.linalg.norm(points[values.best()] - SOLUTION) < 1e-3
    assert values.violation[values.best()] < 1e-6


@pytest.mark.parametrize("factory", OPTIMIZERS)
def test_points_are_new_and_inside(factory: Callable[..., CallbackOptimizer]) -> None:
    """No point is asked twice, none of the design is asked again, all lie in the box."""
    points = run(make(factory, budget=100), 100)
    everything = np.vstack([design(), points])
    assert len(np.unique(everything, axis=0)) == len(everything)
    assert np.array_equal(SPACE.validate(points), points)


def test_starts_with_a_simplex_at_the_best_point_of_the_design() -> None:
    """The first d points of COBYLA are one radius away from the best told point."""
    best = design()[evaluate(design()).best()]
    first = SPACE.to_unit(run(make(Cobyla, initial_radius=0.1), 2))
    distance = np.linalg.norm(first - SPACE.to_unit(best), axis=1)
    assert distance[0] == pytest.approx(0.1)
    assert distance[1] <= 0.1 * np.sqrt(2) + 1e-12


@pytest.mark.parametrize("factory", OPTIMIZERS)
def test_starts_at_the_centre_without_a_design(
    factory: Callable[..., CallbackOptimizer],
) -> None:
    """Asked before anything was told, the first point is the centre of the box."""
    optimizer = factory(SPACE, budget=10, batch_size=1, seed=0)
    assert optimizer.ask(3) == pytest.approx(np.array([[0.0, 1.5]]))


@pytest.mark.parametrize("factory", OPTIMIZERS)
def test_restarts_when_it_has_converged(factory: Callable[..., CallbackOptimizer]) -> None:
    """Converged solvers start again, near the best point and far from it in turn."""
    optimizer = make(factory, budget=150, final_radius=1e-2)
    assert optimizer.inspect() == {"restarts": 0}
    points = run(optimizer, 150)
    assert optimizer.inspect()["restarts"] >= 4
    spread = points[50:].max(axis=0) - points[50:].min(axis=0)
    assert (spread > 1.5).all()


@pytest.mark.parametrize("factory", OPTIMIZERS)
def test_asked_while_a_point_is_pending(factory: Callable[..., CallbackOptimizer]) -> None:
    """Further asks give points of the box, and do not change the solver's own path."""
    alone = run(make(factory), 30)
    optimizer = make(factory)
    path = []
    for _ in range(30):
        pending = optimizer.ask()
        extra = np.vstack([optimizer.ask(5), optimizer.ask()])
        SPACE.validate(extra)
        assert len(np.unique(np.vstack([pending, extra]), axis=0)) == 3
        # One extra point is told before the pending one, one together with it, in any order.
        optimizer.tell(extra[:1], evaluate(extra[:1]))
        both = np.vstack([extra[1:], pending])
        optimizer.tell(both, evaluate(both))
        path.append(pending[0])
    assert np.array_equal(path, alone)


@pytest.mark.parametrize("factory", OPTIMIZERS)
def test_same_seed_same_points(factory: Callable[..., CallbackOptimizer]) -> None:
    """Equal runs are equal to the last bit; another seed changes the restarts only."""

    def points(seed: int) -> np.ndarray:
        return run(make(factory, seed=seed, budget=80, final_radius=1e-2), 80)

    first, second, other = points(1), points(1), points(2)
    assert np.array_equal(first, second)
    assert np.array_equal(first[:8], other[:8])
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("factory", OPTIMIZERS)
def test_runs_in_turn_do_not_mix(factory: Callable[..., CallbackOptimizer]) -> None:
    """Two optimizers of one process, asked in turn, each go the way they go alone."""
    alone = run(make(factory), 40)
    pair = [make(factory), make(factory)]
    points = [[run(optimizer, 1)[0] for optimizer in pair] for _ in range(40)]
    assert np.array_equal([p[0] for p in points], alone)
    assert np.array_equal([p[1] for p in points], alone)


@pytest.mark.parametrize("factory", OPTIMIZERS)
def test_global_random_state_is_left_alone(factory: Callable[..., CallbackOptimizer]) -> None:
    """NumPy's global generator is neither read nor changed."""
    before = np.random.get_state(legacy=False)["state"]["key"].copy()
    run(make(factory, final_radius=1e-2), 60)
    assert np.array_equal(np.random.get_state(legacy=False)["state"]["key"], before)


@pytest.mark.parametrize("factory", OPTIMIZERS)
def test_values_that_are_not_finite(factory: Callable[..., CallbackOptimizer]) -> None:
    """Failed evaluations neither stop the run nor lead it out of the box."""
    optimizer = make(factory)
    points = []
    for i in range(40):
        x = optimizer.ask()
        values = evaluate(x)
        if i % 4 == 1:
            values = Evaluation(np.array([np.nan]), np.array([[np.nan, np.inf]]))
        elif i % 4 == 3:
            values = Evaluation(np.array([-np.inf]), np.array([[1e300, -1e300]]))
        optimizer.tell(x, values)
        points.append(x[0])
    SPACE.validate(np.array(points))


@pytest.mark.parametrize("factory", OPTIMIZERS)
@pytest.mark.parametrize("dim", [1, 3])
def test_without_constraints(factory: Callable[..., CallbackOptimizer], dim: int) -> None:
    """The minimum of a bowl beyond the box is found at its corner."""
    space = Space(np.full(dim, 1e6), np.full(dim, 1e6 + 10.0))
    optimizer = factory(space, budget=25, batch_size=1, seed=0)
    best = np.inf
    for _ in range(25):
        x = space.validate(optimizer.ask())
        objective = ((x - 1e6 + 2.0) ** 2).sum(axis=1)
        optimizer.tell(x, Evaluation(objective, np.empty((1, 0))))
        best = min(best, objective[0])
    assert best == pytest.approx(4.0 * dim, rel=1e-3)


@pytest.mark.parametrize("factory", OPTIMIZERS)
def test_close_ends_the_run(factory: Callable[..., CallbackOptimizer]) -> None:
    """After close there is no thread, and a result that still comes in does no harm."""
    optimizer = make(factory)
    optimizer.close()
    x = optimizer.ask()
    optimizer.close()
    assert [t for t in threading.enumerate() if t.name == "cbo-solver"] == []
    optimizer.tell(x, evaluate(x))


@pytest.mark.parametrize(
    "options",
    [
        {"initial_radius": 0.6},
        {"initial_radius": 0.1, "final_radius": 0.1},
        {"final_radius": 0.0},
        {"final_radius": float("nan")},
        {"subproblem": "fast"},
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """Radii that make no trust region, and unknown names, are refused with what was got."""
    with pytest.raises(InvalidTask, match="got"):
        Cobyla(SPACE, budget=10, batch_size=1, seed=0, **options)


def test_our_step_gives_scipys_solution() -> None:
    """With SciPy's own step the path begins alike and ends at the same solution."""
    ours, theirs = (run(make(Cobyla, subproblem=s), 60) for s in ("exact", "scipy"))
    assert ours[:4] == pytest.approx(theirs[:4])
    best = [points[evaluate(points).best()] for points in (ours, theirs)]
    assert best[0] == pytest.approx(best[1], abs=1e-3)


def test_scipy_itself_is_left_as_it_is() -> None:
    """Our step is in our copy of the solver, not in SciPy's."""
    run(make(Cobyla), 5)
    assert cobylb.trstlp is trstlp


def test_other_builds_of_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where SciPy has no such modules beneath, its public functions are used."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    cobyla._exact_cobyla.cache_clear()
    cobyla._cobyqa.cache_clear()
    try:
        for factory in OPTIMIZERS:
            points = run(make(factory), 60)
            best = points[evaluate(points).best()]
            assert np.linalg.norm(best - SOLUTION) < 1e-3
    finally:
        cobyla._exact_cobyla.cache_clear()
        cobyla._cobyqa.cache_clear()
