"""Claims 1 to 5: the physics problems and Ackley."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from cbo_suite.paper.comparisons import (
    LARGE_EFFECT,
    Part,
    always_feasible,
    better,
    duel,
    excellent,
    leads_early,
    name,
    order,
    order_text,
)
from cbo_suite.paper.evidence import Evidence
from cbo_suite.paper.experiments import ACKLEY
from cbo_suite.paper.reasons import FITTED, STRONGER, UNKNOWN, best_of, stronger
from cbo_suite.tasks import METHODS

SPRING, VESSEL, BEAM, REDUCER = (
    "tension-string-3d-v1",
    "pressure-vessel-4d-v1",
    "welded-beam-4d-v1",
    "speed-reducer-7d-v1",
)
SCBO_IS_BEST = "SCBO ends better than all others"
# Evaluations of Ackley's budget of 200 that count as early.
EARLY = (25, 50, 75, 100)
# Hours against minutes: at least this many times as long.
MUCH_LONGER = 10


def judge_spring(evidence: Evidence) -> list[Part]:
    """Claim 1."""
    duels = [duel(evidence, SPRING, id_, "random-search") for id_ in ("pesc", "cei")]
    listed = "; ".join(f"{name(one.first)} against random search {one.effect}" for one in duels)
    return [
        best_of(evidence, SPRING, "scbo", METHODS, SCBO_IS_BEST),
        always_feasible(evidence, SPRING, "scbo", FITTED),
        excellent(evidence, SPRING, "scbo", "SCBO's results are consistently excellent", FITTED),
        Part(
            "PESC and cEI are only slightly better than random search",
            f"{listed} (slightly better: above 0.5 and below {LARGE_EFFECT})",
            all(0.5 < one.superiority < LARGE_EFFECT for one in duels),
            "; ".join(STRONGER[one.first] for one in duels if one.superiority >= LARGE_EFFECT)
            or UNKNOWN,
        ),
    ]


def judge_vessel(evidence: Evidence) -> list[Part]:
    """Claim 2."""
    places = ("cei", "pesc", "cobyla")
    rest = [id_ for id_ in METHODS if id_ not in ("scbo", *places)]
    neighbours = [*pairwise(places), *((places[-1], id_) for id_ in rest)]
    return [
        best_of(evidence, VESSEL, "scbo", METHODS, SCBO_IS_BEST),
        better(
            "of the others cEI ends best, then PESC, then COBYLA",
            [duel(evidence, VESSEL, *pair) for pair in neighbours],
            partial(stronger, evidence),
        ),
    ]


def judge_beam(evidence: Evidence) -> list[Part]:
    """Claim 3."""
    others = [id_ for id_ in METHODS if id_ != "scbo"]
    return [
        best_of(evidence, BEAM, "scbo", METHODS, SCBO_IS_BEST),
        best_of(evidence, BEAM, "cei", others, "of the others cEI ends best"),
    ]


def judge_reducer(evidence: Evidence) -> list[Part]:
    """Claim 4."""
    others = [id_ for id_ in METHODS if id_ not in ("scbo", "pesc")]
    best = [
        best_of(
            evidence,
            REDUCER,
            id_,
            others,
            f"{name(id_)} ends better than all others except {rival}",
        )
        for id_, rival in (("scbo", "PESC"), ("pesc", "SCBO"))
    ]
    good = [
        excellent(evidence, REDUCER, id_, f"the results of {name(id_)} are excellent", FITTED)
        for id_ in ("scbo", "pesc")
    ]
    return [*best, *good]


def judge_ackley(evidence: Evidence) -> list[Part]:
    """Claim 5."""
    ordered = order(evidence, ACKLEY, METHODS)
    return [
        leads_early(
            "COBYLA leads SCBO early",
            evidence,
            ACKLEY,
            ("cobyla", "scbo"),
            EARLY,
            "our SCBO starts faster, or our COBYLA slower, than the paper's",
        ),
        best_of(evidence, ACKLEY, "scbo", METHODS, SCBO_IS_BEST),
        excellent(
            evidence,
            ACKLEY,
            "scbo",
            "SCBO consistently ends close to the global optimum",
            f"some runs end in another valley; {FITTED}",
        ),
        Part(
            "PESC performs well",
            f"mean ranks of the outcomes: {order_text(ordered)} (well: among the first three)",
            "pesc" in [id_ for id_, _ in ordered[:3]],
            "our PESC is written anew and differs from Spearmint's in its approximations",
        ),
        _judge_times(evidence),
    ]


def _judge_times(evidence: Evidence) -> Part:
    """Judge that PESC takes hours where the others take minutes."""
    text = f"a run of PESC takes at least {MUCH_LONGER} times as long as those of the others"
    times = {}
    for id_ in METHODS:
        seconds = evidence.seconds_per_evaluation(ACKLEY, id_)
        if seconds is None:
            return Part(text, f"the processor time of {name(id_)} was not measured", None)
        times[id_] = seconds * evidence.runs[ACKLEY, id_].best.shape[1]
    slowest = max((id_ for id_ in METHODS if id_ != "pesc"), key=lambda id_: times[id_])
    listed = ", ".join(f"{name(id_)} {seconds:.3g} s" for id_, seconds in times.items())
    return Part(
        text,
        f"processor time of a run: {listed} (hours against minutes in the paper; the slowest "
        f"other is {name(slowest)})",
        times["pesc"] >= MUCH_LONGER * times[slowest],
        "our PESC works on all functions and drawn optima at once, with one set of hyperparameters",
    )
