"""Properties that follow from the formulas, and the stated shares of feasible points."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from cbo_suite.errors import InvalidPoint, InvalidSpace
from cbo_suite.problems.ackley import Ackley
from cbo_suite.problems.base import Problem
from cbo_suite.problems.keane import Keane
from cbo_suite.problems.pressure_vessel import PressureVessel
from cbo_suite.problems.rosenbrock import Rosenbrock
from cbo_suite.problems.speed_reducer import SpeedReducer
from cbo_suite.problems.tension_string import TensionString
from cbo_suite.problems.toy import Toy
from cbo_suite.problems.welded_beam import WeldedBeam
from cbo_suite.protocols import Array

ALL: list[Problem] = [
    TensionString(),
    PressureVessel(),
    WeldedBeam(),
    SpeedReducer(),
    Ackley(),
    Keane(),
    Toy(),
    Rosenbrock(),
]
every_problem = pytest.mark.parametrize("problem", ALL, ids=lambda problem: problem.id)
units = st.floats(0.0, 1.0)


def points(problem: Problem, max_size: int = 40) -> st.SearchStrategy[Array]:
    """Draw points of shape `(n, d)` in the box, its edges included."""
    shapes = st.tuples(st.integers(1, max_size), st.just(problem.space.dim))
    return arrays(np.float64, shapes, elements=units).map(problem.space.from_unit)


@every_problem
@given(data=st.data())
@settings(max_examples=40)
def test_a_batch_equals_its_points_one_by_one_bit_by_bit(
    problem: Problem, data: st.DataObject
) -> None:
    """What else is in a batch does not change a point's values, and all values are finite."""
    x = data.draw(points(problem))
    batch = problem.evaluate(x)
    single = [problem.evaluate(row[None, :]) for row in x]
    assert np.isfinite(batch.objective).all()
    assert np.isfinite(batch.constraints).all()
    assert np.array_equal(batch.objective, [one.objective[0] for one in single])
    assert np.array_equal(batch.constraints, [one.constraints[0] for one in single])


@every_problem
def test_empty_and_one_point_batches_have_their_shapes(problem: Problem) -> None:
    """Shapes are (n,) and (n, m) for n = 0 and n = 1, and the input stays as it was."""
    for n in (0, 1):
        x = np.tile(problem.space.lower, (n, 1))
        evaluation = problem.evaluate(x)
        assert evaluation.objective.shape == (n,)
        assert evaluation.constraints.shape == (n, problem.space.num_constraints)
        assert np.array_equal(x, np.tile(problem.space.lower, (n, 1)))


@every_problem
def test_points_outside_the_box_are_refused(problem: Problem) -> None:
    """Beyond either bound, the message says where."""
    with pytest.raises(InvalidPoint, match=r"x\[0, 0\]"):
        problem.evaluate(problem.space.lower[None, :] - 1e-9)
    with pytest.raises(InvalidPoint, match=r"x\[0, 0\]"):
        problem.evaluate(problem.space.upper[None, :] + 1e-9)


@every_problem
def test_problems_survive_copying(problem: Problem) -> None:
    """A copy is the same problem; the way to another process is the same protocol."""
    twin = copy.deepcopy(problem)
    x = problem.space.from_unit(np.random.default_rng(1).random((5, problem.space.dim)))
    assert twin.id == problem.id
    assert twin.space == problem.space
    assert np.array_equal(twin.evaluate(x).constraints, problem.evaluate(x).constraints)


def within_binomial(hits: int, samples: int, share: float, digits: float) -> bool:
    """Tell whether hits fit a share known to `digits`: 4.5 standard errors, a chance of 1e-5."""
    error = math.sqrt(share * (1 - share) / samples)
    return abs(hits / samples - share) <= 4.5 * error + digits


@pytest.mark.parametrize(
    ("problem", "digits"),
    [
        (TensionString(), 3e-5),
        (PressureVessel(), 2e-4),
        (WeldedBeam(), 2e-4),
        (SpeedReducer(), 2e-5),
        (Toy(), 2e-4),
        (Rosenbrock(), 1e-5),
        (Keane(dim=10), 5e-6),
        (Keane(dim=20), 5e-8),
    ],
    ids=lambda value: value.id if isinstance(value, Problem) else "",
)
def test_feasible_fraction_agrees_with_random_points(problem: Problem, digits: float) -> None:
    """Half a million points, an independent seed, the binomial tolerance above."""
    assert problem.feasible_fraction is not None
    generator = np.random.default_rng(11)
    hits, samples = 0, 500_000
    for _ in range(10):
        unit = generator.random((samples // 10, problem.space.dim))
        hits += int(problem.evaluate(problem.space.from_unit(unit)).feasible.sum())
    assert within_binomial(hits, samples, problem.feasible_fraction, digits), hits / samples


def test_feasible_fraction_of_ackley_agrees_with_random_points_around_the_ball() -> None:
    """In [-5, 5]^10, which holds the whole ball, the share is larger by 1.5^10."""
    problem = Ackley()
    generator = np.random.default_rng(12)
    hits, samples = 0, 1_000_000
    for _ in range(10):
        x = generator.uniform(-5.0, 5.0, (samples // 10, 10))
        hits += int(problem.evaluate(x).feasible.sum())
    half_ball = math.pi**5 / 120 / 2 / 3**10
    assert problem.feasible_fraction == pytest.approx(half_ball, rel=1e-12)
    assert within_binomial(hits, samples, half_ball * 1.5**10, 0.0), hits / samples


@pytest.mark.parametrize("dim", [30, 50])
def test_feasible_fraction_of_keane_agrees_with_exact_distributions(dim: int) -> None:
    """Minus the logarithm of the product is a gamma variable, the sum an Irwin-Hall variable."""
    small_product = stats.gamma(dim).sf(dim * math.log(10) - math.log(0.75))
    large_sum = stats.irwinhall(dim).cdf(dim / 4)
    fraction = Keane(dim=dim).feasible_fraction
    assert fraction is not None
    assert 1 - fraction == pytest.approx(small_product + large_sum, rel=0.05)


@given(wire=units, coil=units, count=units)
def test_no_coil_is_narrower_than_its_wire(wire: float, coil: float, count: float) -> None:
    """Beyond the pole c2 may be negative, but then c1 is violated."""
    x = TensionString.space.from_unit([[wire, coil, count]])
    if x[0, 1] <= x[0, 0]:
        assert not TensionString().evaluate(x).feasible[0]


def test_the_pole_of_the_tension_string_is_finite_and_nothing_else_is_clamped() -> None:
    """Exactly at x2 = x1 the value is 1e6; one rounding error beside it is far larger."""
    x = np.array([[0.5, 0.5, 5.0], [0.5, np.nextafter(0.5, 1.0), 5.0]])
    stress = TensionString().evaluate(x).constraints[:, 1]
    assert stress[0] == 1e6
    assert stress[1] > 1e9


@given(
    plates=arrays(np.int64, 2, elements=st.integers(1, 159)),
    offsets=arrays(np.float64, (2, 2), elements=st.floats(-0.499, 0.499)),
    rest=arrays(np.float64, 2, elements=units),
)
def test_the_pressure_vessel_sees_only_whole_sixteenths(
    plates: Array, offsets: Array, rest: Array
) -> None:
    """Objective and all constraints are constant within a cell of the rounding."""
    radius, length = 10 + 40 * rest[0], 150 + 50 * rest[1]
    x = np.array([[*(plates + offset) / 16, radius, length] for offset in (*offsets, 0)])
    evaluation = PressureVessel().evaluate(x)
    assert (evaluation.objective == evaluation.objective[0]).all()
    assert (evaluation.constraints == evaluation.constraints[0]).all()


@given(x=points(WeldedBeam(), max_size=1), wider=units)
def test_a_wider_bar_is_stiffer_dearer_and_leaves_the_weld_alone(x: Array, wider: float) -> None:
    """In the width x4, cost grows; bending, deflection and c3 fall; the shear stress is fixed."""
    wide = x.copy()
    wide[0, 3] += wider * (10.0 - wide[0, 3])
    thin, thick = WeldedBeam().evaluate(x), WeldedBeam().evaluate(np.minimum(wide, 10.0))
    assert thick.objective[0] >= thin.objective[0]
    assert thick.constraints[0, 0] == thin.constraints[0, 0]
    assert (thick.constraints[0, [1, 2, 4]] <= thin.constraints[0, [1, 2, 4]]).all()


@given(x=points(SpeedReducer()))
def test_the_two_bounds_on_the_ratio_of_the_speed_reducer_belong_together(x: Array) -> None:
    """c8 and c9 bound the same ratio from 5 to 12, so that they add up to -7."""
    constraints = SpeedReducer().evaluate(x).constraints
    np.testing.assert_allclose(constraints[:, 7] + constraints[:, 8], -7.0, rtol=1e-14)


@given(
    x=arrays(np.float64, (1, 10), elements=st.floats(-5.0, 5.0)),
    signs=arrays(np.float64, 10, elements=st.sampled_from([-1.0, 1.0])),
    order=st.permutations(range(10)),
)
def test_ackley_is_even_symmetric_and_never_negative(
    x: Array, signs: Array, order: list[int]
) -> None:
    """Signs and order of the coordinates do not matter to f and to c2."""
    value, mirrored = Ackley().evaluate(x), Ackley().evaluate(x * signs)
    shuffled = Ackley().evaluate(x[:, order])
    assert value.objective[0] >= 0.0
    assert mirrored.objective[0] == value.objective[0]
    assert mirrored.constraints[0, 1] == value.constraints[0, 1]
    np.testing.assert_allclose(shuffled.objective, value.objective, rtol=1e-12)
    np.testing.assert_allclose(shuffled.constraints, value.constraints, rtol=1e-12, atol=1e-13)


def test_ackley_is_accurate_next_to_its_optimum() -> None:
    """At distance t along an axis f is 4 t / sqrt(10), to first order, without cancellation."""
    x = np.zeros((1, 10))
    x[0, 0] = -1e-12
    assert Ackley().evaluate(x).objective[0] == pytest.approx(4e-12 / math.sqrt(10), rel=1e-9)


@given(x=points(Keane(dim=6), max_size=10))
def test_sorting_in_decreasing_order_never_hurts_on_keane(x: Array) -> None:
    """Only the denominator sees the order, and it is smallest with small numbers last."""
    problem = Keane(dim=6)
    ordered = -np.sort(-x, axis=1)
    before, after = problem.evaluate(x), problem.evaluate(ordered)
    assert (after.objective <= before.objective + 1e-12 * np.abs(before.objective)).all()
    np.testing.assert_allclose(after.constraints, before.constraints, rtol=1e-12, atol=1e-12)


def test_keane_is_finite_and_infeasible_at_the_origin() -> None:
    """The guard of the square root leaves (d - 2) / 1e-3."""
    evaluation = Keane().evaluate(np.zeros((1, 30)))
    assert evaluation.objective[0] == pytest.approx(-28e3, rel=1e-12)
    assert evaluation.constraints[0].tolist() == [0.75, -225.0]


@given(x=points(Toy()))
def test_the_toy_is_symmetric_but_for_its_wave(x: Array) -> None:
    """Swapping the variables changes c1 only."""
    value, swapped = Toy().evaluate(x), Toy().evaluate(x[:, ::-1])
    assert np.array_equal(value.objective, swapped.objective)
    assert np.array_equal(value.constraints[:, 1], swapped.constraints[:, 1])


@given(x=points(Rosenbrock()))
def test_the_three_functions_of_rosenbrock_are_never_negative(x: Array) -> None:
    """All are sums of squares."""
    evaluation = Rosenbrock().evaluate(x)
    assert (evaluation.objective >= 0.0).all()
    assert (evaluation.constraints >= -10.0).all()


@pytest.mark.parametrize("dim", [2, 7, 300])
@pytest.mark.parametrize("family", [Ackley, Keane, Rosenbrock])
def test_families_scale_and_name_themselves(
    family: type[Ackley | Keane | Rosenbrock], dim: int
) -> None:
    """The id follows the dimension; a best value is given only where one is known."""
    problem = family(dim=dim)
    assert problem.id == f"{family.__name__.lower()}-{dim}d-v1"
    x = problem.space.from_unit(np.random.default_rng(3).random((4, dim)))
    assert np.isfinite(problem.evaluate(x).constraints).all()
    assert np.isfinite(problem.evaluate(problem.space.upper[None, :]).constraints).all()
    assert (problem.best_known is not None) == (family is Ackley)


@pytest.mark.parametrize(
    ("family", "dim"), [(Ackley, 0), (Keane, 1), (Keane, 301), (Rosenbrock, 1)]
)
def test_families_refuse_a_dimension_that_makes_no_problem(
    family: type[Ackley | Keane | Rosenbrock], dim: int
) -> None:
    """The message says what is allowed and what was got."""
    with pytest.raises(InvalidSpace, match=rf"{family.__name__} needs .*dim.*got {dim}"):
        family(dim=dim)


def test_a_problem_says_what_it_is() -> None:
    """In an interactive session its name and size are seen at once."""
    assert repr(Toy()) == "<Problem toy-2d-v1: 2 variables, 2 constraints>"
