"""Model-based optimizers keep away from where evaluations fail; the whole is in the experiment."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cbo_suite.optimizers.models.failures import Failures
from cbo_suite.optimizers.scbo.candidates import sobol
from cbo_suite.optimizers.scbo.designs import design_points
from cbo_suite.protocols import Array, BoolArray
from tests.optimizers.failures_experiment import cases, measure


def points(start: int, stop: int, known: Array, failed: BoolArray) -> Array:
    """A part of a design of ten points."""
    return design_points(start, stop, 10, np.random.default_rng(7), known, failed)


def test_a_design_passes_over_where_evaluations_failed() -> None:
    """In parts as in one, with few points in the failing half and none twice."""
    known = np.random.default_rng(0).random((40, 3))
    failed = known[:, 0] > 0.5
    whole = points(0, 10, known, failed)
    parts = np.concatenate([points(0, 3, known, failed), points(3, 10, known, failed)])
    np.testing.assert_array_equal(whole, parts)
    assert len(np.unique(whole, axis=0)) == 10
    assert (whole[:, 0] > 0.5).sum() <= 2
    assert (sobol(10, 3, np.random.default_rng(7))[:, 0] > 0.5).sum() == 5


@pytest.mark.parametrize("state", [False, True])
def test_a_design_stays_as_it_is_where_nothing_is_to_be_learnt(state: bool) -> None:
    """Where nothing failed, or everything."""
    known = np.random.default_rng(0).random((20, 3))
    plain = sobol(24, 3, np.random.default_rng(7))
    np.testing.assert_array_equal(points(2, 24, known, np.full(20, state)), plain[2:])


def test_the_probability_of_success() -> None:
    """High among results that worked, low among those that failed, one without failures."""
    x = np.random.default_rng(0).random((40, 2))
    places = torch.tensor([[0.2, 0.5], [0.8, 0.5]], dtype=torch.float64)
    worked, failed = Failures(x, x[:, 0] > 0.5).log_success(places).exp().tolist()
    assert worked > 0.95
    assert failed < 0.05
    for everything in (True, False):
        none = Failures(x, np.full(40, everything))
        np.testing.assert_array_equal(none.log_success(places), 0.0)


@pytest.mark.parametrize("problem", ["toy-2d-v1", "valley-3d"])
@pytest.mark.parametrize("optimizer", ["scbo", "cei"])
def test_it_fails_half_as_often_as_random_search(optimizer: str, problem: str) -> None:
    """In the second halves of three runs of 40 evaluations."""
    case = cases()[problem]
    own = sum(measure(case, optimizer, seed, 40)[0] for seed in range(3))
    random = sum(measure(case, "random-search", seed, 40)[0] for seed in range(3))
    assert own <= random / 2
