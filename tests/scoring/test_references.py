"""Reference values: every witness is evaluated again, and no search finds a value beyond them."""

from __future__ import annotations

import math
import platform

import numpy as np
import pytest
from scipy.stats import qmc

import cbo_suite as cbo
from cbo_suite.errors import MissingExecutable, MissingExtra
from cbo_suite.harness.evaluate import evaluate_points
from cbo_suite.problems import PROBLEMS
from cbo_suite.protocols import Array, ConstrainedProblem
from cbo_suite.registry import protocol_of
from cbo_suite.scoring.references import load_references

REFERENCES = load_references()
PLATFORM = (platform.system(), platform.machine())
CHEAP = [id_ for id_ in PROBLEMS if not id_.startswith(("lunar", "mopta08"))]

# Ackley: the largest distance from the origin and the least cosines, which no point has both.
ACKLEY_BOUND = 20 + math.e - 20 * math.exp(-0.2 * math.sqrt(25 / 10)) - math.exp(-1)


def make_or_skip(problem_id: str) -> ConstrainedProblem:
    """Make a problem, or skip the test where what it needs is not there."""
    try:
        return cbo.make_problem(problem_id)
    except (MissingExecutable, MissingExtra) as error:
        pytest.skip(str(error).splitlines()[0])


def test_every_problem_has_references() -> None:
    """In the order of the table, and none for what is no problem."""
    assert list(REFERENCES) == list(PROBLEMS)


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_references_make_sense(problem_id: str) -> None:
    """The best lies below the level, the level not above the worst; the protocol is the suite's."""
    reference = REFERENCES[problem_id]
    assert reference.best < reference.level <= reference.worst
    protocol = protocol_of(problem_id)
    assert (reference.budget, reference.n_init) == (protocol.budget, protocol.n_init)
    assert len(reference.best_x) == PROBLEMS[problem_id].dim
    assert 0.0 <= reference.feasibility_tolerance <= 1e-8
    assert reference.source
    # Only what needs an executable of the user's own may be left out of the overall score.
    assert reference.optional == (problem_id == "mopta08-124d-v1")


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_problems_know_the_best_point_of_the_newest_references(problem_id: str) -> None:
    """A problem that names a best known point names that one."""
    known = getattr(make_or_skip(problem_id), "best_known", None)
    if known is not None:
        assert known.objective == REFERENCES[problem_id].best
        np.testing.assert_array_equal(known.x, REFERENCES[problem_id].best_x)


@pytest.mark.parametrize("which", ["best", "worst"])
@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_witnesses_have_their_values(problem_id: str, which: str) -> None:
    """Each is feasible and gives the value that is written down."""
    reference = REFERENCES[problem_id]
    x = getattr(reference, f"{which}_x")
    if x is None:
        # A bound, which a test below proves, or the value of a point that is not feasible.
        assert problem_id.startswith(("lunar", "mopta08"))
        assert which == "worst"
        return
    if problem_id.startswith("lunar") and PLATFORM != ("Linux", "x86_64"):
        pytest.skip("Box2D computes in single precision; values are recorded on linux-x86_64")
    problem = make_or_skip(problem_id)
    evaluation = problem.evaluate(np.array([x]))
    assert evaluation.violation[0] <= reference.feasibility_tolerance
    expected = pytest.approx(getattr(reference, which), rel=1e-9, abs=1e-12)
    assert evaluation.objective[0] == expected


@pytest.mark.parametrize("problem_id", CHEAP)
def test_no_feasible_sample_lies_outside(problem_id: str) -> None:
    """Neither random points, corners and mixtures of both, nor points around the witnesses."""
    problem, reference = cbo.make_problem(problem_id), REFERENCES[problem_id]
    assert reference.worst_x is not None
    # Large problems are slow to evaluate.
    n = 2**12 if problem.space.dim < 60 else 2**9
    points = samples(problem, np.array([reference.best_x, reference.worst_x]), n)
    evaluation = evaluate_points(problem, points).evaluation
    values = evaluation.objective[evaluation.feasible]
    assert len(values)
    # The rover's objective has steps, on which no search ends at the very edge.
    share = 1e-4 if problem_id.startswith("rover") else 1e-9
    margin = share * (reference.worst - reference.best)
    assert values.max() <= reference.worst + margin
    assert values.min() >= reference.best - margin


def samples(problem: ConstrainedProblem, witnesses: Array, n: int) -> Array:
    """Draw n points each of several kinds: all over the box, and around the witnesses `(k, d)`."""
    space, random = problem.space, np.random.default_rng(1)
    unit = qmc.Sobol(space.dim, rng=random).random(n)
    corners = (random.random(unit.shape) < 0.5).astype(float)
    mixed = np.where(random.random(unit.shape) < 0.5, unit, corners)
    around = [
        space.to_unit(x) + random.normal(scale=scale, size=unit.shape)
        for x in witnesses
        for scale in (0.1, 0.01, 1e-4)
    ]
    points = np.concatenate([unit, corners, mixed, *around, space.to_unit(witnesses)])
    return space.from_unit(np.clip(points, 0, 1))


@pytest.mark.parametrize(
    ("problem_id", "bound", "margin"),
    [
        ("toy-2d-v1", math.sqrt(3), 1e-8),  # on the circle of the second constraint
        ("keane-30d-v1", 0.0, 1e-8),  # minus an absolute value
        ("ackley-10d-v1", ACKLEY_BOUND, 0.002),
    ],
)
def test_worst_values_against_proven_bounds(problem_id: str, bound: float, margin: float) -> None:
    """No feasible value can lie above the bound, and the search comes near to it."""
    assert bound - margin <= REFERENCES[problem_id].worst <= bound


@pytest.mark.parametrize("problem_id", [id_ for id_ in PROBLEMS if id_.startswith("lunar")])
def test_no_lunar_lander_can_be_worse_than_its_bound(problem_id: str) -> None:
    """The objective is the mean constraint minus 200, and a feasible constraint is at most 0."""
    problem = make_or_skip(problem_id)
    points = problem.space.from_unit(np.random.default_rng(0).random((3, problem.space.dim)))
    evaluation = problem.evaluate(points)
    assert evaluation.objective == pytest.approx(evaluation.constraints.mean(axis=1) - 200.0)
    assert REFERENCES[problem_id].worst == -200.0


@pytest.mark.parametrize("problem_id", ["pressure-vessel-4d-v1", "welded-beam-4d-v1"])
def test_increasing_objectives_are_worst_in_the_upper_corner(problem_id: str) -> None:
    """Their objectives grow with every variable, and the corner is feasible."""
    problem = cbo.make_problem(problem_id)
    corner = problem.evaluate(problem.space.upper[None])
    assert corner.feasible[0]
    assert REFERENCES[problem_id].worst == corner.objective[0]
