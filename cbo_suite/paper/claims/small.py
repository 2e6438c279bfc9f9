"""Claims 1 to 5: the physics problems and Ackley."""

from __future__ import annotations

from cbo_suite.paper.comparisons import (
    LARGE_EFFECT,
    LEVEL,
    Part,
    adjusted,
    always_feasible,
    best_of,
    duel,
    name,
    order,
    order_text,
)
from cbo_suite.paper.evidence import Evidence
from cbo_suite.paper.experiments import ACKLEY
from cbo_suite.tasks import METHODS

SPRING, VESSEL, BEAM, REDUCER = (
    "tension-string-3d-v1",
    "pressure-vessel-4d-v1",
    "welded-beam-4d-v1",
    "speed-reducer-7d-v1",
)
STRONGER = (
    "our baselines are stronger than the paper's: they are written anew, with better models or "
    "newer libraries"
)
# Evaluations of Ackley's budget of 200 that count as early.
EARLY = (25, 50, 75, 100)
# Hours against minutes: at least this many times as long.
MUCH_LONGER = 10


def judge_spring(evidence: Evidence) -> list[Part]:
    """Claim 1."""
    duels = adjusted(
        [duel(evidence, SPRING, id_, "random-search", two_sided=True) for id_ in ("pesc", "cei")]
    )
    slight = all(0.5 <= one.superiority < LARGE_EFFECT for one in duels)
    listed = "; ".join(f"{name(one.first)} {one.text}" for one in duels)
    return [
        best_of(evidence, SPRING, "scbo", METHODS, "SCBO ends better than all others", STRONGER),
        always_feasible(evidence, SPRING, "scbo"),
        Part(
            "PESC and cEI are only slightly better than random search",
            f"{listed} (two-sided Wilcoxon, Holm; slightly: A12 from 0.5 to {LARGE_EFFECT})",
            slight,
            STRONGER,
        ),
    ]


def judge_vessel(evidence: Evidence) -> list[Part]:
    """Claim 2."""
    ordered = order(evidence, VESSEL, METHODS)
    places = [id_ for id_, _ in ordered]
    return [
        best_of(evidence, VESSEL, "scbo", METHODS, "SCBO ends better than all others", STRONGER),
        Part(
            "after SCBO come cEI, PESC and COBYLA, in this order",
            f"mean ranks of the outcomes: {order_text(ordered)}",
            places[:4] == ["scbo", "cei", "pesc", "cobyla"],
            STRONGER,
        ),
    ]


def judge_beam(evidence: Evidence) -> list[Part]:
    """Claim 3."""
    ordered = order(evidence, BEAM, METHODS)
    return [
        best_of(evidence, BEAM, "scbo", METHODS, "SCBO ends better than all others", STRONGER),
        Part(
            "cEI comes second",
            f"mean ranks of the outcomes: {order_text(ordered)}",
            ordered[1][0] == "cei",
            STRONGER,
        ),
    ]


def judge_reducer(evidence: Evidence) -> list[Part]:
    """Claim 4."""
    others = [id_ for id_ in METHODS if id_ not in ("scbo", "pesc")]
    return [
        best_of(
            evidence,
            REDUCER,
            id_,
            others,
            f"{name(id_)} ends better than all others but {rival}",
            STRONGER,
        )
        for id_, rival in (("scbo", "PESC"), ("pesc", "SCBO"))
    ]


def judge_ackley(evidence: Evidence) -> list[Part]:
    """Claim 5."""
    early = adjusted([duel(evidence, ACKLEY, "cobyla", "scbo", after=t) for t in EARLY])
    listed = "; ".join(f"after {t}: {one.text}" for t, one in zip(EARLY, early, strict=True))
    ordered = order(evidence, ACKLEY, METHODS)
    return [
        Part(
            "COBYLA leads SCBO early",
            f"COBYLA {listed} (one-sided Wilcoxon, Holm)",
            any(one.p_value < LEVEL for one in early),
            "our SCBO starts faster, or our COBYLA slower, than the paper's",
        ),
        best_of(evidence, ACKLEY, "scbo", METHODS, "SCBO ends better than all others", STRONGER),
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
    text = "a run of PESC takes hours, those of the others minutes"
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
        f"processor time of a run: {listed} (PESC must take {MUCH_LONGER} times as long as "
        f"the slowest other, {name(slowest)})",
        times["pesc"] >= MUCH_LONGER * times[slowest],
        "our PESC is faster than Spearmint's",
    )
