"""CMA-ES and its three ways to handle constraints."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import cma
import numpy as np
import pytest

from cbo_suite import Evaluation, Space
from cbo_suite.errors import InvalidTask, MissingExtra
from cbo_suite.optimizers.cma_es import CmaEs, Handling
from cbo_suite.optimizers.random_search import RandomSearch

HANDLINGS = get_args(Handling)
DIM = 5
SPACE = Space(np.full(DIM, -2.0), np.full(DIM, 3.0), 2)


def evaluate(x: np.ndarray) -> Evaluation:
    """Evaluate points (n, 5): a bowl at 1 outside a ball at 0 and a half-space.

    The minimum is on the plane where the sum is 2, at 0.4 in every variable, with value 1.8.
    """
    constraints = np.column_stack([x.sum(axis=1) - 2.0, (x**2).sum(axis=1) - 4.0])
    return Evaluation(((x - 1.0) ** 2).sum(axis=1), constraints)


MINIMUM = 1.8


def make(
    handling: Handling = "death-penalty", seed: int = 0, batch_size: int = 8, **options: Any
) -> CmaEs:
    """Return an optimizer that was told nothing."""
    return CmaEs(SPACE, budget=500, batch_size=batch_size, seed=seed, handling=handling, **options)


def run(optimizer: CmaEs, rounds: int, batch_size: int = 8) -> np.ndarray:
    """Ask and tell whole batches; return the points in order."""
    batches = []
    for _ in range(rounds):
        x = optimizer.ask(batch_size)
        optimizer.tell(x, evaluate(x))
        batches.append(x)
    return np.vstack(batches)


def best(points: np.ndarray) -> float:
    """Return the least objective of the feasible points, infinite if there is none."""
    values = evaluate(points)
    return float(values.objective.min(where=values.feasible, initial=np.inf))


@pytest.mark.parametrize("handling", HANDLINGS)
def test_is_pycma(handling: Handling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in batches is pycma's own loop with the same normal numbers, point by point."""
    monkeypatch.chdir(tmp_path)  # pycma's own augmented Lagrangian makes a folder
    design = SPACE.from_unit(np.random.default_rng(7).random((6, DIM)))
    optimizer = make(handling, seed=4)
    optimizer.tell(design, evaluate(design))
    ours = run(optimizer, 12)

    random = np.random.default_rng(4)
    start = SPACE.to_unit(design[evaluate(design).best()])
    options = {
        "bounds": [0, 1],
        "popsize": 8,
        "verbose": -9,
        "verb_log": 0,
        "seed": np.nan,
        "randn": lambda *shape: random.standard_normal(shape),
    }
    strategy = cma.CMAEvolutionStrategy(start, 0.25, options)
    lagrangian = cma.ConstrainedFitnessAL(
        lambda x: evaluate(SPACE.from_unit(x[None])).objective[0],
        lambda x: evaluate(SPACE.from_unit(x[None])).constraints[0],
        dimension=DIM,
        archives=False,
    )
    theirs = []
    for _ in range(12):
        units = strategy.ask()
        points = SPACE.from_unit(units)
        values = evaluate(points)
        if handling == "augmented-lagrangian":
            fitness = np.array([lagrangian(unit) for unit in units])
        else:
            violation = values.violation if handling == "violation" else np.arange(8.0)
            # Ties of a plain death penalty are broken by order, as pycma's sorting may not do.
            fitness = np.where(values.feasible, values.objective, 1e6 + violation)
        strategy.tell(units, list(fitness))
        if handling == "augmented-lagrangian":
            lagrangian.update(strategy)
        theirs.append(points)
    assert np.array_equal(ours, np.vstack(theirs))


@pytest.mark.slow
@pytest.mark.parametrize("handling", HANDLINGS)
def test_beats_random_search(handling: Handling) -> None:
    """With the same evaluations every variant ends below random search, in the median."""
    ours = [best(run(make(handling, seed), 60)) for seed in range(5)]
    theirs = [
        best(RandomSearch(SPACE, budget=480, batch_size=8, seed=seed).ask(480)) for seed in range(5)
    ]
    assert np.median(ours) < np.median(theirs)
    assert np.median(ours) < MINIMUM + 0.15


def test_variants_converge_to_the_active_constraint() -> None:
    """Ranking by violation and the augmented Lagrangian reach the minimum on the plane."""
    assert best(run(make("violation"), 150)) == pytest.approx(MINIMUM, abs=0.02)
    assert best(run(make("augmented-lagrangian"), 150)) == pytest.approx(MINIMUM, abs=0.02)


def test_death_penalty_is_blind_while_nothing_is_feasible() -> None:
    """Infeasible values make no difference to it, whatever they are; they do to the others."""

    def walk(handling: Handling, data: int) -> np.ndarray:
        optimizer, values = make(handling), np.random.default_rng(data)
        points = []
        for _ in range(20):
            x = optimizer.ask(8)
            optimizer.tell(x, Evaluation(values.normal(size=8), values.random((8, 2)) + 0.1))
            points.append(x)
        return np.vstack(points)

    assert np.array_equal(walk("death-penalty", 1), walk("death-penalty", 2))
    for handling in ("violation", "augmented-lagrangian"):
        assert not np.array_equal(walk(handling, 1), walk(handling, 2))


@pytest.mark.parametrize("handling", HANDLINGS)
def test_flat_data_do_not_stop_it(handling: Handling) -> None:
    """Equal values for fifty generations leave it sampling new points."""
    optimizer = make(handling)
    points = []
    for _ in range(50):
        x = optimizer.ask(8)
        optimizer.tell(x, Evaluation(np.ones(8), np.zeros((8, 2))))
        points.append(x)
    assert len(np.unique(np.vstack(points), axis=0)) == 400
    assert optimizer.inspect()["generations"] == 50


@pytest.mark.parametrize("handling", HANDLINGS)
def test_starts_at_the_best_point_of_the_design(handling: Handling) -> None:
    """With a tiny step size the first generation surrounds the best told point."""
    optimizer = make(handling, initial_sigma=1e-8)
    design = SPACE.from_unit(np.random.default_rng(1).random((20, DIM)))
    optimizer.tell(design, evaluate(design))
    assert np.abs(optimizer.ask(8) - design[evaluate(design).best()]).max() < 1e-6


def test_starts_at_the_centre_without_a_design() -> None:
    """Told nothing, it starts in the middle of the box."""
    assert np.abs(make(initial_sigma=1e-8).ask(8) - 0.5).max() < 1e-6


@pytest.mark.parametrize(("batch_size", "population"), [(1, 8), (2, 8), (3, 8), (4, 4), (10, 10)])
def test_population_is_the_batch(batch_size: int, population: int) -> None:
    """The population is the batch, 4 + 3 ln d where that is below 4."""
    assert make(batch_size=batch_size).inspect()["population"] == population


@pytest.mark.parametrize("handling", HANDLINGS)
@pytest.mark.parametrize("size", [1, 3, 8])
def test_generations_do_not_depend_on_the_batches(handling: Handling, size: int) -> None:
    """Handed out in parts, a generation is the same points with the same effect."""
    whole = run(make(handling, population=8), 5)
    parts: list[np.ndarray] = []
    optimizer = make(handling, batch_size=size, population=8)
    while len(parts) < 40:
        x = optimizer.ask(size)
        optimizer.tell(x, evaluate(x))
        parts.extend(x)
    assert np.array_equal(parts, whole)


@pytest.mark.parametrize("handling", HANDLINGS)
def test_order_of_telling_makes_no_difference(handling: Handling) -> None:
    """Results of a generation told backwards and in pieces have the same effect."""
    forward, backward = make(handling), make(handling)
    for _ in range(6):
        x = forward.ask(8)
        assert np.array_equal(backward.ask(8), x)
        forward.tell(x, evaluate(x))
        backward.tell(x[:4:-1], evaluate(x[:4:-1]))
        backward.tell(x[4::-1], evaluate(x[4::-1]))
    assert np.array_equal(forward.ask(8), backward.ask(8))


@pytest.mark.slow
@pytest.mark.parametrize("handling", HANDLINGS)
@pytest.mark.parametrize("population", [4, 5, 8])
def test_asynchronous_workers(handling: Handling, population: int) -> None:
    """Twelve workers that end in any order are always given new points, and it closes in."""
    optimizer, random = make(handling, population=population), np.random.default_rng(0)
    busy = [optimizer.ask()[0] for _ in range(12)]
    points = list(busy)
    for _ in range(400):
        done = busy.pop(random.integers(12))
        optimizer.tell(done[None], evaluate(done[None]))
        busy.append(SPACE.validate(optimizer.ask())[0])
        points.append(busy[-1])
    assert len(np.unique(points, axis=0)) == len(points)
    assert optimizer.inspect()["generations"] == 400 // population
    distance = np.linalg.norm(np.array(points) - 0.4, axis=1)
    assert np.median(distance[-50:]) < np.median(distance[:50]) / 2


@pytest.mark.parametrize("population", [4, 8])
def test_a_generation_of_late_points_only(population: int) -> None:
    """Many points under way may fill several generations before the next ask."""
    optimizer = make(population=population)
    points = np.vstack([optimizer.ask(population) for _ in range(6)])
    for start in range(0, len(points), population):
        part = points[start : start + population]
        optimizer.tell(part, evaluate(part))
    assert optimizer.inspect()["generations"] == 6
    run(optimizer, 3, population)
    assert optimizer.inspect()["generations"] == 9


def test_points_that_never_come_back_do_not_block() -> None:
    """Lost workers leave a generation to be filled by further samples."""
    optimizer = make()
    optimizer.ask(8)
    points = run(optimizer, 20, batch_size=4)
    assert optimizer.inspect()["generations"] == 10
    assert len(np.unique(points, axis=0)) == 80


def test_points_never_asked_are_taken_in() -> None:
    """Foreign results and results told twice do not count for the generation."""
    plain, disturbed = make(), make()
    first = plain.ask(8)
    plain.tell(first, evaluate(first))
    disturbed.ask(8)
    foreign = SPACE.from_unit(np.random.default_rng(2).random((30, DIM)))
    disturbed.tell(foreign, evaluate(foreign))
    disturbed.tell(first[:5], evaluate(first[:5]))
    disturbed.tell(first[:5], evaluate(first[:5]))
    assert disturbed.inspect()["generations"] == 0
    disturbed.tell(first[5:], evaluate(first[5:]))
    assert np.array_equal(plain.ask(8), disturbed.ask(8))


@pytest.mark.parametrize("handling", HANDLINGS)
def test_same_seed_same_points(handling: Handling) -> None:
    """Equal runs are equal to the last bit, whatever NumPy's global state; seeds differ."""
    state = np.random.get_state(legacy=False)["state"]["key"].copy()
    first = run(make(handling, seed=1), 15)
    assert np.array_equal(np.random.get_state(legacy=False)["state"]["key"], state)
    np.random.rand(17)
    assert np.array_equal(run(make(handling, seed=1), 15), first)
    assert not np.array_equal(run(make(handling, seed=2), 15), first)


@pytest.mark.parametrize("handling", HANDLINGS)
def test_values_that_are_not_finite(handling: Handling) -> None:
    """NaN, infinities and huge values neither stop it nor win."""
    optimizer = make(handling)
    bad = [np.nan, np.inf, -np.inf, 1e300, -1e300]
    for i in range(20):
        x = SPACE.validate(optimizer.ask(8))
        values = evaluate(x)
        values.objective[0] = bad[i % 5]
        values.constraints[1, i % 2] = bad[i % 3]
        optimizer.tell(x, values)
    assert np.isfinite(optimizer.inspect()["sigma"])
    everything = Evaluation(np.full(8, np.nan), np.full((8, 2), np.nan))
    optimizer.tell(optimizer.ask(8), everything)
    SPACE.validate(optimizer.ask(8))


@pytest.mark.slow
@pytest.mark.parametrize("handling", HANDLINGS)
@pytest.mark.parametrize("dim", [1, 2])
def test_without_constraints_it_converges_and_starts_again(handling: Handling, dim: int) -> None:
    """A bowl at the edge of the box is solved to rounding, then it goes on elsewhere."""
    space = Space(np.full(dim, 3.0), np.full(dim, 4.0))
    optimizer = CmaEs(space, budget=4000, batch_size=1, seed=0, handling=handling)
    lowest = np.inf
    for _ in range(4000):
        x = space.validate(optimizer.ask())
        objective = ((x - 3.0) ** 2).sum(axis=1)
        optimizer.tell(x, Evaluation(objective, np.empty((1, 0))))
        lowest = min(lowest, objective[0])
        if optimizer.inspect()["restarts"] == 2:
            break
    assert optimizer.inspect()["restarts"] == 2
    assert lowest < 1e-12


@pytest.mark.parametrize("handling", HANDLINGS)
def test_silent(
    handling: Handling,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It prints nothing and writes no files."""
    monkeypatch.chdir(tmp_path)
    run(make(handling), 30)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "options", [{"handling": "penalty"}, {"initial_sigma": 0.5}, {"population": 3}]
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """What pycma could not use is refused with what was got."""
    with pytest.raises(InvalidTask, match="got"):
        CmaEs(SPACE, budget=10, batch_size=1, seed=0, **options)


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pycma the error is the line that installs it."""
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(MissingExtra, match=r'pip install "cbo-suite\[cma\]"'):
        make()
