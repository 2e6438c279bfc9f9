"""Evidence that nobody measured, to see whether figures and verdicts follow it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from cbo_suite.paper.claims import CLAIMS
from cbo_suite.paper.evidence import PairRuns
from cbo_suite.paper.experiments import ARTEFACTS, ROVER, Pair, num_seeds
from cbo_suite.registry import protocol_of

# Larger is worse: 0 is the best that anybody reaches, and above 1 nothing feasible is found.
Levels = Mapping[str, float]


def invent(
    final: float,
    *,
    budget: int = 40,
    n_init: int = 10,
    seeds: int = 30,
    start: float = 10.0,
    speed: float = 6.0,
    feasible: int | None = None,
    seconds: float = 1.0,
    restarts: int = 0,
    spread: float = 0.01,
    salt: int = 0,
) -> PairRuns:
    """Invent runs that fall from `start` to about `final`.

    Args:
        final: Where they end.
        budget: Number of evaluations.
        n_init: Number of points of the design.
        seeds: Number of runs.
        start: Where they begin.
        speed: How fast they fall.
        feasible: How many of the runs are feasible, all by default.
        seconds: Processor seconds of a run.
        restarts: Number of restarts of a run.
        spread: Standard deviation of the ends.
        salt: Draws other numbers.
    """
    random = np.random.default_rng([seeds, salt])
    ends = final + spread * random.standard_normal(seeds)
    course = np.exp(-speed * np.arange(budget) / budget)
    best = ends[:, None] + (start - final) * (course - course[-1])
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
        best_x=None,
    )


def invent_all(
    final: Callable[[Pair], float], pairs: Iterable[Pair] | None = None
) -> dict[Pair, PairRuns]:
    """Invent all runs that claims and artefacts need, at their protocols.

    Args:
        final: Where the runs of a pair end.
        pairs: The pairs, all by default.
    """
    every = {pair for claim in CLAIMS for pair in claim.pairs}
    every |= {pair for artefact in ARTEFACTS for pair in artefact.pairs}
    found = {}
    for number, pair in enumerate(sorted(every if pairs is None else pairs)):
        budget, _, n_init = protocol_of(pair[0])
        found[pair] = invent(
            final(pair),
            budget=budget,
            n_init=n_init,
            seeds=num_seeds(*pair),
            salt=number,
            spread=0.3,
            speed=3.0 + number % 4,
        )
        if pair == (ROVER, "scbo"):
            found[pair] = found[pair]._replace(best_x=np.tile(np.linspace(0.1, 0.9, 30), 2))
    return found
