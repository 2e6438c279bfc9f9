"""The seventeen claims of the paper, and how each is judged.

A claim is a list of sentences. Each is decided by a test on the evidence: it holds, fails or cannot
be told. The verdict follows from them by `decide`, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from cbo_suite.paper.claims.ablations import (
    judge_ablation,
    judge_perturbation,
    judge_transformed,
    judge_transforms,
)
from cbo_suite.paper.claims.large import judge_keane, judge_lunar, judge_mopta08, judge_rover
from cbo_suite.paper.claims.method import (
    judge_batch_gp,
    judge_consistency,
    judge_feasibility,
    judge_restarts,
)
from cbo_suite.paper.claims.small import (
    BEAM,
    REDUCER,
    SPRING,
    VESSEL,
    judge_ackley,
    judge_beam,
    judge_reducer,
    judge_spring,
    judge_vessel,
)
from cbo_suite.paper.comparisons import Part
from cbo_suite.paper.evidence import Evidence, needed
from cbo_suite.paper.experiments import (
    ACKLEY,
    ARTEFACTS,
    KEANE,
    MOPTA08,
    ROVER,
    Pair,
)
from cbo_suite.tasks import LUNAR, METHODS, SCALABLE

Verdict = Literal["reproduced", "reproduced in part", "not reproduced", "cannot be told"]


class Claim(NamedTuple):
    """A claim of the paper.

    Attributes:
        number: Its number in the list of claims.
        title: What it is about.
        says: What the paper says.
        place: Where in the paper.
        pairs: The problems and optimizers whose runs must be complete for a verdict.
        judge: Decides its sentences, or says why that cannot be done.
        lacking: Why runs may be missing for good.
    """

    number: int
    title: str
    says: str
    place: str
    pairs: Sequence[Pair]
    judge: Callable[[Evidence], list[Part] | str]
    lacking: str = ""


class Judgement(NamedTuple):
    """What came of a claim.

    Attributes:
        claim: The claim.
        verdict: One of four.
        why: Why it cannot be told, "" for another verdict.
        parts: Its sentences; none where runs or measurements are missing.
    """

    claim: Claim
    verdict: Verdict
    why: str
    parts: list[Part]


def _on(problem: str, methods: Sequence[str]) -> list[Pair]:
    """Combine a problem with methods."""
    return [(problem, id_) for id_ in methods]


def _of(artefact: str) -> Sequence[Pair]:
    """Return the pairs of a figure or table."""
    return next(found.pairs for found in ARTEFACTS if found.id == artefact)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        1,
        "Tension-compression string",
        "SCBO outperforms all others, is feasible in every run and consistently excellent; PESC "
        "and cEI are not competitive, only slightly better than random search.",
        "Section 4.1, Figure 2",
        _on(SPRING, METHODS),
        judge_spring,
    ),
    Claim(
        2,
        "Pressure vessel",
        "SCBO obtains the best solutions, followed by cEI, PESC and COBYLA.",
        "Section 4.1, Figure 2",
        _on(VESSEL, METHODS),
        judge_vessel,
    ),
    Claim(
        3,
        "Welded beam",
        "SCBO performs best, followed by cEI.",
        "Section 4.1, Figure 2",
        _on(BEAM, METHODS),
        judge_beam,
    ),
    Claim(
        4,
        "Speed reducer",
        "SCBO and PESC perform best (figure), and obtain excellent results (text).",
        "Section 4.1, Figure 2",
        _on(REDUCER, METHODS),
        judge_reducer,
    ),
    Claim(
        5,
        "Ackley",
        "COBYLA makes good progress at first, SCBO ends best and is consistently close to the "
        "global optimum; PESC performs well, but a run takes 3 hours, those of the others minutes.",
        "Section 4.2, Figure 3",
        _on(ACKLEY, METHODS),
        judge_ackley,
    ),
    Claim(
        6,
        "Keane's bump",
        "SCBO clearly outperforms the others from the start; COBYLA is not competitive.",
        "Section 4.3, Figure 3",
        _on(KEANE, SCALABLE),
        judge_keane,
    ),
    Claim(
        7,
        "Lunar lander",
        "Feasible runs, best, worst and median as in the table; SCBO clearly ahead for m = 30 and "
        "50; the best reward falls with m; random search is never feasible.",
        "Section 4.4, Table 1",
        [pair for problem in LUNAR for pair in _on(problem, SCALABLE)],
        judge_lunar,
    ),
    Claim(
        8,
        "Rover",
        "SCBO outperforms the others by far; its best reward is 4.93.",
        "Section 4.5, Figure 4",
        _on(ROVER, SCALABLE),
        judge_rover,
    ),
    Claim(
        9,
        "MOPTA08",
        "SCBO is feasible in 30 of 30 runs, with 236.7 at best; COBYLA in 11, with 238.8; cEI "
        "finds nothing feasible below 300.",
        "Section 4.6, Figure 4",
        _on(MOPTA08, ["scbo", "cobyla", "cei"]),
        judge_mopta08,
        "its executable is third-party software that the suite may not ship",
    ),
    Claim(
        10,
        "Parts of SCBO",
        "The trust region is critical on Keane and Rosenbrock; the transforms add to it on Keane, "
        "where the acquisition makes no difference; expected improvement without trust region is "
        "best on the toy problem; Thompson sampling beats expected improvement on Rosenbrock.",
        "Section 4.7, Figure 5",
        _of("ablation"),
        judge_ablation,
    ),
    Claim(
        11,
        "Copula and bilog",
        "The bilog matters more on Keane, where both together are better than either; the copula "
        "improves the results on Rosenbrock, where the bilog slows down the convergence, but both "
        "together end as the copula alone does.",
        "Supplement, Additional ablation studies",
        _of("transforms"),
        judge_transforms,
    ),
    Claim(
        12,
        "Perturbing few variables",
        "Perturbing only some of the variables improves the results on Keane.",
        "Supplement, Additional ablation studies",
        _of("perturbation"),
        judge_perturbation,
    ),
    Claim(
        13,
        "Transforms for the baselines",
        "The transforms do not change the baselines on the physics problems, except PESC on "
        "spring and beam, which they help; SCBO performs best among them, with cEI on the spring "
        "and PESC on the reducer.",
        "Section 4; Supplement, Results on the Transformed Physics Problems",
        _of("transformed"),
        judge_transformed,
    ),
    Claim(
        14,
        "Restarts",
        "On average, a restart every 42 iterations (toy), 88 (Rosenbrock), 2095 (Keane) and 2710 "
        "(rover).",
        "Supplement, Restart Frequency of SCBO",
        _of("restarts"),
        judge_restarts,
    ),
    Claim(
        15,
        "Many models at once",
        "Batches of models are much faster than a Cholesky factor for each, with small errors.",
        "Supplement, Achieving Efficiency via Batch GPs",
        (),
        judge_batch_gp,
    ),
    Claim(
        16,
        "Random feasibility of Ackley",
        "A random point is feasible with probability 2.2e-5.",
        "Section 4.2",
        (),
        judge_feasibility,
    ),
    Claim(
        17,
        "Consistency",
        "If functions are bounded, the minimizer is unique, and only a gain of at least a constant "
        "counts as an improvement: every trust region ends after finitely many samples, and "
        "restarts draw fresh points, so that SCBO converges to the global optimum.",
        "Supplement, Global Consistency of SCBO",
        (),
        judge_consistency,
    ),
)


def judge(evidence: Evidence) -> list[Judgement]:
    """Judge all claims by the evidence."""
    return [_judge_one(claim, evidence) for claim in CLAIMS]


def decide(parts: Sequence[Part]) -> Verdict:
    """Turn what came of the sentences of a claim into a verdict.

    All hold: reproduced. Some hold: reproduced in part. None holds and one fails: not reproduced.
    None can be told: cannot be told.
    """
    held = [part.holds for part in parts]
    if all(held):
        return "reproduced"
    if any(held):
        return "reproduced in part"
    return "not reproduced" if False in held else "cannot be told"


def _judge_one(claim: Claim, evidence: Evidence) -> Judgement:
    """Judge one claim; without all its runs there is nothing to tell."""
    have, wanted = evidence.have(claim.pairs), needed(claim.pairs)
    if have < wanted:
        lacking = f"; {claim.lacking}" if claim.lacking else ""
        return Judgement(claim, "cannot be told", f"{have} of {wanted} runs{lacking}", [])
    parts = claim.judge(evidence)
    if isinstance(parts, str):
        return Judgement(claim, "cannot be told", parts, [])
    verdict = decide(parts)
    untold = [part.evidence for part in parts if part.holds is None]
    return Judgement(
        claim, verdict, "; ".join(untold) if verdict == "cannot be told" else "", parts
    )
