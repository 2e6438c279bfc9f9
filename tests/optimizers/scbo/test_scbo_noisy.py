"""SCBO on noisy problems: what posterior means decide instead of observations."""

import numpy as np
import pytest

from cbo_suite.harness import run
from cbo_suite.optimizers.scbo import SCBO
from cbo_suite.problems.noisy import Noisy
from cbo_suite.problems.toy import Toy
from cbo_suite.protocols import Array, Evaluation, Space
from tests.optimizers.scbo_runs import advance, begun, bowl, flat, hopeless, make

LINE = Space(np.zeros(1), np.ones(1), 0)
GRID = np.linspace(0.0, 1.0, 41)[:, None]


def valley(x: Array) -> Array:
    """A valley around 0.5 without noise, shape `(n,)`."""
    values: Array = 4.0 * np.square(x[:, 0] - 0.5)
    return values


def test_recommendation_by_posterior_means_beats_the_best_observation() -> None:
    """Noise as large as a third of the valley's depth: the luckiest observation misleads."""
    regrets, lucky = [], []
    for seed in range(12):
        noise = np.random.default_rng(seed).standard_normal(len(GRID))
        values = valley(GRID) + 0.3 * noise
        optimizer = make(LINE, noisy=True)
        optimizer.tell(GRID, Evaluation(values, np.empty((len(GRID), 0))))
        regrets.append(valley(optimizer.recommend()[None])[0])
        lucky.append(valley(GRID)[values.argmin()])
    assert np.mean(regrets) < 0.05
    assert np.mean(regrets) < 0.5 * np.mean(lucky)


def test_recommendation_accepts_the_risk_that_it_is_told() -> None:
    """The objective falls towards the boundary: who accepts less risk stays farther from it."""
    space = Space(np.zeros(1), np.ones(1), 1)
    noise = np.random.default_rng(0).standard_normal(len(GRID))
    constraints = GRID - 0.5 + 0.2 * noise[:, None]
    recommended = []
    for delta in (0.001, 0.05, 0.4):
        optimizer = make(space, noisy=True, delta=delta)
        optimizer.tell(GRID, Evaluation(-GRID[:, 0], constraints))
        recommended.append(optimizer.recommend()[0])
    assert recommended[0] < recommended[1] < recommended[2] < 0.6
    # The best observation that looks feasible lies on the wrong side.
    assert GRID[constraints[:, 0] <= 0.0].max() > 0.6


def test_an_outlier_does_not_become_the_centre() -> None:
    """One observation far below its neighbours is noise, not the place to search."""
    values = valley(GRID) + 0.1 * np.random.default_rng(0).standard_normal(len(GRID))
    values[37] = -1.0
    optimizer = make(LINE, noisy=True)
    optimizer.tell(GRID, Evaluation(values, np.empty((len(GRID), 0))))
    optimizer.ask()
    assert abs(optimizer.inspect()["centre"][0] - 0.5) < 0.2


def test_results_that_are_not_finite_are_neither_centre_nor_recommended() -> None:
    """However promising the models find the place."""
    values = valley(GRID)
    values[18:23] = np.nan
    optimizer = make(LINE, noisy=True)
    optimizer.tell(GRID, Evaluation(values, np.empty((len(GRID), 0))))
    optimizer.ask()
    for point in (optimizer.inspect()["centre"], optimizer.recommend()):
        assert np.isfinite(values[np.abs(GRID[:, 0] - point[0]).argmin()])


def test_noisy_recommendation_is_credible() -> None:
    """With noise on everything, the recommended point is feasible and good without noise."""
    problem = Noisy(Toy(), objective_noise=0.02, constraint_noise=0.02, seed=1)
    results = []
    for seed in range(3):
        record = run(
            problem,
            SCBO,
            budget=45,
            batch_size=3,
            n_init=12,
            seed=seed,
            options={"noisy": True, "delta": 0.05, "num_candidates": 200},
        )
        assert record.recommended_x is not None
        exact = problem.noise_free.evaluate(record.recommended_x[None])
        results.append((float(exact.constraints.max()), float(exact.objective[0])))
    assert max(violation for violation, _ in results) < 0.05
    assert np.median([objective for _, objective in results]) < 0.85


def test_noisy_recommendation_if_nothing_is_credible() -> None:
    """Then it is the point that is most probably feasible, whatever its objective."""
    noise = np.random.default_rng(0).standard_normal(GRID.shape)
    constraints = 1.0 + 2.0 * np.abs(GRID - 0.3) + 0.2 * noise
    optimizer = make(Space(np.zeros(1), np.ones(1), 1), noisy=True)
    optimizer.tell(GRID, Evaluation(-GRID[:, 0], constraints))
    assert abs(optimizer.recommend()[0] - 0.3) < 0.15


def test_noisy_recommendation_beside_a_constant_violation() -> None:
    """A constraint that is violated everywhere leaves the others to decide."""
    optimizer = begun(hopeless, count=20, noisy=True)
    assert bowl(optimizer.recommend()[None]).constraints[0, 0] < 0.0


@pytest.mark.parametrize("copula", [True, False])
def test_noisy_runs_do_not_depend_on_the_unit(copula: bool) -> None:
    """What counts as a success is a share of what the objective varies by."""

    def scaled(x: Array) -> Evaluation:
        values = bowl(x)
        return Evaluation(2.0**-10 * values.objective, values.constraints)

    lengths = []
    for evaluate in (bowl, scaled):
        optimizer = begun(evaluate, noisy=True, copula=copula)
        advance(optimizer, 12, evaluate=evaluate)
        lengths.append(optimizer.inspect()["length"])
    assert lengths[0] == lengths[1]


def test_noisy_regions_shrink_and_restart_too() -> None:
    """Posterior means that do not improve end a region."""
    optimizer = begun(flat, noisy=True)
    advance(optimizer, 18, evaluate=flat)
    assert optimizer.inspect()["restarts"] == 1
