"""What stands on docs/rivals.md whatever the runs do."""

from __future__ import annotations

from typing import NamedTuple

FURBO = "furbo"


class Rival(NamedTuple):
    """What stands on the page of a rival whatever its runs do.

    Attributes:
        card: Its page among the optimizers.
        module: Its module, which has its `LIBRARY`; "" if it is of our own making.
        settings: How it runs, and what we changed, in one sentence.
        sequential: Whether it asks one point at a time, also where a problem has batches.
    """

    card: str
    module: str
    settings: str
    sequential: bool = False


RIVALS = {
    FURBO: Rival(
        "furbo",
        "",
        "as published, on SCBO's models, number of candidates and rule for an improvement; at most "
        "30,000 inspectors",
    ),
    "botorch-logcei": Rival(
        "botorch-logcei",
        "botorch_logcei",
        "default models, constraints by their bilog, acquisition from 10 of 512 points",
    ),
    "optuna-gp": Rival("optuna", "optuna_samplers", "defaults"),
    "optuna-tpe": Rival("optuna", "optuna_samplers", "defaults"),
    "egobox": Rival("egobox", "egobox", "defaults, but for a tolerance of 0 for constraints"),
    "bayesqp": Rival(
        "bayesqp",
        "bayesqp",
        "defaults, repaired for NumPy 2.4; values divided by their deviations over the design, "
        "at whose best point it begins",
        sequential=True,
    ),
    "nomad": Rival(
        "nomad", "nomad", "defaults; all points of the design are starting points", sequential=True
    ),
    "isres": Rival("isres", "isres", "defaults, but for generations of a tenth of the budget"),
}
# Why a rival has no rows in a track.
NOT_RUN: dict[tuple[str, str], str] = {}
LEFT_OUT = (
    ("HEBO 0.3.6", "needs NumPy below 1.25"),
    ("trieste 4.6.1", "needs NumPy below 2 and TensorFlow"),
    ("OpenBox 0.9.0", "needs NumPy below 2"),
    ("SMAC 2.4.1", "has no constraints on what is observed, only penalties of one's own"),
)


class Published(NamedTuple):
    """Medians of final values that somebody else has published.

    Attributes:
        problem: Id of the problem.
        source: Where, and of how many seeds.
        medians: Optimizer of ours to the printed median of what is the same method there.
    """

    problem: str
    source: str
    medians: dict[str, float]


PUBLISHED = (
    Published(
        "speed-reducer-7d-v1",
        "P. Brunzema and S. Trimpe, BayeSQP, NeurIPS 2025, 32 seeds",
        {"scbo": 3006.9, "botorch-logcei": 3002.8, "bayesqp": 3001.1},
    ),
)
