"""SCBO with bad data, odd sizes and options that make no sense."""

from typing import Any

import numpy as np
import pytest
import torch

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers import OPTIMIZERS
from cbo_suite.protocols import Array, Evaluation, Space
from tests.optimizers.scbo_runs import SPACE, Evaluate, advance, begun, bowl, design, hopeless, make


def broken(kind: str) -> Evaluate:
    """The bowl with data as no simulation should give them."""

    def evaluate(x: Array) -> Evaluation:
        objective, constraints = (part.copy() for part in bowl(x))
        odd = np.round(np.abs(x[:, 0]) * 1000) % 3 == 0
        if kind == "nan":
            objective[odd], constraints[odd] = np.nan, np.nan
        elif kind == "infinite":
            objective[odd], constraints[odd, 0] = np.inf, -np.inf
        elif kind == "all nan":
            objective[:], constraints[:] = np.nan, np.nan
        elif kind == "huge":
            objective, constraints = objective * 1e300, constraints * 1e300
        elif kind == "constant constraints":
            constraints[:] = [2.0, -1.0]
        elif kind == "infeasible":
            constraints += 10.0
        elif kind == "tiny":
            objective, constraints = objective * 1e-300, constraints * 1e-300
        return Evaluation(objective, constraints)

    return evaluate


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("variant", ["scbo", "scbo-ei", "scbo-untransformed", "noisy", "pathwise"])
@pytest.mark.parametrize(
    "kind",
    ["nan", "infinite", "all nan", "huge", "constant constraints", "infeasible", "tiny"],
)
def test_bad_data_do_not_stop_it(kind: str, variant: str, dtype: str) -> None:
    """It goes on, inside the box, without a warning."""
    own: dict[str, dict[str, Any]] = {
        "noisy": {"noisy": True},
        "pathwise": {"sampler": "pathwise", "bilog": False},
    }
    options = own[variant] if variant in own else dict(OPTIMIZERS[variant].options)
    evaluate = broken(kind)
    optimizer = begun(evaluate, dtype=dtype, **options)
    for x in advance(optimizer, 5, evaluate=evaluate):
        assert SPACE.validate(x).shape == (1, 2)
    SPACE.validate(optimizer.recommend()[None])


@pytest.mark.parametrize("acquisition", ["ts", "ei"])
def test_a_constant_violated_constraint_leaves_the_others_to_decide(acquisition: str) -> None:
    """With one constraint violated by the same amount everywhere, the objective still falls."""
    optimizer = begun(hopeless, acquisition=acquisition)
    asked = np.concatenate(advance(optimizer, 25, evaluate=hopeless))
    best = optimizer.recommend()[None]
    assert bowl(best).constraints[0, 0] <= 0.0
    if acquisition == "ts":
        assert bowl(best).objective[0] < 2.3
    else:
        # Without a feasible point the probability of feasibility counts alone.
        assert (bowl(asked).constraints[:, 0] <= 0.0).mean() > 0.8


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_points_that_are_no_numbers_are_refused(value: float) -> None:
    """Models of them would know nothing; no result is taken in."""
    optimizer = begun()
    x = np.array([[0.5, 0.5], [value, 1.0]])
    with pytest.raises(InvalidTask, match=r"points of finite numbers, got \[(nan|inf), 1.0\]"):
        optimizer.tell(x, bowl(x))
    assert len(optimizer._archive) == 6


@pytest.mark.parametrize("repeat", [1, 4])
def test_duplicated_points(repeat: int) -> None:
    """The same points told again and again."""
    optimizer = begun()
    for _ in range(repeat):
        optimizer.tell(design(6), bowl(design(6)))
    advance(optimizer, 3)


@pytest.mark.parametrize("dim", [1, 2, 25])
@pytest.mark.parametrize("m", [0, 1])
@pytest.mark.parametrize("n_init", [1, 2])
def test_small_and_odd_sizes(dim: int, m: int, n_init: int) -> None:
    """One variable, no constraints, a single point to begin with, batches of three."""
    space = Space(np.zeros(dim), np.ones(dim), m)

    def evaluate(x: Array) -> Evaluation:
        return Evaluation(np.square(x - 0.3).sum(axis=1), np.repeat(x[:, :1] - 0.5, m, axis=1))

    optimizer = make(space, batch_size=3)
    x = design(n_init, space)
    optimizer.tell(x, evaluate(x))
    for points in advance(optimizer, 4, 3, evaluate):
        assert len(np.unique(space.validate(points), axis=0)) == 3


def test_more_points_than_candidates_are_asked_for() -> None:
    """A batch larger than the candidate set makes the set larger."""
    optimizer = begun(batch_size=80, num_candidates=20)
    assert len(np.unique(optimizer.ask(80), axis=0)) == 80


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "options",
    [{"sampler": "exact"}, {"sampler": "pathwise"}, {"acquisition": "ei"}, {"noisy": True}],
    ids=str,
)
def test_devices_and_precisions(number_device: str, dtype: str, options: dict[str, Any]) -> None:
    """Single precision serves too, and so do graphics cards."""
    optimizer = begun(device=number_device, dtype=dtype, **options)
    advance(optimizer, 10)
    assert bowl(optimizer.recommend()[None]).objective[0] < 3.0


@pytest.mark.parametrize(
    "options",
    [{"sampler": "exact"}, {"sampler": "pathwise"}, {"acquisition": "ei"}, {"noisy": True}],
    ids=str,
)
def test_without_cholesky_factors_it_warns_and_goes_on(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the jitter, no factor is to be had: models ignore their data, and say so."""
    factorise = torch.linalg.cholesky_ex

    def failing(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        factor, info = factorise(matrix)
        return factor, torch.ones_like(info)

    optimizer = begun(**options)
    monkeypatch.setattr(torch.linalg, "cholesky_ex", failing)
    with pytest.warns(RuntimeWarning, match="no Cholesky factor"):
        points = np.concatenate(advance(optimizer, 2))
    assert SPACE.validate(points).shape == (2, 2)


@pytest.mark.parametrize(
    ("objective", "constraints"), [((2,), (2,)), ((3,), (3, 2)), ((2,), (2, 1)), ((2, 1), (2, 2))]
)
def test_results_of_wrong_shapes_are_refused(
    objective: tuple[int, ...], constraints: tuple[int, ...]
) -> None:
    """Nothing of them is taken in, and the optimizer goes on."""
    optimizer = begun()
    with pytest.raises(InvalidTask, match=r"shapes \(n, 2\), \(n,\) and \(n, 2\)"):
        optimizer.tell(design(2), Evaluation(np.ones(objective), np.ones(constraints)))
    advance(optimizer, 2)


@pytest.mark.parametrize(
    "options",
    [
        {"acquisition": "ucb"},
        {"sampler": "magic"},
        {"dtype": "float16"},
        {"delta": 0.0},
        {"tr_shape": "ball"},
        {"n_init": 0},
        {"n_init": 2.5},
        {"batch_size": 0},
        {"seed": -1},
        {"device": "abacus"},
        {"num_candidates": 0},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    """The message says what is allowed."""
    with pytest.raises(InvalidTask, match=next(iter(options))):
        make(**options)


@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_numbers_of_points_that_make_no_sense_are_refused(n: Any) -> None:
    """The message says what is allowed."""
    with pytest.raises(InvalidTask, match="n must be a whole number >= 1"):
        begun().ask(n)


def test_nothing_to_recommend() -> None:
    """Before any result there is no recommendation."""
    with pytest.raises(InvalidTask, match="told"):
        make().recommend()
