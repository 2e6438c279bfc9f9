"""What another rounding can do is allowed, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.protocols import Evaluation
from cbo_suite.registry import protocol_of
from cbo_suite.verify.designs import Designs, Scale
from cbo_suite.verify.tolerance import ROUNDING, allow, local_scale


def test_nothing_is_near_what_is_infinite() -> None:
    """Neither an objective nor a constraint; other values keep their room."""
    now = Evaluation(np.array([np.inf, np.nan, 2.0]), np.array([[np.inf], [1.0], [-np.inf]]))
    allowed = allow(now, Scale(1.0, np.array([5.0])))
    assert allowed.objective.tolist() == [0.0, 0.0, 2.0 * ROUNDING]
    assert allowed.constraints.tolist() == [[0.0], [5.0 * ROUNDING], [0.0]]


@pytest.mark.parametrize(
    "problem", ["keane-30d-v1", "welded-beam-4d-v1", "rosenbrock-5d-v1", "vehicle-124d-v1"]
)
def test_a_local_size_covers_what_rounding_does(problem: str) -> None:
    """Points moved by their last bit give values within it, near the optimum and elsewhere."""
    function, random = cbo.make_problem(problem), np.random.default_rng(0)
    space, scale = function.space, Designs().scale(function, protocol_of(problem).n_init)
    best = function.best_known.x  # type: ignore[attr-defined]
    others = space.sample(100, random)
    x = np.concatenate([others[:50], 0.999 * best + 0.001 * others[50:]])
    now = function.evaluate(x)
    local = local_scale(function, x, now, scale)
    allowed = allow(now, local)
    ends = np.where(random.random(x.shape) < 0.5, space.lower, space.upper)
    moved = function.evaluate(np.nextafter(x, ends))
    for values, other, room, size, typical in zip(now, moved, allowed, local, scale, strict=True):
        assert (np.abs(values - other) <= room).all()
        assert np.all(size <= typical)


def test_what_is_typically_huge_is_small_where_it_matters() -> None:
    """The product of Keane's problem is about 1e17 in a design and 0.75 at the optimum."""
    function = cbo.make_problem("keane-30d-v1")
    scale = Designs().scale(function, 100)
    x = function.best_known.x[None]  # type: ignore[attr-defined]
    local = local_scale(function, x, function.evaluate(x), scale)
    assert scale.constraints[0] > 1e16
    assert 1.0 <= local.constraints[0, 0] < 1e4
