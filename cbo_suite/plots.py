"""Figures for papers: the course of the runs, mean and one standard error at every evaluation.

One panel per problem, or one for a whole suite; an optimizer has the same colour, marker and dash
in all of them. Needs matplotlib, which is imported when a figure is drawn.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cbo_suite.errors import MissingExtra, RecordError
from cbo_suite.leaderboard.looks import COLOURS, DASHES, looks_of
from cbo_suite.scoring.aggregate import Aggregate
from cbo_suite.scoring.curves import Curve as Curve
from cbo_suite.scoring.curves import Panel as Panel
from cbo_suite.scoring.curves import Score as Score
from cbo_suite.scoring.curves import make_panels as make_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_MARKERS = ("o", "s", "^", "D", "v", "p", "<", ">", "h", "P", "X")
_PANEL = (2.45, 2.0)  # inches; three of them fill a page of text
_COLUMNS = 3
_FEW = 8  # names that may stand below each other under a single panel
_MARKS = 6  # markers on a curve
_DECADE = 10.0
_MOST_POINTS = 600  # of a curve: more than a page can show make a large file
_SETTINGS: dict[Any, Any] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.formatter.limits": (-3, 5),
    "axes.formatter.use_mathtext": True,
    "legend.fontsize": 8.5,
    # Text stays text in a PDF, as publishers ask.
    "pdf.fonttype": 42,
}


class Picture(NamedTuple):
    """Something else than curves, in the place of a panel.

    Attributes:
        title: What stands above it.
        paint: Paints it.
    """

    title: str
    paint: Callable[[Axes], None]


def draw(
    panels: Sequence[Panel | Picture],
    score: Score = "paper",
    log: bool = False,
    highlight: Sequence[str] | None = None,
    *,
    names: Mapping[str, str] | None = None,
    looks: Mapping[str, Mapping[str, Any]] | None = None,
    label: str = "",
) -> Figure:
    """Draw a figure with one panel per problem.

    Args:
        panels: What is drawn.
        score: What the values are.
        log: Whether they are on a logarithmic axis.
        highlight: Optimizers to draw in colour, the others thin and grey; None for all.
        names: What optimizers are called, in the order of the legend; by default their ids.
        looks: Colours, markers and dashes of optimizers that are to have others than their own.
        label: What the values are called, by default what the score is.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    rc_context, Figure = _matplotlib()
    columns = 2 if len(panels) == 4 else min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    curves = [panel for panel in panels if isinstance(panel, Panel)]
    optimizers = sorted({curve.optimizer for panel in curves for curve in panel.curves})
    called = {id_: id_ for id_ in optimizers} if names is None else names
    styles = {
        id_: style | dict((looks or {}).get(id_, {})) for id_, style in _styles(optimizers).items()
    }
    with rc_context(_SETTINGS):
        size = _PANEL[0] * columns, _PANEL[1] * rows
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, panel in zip(grid.flat, panels, strict=False):
            axes.set_title(
                panel.title or panel.problem if isinstance(panel, Panel) else panel.title
            )
            if isinstance(panel, Panel):
                _draw_panel(axes, panel, styles, log, highlight)
            else:
                panel.paint(axes)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        usual = {"paper": "distance to best known" if log else "best objective", "regret": "regret"}
        for row in grid:
            row[0].set_ylabel(label or usual[score])
        for place, panel in enumerate(panels):
            if place + columns >= len(panels) and isinstance(panel, Panel):
                grid.flat[place].set_xlabel("evaluations")
        figure.align_ylabels()
        shown = [id_ for id_ in called if id_ in styles and _is_shown(id_, highlight)]
        _add_legend(figure, [_entry(called[id_], styles[id_]) for id_ in shown])
    return figure


def draw_aggregate(aggregate: Aggregate, highlight: Sequence[str] | None = None) -> Figure:
    """Draw one panel over all problems: the share of targets over evaluations per variable.

    Args:
        aggregate: What is drawn.
        highlight: Optimizers to draw in colour, the others thin and grey; None for all.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    rc_context, Figure = _matplotlib()
    styles = _styles(list(aggregate.reached))
    with rc_context(_SETTINGS):
        figure = Figure(figsize=(1.5 * _PANEL[0], 1.5 * _PANEL[1]), layout="constrained")
        axes = figure.subplots()
        for place, (name, share) in enumerate(aggregate.reached.items()):
            look: dict[str, Any] = {"color": "0.8", "linewidth": 0.6, "zorder": 1}
            if _is_shown(name, highlight):
                step = max(1, len(share) // _MARKS)
                start = int(step * (place + 0.5) / len(styles))
                look = {**styles[name], "markevery": (start, step)}
            axes.plot(aggregate.evaluations, share, drawstyle="steps-post", **look)
        axes.set_xscale("log")
        axes.set_ylim(0, 1)
        axes.grid(axis="y", color="0.9", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.set_title(f"{len(aggregate.problems)} problems")
        axes.set_xlabel("evaluations / dimension")
        axes.set_ylabel("share of targets reached")
        shown = [name for name in sorted(aggregate.reached) if _is_shown(name, highlight)]
        _add_legend(figure, [_entry(name, styles[name]) for name in shown])
    return figure


def _matplotlib() -> tuple[Callable[..., AbstractContextManager[None]], type[Figure]]:
    """Import what figures are made of.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtra.of("a figure", error.name, "plots") from error
    return rc_context, Figure


def _add_legend(figure: Figure, handles: list[Line2D]) -> None:
    """Put a legend below the panels, in as few lines as its width allows, and make room for it."""
    margin = 0.1 * figure.dpi
    # Many names under a narrow figure would make a tower of it; they may have a page's width.
    panels = _COLUMNS if len(handles) > _FEW else 1
    room = max(figure.bbox.width, panels * _PANEL[0] * figure.dpi)
    # Lines of about the same length: as many columns as some number of lines needs.
    even = {math.ceil(len(handles) / lines) for lines in range(1, len(handles) + 1)}
    for columns in sorted(even, reverse=True):
        legend = figure.legend(
            handles=handles, loc="outside lower center", ncols=columns, frameon=False
        )
        box = legend.get_window_extent().padded(margin)
        if box.width <= room or columns == 1:
            break
        legend.remove()
    width, height = figure.get_size_inches()
    figure.set_size_inches(max(width, box.width / figure.dpi), height + box.height / figure.dpi)


def _is_shown(name: str, highlight: Sequence[str] | None) -> bool:
    """Tell whether an optimizer is drawn in colour."""
    return highlight is None or name in highlight


def _styles(optimizers: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Give each optimizer its look, as on the site, and a marker that follows from its name.

    Markers of one colour differ as long as there are others.
    """
    styles: dict[str, dict[str, Any]] = {}
    taken: set[tuple[int, str]] = set()
    for name, look in looks_of(optimizers).items():
        start = hashlib.sha256(name.encode()).digest()[0] % len(_MARKERS)
        turned = _MARKERS[start:] + _MARKERS[:start]
        marker = next((m for m in turned if (look.colour, m) not in taken), turned[0])
        taken.add((look.colour, marker))
        dash = [length / 2 for length in DASHES[look.dash]]
        styles[name] = {
            "color": COLOURS[look.colour],
            "marker": marker,
            "linestyle": (0, tuple(dash)) if look.dash else "-",
            "markersize": 3.4,
            "markeredgecolor": "white",
            "markeredgewidth": 0.4,
            "linewidth": 1.1,
        }
    return styles


def _entry(name: str, style: Mapping[str, Any]) -> Line2D:
    """Make the entry of an optimizer in the legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=name, **style)


def _draw_panel(
    axes: Axes,
    panel: Panel,
    styles: Mapping[str, Mapping[str, Any]],
    log: bool,
    highlight: Sequence[str] | None,
) -> None:
    """Draw the curves of one problem, from the end of the initial design on."""
    bottom, top = _limits(panel, log)
    # On a logarithmic axis of less than a decade most ticks would have no round numbers.
    log = log and (bottom <= 0.0 or top / bottom >= _DECADE)
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter("")
    else:
        bottom, top = _limits(panel, log)
    if not any(np.isfinite(curve.mean).any() for curve in panel.curves):
        axes.text(0.5, 0.5, "no feasible point", transform=axes.transAxes, ha="center", color="0.4")
    for curve in panel.curves:
        count = len(curve.mean)
        first = min(max(panel.n_init, 1), count) - 1
        places = np.linspace(first, count - 1, min(count - first, _MOST_POINTS)).astype(int)
        evaluations, mean, error = places + 1, curve.mean[places], curve.error[places]
        if not _is_shown(curve.optimizer, highlight):
            axes.plot(evaluations, mean, color="0.8", linewidth=0.6, zorder=1)
            continue
        style = styles[curve.optimizer]
        place = sorted(styles).index(curve.optimizer)
        # Markers of different curves stand at different places, so that none hides another.
        step = max(1, len(evaluations) // _MARKS)
        start = int(step * (place + 0.5) / len(styles))
        axes.plot(evaluations, mean, markevery=(start, step), **style)
        low, high = mean - error, mean + error
        if log:
            low = np.maximum(low, 1e-9 * mean)
        axes.fill_between(evaluations, low, high, color=style["color"], alpha=0.18, linewidth=0)
    if panel.n_init:
        axes.axvline(panel.n_init, color="0.6", linewidth=0.6, linestyle=(0, (1, 2)), zorder=0)
    axes.grid(axis="y", color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.set_xlim(0, max(len(curve.mean) for curve in panel.curves))
    if bottom < top:
        axes.set_ylim(bottom, top)


def _limits(panel: Panel, log: bool) -> tuple[float, float]:
    """Choose the range of values: what the optimizers have reached, not what the design had."""
    after = [slice(min(panel.n_init, len(curve.mean) - 1), None) for curve in panel.curves]
    means = np.concatenate([c.mean[part] for c, part in zip(panel.curves, after, strict=True)])
    errors = np.concatenate([c.error[part] for c, part in zip(panel.curves, after, strict=True)])
    errors = np.nan_to_num(errors)
    if not np.isfinite(means).any():
        return 0.0, 0.0
    high = float(np.nanmax(means + errors))
    if log:
        # A band may reach down to nothing, which a logarithm cannot show.
        positive = means[means > 0]
        if not len(positive):
            return 0.0, 0.0
        least = float(positive.min())
        # 8 % of the height on either side, as curves may lie within a third of a decade.
        factor = max(1.05, (high / least) ** 0.08)
        return least / factor, high * factor
    low = float(np.nanmin(means - errors))
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PDF or PNG; the same figure gives the same bytes.

    Raises:
        RecordError: The name ends in something else.
    """
    kinds = {".pdf": {"CreationDate": None}, ".png": {"Software": None}}
    metadata = kinds.get(path.suffix.lower())
    if metadata is None:
        raise RecordError(f"cannot write {path}: choose a name that ends in .pdf or .png")
    path.parent.mkdir(parents=True, exist_ok=True)
    from matplotlib import rc_context

    # How text is written is decided here, not where it was drawn.
    with rc_context(_SETTINGS):
        figure.savefig(path, dpi=300, metadata=metadata)
