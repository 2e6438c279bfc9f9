"""BayeSQP through our interface is the library itself."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from cbo_suite import Evaluation
from cbo_suite.optimizers.bayesqp import BayeSQP, _repaired
from cbo_suite.protocols import Array
from tests.optimizers.advancing import SQUARE, advance, corner, draw, least


def test_bayesqp_gives_the_points_of_its_own_loop() -> None:
    """Its own loop with its own wrapper of a problem evaluates the same points."""
    library = pytest.importorskip("bayesqp")
    precision = torch.get_default_dtype()
    design = np.array([[-1.0, 1.5]])
    ours = advance(BayeSQP(SQUARE, budget=30, seed=8), corner, design, 17)
    assert torch.get_default_dtype() == precision

    problem = library.NumpyToConstrainedBoTorchProblem(
        objective_func=lambda x: float((x**2).sum()),
        constraint_funcs=[lambda x: float(x.sum() - 1.0), lambda x: float(0.5 - x[0])],
        bounds=[(-2.0, 2.0), (-2.0, 2.0)],
    )
    seed = int(np.random.SeedSequence(8).generate_state(1)[0])
    state = torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solver = _repaired(library)(objective_function=problem)
            result = solver.minimize(torch.tensor(design), max_evals=18)
    finally:
        torch.set_default_dtype(precision)
        torch.set_rng_state(state)
    count = len(result.x_history)
    assert count == 18
    assert np.allclose(ours[:count], result.x_history, atol=1e-6)
    assert least(corner, ours) == pytest.approx(0.5, abs=0.1)


def test_bayesqp_does_not_depend_on_the_units_of_values() -> None:
    """The library's constants suit values of about one; a kilo or a milli makes no difference."""

    def in_other_units(x: Array) -> Evaluation:
        values = corner(x)
        return Evaluation(2.0**12 * values.objective, 2.0**-9 * values.constraints)

    design = draw(SQUARE, 6)
    ours, other = (
        advance(BayeSQP(SQUARE, budget=30, seed=8), problem, design, 12)
        for problem in (corner, in_other_units)
    )
    assert np.array_equal(ours, other)


def test_bayesqp_leaves_the_global_generators_alone() -> None:
    """What it draws from them is given back."""
    state = torch.get_rng_state(), np.random.get_state()
    advance(BayeSQP(SQUARE, budget=30, seed=8), corner, draw(SQUARE, 3), 10)
    assert torch.equal(torch.get_rng_state(), state[0])
    assert np.array_equal(np.random.get_state()[1], state[1][1])  # type: ignore[index]
