"""SCBO as a whole: restarts, asynchrony, resuming and its variants."""

import itertools
import json
from typing import Any

import numpy as np
import pytest

from cbo_suite import minimize
from cbo_suite.harness import Progress, run
from cbo_suite.optimizers import OPTIMIZERS
from cbo_suite.optimizers.scbo.trust_region import SMALLEST_LENGTH
from cbo_suite.protocols import Array, Evaluation, Space
from tests.optimizers.scbo_runs import SPACE, advance, begun, bowl, design, flat, make


def test_it_finds_the_constrained_minimum() -> None:
    """Thirty points after a design of six come close to the bowl's best feasible point."""
    optimizer = begun()
    advance(optimizer, 30)
    best = optimizer.recommend()
    assert bowl(best[None]).feasible[0]
    assert bowl(best[None]).objective[0] < 2.15


def test_points_stay_in_the_trust_region() -> None:
    """Every asked point lies within half a side length of the centre."""
    optimizer = begun()
    for _ in range(12):
        length = optimizer.inspect()["length"]
        (x,) = advance(optimizer, 1)
        centre = np.array(optimizer.inspect()["centre"])
        distance = np.abs(SPACE.to_unit(x[0]) - SPACE.to_unit(centre)).max()
        assert distance <= length / 2.0 + 1e-12


def test_restart_begins_with_a_fresh_design() -> None:
    """After 7 halvings a new region asks as many Sobol points as the design had."""
    optimizer = begun(flat, count=5)
    before = advance(optimizer, 7 * 2, evaluate=flat)  # two failures halve the length
    assert optimizer.inspect()["restarts"] == 1
    assert optimizer.inspect()["length"] > SMALLEST_LENGTH
    fresh = np.concatenate(advance(optimizer, 5, evaluate=flat))
    spread = SPACE.to_unit(fresh)
    assert (np.ptp(spread, axis=0) > 0.4).all()
    assert "centre" not in optimizer.inspect()
    advance(optimizer, 1, evaluate=flat)
    centre = np.array(optimizer.inspect()["centre"])
    # The models of the new region know its own points only.
    assert (np.abs(fresh - centre).max(axis=1) < 1e-9).any()
    assert not (np.abs(np.concatenate(before) - centre).max(axis=1) < 1e-9).any()


@pytest.mark.parametrize(
    ("expected", "n_init", "size"), [(None, None, 10), (None, 4, 4), (3, None, 3), (3, 4, 4)]
)
def test_data_known_beforehand_are_no_design(
    expected: int | None, n_init: int | None, size: int
) -> None:
    """They are data of the first region, however many; designs have the size they should have."""
    optimizer, resumed = make(n_init=n_init), make(n_init=n_init)
    if expected is not None:
        optimizer.expect_design(expected)
    x = design(7)
    for each in (optimizer, resumed):
        each.tell(x, flat(x))
    assert optimizer.get_state()["region"]["members"] == [[0, 7]]
    asked = advance(optimizer, 7 * 2, evaluate=flat)
    assert optimizer.inspect()["restarts"] == 1
    for points in asked:
        resumed.tell(points, flat(points))
    resumed.set_state(json.loads(json.dumps(optimizer.get_state())))
    for each in (optimizer, resumed):
        advance(each, size, evaluate=flat)
        assert "centre" not in each.inspect()
        advance(each, 1, evaluate=flat)
        assert "centre" in each.inspect()


@pytest.mark.slow
def test_designs_of_restarts_differ() -> None:
    """Each region has points of its own, the same ones under the same seed."""

    def designs(seed: int) -> list[Array]:
        optimizer = begun(flat, count=3, seed=seed)
        found = []
        for _ in range(2):
            advance(optimizer, 7 * 2, evaluate=flat)
            found.append(np.concatenate(advance(optimizer, 3, evaluate=flat)))
        return found

    first, second = designs(0)
    assert not np.isclose(first, second).any()
    np.testing.assert_array_equal(first, designs(0)[0])
    assert not np.isclose(first, designs(1)[0]).any()


def test_recommendation_is_the_best_over_all_regions() -> None:
    """A better point of an earlier region is not forgotten."""
    optimizer = begun(flat)
    x = np.array([[0.25, 1.0]])
    optimizer.tell(x, Evaluation(np.array([-5.0]), np.array([[-1.0, -1.0]])))
    advance(optimizer, 20, evaluate=flat)
    assert optimizer.inspect()["restarts"] >= 1
    np.testing.assert_array_equal(optimizer.recommend(), x[0])


def test_without_a_design_it_makes_its_own() -> None:
    """Ten Sobol points or more, in parts if asked for less, then points of the models."""
    optimizer = make()
    first = [optimizer.ask(4) for _ in range(3)]
    assert [len(x) for x in first] == [4, 4, 2]
    points = np.concatenate(first)
    assert len(np.unique(points, axis=0)) == 10
    optimizer.tell(points, bowl(points))
    optimizer.ask()
    assert "centre" in optimizer.inspect()


def test_workers_get_points_while_nothing_is_told() -> None:
    """Asked beyond its own design without results, the sequence goes on."""
    optimizer = make(n_init=3)
    points = np.concatenate([optimizer.ask() for _ in range(6)])
    assert len(np.unique(points, axis=0)) == 6


def test_results_one_by_one_count_as_batches() -> None:
    """Four results told singly and together move the trust region in the same way."""
    together, singly = (begun(batch_size=4) for _ in range(2))
    for _ in range(5):
        x, y = together.ask(4), singly.ask(4)
        np.testing.assert_array_equal(x, y)
        together.tell(x, bowl(x))
        for row in y:
            singly.tell(row[None], bowl(row[None]))
        assert together.get_state() == singly.get_state()


def test_results_of_an_older_region_go_to_the_archive_only() -> None:
    """A late result is no datum of the new region, but it may be recommended."""
    optimizer = begun(flat)
    late = optimizer.ask()
    advance(optimizer, 14, evaluate=flat)
    assert optimizer.inspect()["restarts"] == 1
    optimizer.tell(late, Evaluation(np.array([-9.0]), np.array([[-1.0, -1.0]])))
    assert optimizer.get_state()["region"]["members"] == []
    np.testing.assert_array_equal(optimizer.recommend(), late[0])


def test_the_recommended_point_is_one_that_was_told() -> None:
    """To the last bit: on the boundary, the way to the unit cube and back makes it infeasible."""
    space = Space(np.array([0.1]), np.array([0.7]), 1)
    for boundary in np.random.default_rng(0).uniform(0.1, 0.7, 50):
        x = np.array([[boundary], [0.7]])
        optimizer = make(space)
        optimizer.tell(x, Evaluation(x[:, 0], x - boundary))
        assert optimizer.recommend()[0] == boundary


def test_asked_without_new_data_the_models_stay() -> None:
    """Several workers ask in a row: other points, the same hyperparameters."""
    optimizer = begun(batch_size=3)
    first = optimizer.ask()
    parameters = optimizer.get_state()["surrogate"]
    second = optimizer.ask()
    assert optimizer.get_state()["surrogate"] == parameters
    assert not np.array_equal(first, second)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cut", "options"),
    [
        *((cut, {}) for cut in (2, 9, 17, 23)),
        (9, {"acquisition": "ei"}),
        (9, {"trust_region": False}),
        (9, {"noisy": True}),
        (9, {"sampler": "pathwise"}),
        (9, {"dtype": "float32"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("expensive", [0.0, 1e8], ids=["extended factors", "fits at every ask"])
def test_resumed_runs_go_on_bit_by_bit(
    cut: int, options: dict[str, Any], expensive: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data, and the state after an ask, are all that an optimizer needs, also in restarts."""
    monkeypatch.setattr("cbo_suite.optimizers.models.surrogate.EXPENSIVE", expensive)

    def evaluate(x: Array) -> Evaluation:
        return bowl(np.round(x, 1))  # plateaus, so that regions end

    original, resumed = begun(evaluate, **options), begun(evaluate, **options)
    for x in advance(original, cut, evaluate=evaluate):
        resumed.tell(x, evaluate(x))
    last = original.ask()
    state = json.loads(json.dumps(original.get_state()))
    resumed.set_state(state)
    for optimizer in (original, resumed):
        optimizer.tell(last, evaluate(last))
    for _ in range(8):
        first, second = (
            advance(optimizer, 1, evaluate=evaluate)[0] for optimizer in (original, resumed)
        )
        np.testing.assert_array_equal(first, second)


def test_resuming_before_the_first_ask() -> None:
    """A run that was cut inside its design counts the whole design all the same."""
    original, resumed = make(), make()
    x = design(6)
    for optimizer in (original, resumed):
        optimizer.tell(x[:4], bowl(x[:4]))
    resumed.set_state(json.loads(json.dumps(original.get_state())))
    for optimizer in (original, resumed):
        optimizer.tell(x[4:], bowl(x[4:]))
    np.testing.assert_array_equal(original.ask(), resumed.ask())
    assert original.get_state()["told_first"] == 6


def test_resuming_before_a_fit_in_ten_dimensions() -> None:
    """A first fit ends where its start leads it, so the start must come back to the last digit."""
    space = Space(np.full(10, -5.0), np.full(10, 10.0), 2)

    def evaluate(x: Array) -> Evaluation:
        # The second constraint is the same at the first points.
        late = np.maximum(x[:, 1] - 4.0, 0.0) - 1.0
        return Evaluation(np.cos(x).sum(axis=1), np.column_stack([x.sum(axis=1), late]))

    x = design(12, space)
    x[:6, 1] = 0.0
    original, resumed = make(space), make(space)
    for optimizer in (original, resumed):
        optimizer.tell(x[:6], evaluate(x[:6]))
    resumed.set_state(json.loads(json.dumps(original.get_state())))
    np.testing.assert_array_equal(original.ask(), resumed.ask())
    # Once more, cut when the models of objective and first constraint are fitted.
    again = make(space)
    again.tell(x[:6], evaluate(x[:6]))
    again.set_state(json.loads(json.dumps(original.get_state())))
    for optimizer in (original, again):
        optimizer.tell(x[6:], evaluate(x[6:]))
    np.testing.assert_array_equal(original.ask(), again.ask())


def test_state_is_small() -> None:
    """It holds no data: its size does not grow with their number."""
    optimizer = begun()
    sizes = []
    for _ in range(2):
        advance(optimizer, 5)
        sizes.append(len(json.dumps(optimizer.get_state())))
    assert abs(sizes[1] - sizes[0]) < 40


def test_inspection_says_what_happened() -> None:
    """Side length, counters, centre, restarts, feasible candidates and seconds."""
    optimizer = begun(batch_size=2)
    optimizer.ask(2)
    inspection = json.loads(json.dumps(optimizer.inspect()))
    assert set(inspection) == {
        "length",
        "successes",
        "failures",
        "restarts",
        "centre",
        "feasible_candidates",
        "at_bounds",
        "seconds_fit",
        "seconds_draw",
    }
    assert len(inspection["feasible_candidates"]) == 2
    assert min(inspection["seconds_fit"], inspection["seconds_draw"]) > 0.0


def ramp(x: Array) -> Evaluation:
    """An objective of the first variable only, constraints of one each, and all is feasible."""
    return Evaluation(np.sin(2.0 * x[:, 0]), x[:, ::-1] - 9.0)


def test_inspection_says_which_bounds_are_reached() -> None:
    """Constraints without noise: length scales of variables without influence are the longest."""
    optimizer = begun(ramp, count=12)
    optimizer.ask()
    reached = optimizer.inspect()["at_bounds"]
    assert reached == {"lengthscale": [0, 2], "variance": [0, 0], "noise": [1, 0]}


def test_weighted_regions_are_wide_where_the_objective_does_not_change() -> None:
    """The box has the volume of the hypercube, and only a variable with influence is narrow."""
    distance = {}
    for shape in ("hypercube", "ard-objective"):
        optimizer = begun(ramp, count=12, batch_size=20, tr_shape=shape)
        for _ in range(3):
            optimizer._region.trust.length /= 2.0
        x = SPACE.to_unit(optimizer.ask(20))
        centre = SPACE.to_unit(np.array(optimizer.inspect()["centre"]))
        distance[shape] = np.abs(x - centre).max(axis=0)
    half = 0.8 / 8 / 2
    assert (distance["hypercube"] <= half + 1e-12).all()
    assert distance["ard-objective"][0] < half < distance["ard-objective"][1]


def test_callbacks_receive_the_inspection() -> None:
    """Of a whole call of `minimize`, after every batch."""
    seen: list[Progress] = []
    minimize(
        lambda x: tuple(bowl(x)),
        SPACE.lower,
        SPACE.upper,
        num_constraints=2,
        budget=10,
        n_init=6,
        optimizer="scbo",
        callback=seen.append,
    )
    told = [progress.inspection or {} for progress in seen]
    inspections = [inspection for inspection in told if "centre" in inspection]
    assert len(inspections) == 4
    for inspection in inspections:
        assert inspection["length"] > 0.0
        assert len(inspection["feasible_candidates"]) == 1


def test_the_table_has_all_combinations() -> None:
    """Transforms, acquisition and trust region: eight rows under clear ids, and three more."""
    combinations = set()
    for id_, entry in OPTIMIZERS.items():
        if entry.target.endswith("scbo:SCBO"):
            options = {
                "acquisition": "ts",
                "trust_region": True,
                "copula": True,
                "bilog": True,
                "perturbation": True,
            } | dict(entry.options)
            combinations.add(tuple(options.values()))
            assert ("ei" in id_.split("-")) == (options["acquisition"] == "ei")
            assert ("global" in id_.split("-")) != options["trust_region"]
    full = set(itertools.product(["ts", "ei"], [True, False], [True], [True], [True]))
    none = set(itertools.product(["ts", "ei"], [True, False], [False], [False], [True]))
    assert full | none <= combinations
    assert len(combinations) == 11


def test_global_variant_searches_the_whole_box_and_never_restarts() -> None:
    """However little improves, there is one region, and points are far apart."""
    optimizer = begun(flat, trust_region=False)
    points = np.concatenate(advance(optimizer, 20, evaluate=flat))
    assert optimizer.inspect()["restarts"] == 0
    assert (np.ptp(SPACE.to_unit(points), axis=0) > 0.5).all()


def test_perturbation_moves_some_variables_only() -> None:
    """In fifty dimensions about twenty variables of a point leave the centre, or all of them."""
    space = Space(np.zeros(50), np.ones(50), 0)

    def moved(perturbation: bool) -> int:
        optimizer = make(space, perturbation=perturbation)
        x = design(8, space)
        optimizer.tell(x, Evaluation(x.sum(axis=1), np.empty((8, 0))))
        point = optimizer.ask()[0]
        return int((np.abs(point - optimizer.inspect()["centre"]) > 1e-12).sum())

    assert 5 < moved(True) < 38
    assert moved(False) == 50


@pytest.mark.slow
def test_samplers_of_both_kinds_solve_the_problem() -> None:
    """Exact and pathwise draws."""
    for sampler in ("exact", "pathwise"):
        optimizer = begun(sampler=sampler)
        advance(optimizer, 20)
        assert bowl(optimizer.recommend()[None]).objective[0] < 2.3


@pytest.mark.slow
def test_quality_on_the_toy_problem() -> None:
    """The paper's protocol on the toy problem: the median of five seeds is within a thousandth."""
    finals = [
        run("toy-2d-v1", "scbo", budget=100, batch_size=1, n_init=10, seed=seed).best_objective
        for seed in range(20, 25)
    ]
    assert np.median(finals) < 0.5998 + 1e-3
