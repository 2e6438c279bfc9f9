"""SCBO and cEI on a device of their own: nothing is left in ordinary memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.cei import CEI
from cbo_suite.protocols import Array, Evaluation, Space
from tests.optimizers.devices import Card, Pretended, Valueless, WrongDevice
from tests.optimizers.scbo_runs import SPACE, advance, begun, bowl, design, flat, hopeless, make

VARIANTS = [
    {"sampler": "exact"},
    {"sampler": "pathwise"},
    {"acquisition": "ei"},
    {"noisy": True},
    {"tr_shape": "ard-objective"},
    {"trust_region": False, "copula": False, "bilog": False},
    {"dtype": "float32"},
]


def scbo_points(options: dict[str, Any], device: str, evaluate: Any = bowl) -> Array:
    """Points that SCBO asks for: with some under way, after a restart of itself, recommended."""
    optimizer = begun(evaluate, device=device, batch_size=2, **options)
    under_way = optimizer.ask(2)
    asked = [under_way, *advance(optimizer, 2, 2, evaluate)]
    told, state = np.concatenate([design(), *asked[1:]]), optimizer.get_state()
    optimizer = make(device=device, batch_size=2, **options)
    optimizer.tell(told, evaluate(told))
    optimizer.set_state(state)
    optimizer.tell(under_way, evaluate(under_way))
    asked += advance(optimizer, 1, 2, evaluate)
    return np.concatenate([*asked, optimizer.recommend()[None]])


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_scbo_stays_on_the_card(card: Card, options: dict[str, Any]) -> None:
    """Every variant, asked anew with points under way, and resumed."""
    found = card.check(lambda device: scbo_points(options, device))
    assert SPACE.validate(found).shape == (9, 2)


@pytest.mark.parametrize("options", VARIANTS[:3], ids=str)
def test_scbo_stays_on_the_card_where_nothing_is_feasible(
    card: Card, options: dict[str, Any]
) -> None:
    """A constraint that never changes is known everywhere, on the device too."""
    card.check(lambda device: scbo_points(options, device, hopeless))


def test_scbo_restarts_on_the_card(card: Card) -> None:
    """Where nothing improves a region ends, and the next one begins on the same device."""

    def points(device: str) -> Array:
        optimizer = begun(flat, device=device, batch_size=2)
        asked = advance(optimizer, 13, 2, flat)
        assert optimizer.inspect()["restarts"] == 1
        return np.concatenate(asked)

    card.check(points)


def many(x: Array) -> Evaluation:
    """Any number of variables, two constraints."""
    objective = ((x - 0.3) ** 2).sum(axis=1) + np.sin(5.0 * x[:, 0])
    return Evaluation(objective, np.column_stack([x.mean(axis=1) - 0.5, 0.2 - x[:, 0]]))


@pytest.mark.parametrize("sampler", ["exact", "pathwise"])
def test_scbo_with_many_data_stays_on_the_card(card: Card, sampler: str) -> None:
    """Hyperparameters of a part of the data, rough steps in single precision, longer factors."""
    space = Space(np.zeros(3), np.ones(3), 2)

    def points(device: str) -> Array:
        optimizer = make(space, batch_size=3, sampler=sampler, device=device)
        x = design(530, space)
        optimizer.tell(x, many(x))
        return np.concatenate(advance(optimizer, 2, 3, many))

    card.check(points)


@pytest.mark.parametrize(
    ("dim", "n", "count"), [(2, 1, 12), (2, 6, 270), (25, 3, 40)], ids=["refined", "batch", "wide"]
)
def test_cei_stays_on_the_card(card: Card, dim: int, n: int, count: int) -> None:
    """By gradients, in batches from candidates, with many variables; with points under way."""
    space = Space(np.zeros(dim), np.ones(dim), 2)

    def points(device: str) -> Array:
        optimizer = CEI(space, budget=400, batch_size=n, seed=1, num_candidates=600, device=device)
        x = design(count, space)
        optimizer.tell(x, many(x))
        first, second = optimizer.ask(n), optimizer.ask(n)
        optimizer.tell(first, many(first))
        return np.concatenate([first, second, optimizer.ask(n)])

    card.check(points)


@pytest.mark.parametrize("device", ["abacus", "cuda:99", "meta"])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    """With a reason, before anything is run."""
    with pytest.raises(InvalidTask, match=f"device '{device}' cannot be used here: "):
        CEI(SPACE, budget=10, device=device)


def test_pretended_devices_refuse_what_a_card_would() -> None:
    """A tensor in the wrong place is found, and so is one that nobody placed."""
    with Pretended():
        there, here = torch.ones(2, device="cuda"), torch.from_numpy(np.ones(2))
        assert (there.device.type, here.device.type) == ("cuda", "cpu")
        assert (here.to(there).device.type, there.cpu().device.type) == ("cuda", "cpu")
        with pytest.raises(WrongDevice, match="without saying on which device"):
            torch.arange(3)
        with pytest.raises(WrongDevice, match="different devices"):
            there + here
        with pytest.raises(WrongDevice, match="different devices"):
            there[torch.as_tensor(np.array([0]))]
        with pytest.raises(WrongDevice, match="in ordinary memory, not on the device"):
            here + here
        with pytest.raises(WrongDevice, match=r"\.cpu\(\) first"):
            there.numpy()
        with pytest.raises(WrongDevice, match=r"\.cpu\(\) first"):
            np.asarray(there)
        assert there.cpu().numpy().tolist() == here.to("cuda").tolist() == [1.0, 1.0]


def test_the_device_without_values_refuses_others() -> None:
    """Even for products, which torch itself lets pass."""
    with Valueless(), pytest.raises(WrongDevice, match="cpu and meta"):
        torch.ones(2, 2, device="meta") @ torch.ones(2, 2)
