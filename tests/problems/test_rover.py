"""The rover: stated values, a plain computation of the same, exact edges, and its picture."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cbo_suite.checks import check_problem
from cbo_suite.errors import InvalidPoint, InvalidTask, MissingExtra
from cbo_suite.problems.rover import Rover
from cbo_suite.protocols import Array, BoolArray, Evaluation
from cbo_suite.registry import make_problem

ROVERS = {"default": Rover(), "furbo": Rover("furbo")}
ROVER = ROVERS["default"]
IDS = ("rover-60d-v1", "rover-60d-alt-v1")
# Multiples of 1/64, among which way-points often coincide but are never nearly equal: that is
# where least squares is ill-conditioned and no two programs agree.
POINTS = arrays(float, 60, elements=st.integers(0, 64).map(lambda k: k / 64))


def straight_line() -> Array:
    """Return the point `(1, 60)` with 30 equally spaced way-points strictly between the ends."""
    points = np.linspace(ROVER.start, ROVER.goal, 32)[1:-1]
    return (points.reshape(1, 60) + 0.1) / 1.2


def plain_path(x: Array) -> Array:
    """Return the path `(1000, 2)` of one point by the textbook's least squares."""
    points = np.vstack([ROVER.start, (1.2 * x - 0.1).reshape(30, 2), ROVER.goal])
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    control = np.linalg.lstsq(bernstein(length / length[-1]), points, rcond=None)[0]
    control[0], control[-1] = ROVER.start, ROVER.goal
    path: Array = bernstein(np.arange(1000) / 999) @ control
    return path


def bernstein(t: Array) -> Array:
    """Return the cubic Bernstein polynomials at parameters `(n,)`, shape `(n, 4)`."""
    return np.column_stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])


def is_costly(points: Array) -> BoolArray:
    """Tell which points `(n, 2)` lie in a tree or off the map, each against every tree."""
    low, high = ROVER.trees - 0.025, ROVER.trees + 0.025
    in_tree = np.all((points[:, None] >= low) & (points[:, None] < high), axis=2)
    on_map = np.all((points >= 0.0) & (points < 1.0), axis=1)
    costly: BoolArray = np.any(in_tree, axis=1) | ~on_map
    return costly


def plain_values(path: Array, rover: Rover) -> Evaluation:
    """Evaluate a path `(1000, 2)` with every sample against every tree and stone."""
    density = np.where(is_costly(path), 20.05, 0.05)
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    cost = float((steps * (density[1:] + density[:-1]) / 2).sum())
    distance = np.abs(path[:, None] - rover.stones) - 0.05
    outside = np.linalg.norm(np.maximum(distance, 0.0), axis=-1)
    inside = np.minimum(distance.max(axis=-1), 0.0)
    return Evaluation(np.array([cost - 5.0]), -(outside + inside).min(axis=0)[None])


def test_centre_has_the_stated_values() -> None:
    """All way-points coincide: the minimum norm decides."""
    evaluation = ROVER.evaluate(np.full((1, 60), 0.5))
    assert -evaluation.objective[0] == pytest.approx(-2.4701777484884904, abs=1e-9)
    assert evaluation.constraints[0, 0] == pytest.approx(0.024567901234567882, abs=1e-9)


def test_straight_line_has_the_stated_reward() -> None:
    """A straight line crosses the stones that the centre's path crosses."""
    evaluation = ROVER.evaluate(straight_line())
    assert -evaluation.objective[0] == pytest.approx(-2.5041866411706373, abs=1e-9)
    assert not evaluation.feasible[0]


@pytest.mark.parametrize("id_", IDS)
def test_conforms(id_: str) -> None:
    """The public check passes."""
    check_problem(make_problem(id_), num_points=40)


@pytest.mark.parametrize(("layout", "reward"), [("default", 4.9222), ("furbo", 3.3)])
def test_best_known_is_good(layout: str, reward: float) -> None:
    """The best known path is at least as good as the one the problem was designed around."""
    best = ROVERS[layout].best_known
    assert best is not None
    assert -best.objective >= reward, best


@pytest.mark.parametrize("layout", ROVERS)
@settings(max_examples=60, deadline=None)
@given(x=POINTS)
def test_agrees_with_plain_computation(layout: str, x: Array) -> None:
    """Closed form, table of costs and delayed roots change nothing."""
    rover, path = ROVERS[layout], plain_path(x)
    np.testing.assert_allclose(rover.trajectory(x[None])[0], path, atol=1e-9)
    # On the problem's own samples, as a sample on the edge of a tree may fall to either side.
    fast, plain = rover.evaluate(x[None]), plain_values(rover.trajectory(x[None])[0], rover)
    np.testing.assert_allclose(fast.objective, plain.objective, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fast.constraints, plain.constraints, rtol=0, atol=1e-9)


@settings(max_examples=200, deadline=None)
@given(
    tree=st.integers(0, 112),
    sides=st.tuples(st.sampled_from([-1, 1]), st.sampled_from([-1, 1])),
    shift=st.tuples(st.sampled_from([-1, 0, 1]), st.sampled_from([-1, 0, 1])),
)
def test_table_of_costs_is_exact_at_corners(
    tree: int, sides: tuple[int, int], shift: tuple[int, int]
) -> None:
    """At a tree's corner and one float beside it the table agrees with the half-open squares."""
    corner = ROVER.trees[tree] + 0.025 * np.array(sides)
    point = np.where(np.array(shift) == 0, corner, np.nextafter(corner, corner + shift))
    expected = is_costly(point[None])[0]
    assert looked_up(point) == expected


@pytest.mark.parametrize(
    ("point", "costly"),
    [
        ((0.0, 0.0), False),
        ((-1e-300, 0.0), True),
        ((np.nextafter(1.0, 0.0), 0.99), False),
        ((1.0, 0.5), True),
        ((0.5, 1.0), True),
        ((0.5, -5.0), True),
    ],
)
def test_edge_of_the_map(point: tuple[float, float], costly: bool) -> None:
    """The map holds its lower and left edges only."""
    assert looked_up(np.array(point)) == costly


def looked_up(point: Array) -> bool:
    """Tell whether the table gives one point `(2,)` the cost of a tree."""
    return bool(ROVER.density(point[:1], point[1:])[0] > 1.0)


@settings(max_examples=25, deadline=None)
@given(x=arrays(float, (5, 60), elements=st.floats(0, 1)), copies=st.integers(1, 40))
def test_bits_do_not_depend_on_the_batch(x: Array, copies: int) -> None:
    """A point has the same bits alone and anywhere in a batch of any size."""
    batch = ROVER.evaluate(np.tile(x, (copies, 1)))
    for row, point in enumerate(x, start=len(x) * (copies - 1)):
        alone = ROVER.evaluate(point[None])
        assert alone.objective[0] == batch.objective[row]
        np.testing.assert_array_equal(alone.constraints[0], batch.constraints[row])


def test_ends_are_pinned_exactly() -> None:
    """Every path begins at the start and ends at the goal."""
    path = ROVER.trajectory(np.random.default_rng(0).random((20, 60)))
    np.testing.assert_array_equal(path[:, 0], np.broadcast_to([0.05, 0.05], (20, 2)))
    np.testing.assert_array_equal(path[:, -1], np.broadcast_to([0.95, 0.95], (20, 2)))


def test_constraint_is_minus_the_distance_from_a_free_stone() -> None:
    """A path along the diagonal passes the stone at (0.06, 0.72) at a known distance."""
    constraint = ROVER.evaluate(straight_line()).constraints[0, 8]
    # The stone's corner (0.11, 0.67) is 0.56 / sqrt(2) away from the diagonal.
    assert constraint == pytest.approx(-0.56 / np.sqrt(2), abs=1e-5)


def test_layouts_share_the_objective() -> None:
    """Another layout of stones changes the constraints only."""
    x = np.random.default_rng(1).random((10, 60))
    default, other = ROVER.evaluate(x), ROVERS["furbo"].evaluate(x)
    np.testing.assert_array_equal(default.objective, other.objective)
    assert (default.constraints != other.constraints).any()


def test_feasible_fraction_is_plausible() -> None:
    """The stated shares are within five standard errors of a sample."""
    x = np.random.default_rng(7).random((8_000, 60))
    for rover in ROVERS.values():
        share = rover.evaluate(x).feasible.mean()
        assert rover.feasible_fraction is not None
        error = np.sqrt(rover.feasible_fraction / len(x))
        assert abs(share - rover.feasible_fraction) < 5 * error, share


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_plot_draws_the_map_in_the_colours_of_the_paper(tmp_path: Path, suffix: str) -> None:
    """The picture has 113 yellow trees, 15 red stones and a black path between the ends."""
    from matplotlib.colors import to_rgb

    figure = ROVER.plot(straight_line()[0], tmp_path / f"map.{suffix}")
    assert (tmp_path / f"map.{suffix}").stat().st_size > 10_000
    (axes,) = figure.axes
    assert "collides with" in axes.get_title()
    trees, stones = axes.collections
    assert (len(trees.get_paths()), len(stones.get_paths())) == (113, 15)
    red, green, blue, _ = np.array(stones.get_facecolor())[0]
    assert red > 0.7
    assert max(green, blue) < 0.3
    red, green, blue, _ = np.array(trees.get_facecolor())[0]
    assert min(red, green) > 0.7
    assert blue < 0.5
    red, green, blue = to_rgb(axes.patches[0].get_facecolor())
    assert green > max(red, blue)
    path = axes.lines[0]
    assert path.get_color() == "black"
    np.testing.assert_array_equal(path.get_xydata(), ROVER.trajectory(straight_line())[0])


def test_plot_of_a_feasible_point_says_so() -> None:
    """The title gives reward and verdict."""
    best = ROVER.best_known
    assert best is not None
    title = ROVER.plot(best.x).axes[0].get_title()
    assert title == f"rover-60d-v1: reward {-best.objective:.4f}, feasible"


def test_unknown_layout_is_refused() -> None:
    """The message lists the layouts."""
    with pytest.raises(InvalidTask, match="one of default, furbo, got 'moon'"):
        Rover("moon")  # type: ignore[arg-type]


def test_plot_refuses_a_bad_point() -> None:
    """Plotting checks its point as evaluating does."""
    with pytest.raises(InvalidPoint, match="outside"):
        ROVER.plot(np.full(60, 1.5))


def test_plot_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib the message says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r'pip install "cbo-suite\[plots\]"'):
        ROVER.plot(np.full(60, 0.5))
