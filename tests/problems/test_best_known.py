"""Best known points of the analytic problems: feasible, of the value they claim, and locally best.

tests/golden/witnesses.json is written by `python -m tests.golden.derive_witnesses`. The points and
values of the literature are cited in the module of each problem.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbo_suite.problems.ackley import Ackley
from cbo_suite.problems.base import Problem
from cbo_suite.problems.keane import Keane
from cbo_suite.problems.pressure_vessel import PressureVessel
from cbo_suite.problems.rosenbrock import Rosenbrock
from cbo_suite.problems.speed_reducer import SpeedReducer
from cbo_suite.problems.tension_string import TensionString
from cbo_suite.problems.toy import Toy
from cbo_suite.problems.welded_beam import WeldedBeam

WITNESSES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "witnesses.json").read_text(encoding="utf-8")
)
PROBLEMS: dict[str, Problem] = {
    problem.id: problem
    for problem in (
        TensionString(),
        PressureVessel(),
        WeldedBeam(),
        SpeedReducer(),
        Ackley(),
        Toy(),
        Rosenbrock(),
        *(Keane(dim=dim) for dim in (10, 20, 30, 50)),
    )
}
# The optimum itself, before it is rounded into the feasible set.
OPTIMA = {
    "tension-string-3d-v1": 0.0126652327883194,
    "pressure-vessel-4d-v1": 6059.714335048436,
    "welded-beam-4d-v1": 2.38113411689179,
    "speed-reducer-7d-v1": 2996.34816496853,
    "ackley-10d-v1": 0.0,
    "toy-2d-v1": 0.599788052010068,
    "rosenbrock-5d-v1": 0.0023613424711557,
    "keane-10d-v1": -0.7473103615261207,
    "keane-20d-v1": -0.8036191041255883,
    "keane-30d-v1": -0.821884396667876,
    "keane-50d-v1": -0.8352623483581594,
}


def test_every_witness_has_a_problem() -> None:
    """Nothing is missing or left over."""
    assert set(WITNESSES) == set(PROBLEMS) == set(OPTIMA)


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_witness_is_feasible_and_has_its_value(problem_id: str) -> None:
    """No constraint is violated by even one bit, and the value is that of the derivation."""
    problem = PROBLEMS[problem_id]
    known = problem.best_known
    assert known is not None
    evaluation = problem.evaluate(known.x[None, :])
    assert evaluation.violation[0] == 0.0, evaluation
    assert evaluation.objective[0] == pytest.approx(known.objective, rel=1e-13, abs=0.0)
    assert known.x.tolist() == WITNESSES[problem_id]["x"]
    assert known.objective == WITNESSES[problem_id]["objective"]
    assert known.objective == pytest.approx(float(WITNESSES[problem_id]["exact_objective"]), 1e-13)
    assert known.objective == pytest.approx(OPTIMA[problem_id], rel=1e-12, abs=0.0)
    assert known.objective >= OPTIMA[problem_id] - 1e-14 * abs(OPTIMA[problem_id])


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_no_feasible_point_nearby_is_better(problem_id: str) -> None:
    """Random steps of many lengths and into few coordinates find nothing below the witness."""
    problem = PROBLEMS[problem_id]
    known = problem.best_known
    assert known is not None
    generator = np.random.default_rng(7)
    shape = (100_000, problem.space.dim)
    lengths = 10.0 ** generator.uniform(-9.0, -0.5, size=(shape[0], 1))
    moved = generator.random(shape) < 2 / problem.space.dim
    steps = np.where(moved, lengths * generator.standard_normal(shape), 0.0)
    steps *= problem.space.upper - problem.space.lower
    x = np.clip(known.x + steps, problem.space.lower, problem.space.upper)
    evaluation = problem.evaluate(x)
    assert evaluation.feasible.any()
    best = evaluation.objective[evaluation.feasible].min()
    assert best >= OPTIMA[problem_id] - 1e-12 * abs(OPTIMA[problem_id])


@pytest.mark.parametrize(
    ("problem", "x", "objective", "tolerance"),
    [
        (TensionString(), (0.051989, 0.363965, 10.890522), 0.012681, 1e-6),
        (
            TensionString(),
            (0.05174250340926, 0.35800478345599, 11.21390736278739),
            0.012665285,
            1e-9,
        ),
        (PressureVessel(), (0.8125, 0.4375, 42.097398, 176.654047), 6059.946341, 1e-3),
        (Toy(), (0.1954, 0.4044), 0.5998, 1e-12),
    ],
    ids=["Coello 2002, spring", "Hedar 2006, spring", "Coello 2002, vessel", "Gramacy 2016"],
)
def test_printed_optima_are_feasible_with_the_printed_value(
    problem: Problem, x: tuple[float, ...], objective: float, tolerance: float
) -> None:
    """Points of the literature hold in our definition, above our best known value."""
    evaluation = problem.evaluate([x])
    assert evaluation.feasible[0], evaluation
    assert evaluation.objective[0] == pytest.approx(objective, abs=tolerance)
    assert evaluation.objective[0] > OPTIMA[problem.id]


def test_the_printed_welded_beam_breaks_only_the_shear_limit_and_by_less_than_two() -> None:
    """Hedar and Fukushima computed with 1 / sqrt(2) where they print 0.707."""
    x = (0.24435257, 6.2157922, 8.2939046, 0.24435258)
    evaluation = WeldedBeam().evaluate([x])
    assert evaluation.objective[0] == pytest.approx(2.381065, abs=1e-6)
    assert 0 < evaluation.constraints[0, 0] < 2
    assert (evaluation.constraints[0, 1:] <= 1e-2).all()


def test_rosenbrock_without_constraints_is_infeasible() -> None:
    """The Dixon-Price function is 14 at (1, ..., 1), 4 above its limit; the Levy function is 0."""
    evaluation = Rosenbrock().evaluate(np.ones((1, 5)))
    assert evaluation.objective[0] == 0.0
    assert evaluation.constraints[0] == pytest.approx([4.0, -10.0], abs=1e-12)
