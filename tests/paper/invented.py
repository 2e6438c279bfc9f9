"""Evidence that nobody measured, to see whether figures and verdicts follow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import norm

from cbo_suite.paper.claims import CLAIMS
from cbo_suite.paper.claims.method import MEASURED_SIZES
from cbo_suite.paper.consistency import Consistency
from cbo_suite.paper.evidence import Evidence, PairRuns
from cbo_suite.paper.experiments import (
    ACKLEY,
    ARTEFACTS,
    MOPTA08,
    ROSENBROCK,
    ROVER,
    TOY,
    Pair,
    num_seeds,
)
from cbo_suite.paper.measurements import (
    BatchCell,
    BatchSide,
    BatchTable,
    Feasibility,
    Measurements,
    RestartRuns,
    Restarts,
)
from cbo_suite.paper.progress import present_identity
from cbo_suite.paper.published import published_numbers
from cbo_suite.registry import protocol_of
from cbo_suite.scoring.references import load_references
from cbo_suite.tasks import LUNAR

SPRING, VESSEL, BEAM, REDUCER = (
    "tension-string-3d-v1",
    "pressure-vessel-4d-v1",
    "welded-beam-4d-v1",
    "speed-reducer-7d-v1",
)
SPREAD = 0.3
# Where methods end unless something else is said, in the order of the paper's vessel.
ENDS = dict(
    zip(
        ("scbo", "cei", "pesc", "cobyla", "slack", "cma-es", "random-search"), range(7), strict=True
    )
)


def invent(
    final: float,
    *,
    budget: int = 40,
    n_init: int = 10,
    seeds: int = 30,
    speed: float = 6.0,
    fall: float = 10.0,
    ends: Sequence[float] = (),
    feasible: int | None = None,
    seconds: float = 1.0,
    restarts: int = 0,
    salt: int = 0,
) -> PairRuns:
    """Invent runs that fall to about `final`.

    Args:
        final: Where they end.
        budget: Number of evaluations.
        n_init: Number of points of the design.
        seeds: Number of runs.
        speed: How fast they fall.
        fall: How far they fall.
        ends: Where each of the feasible ones ends, instead of about `final`.
        feasible: How many of the runs are feasible, all by default.
        seconds: Processor seconds of a run.
        restarts: Number of restarts of a run.
        salt: Draws other numbers.
    """
    random = np.random.default_rng([seeds, salt])
    # The same values for equal ends, in another order: few samples would differ by chance.
    quantiles = (np.arange(seeds) + 0.5) / seeds
    places = final + SPREAD * random.permutation(norm.ppf(quantiles))
    places[: len(ends)] = random.permutation(ends)
    course = np.exp(-speed * np.arange(budget) / budget)
    best = places[:, None] + fall * (course - course[-1])
    violation = np.zeros((seeds, budget))
    if feasible is not None and feasible < seeds:
        best[feasible:] = np.nan
        violation[feasible:] = 1.0 + 0.01 * random.random((seeds - feasible, 1))
    return PairRuns(
        seeds=list(range(seeds)),
        best=best,
        violation=violation,
        largest=float(np.fmax.reduce(best, axis=None, initial=np.nan)),
        seconds=[seconds] * seeds,
        restarts=[[(i + 1) * budget // (restarts + 1) for i in range(restarts)]] * seeds,
        n_init=n_init,
    )


def ablation_end(problem: str, id_: str) -> float:
    """Say where a combination of SCBO's parts ends, as the paper has it."""
    if problem == TOY:
        return 0.0 if id_ == "scbo-ei-global" else 2.0
    end = 5.0 * ("global" in id_) + 2.0 * ("untransformed" in id_)
    if problem == ROSENBROCK:
        end += 1.0 * ("-ei" in id_)
    singles = {"scbo-bilog-only": 1.0, "scbo-copula-only": 2.0}
    if problem == ROSENBROCK:
        singles = {"scbo-bilog-only": 2.0, "scbo-copula-only": 0.0}
    return end + singles.get(id_, 0.0) + 2.0 * ("no-pert" in id_)


def as_published(pair: Pair) -> dict[str, Any]:
    """Say how the runs of a pair go if the paper is right in all."""
    problem, id_ = pair
    if problem in LUNAR:
        row = published_numbers().problems[problem].row(id_)
        runs = row.feasible or 0
        # From the printed best to the worst, with the printed median in the middle.
        shares = np.linspace(0.0, 1.0, runs)
        printed = [-(value or 0.0) for value in (row.best, row.median, row.worst)]
        places = np.interp(shares, [0.0, 0.5, 1.0], printed)
        return {"final": 0.0, "ends": places, "feasible": runs}
    if problem == MOPTA08:
        ends = {"scbo": 236.0, "cobyla": 239.5, "cei": 330.0}
        return {"final": ends.get(id_, 400.0), "feasible": 11 if id_ == "cobyla" else 30}
    if problem == ROVER:
        return {"final": -4.9 + 2 * ENDS[id_], "restarts": 1}
    if id_.startswith("scbo"):
        end = ablation_end(problem, id_)
        if pair == (ROSENBROCK, "scbo-copula-only"):
            return {"final": end, "speed": 30.0}
        return {"final": end}
    final = float(ENDS[id_.removesuffix("-transformed")])
    if problem == SPRING and id_ in ("cei", "pesc", "cei-transformed"):
        final = 6.0 - 0.04
    if problem == REDUCER and id_ in ("pesc", "pesc-transformed"):
        final = 0.0
    if pair in ((SPRING, "pesc-transformed"), (BEAM, "pesc-transformed")):
        final = 1.5
    if problem == ACKLEY:
        return {
            "final": final,
            "speed": 30.0 if id_ == "cobyla" else 3.0,
            "seconds": 1000.0 if id_ == "pesc" else 1.0,
        }
    return {"final": final}


def contrary(pair: Pair) -> dict[str, Any]:
    """Say how the runs of a pair go if the paper is wrong in all: SCBO last, others mixed up."""
    problem, id_ = pair
    if problem in LUNAR:
        m = LUNAR.index(problem)
        return {"final": -200.0 - 20.0 * m, "feasible": 3 if id_ == "scbo" else 30}
    if problem == MOPTA08:
        return {"final": 250.0 if id_ == "scbo" else 230.0, "feasible": 5 if id_ == "scbo" else 30}
    if problem == ROVER:
        return {"final": 5.0 if id_ == "scbo" else 0.0, "restarts": 40}
    if id_.startswith("scbo"):
        ablated = -ablation_end(problem, id_) + (20.0 if id_ == "scbo" else 0.0)
        wrong = 10.0 if id_ in ("scbo-ei", "scbo-untransformed", "scbo-ei-global") else 0.0
        if pair == (TOY, "scbo-untransformed-ei-global"):
            wrong = 5.0
        if pair == (ROSENBROCK, "scbo-copula-only"):
            return {"final": 20.0 + ablated, "speed": 0.5, "fall": 1000.0}
        return {"final": 20.0 + ablated + wrong, "feasible": 29 if problem == SPRING else None}
    ends = {"random-search": 10.0, "cei": 8.0, "pesc": 9.0}
    final = ends.get(id_.removesuffix("-transformed"), 0.0)
    if id_.endswith("-transformed"):
        final += 3.0
    if id_ == "cobyla":
        return {"final": final, "speed": 0.5, "fall": 1000.0}
    return {"final": final, "speed": 5.0}


def invent_runs(story: Callable[[Pair], dict[str, Any]]) -> dict[Pair, PairRuns]:
    """Invent all runs that claims and artefacts need, at their protocols, by a story."""
    every = {pair for claim in CLAIMS for pair in claim.pairs}
    every |= {pair for artefact in ARTEFACTS for pair in artefact.pairs}
    found = {}
    for number, pair in enumerate(sorted(every)):
        budget, _, n_init = protocol_of(pair[0])
        told = story(pair)
        if pair[0] == REDUCER:
            told["final"] += load_references()[REDUCER].best
        found[pair] = invent(
            budget=budget, n_init=n_init, seeds=num_seeds(*pair), salt=number, **told
        )
    x = np.linspace(0.1, 0.9, 60)
    found[ROVER, "scbo"] = found[ROVER, "scbo"]._replace(best_x=x)
    return found


def invent_measurements(*, right: bool) -> Measurements:
    """Invent measurements by which the paper is right, or wrong."""
    factor = 1.0 if right else 3.0
    printed = published_numbers()
    restarts = {
        problem: RestartRuns(
            round(10 * interval * factor),
            [[round(i * interval * factor) for i in range(1, 10)]] * 3,
            present_identity("scbo") or "",
        )
        for problem, interval in printed.restarts.values.items()
        if problem != ROVER
    }
    slow = BatchSide(10.0, 10.0, 10.0, 0.0, 0.0)
    fast = BatchSide(10.0 / 3.0 * factor**2, 1.0, 1.0, 0.01 * factor**3, 0.01 * factor**3)
    return Measurements(
        Restarts(restarts),
        Feasibility(ACKLEY, 10**8, round(2200 * factor), 0),
        BatchTable("made up", [BatchCell(*size, slow, fast, fast) for size in MEASURED_SIZES]),
    )


def invent_evidence(*, right: bool) -> Evidence:
    """Invent all evidence, by which the paper is right in all that can be told, or wrong."""
    return Evidence(
        invent_runs(as_published if right else contrary),
        invent_measurements(right=right),
        Consistency(6, 6, 80, 12, 12, 12) if right else Consistency(6, 5, 80, 12, 3, 2),
    )
