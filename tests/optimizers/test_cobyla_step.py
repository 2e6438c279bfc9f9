"""The step of COBYLA's trust region solves its two-stage problem."""

from __future__ import annotations

import numpy as np
import pytest
from scipy._lib.pyprima.cobyla.trustregion import trstlp
from scipy.optimize import minimize

from cbo_suite.optimizers.cobyla.step import trust_region_step

Problem = tuple[np.ndarray, np.ndarray, float, np.ndarray]


def random_problem(seed: int) -> Problem:
    """Return normals (d, k), limits (k,), radius and gradient: general constraints and a box."""
    random = np.random.default_rng(seed)
    dim, count = int(random.integers(1, 9)), int(random.integers(0, 9))
    limits = random.normal(random.choice([-0.3, 0.0, 0.5]), random.choice([0.1, 1.0]), count)
    box = random.random(2 * dim)
    box[random.random(2 * dim) < 0.2] = 0.0  # at the edge of the box already
    normals = np.hstack([random.standard_normal((dim, count)), np.eye(dim), -np.eye(dim)])
    radius = float(random.choice([0.1, 0.5, 2.0]))
    return normals, np.concatenate([limits, box]), radius, random.standard_normal(dim)


def violation(step: np.ndarray, normals: np.ndarray, limits: np.ndarray) -> float:
    """Return the greatest violation of a step."""
    return max(0.0, float((step @ normals - limits).max()))


def least_violation(normals: np.ndarray, limits: np.ndarray, radius: float) -> float:
    """Return the least violation in the ball by a general solver, over step and level."""
    dim = len(normals)
    start = np.append(np.zeros(dim), violation(np.zeros(dim), normals, limits))
    result = minimize(  # type: ignore[call-overload]
        lambda v: v[-1],
        start,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda v: limits + v[-1] - v[:-1] @ normals},
            {"type": "ineq", "fun": lambda v: radius**2 - v[:-1] @ v[:-1]},
            {"type": "ineq", "fun": lambda v: v[-1:]},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return float(result.x[-1])


def least_objective(problem: Problem, level: float, start: np.ndarray) -> float:
    """Return the least objective in the ball at a level of violation, by a general solver."""
    normals, limits, radius, gradient = problem
    result = minimize(  # type: ignore[call-overload]
        lambda d: gradient @ d,
        start,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda d: limits + level - d @ normals},
            {"type": "ineq", "fun": lambda d: radius**2 - d @ d},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return float(result.fun)


@pytest.mark.parametrize("seed", range(60))
def test_solution_agrees_with_a_general_solver(seed: int) -> None:
    """Least violation first, least objective at that violation second."""
    problem = normals, limits, radius, gradient = random_problem(seed)
    step = trust_region_step(*problem)
    level = violation(step, normals, limits)
    assert np.linalg.norm(step) <= radius * (1 + 1e-12)
    assert level == pytest.approx(least_violation(normals, limits, radius), abs=1e-6)
    if level < 1e-9 or np.linalg.norm(step) < radius * (1 - 1e-9):
        # Else one point is left at that level, where a general solver's tolerance decides.
        assert gradient @ step <= least_objective(problem, level, step) + 1e-6


@pytest.mark.parametrize("seed", range(200, 500))
def test_never_worse_than_scipy(seed: int) -> None:
    """SciPy's own step is the same or worse, first in violation, then in objective."""
    problem = normals, limits, radius, gradient = random_problem(seed)
    ours = trust_region_step(*problem)
    theirs = trstlp(normals.copy(), limits.copy(), radius, gradient.copy())
    difference = violation(theirs, normals, limits) - violation(ours, normals, limits)
    assert difference >= -1e-9
    if difference <= 1e-9:
        assert gradient @ ours <= gradient @ theirs + 1e-7


def test_without_constraints_it_goes_down_to_the_sphere() -> None:
    """With nothing in the way the step is along the negative gradient."""
    gradient = np.array([3.0, 0.0, -4.0])
    step = trust_region_step(np.empty((3, 0)), np.empty(0), 0.5, gradient)
    assert step == pytest.approx([-0.3, 0.0, 0.4])


def test_feasible_and_flat_means_no_step() -> None:
    """Where nothing can be gained, nothing moves."""
    step = trust_region_step(np.eye(2), np.ones(2), 1.0, np.zeros(2))
    assert step == pytest.approx([0.0, 0.0])


def test_shortest_step_to_feasibility() -> None:
    """A half-space out of reach of the objective is entered at its nearest point."""
    normals, limits = np.array([[-1.0], [-1.0]]), np.array([-1.0])  # d0 + d1 >= 1
    step = trust_region_step(normals, limits, 10.0, np.zeros(2))
    assert step == pytest.approx([0.5, 0.5])


def test_contradiction_is_split_evenly() -> None:
    """Of d <= -1 and d >= 2 neither can hold: the middle violates both by as much."""
    step = trust_region_step(np.array([[1.0, -1.0]]), np.array([-1.0, -2.0]), 5.0, np.ones(1))
    assert step == pytest.approx([0.5])


def test_same_constraint_twice() -> None:
    """Dependent normals change nothing."""
    normals = np.array([[-1.0, -1.0, -2.0], [0.0, 0.0, 0.0]])
    step = trust_region_step(normals, np.array([-1.0, -1.0, -2.0]), 5.0, np.array([1.0, 0.0]))
    assert step == pytest.approx([1.0, 0.0])


def test_values_beyond_arithmetic_give_no_step() -> None:
    """Where products overflow the answer is still a finite step."""
    normals = np.full((2, 1), 1e200)
    assert np.isfinite(trust_region_step(normals, np.array([-1e300]), 1.0, np.ones(2))).all()
