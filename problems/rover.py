"""Rover: lay a cheap path over a map with trees while staying clear of 15 stones (60D).

The task of [Wang2018] with the constraints of [SCBO]. x in [0, 1]^60 is scaled to
w = 1.2 x - 0.1 and read as 30 way-points (w_0, w_1), (w_2, w_3), ... on the unit square.

Path. The 32 points s, way-points, g with start s = (0.05, 0.05) and goal g = (0.95, 0.95) get the
parameters u_i = chord length up to point i / total chord length. A cubic curve
p(t) = sum_j B_j(t) P_j in the Bernstein basis B is fitted to them by least squares, of minimum norm
where way-points coincide; then P_0 = s and P_3 = g pin its ends. It is seen at the 1000 parameters
t_k = k / 999. [Wang2018] writes it as a smoothing spline with FITPACK's default smoothing
32 - sqrt(64) = 24. As a constant already fits 32 points of this box with residual
32 * 2 * 0.6^2 < 24, FITPACK always stops at one single cubic: this closed form is the same curve,
and is defined where FITPACK refuses coinciding points.

Objective, minus the reward 5 - cost, where cost is the trapezoidal line integral of a density that
is 0.05 everywhere, plus 20 inside any of the 113 trees (squares of side 0.05, half-open
lo <= p < hi, overlapping ones count once) and outside [0, 1)^2.

Constraint i, for a stone with centre o and half side h = 0.05, the largest depth over the samples:
    c_i = max_k -sdf(p(t_k)),  sdf(p) = |max(d, 0)|_2 + min(max(d_1, d_2), 0),  d = |p - o| - h,
which is minus the distance from a path that stays clear and the depth of the deepest sample of a
path that collides.

What is ours: [Wang2018] adds noise to the way-points and punishes missed ends; here there is
no noise, and the ends are pinned, as [SCBO] ask for. Their stones are unpublished. The
"default" layout was chosen so that the best cubic path without stones stays free while nearly all
random paths collide; the "furbo" layout has the centres of [Ascia2025].

References:
    [Wang2018] Wang, Gehring, Kohli, Jegelka: Batched large-scale Bayesian optimization in
        high-dimensional spaces. AISTATS 2018. Map and trees: its public code.
    [SCBO] Eriksson, Poloczek: Scalable constrained Bayesian optimization. AISTATS 2021.
    [Ascia2025] Ascia, Raponi, Bäck, Duddeck: Feasibility-driven trust region Bayesian
        optimization. AutoML 2025. Stones: its public code.

Version history:
    v1: First release, of both rover-60d and rover-60d-alt.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from cbo_suite.errors import InvalidTask, MissingExtra
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUM_SAMPLES = 1000  # [Wang2018]
MAX_REWARD = 5.0  # [Wang2018]
GROUND_COST = 0.05  # [Wang2018]
TREE_COST = 20.0  # [Wang2018]
# Few enough paths at a time that the work on their samples stays in the processor's cache.
BLOCK = 16
IDS = {"default": "rover-60d-v1", "furbo": "rover-60d-alt-v1"}
# Of 300 000 uniform points, by tests/golden/derive_rover_witnesses.py.
FEASIBLE = {"default": 0.00067, "furbo": 0.00623}
GREEN, YELLOW, RED = "#86b86b", "#f6d743", "#c8322b"


class Rover(Problem):
    """The rover problem on one layout of stones; see the module for its definition."""

    # Fits of other kernels of linear algebra differ by up to 6e-14 of the size of a constraint, in
    # 120 000 paths: tests/problems/other_processors.py.
    rounding: ClassVar[float] = 1e-12

    def __init__(self, layout: Literal["default", "furbo"] = "default") -> None:
        """Read the map.

        Args:
            layout: Which stones: "default" is `rover-60d-v1`, "furbo" is `rover-60d-alt-v1`.

        Raises:
            InvalidTask: There is no such layout.
        """
        if layout not in IDS:
            raise InvalidTask(f"layout must be one of {', '.join(IDS)}, got {layout!r}")
        folder = Path(__file__).parent
        terrain = json.loads((folder / "rover_map.json").read_text(encoding="utf-8"))
        known = json.loads((folder / "rover_best_known.json").read_text(encoding="utf-8"))
        self.id = IDS[layout]
        self.space = Space(np.zeros(60), np.ones(60), num_constraints=15)
        self.feasible_fraction = FEASIBLE[layout]
        self.best_known = BestKnown(
            known[self.id]["objective"],
            np.array(known[self.id]["x"]),
            known[self.id].get("source", "tests/golden/derive_rover_witnesses.py"),
        )
        self.start = np.array(terrain["start"])
        self.goal = np.array(terrain["goal"])
        self.trees = np.array(terrain["tree_centres"])
        self.tree_half_side = float(terrain["tree_half_side"])
        self.stones = np.array(terrain["stone_centres"][layout])
        self.stone_half_side = float(terrain["stone_half_side"])
        self._columns, self._rows, self._density = self._cost_table()

    def _evaluate(self, x: Array) -> Evaluation:
        """Fit and follow the curves, block by block."""
        objective = np.empty(len(x))
        constraints = np.empty((len(x), len(self.stones)))
        for first in range(0, len(x), BLOCK):
            block = slice(first, first + BLOCK)
            curves = self.control_points(x[block])
            objective[block], constraints[block] = self.evaluate_curves(curves)
        return Evaluation(objective, constraints)

    def evaluate_curves(self, control: Array) -> Evaluation:
        """Follow cubic curves with control points `(n, 4, 2)` over the map."""
        horizontal, vertical = _samples(control)
        cost = self._cost(horizontal, vertical)
        return Evaluation(cost - MAX_REWARD, self._depths(horizontal, vertical))

    def trajectory(self, x: ArrayLike) -> Array:
        """Return the sampled paths of points `(n, 60)`, shape `(n, 1000, 2)`."""
        return np.stack(_samples(self.control_points(self.space.validate(x))), axis=-1)

    def control_points(self, x: Array) -> Array:
        """Fit the cubic curves of valid points `(n, 60)`; their control points, `(n, 4, 2)`."""
        points = np.empty((len(x), 32, 2))
        points[:, 0], points[:, -1] = self.start, self.goal
        points[:, 1:-1] = (1.2 * x - 0.1).reshape(-1, 30, 2)
        chords = np.sqrt(np.square(np.diff(points, axis=1)).sum(axis=-1))
        lengths = np.zeros((len(x), 32))
        np.cumsum(chords, axis=1, out=lengths[:, 1:])
        basis = np.stack(_bernstein(lengths / lengths[:, -1:]), axis=-1)
        # The singular values tell when way-points coincide, and then give the minimum norm. Each
        # matrix is worked on by itself, so that a point's bits do not depend on its batch.
        left, singular, right = np.linalg.svd(basis, full_matrices=False)
        usable = singular > np.finfo(float).eps * 32 * singular[:, :1]
        inverse = np.divide(1.0, singular, out=np.zeros_like(singular), where=usable)
        control: Array = right.swapaxes(1, 2) @ (
            inverse[:, :, None] * (left.swapaxes(1, 2) @ points)
        )
        control[:, 0], control[:, -1] = self.start, self.goal
        return control

    def density(self, horizontal: Array, vertical: Array) -> Array:
        """Return the cost per unit length at points given by coordinates of any one shape."""
        column = np.searchsorted(self._columns, horizontal, side="right")
        row = np.searchsorted(self._rows, vertical, side="right")
        density: Array = self._density[column, row]
        return density

    def _cost(self, horizontal: Array, vertical: Array) -> Array:
        """Integrate the density along paths, given by coordinates `(n, 1000)`; shape `(n,)`."""
        density = self.density(horizontal, vertical)
        steps = np.sqrt(np.square(np.diff(horizontal)) + np.square(np.diff(vertical)))
        cost: Array = (steps * (density[:, :-1] + density[:, 1:])).sum(axis=1) / 2
        return cost

    def _depths(self, horizontal: Array, vertical: Array) -> Array:
        """Largest depth in each stone along paths, given by coordinates `(n, 1000)`; `(n, 15)`."""
        depths = np.empty((len(horizontal), len(self.stones)))
        for stone, (centre_x, centre_y) in enumerate(self.stones):
            beside = np.abs(horizontal - centre_x) - self.stone_half_side
            above = np.abs(vertical - centre_y) - self.stone_half_side
            deepest = np.maximum(beside, above).min(axis=1)
            # Rounding a root keeps the order, so the root of the least square is the least root.
            square = np.square(np.maximum(beside, 0.0)) + np.square(np.maximum(above, 0.0))
            nearest = np.sqrt(square.min(axis=1))
            depths[:, stone] = -np.where(deepest <= 0.0, deepest, nearest)
        return depths

    def _cost_table(self) -> tuple[Array, Array, Array]:
        """Cut the plane along all edges of trees and map; the density is constant in each cell.

        Returns:
            The cuts `(a,)` across the horizontal and `(b,)` across the vertical axis, and the
            density `(a + 1, b + 1)` of the cells. A cell holds its lower and left edges, as trees
            do, so its lower left corner stands for all of it.
        """
        low, high = self.trees - self.tree_half_side, self.trees + self.tree_half_side
        edges = np.concatenate([low, high, [[0.0, 0.0], [1.0, 1.0]]])
        cuts = [np.unique(edges[:, axis]) for axis in (0, 1)]
        corners = [np.append(-np.inf, cut)[:, None] for cut in cuts]
        in_column, in_row = (
            ((corners[axis] >= low[:, axis]) & (corners[axis] < high[:, axis])).astype(float)
            for axis in (0, 1)
        )
        on_map = [(corner >= 0.0) & (corner < 1.0) for corner in corners]
        # The product counts the trees that hold a corner.
        costly = (in_column @ in_row.T > 0.0) | ~(on_map[0] & on_map[1].T)
        return cuts[0], cuts[1], np.where(costly, GROUND_COST + TREE_COST, GROUND_COST)

    def plot(self, x: ArrayLike, file: str | Path | None = None) -> Figure:
        """Draw the map and the path of one point, in the colours of [SCBO].

        Args:
            x: The point, shape `(60,)`.
            file: Where to save the picture, in the format of its suffix; None does not save.

        Returns:
            The matplotlib figure.

        Raises:
            InvalidPoint: `x` is not one valid point.
            MissingExtra: matplotlib is not installed.
        """
        point = self.space.validate(np.reshape(x, (1, -1)))
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtra.of("Rover.plot", "matplotlib", "plots") from error
        figure = Figure(figsize=(6, 6.4), layout="constrained")
        axes = figure.add_subplot()
        self.paint(axes, point[0])
        evaluation = self.evaluate(point)
        collisions = int((evaluation.constraints > 0.0).sum())
        verdict = f"collides with {collisions} of 15 stones" if collisions else "feasible"
        axes.set_title(f"{self.id}: reward {-evaluation.objective[0]:.4f}, {verdict}")
        if file is not None:
            figure.savefig(file, dpi=150)
        return figure

    def paint(self, axes: Axes, x: Array, line_width: float = 2.5) -> None:
        """Paint the map and the path of one valid point `(60,)` on axes of matplotlib."""
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        def squares(centres: Array, half_side: float, colour: str) -> PatchCollection:
            corners, side = centres - half_side, 2 * half_side
            return PatchCollection([Rectangle((a, b), side, side) for a, b in corners], fc=colour)

        path = self.trajectory(x[None])[0]
        axes.set(aspect="equal", facecolor=YELLOW)
        axes.add_patch(Rectangle((0, 0), 1, 1, facecolor=GREEN))
        axes.add_collection(squares(self.trees, self.tree_half_side, YELLOW))
        axes.add_collection(squares(self.stones, self.stone_half_side, RED))
        axes.plot(path[:, 0], path[:, 1], color="black", linewidth=line_width)
        for place, marker, size in ((self.start, "o", 3.6), (self.goal, "*", 6.4)):
            axes.plot(
                *place,
                marker,
                color="white",
                markeredgecolor="black",
                markersize=size * line_width,
            )
        low, high = np.minimum(path.min(axis=0), 0.0), np.maximum(path.max(axis=0), 1.0)
        axes.set(xlim=(low[0] - 0.02, high[0] + 0.02), ylim=(low[1] - 0.02, high[1] + 0.02))


def _bernstein(t: Array) -> tuple[Array, Array, Array, Array]:
    """Return the four cubic Bernstein polynomials at the parameters t, each in t's shape."""
    s = 1.0 - t
    return s * s * s, 3.0 * t * s * s, 3.0 * t * t * s, t * t * t


_SAMPLE_BASIS = _bernstein(np.linspace(0.0, 1.0, NUM_SAMPLES))


def _samples(control: Array) -> tuple[Array, Array]:
    """Sample curves with control points `(n, 4, 2)`; both coordinates, each `(n, 1000)`."""
    # Written out, not as a matrix product, whose rounding could depend on the number of curves.
    first, second, third, fourth = _SAMPLE_BASIS
    horizontal, vertical = (
        control[:, 0, axis, None] * first
        + control[:, 1, axis, None] * second
        + control[:, 2, axis, None] * third
        + control[:, 3, axis, None] * fourth
        for axis in (0, 1)
    )
    return horizontal, vertical
