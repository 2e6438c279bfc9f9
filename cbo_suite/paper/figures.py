"""The figures of the paper, drawn from the evidence: mean and one standard error of the best value.

A run that has found nothing feasible counts with the largest feasible value that any run found.
Panels whose runs are not complete say how many there are. Where methods end close to each other,
the distance to the best known value is shown on a logarithmic axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from cbo_suite.leaderboard.looks import COLOURS, looks_of
from cbo_suite.paper.comparisons import NAMES, TITLES
from cbo_suite.paper.evidence import Evidence, needed
from cbo_suite.paper.experiments import (
    ACKLEY,
    KEANE,
    MOPTA08,
    PERTURBATIONS,
    ROSENBROCK,
    ROVER,
    TOY,
    TRANSFORM_ABLATIONS,
)
from cbo_suite.plots import Curve, Panel, Picture, draw
from cbo_suite.protocols import Array
from cbo_suite.registry import make_problem
from cbo_suite.scoring.references import load_references
from cbo_suite.scoring.runs import mean_and_error
from cbo_suite.tasks import ABLATIONS, METHODS, PHYSICS, SCALABLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ABLATION_NAMES = {
    "scbo": "transformed, TS, trust region (SCBO)",
    "scbo-ei": "transformed, EI, trust region",
    "scbo-global": "transformed, TS, global",
    "scbo-ei-global": "transformed, EI, global",
    "scbo-untransformed": "untransformed, TS, trust region",
    "scbo-untransformed-ei": "untransformed, EI, trust region",
    "scbo-untransformed-global": "untransformed, TS, global",
    "scbo-untransformed-ei-global": "untransformed, EI, global",
}
TRANSFORM_NAMES = {
    "scbo": "copula and bilog (SCBO)",
    "scbo-copula-only": "copula only",
    "scbo-bilog-only": "bilog only",
    "scbo-untransformed": "none",
}
NONE_IN_GREY = {"scbo-untransformed": {"color": COLOURS[7]}}
PERTURBATION_NAMES = {"scbo": "few variables (SCBO)", "scbo-no-perturbation": "all variables"}


class _Map(Protocol):
    """A problem that can paint itself."""

    def paint(self, axes: Axes, x: Array, line_width: float) -> None: ...


def make_figures(evidence: Evidence) -> dict[str, Figure]:
    """Draw all figures that there are runs for, by the id of their artefact."""
    transformed = {id_: TRANSFORMED_OF.get(id_, id_) for id_ in METHODS}
    physics = [_panel(evidence, id_, METHODS, log=True) for id_ in PHYSICS]
    figures: dict[str, tuple[Sequence[Panel | Picture], dict[str, Any]]] = {
        "physics": (physics, {"names": NAMES, "log": True}),
        "synthetic": (
            [_panel(evidence, ACKLEY, METHODS), _panel(evidence, KEANE, SCALABLE)],
            {"names": NAMES},
        ),
        "rover": (
            [_panel(evidence, ROVER, SCALABLE, sign=-1), _rover_map(evidence)],
            {"names": _counted_names(evidence, ROVER, SCALABLE), "label": "best reward"},
        ),
        "mopta08": ([_panel(evidence, MOPTA08, SCALABLE)], {"names": NAMES}),
        "ablation": (
            [_panel(evidence, id_, ABLATIONS, log=True) for id_ in (KEANE, TOY, ROSENBROCK)],
            {"names": ABLATION_NAMES, "looks": _ablation_looks(), "log": True},
        ),
        "transforms": (
            [_panel(evidence, id_, TRANSFORM_ABLATIONS, log=True) for id_ in (KEANE, ROSENBROCK)],
            {"names": TRANSFORM_NAMES, "looks": NONE_IN_GREY, "log": True},
        ),
        "perturbation": (
            [_panel(evidence, KEANE, PERTURBATIONS)],
            {"names": PERTURBATION_NAMES},
        ),
        "transformed": (
            [_panel(evidence, id_, METHODS, log=True, instead=transformed) for id_ in PHYSICS],
            {"names": {id_: _transformed_name(id_) for id_ in METHODS}, "log": True},
        ),
    }
    return {
        id_: draw(panels, **options)
        for id_, (panels, options) in figures.items()
        if any(isinstance(panel, Panel) for panel in panels)
    }


# What stands for a baseline on transformed values. CMA-ES and random search do not see monotone
# maps; COBYLA cannot be given the copula, which changes with every value.
TRANSFORMED_OF = {
    "cei": "cei-transformed",
    "pesc": "pesc-transformed",
    "slack": "slack-transformed",
}


def _transformed_name(method: str) -> str:
    """Name a method of the figure of transformed values, SCBO apart, which always transforms."""
    return NAMES[method] + (", transformed" if method in TRANSFORMED_OF else "")


def _panel(
    evidence: Evidence,
    problem: str,
    methods: Sequence[str],
    *,
    sign: int = 1,
    log: bool = False,
    instead: Mapping[str, str] | None = None,
) -> Panel | Picture:
    """Average the runs of methods on a problem.

    Args:
        evidence: The runs.
        problem: Id of the problem.
        methods: Ids of the methods.
        sign: -1 where the reward is shown, minus the objective.
        log: Whether the distance to the best known value is shown.
        instead: Ids of other runs that are shown as those of a method.
    """
    shown = {id_: (instead or {}).get(id_, id_) for id_ in methods}
    origin = load_references()[problem].best if log else 0.0
    curves, n_init = [], 0
    for id_, own in shown.items():
        runs = evidence.runs.get((problem, own))
        if runs is not None:
            mean, error = mean_and_error(evidence.imputed(problem, own))
            curves.append(Curve(id_, sign * mean - origin, error, len(runs.seeds)))
            n_init = runs.n_init
    pairs = [(problem, own) for own in shown.values()]
    have, wanted = evidence.have(pairs), needed(pairs)
    note = "" if have == wanted else f"\n({have} of {wanted} runs)"
    if not curves:
        return Picture(TITLES[problem] + note, _leave_empty)
    return Panel(problem, curves, n_init, TITLES[problem] + note)


def _leave_empty(axes: Axes) -> None:
    """Show that there is nothing to show."""
    axes.set(xticks=[], yticks=[])
    axes.text(0.5, 0.5, "no runs", ha="center", color="0.4", transform=axes.transAxes)


def _counted_names(evidence: Evidence, problem: str, methods: Sequence[str]) -> dict[str, str]:
    """Name methods, with the number of their runs where others have more."""
    counts = {id_: evidence.have([(problem, id_)]) for id_ in methods}
    most = max(counts.values())
    return {
        id_: NAMES[id_] + (f" ({count} runs)" if 0 < count < most else "")
        for id_, count in counts.items()
    }


def _rover_map(evidence: Evidence) -> Picture:
    """Paint the map with the best trajectory that SCBO found."""
    runs = evidence.runs.get((ROVER, "scbo"))
    point = None if runs is None else runs.best_x
    reward = "" if runs is None or point is None else f",\nreward {-np.nanmin(runs.finals):.2f}"

    def paint(axes: Axes) -> None:
        axes.set(xticks=[], yticks=[])
        if point is None:
            axes.text(0.5, 0.5, "no feasible run", ha="center", transform=axes.transAxes)
            return
        cast(_Map, make_problem(ROVER)).paint(axes, point, 1.2)
        for spine in axes.spines.values():
            spine.set_visible(False)

    return Picture(f"best trajectory of SCBO{reward}", paint)


def _ablation_looks() -> dict[str, dict[str, Any]]:
    """Give the combinations, which have their own colours, hollow squares without transforms."""
    untransformed = {"marker": "s", "markerfacecolor": "white", "markeredgewidth": 0.8}
    return {
        id_: untransformed | {"markeredgecolor": COLOURS[look.colour]}
        if "untransformed" in id_
        else {"marker": "o"}
        for id_, look in looks_of(ABLATIONS).items()
    }
