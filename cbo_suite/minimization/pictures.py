"""The figure of a result: how the run converged, and slices through the best point.

Needs matplotlib, which is imported when a figure is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cbo_suite.errors import InvalidTask, MissingExtra
from cbo_suite.minimization.inputs import find_variable
from cbo_suite.protocols import Array, Prediction, Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cbo_suite.minimization.result import Result

# Variables to draw slices of: names or indices, one of them, or None to have them chosen.
Variables = Sequence[int | str] | int | str | None

# Slices that are drawn unless the user names some, how many stand beside each other, and how many
# points each has.
SLICES, COLUMNS, POINTS = 6, 3, 81
# Okabe and Ito (2008), distinguishable with every kind of colour vision.
_BLUE, _GREEN, _RED, _GREY = "#0072B2", "#009E73", "#D55E00", "#888888"
_WIDTH, _HEIGHT, _SLICE_HEIGHT = 7.5, 2.7, 2.6
_SETTINGS: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
    "axes.formatter.limits": (-3, 5),
}


def draw(result: Result, path: str | Path | None, variables: Variables) -> Figure:
    """Draw a result; arguments as for `Result.plot`."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.gridspec import GridSpec
    except ImportError as error:
        raise MissingExtra.of("plot", "matplotlib", "plots") from error

    class Picture(Figure):
        """A figure that notebooks show by themselves."""

        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png", dpi=110)
            return buffer.getvalue()

    chosen = _choose_slices(result, variables)
    # Four stand better in pairs than three and one.
    width = 2 if len(chosen) == 4 else max(1, min(COLUMNS, len(chosen)))
    rows = -(-len(chosen) // width)
    with rc_context(_SETTINGS):
        figure = Picture(figsize=(_WIDTH, _HEIGHT + rows * _SLICE_HEIGHT), layout="constrained")
        heights = [_HEIGHT, *([0.72 * _SLICE_HEIGHT, 0.28 * _SLICE_HEIGHT] * rows)]
        grid = GridSpec(len(heights), width, figure=figure, height_ratios=heights)
        _draw_course(figure.add_subplot(grid[0, :]), result)
        for number, (column, prediction) in enumerate(chosen):
            row, place = divmod(number, width)
            above = figure.add_subplot(grid[1 + 2 * row, place])
            below = figure.add_subplot(grid[2 + 2 * row, place], sharex=above)
            _draw_slice(above, below, result, column, prediction, first=place == 0)
        if path is not None:
            figure.savefig(Path(path).expanduser(), dpi=150)
    return figure


def _choose_slices(result: Result, variables: Variables) -> list[tuple[int, Prediction]]:
    """Return variables and what is expected along each, none if the optimizer has no model.

    Raises:
        InvalidTask: There is no such variable, or no model.
    """
    columns = _columns(result, variables)
    if not columns:
        return []
    if not result.model.available:
        if variables is not None:
            raise InvalidTask(
                f"slices need a model, which {result.run.task.optimizer} has not: leave variables "
                "out"
            )
        return []
    slices = [_slice_points(result.model.space, result.x, i) for i in columns]
    predictions = _predict_all(result, slices)
    order = list(range(len(columns)))
    if variables is None:
        # What changes most along its slice says most.
        change = [np.ptp(prediction.objective.median) for prediction in predictions]
        order = sorted(sorted(order, key=lambda i: -change[i])[:SLICES])
    return [(columns[i], predictions[i]) for i in order]


def _columns(result: Result, variables: Variables) -> list[int]:
    """Return the indices of the variables to look at."""
    names = result.names
    if variables is None:
        return list(range(len(names)))
    alone = isinstance(variables, str) or not isinstance(variables, Iterable)
    listed: Any = [variables] if alone else variables
    return [find_variable("variables", variable, names, InvalidTask) for variable in listed]


def _slice_points(space: Space, x: Array, column: int) -> Array:
    """Return points along one variable through a point `(d,)`, shape `(p, d)`, all allowed."""
    unit = np.repeat(space.to_unit(x[None]), POINTS, axis=0)
    unit[:, column] = np.linspace(0.0, 1.0, POINTS)
    values = space.from_unit(unit)[:, column]
    points = np.repeat(x[None], POINTS, axis=0)
    points[:, column] = values
    # Whole numbers come several times.
    points = np.unique(np.concatenate([points, x[None]]), axis=0)
    # The point itself was evaluated, so that it stays even on a face.
    kept: Array = points[space.allows(points) | (points == x).all(axis=1)]
    return kept


def _predict_all(result: Result, slices: Sequence[Array]) -> list[Prediction]:
    """Predict along all slices in one go."""
    every = result.model.predict(np.concatenate(slices))
    ends = np.cumsum([len(points) for points in slices])
    parts = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        part = slice(int(start), int(end))
        objective = type(every.objective)(*(values[part] for values in every.objective))
        constraints = type(every.constraints)(*(values[part] for values in every.constraints))
        parts.append(Prediction(every.x[part], objective, constraints, every.feasible[part]))
    return parts


def _draw_course(axes: Axes, result: Result) -> None:
    """Draw every evaluation and the best so far."""
    run = result.run
    number = np.arange(1, len(run.x) + 1)
    feasible, finite = run.evaluation.feasible, np.isfinite(run.objective)
    best = np.where(feasible, run.objective, np.inf)
    if result.data is not None:
        known = np.where(result.data.evaluation.feasible, result.data.objective, np.inf).min()
        best = np.minimum(best, known)
        if np.isfinite(known):
            axes.axhline(known, c=_GREY, lw=0.8, ls="--", label="best of the data")
    best = np.minimum.accumulate(best)
    found = np.isfinite(best)
    others = finite & ~feasible
    axes.plot(number[others], run.objective[others], "x", ms=4, c=_GREY, label="infeasible")
    axes.plot(number[feasible], run.objective[feasible], "o", ms=3, c=_GREEN, label="feasible")
    axes.step(number[found], best[found], where="post", c=_BLUE, lw=1.5, label="best so far")
    failed = np.array([status != "ok" for status in run.statuses], dtype=bool)
    if failed.any():
        low = np.zeros(int(failed.sum()))
        across = axes.get_xaxis_transform()
        axes.plot(number[failed], low, "|", ms=9, c=_RED, transform=across, label="failed")
    if 0 < run.task.n_init < len(run.x):
        axes.axvline(run.task.n_init + 0.5, c=_GREY, lw=0.8, ls=":", label="end of the design")
    _limit_values(axes, run.objective[feasible] if feasible.any() else run.objective[finite])
    axes.set(xlabel="evaluation", ylabel="objective")
    # What has no points needs no name.
    drawn = [line for line in axes.lines if len(np.asarray(line.get_xdata()))]
    if drawn:
        axes.legend(handles=drawn, loc="upper right", ncols=6, fontsize=7.5)


def _limit_values(axes: Axes, values: Array) -> None:
    """Keep a few far values from making all others one line."""
    if len(values) == 0:
        return
    low, high = values.min(), np.quantile(values, 0.9)
    room = 0.12 * (high - low) or 1.0
    # Above there is room for the legend.
    axes.set_ylim(low - room, high + 3.0 * room)


def _draw_slice(
    above: Axes, below: Axes, result: Result, column: int, prediction: Prediction, *, first: bool
) -> None:
    """Draw what is expected along one variable: the objective, and the chance of feasibility."""
    x, band, space = prediction.x[:, column], prediction.objective, result.model.space
    marker = "o" if space.integer[column] else ""
    above.fill_between(x, band.lower, band.upper, color=_BLUE, alpha=0.18, lw=0)
    above.plot(x, band.median, c=_BLUE, lw=1.3, marker=marker, ms=2.5)
    above.plot(result.x[column], result.fun, "*", ms=9, c=_RED, zorder=3)
    below.fill_between(x, 0.0, prediction.feasible, color=_GREEN, alpha=0.35, lw=0)
    below.axvline(result.x[column], c=_RED, lw=0.8, ls=":")
    below.set(ylim=(0.0, 1.02), yticks=[0, 1], xlabel=result.names[column])
    if space.log_scale[column]:
        below.set_xscale("log")
    # A logarithmic scale may have labels at its minor ticks.
    above.tick_params(which="both", labelbottom=False)
    if first:
        above.set_ylabel("objective\nmedian, 90 %")
        below.set_ylabel("P(feasible)")
