"""When and how the models of all functions are fitted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from cbo_suite.optimizers.models import surrogate
from cbo_suite.optimizers.models.fit import NOISE_FREE, default_parameters, expected_curvature, fit
from cbo_suite.optimizers.models.surrogate import Surrogate, Transform
from cbo_suite.protocols import Array

DIM, COUNT = 5, 80


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_first_fit_in_few_steps_comes_near_the_maximum(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    """By the steps with half of the data: those with all of them are too few alone."""
    monkeypatch.setattr(surrogate, "EXPENSIVE", 0.0)
    x = np.random.default_rng(1).random((COUNT, DIM))
    objective = np.sin(3.0 * x[:, 0]) + x[:, 1] ** 2
    constraints = np.column_stack([np.cos(2.0 * x[:, 2]) * x[:, 3], np.exp(x[:, 4])])
    bounds, like = NOISE_FREE.at_precision(dtype), torch.zeros(0, dtype=dtype)
    models = Surrogate(DIM, 2, bounds, Transform(use_copula=False, use_bilog=True), like)
    gp = models.update(x, objective, constraints).dense
    found = torch.stack([torch.hstack([*kernel]).log() for kernel in gp.kernels])

    def reached(begin: Tensor, steps: int) -> Tensor:
        curvature = expected_curvature(COUNT, DIM)
        return fit(gp.x, gp.y, begin, bounds, steps=steps, tolerance=1e-3, curvature=curvature)[1]

    start = default_parameters(3, DIM, bounds, like)
    first, best = reached(start, 0), reached(start, 200)
    short = (reached(found, 0) - best) / (first - best)
    alone = (reached(start, surrogate.FINAL_STEPS) - best) / (first - best)
    assert float(short.mean()) < 0.05
    assert float(alone.mean()) > 2.0 * float(short.mean())


def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let models of more than 40 data be treated as those of thousands."""
    monkeypatch.setattr(surrogate, "EXPENSIVE", 0.0)
    monkeypatch.setattr(surrogate, "MOST_FITTED", 40)
    monkeypatch.setattr(surrogate.fitted_part, "__defaults__", (40,))


def surprising_data() -> tuple[Array, Array, Array]:
    """Eighty results, the last eight of them in a corner where the first constraint is wild."""
    x = np.random.default_rng(1).random((COUNT, DIM))
    x[-8:] = 0.9 + 0.1 * x[-8:]
    objective = np.sin(3.0 * x[:, 0]) + x[:, 1] ** 2
    wild = np.where(np.arange(COUNT) < COUNT - 8, 0.0, np.cos(60.0 * x[:, 0]))
    return x, objective, np.column_stack([x[:, 2] + wild, np.exp(x[:, 4])])


def test_a_surprised_model_is_fitted_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only that one, and it then explains the data better than it would have."""
    few_are_many(monkeypatch)
    x, objective, constraints = surprising_data()

    def updated() -> Surrogate:
        like = torch.zeros((), dtype=torch.float64)
        models = Surrogate(DIM, 2, NOISE_FREE, Transform(False, False), like)
        for count in (COUNT - 8, COUNT):
            models.update(x[:count], objective[:count], constraints[:count])
        return models

    quick = updated()
    monkeypatch.setattr(surrogate, "SURPRISE", np.inf)
    patient = updated()
    before, after = (
        models.update(x, objective, constraints).dense.log_likelihood()
        for models in (patient, quick)
    )
    assert patient.get_state()["made"] == [0, 0, 0]
    assert quick.get_state()["made"] == [0, 1, 0]
    assert float(after[1]) > float(before[1]) + 0.1 * COUNT
    torch.testing.assert_close(after[[0, 2]], before[[0, 2]])


def test_surprised_models_go_on_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state remembers at which number of data each factor was made."""
    few_are_many(monkeypatch)
    x, objective, constraints = surprising_data()
    extended = np.concatenate([x, x[:4] * 0.5])

    def values(count: int) -> tuple[Array, Array]:
        rows = np.arange(count) % COUNT
        return objective[rows], constraints[rows]

    like = torch.zeros((), dtype=torch.float64)
    models = [Surrogate(DIM, 2, NOISE_FREE, Transform(False, False), like) for _ in range(2)]
    for count in (COUNT - 8, COUNT):
        models[0].update(extended[:count], *values(count))
    models[1].set_state(models[0].get_state())
    first, second = (one.update(extended, *values(len(extended))).dense for one in models)
    assert models[0].get_state() == models[1].get_state()
    for one, other in zip(first.factors, second.factors, strict=True):
        assert torch.equal(one.lower, other.lower)
