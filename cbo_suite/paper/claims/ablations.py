"""Claims 10 to 13: what the parts of SCBO contribute, and what the transforms do for others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from cbo_suite.paper.claims.small import BEAM, REDUCER, SPRING
from cbo_suite.paper.comparisons import (
    TITLES,
    Duel,
    Part,
    alike,
    better,
    duel,
    leads_early,
    name,
    order,
    order_text,
)
from cbo_suite.paper.evidence import Evidence
from cbo_suite.paper.experiments import KEANE, PERTURBATIONS, ROSENBROCK, TOY
from cbo_suite.paper.reasons import SHARES, UNKNOWN, better_in_the_end, stronger
from cbo_suite.tasks import ABLATIONS, PHYSICS, TRANSFORMED

RANKS = "the copula keeps only the order of the values, and our models fit the values themselves"
FEWER = "why SLACK finds fewer feasible points is not known"
UNLIKE = "the paper does not say how its combinations choose points; ours share all but the parts"
# With whom SCBO is ahead of the others in the paper's figure of transformed values.
EQUALLY_GOOD = ((SPRING, "cei-transformed"), (REDUCER, "pesc-transformed"))
# Each with its trust region, and without.
REGIONS = [
    (id_, f"{id_}-global")
    for id_ in ("scbo", "scbo-ei", "scbo-untransformed", "scbo-untransformed-ei")
]
# Each with its transforms, and without; with Thompson sampling, and with expected improvement.
TRANSFORMS = [("scbo", "scbo-untransformed"), ("scbo-ei", "scbo-untransformed-ei")]
ACQUISITIONS = [("scbo", "scbo-ei"), ("scbo-untransformed", "scbo-untransformed-ei")]
WITHOUT_REGION = [(f"{first}-global", f"{second}-global") for first, second in ACQUISITIONS]
NO_REGION_EI = ("scbo-ei-global", "scbo-untransformed-ei-global")


def judge_ablation(evidence: Evidence) -> list[Part]:
    """Claim 10."""
    toy = order(evidence, TOY, ABLATIONS)
    regions = (("with the", ACQUISITIONS), ("without a", WITHOUT_REGION))
    return [
        *(
            better_in_the_end(
                f"on {title}, every combination is better with the trust region than without",
                evidence,
                [duel(evidence, problem, *pair) for pair in REGIONS],
            )
            for problem, title in ((KEANE, "Keane"), (ROSENBROCK, "Rosenbrock"))
        ),
        better_in_the_end(
            "on Keane, the transforms add to the trust region",
            evidence,
            [duel(evidence, KEANE, *pair) for pair in TRANSFORMS],
        ),
        *(
            alike(
                f"on Keane, {word} trust region, the acquisition makes no difference",
                [duel(evidence, KEANE, *pair, two_sided=True) for pair in pairs],
                UNLIKE,
            )
            for word, pairs in regions
        ),
        Part(
            "on the toy problem, expected improvement without trust region is best",
            f"mean ranks of the outcomes: {order_text(toy)}",
            toy[0][0] in NO_REGION_EI,
            _toy_reason(evidence),
        ),
        *(
            better_in_the_end(
                f"on Rosenbrock, {word} trust region, Thompson sampling beats expected improvement",
                evidence,
                [duel(evidence, ROSENBROCK, *pair) for pair in pairs],
            )
            for word, pairs in regions
        ),
    ]


def _toy_reason(evidence: Evidence) -> str:
    """Say what becomes of expected improvement whose maximum is refined, as that of cEI is."""
    text = "our combinations without a region choose among points drawn in the whole box"
    if (TOY, "cei") not in evidence.runs:
        return text
    duels = [duel(evidence, TOY, "cei", id_) for id_ in ABLATIONS]
    least = min(duels, key=lambda one: one.superiority)
    bound = math.floor(100 * least.superiority) / 100
    return (
        f"{text}; cEI, which is expected improvement without a region and refines its maximum, "
        f"has an A12 of at least {bound:.2f} against each of them (least against "
        f"{name(least.second)})"
    )


def judge_transforms(evidence: Evidence) -> list[Part]:
    """Claim 11."""
    copula, bilog = "scbo-copula-only", "scbo-bilog-only"
    budget = evidence.runs[ROSENBROCK, copula].best.shape[1]
    return [
        better_in_the_end(
            "on Keane, the bilog alone is better than the copula alone",
            evidence,
            [duel(evidence, KEANE, bilog, copula)],
        ),
        better_in_the_end(
            "on Keane, both together are better than either alone",
            evidence,
            [duel(evidence, KEANE, "scbo", single) for single in (bilog, copula)],
        ),
        better_in_the_end(
            "on Rosenbrock, the copula improves the results",
            evidence,
            [
                duel(evidence, ROSENBROCK, copula, "scbo-untransformed"),
                duel(evidence, ROSENBROCK, "scbo", bilog),
            ],
        ),
        leads_early(
            "on Rosenbrock, the bilog slows down the convergence",
            evidence,
            ROSENBROCK,
            (copula, "scbo"),
            [round(share * budget) for share in SHARES],
            UNLIKE,
        ),
        alike(
            "on Rosenbrock, both together end as the copula alone does",
            [duel(evidence, ROSENBROCK, "scbo", copula, two_sided=True)],
            UNLIKE,
        ),
    ]


def judge_perturbation(evidence: Evidence) -> list[Part]:
    """Claim 12."""
    text = (
        "on Keane, candidates that differ from the centre in few variables are better than those "
        "that differ in all"
    )
    return [better_in_the_end(text, evidence, [duel(evidence, KEANE, *PERTURBATIONS)])]


def judge_transformed(evidence: Evidence) -> list[Part]:
    """Claim 13."""
    helped = [(SPRING, "pesc-transformed"), (BEAM, "pesc-transformed")]
    others = [
        (problem, id_) for problem in PHYSICS for id_ in TRANSFORMED if (problem, id_) not in helped
    ]
    beaten = [
        (problem, id_)
        for problem in PHYSICS
        for id_ in TRANSFORMED
        if (problem, id_) not in EQUALLY_GOOD
    ]
    return [
        alike(
            "the transforms do not change cEI and SLACK, nor PESC on vessel and reducer",
            [
                duel(evidence, problem, id_, id_.removesuffix("-transformed"), two_sided=True)
                for problem, id_ in others
            ],
            _transformed_reason,
            where=[TITLES[problem] for problem, _ in others],
        ),
        better(
            "the transforms help PESC on spring and beam",
            [duel(evidence, problem, id_, "pesc") for problem, id_ in helped],
            RANKS,
            where=[TITLES[problem] for problem, _ in helped],
        ),
        better(
            "on transformed values SCBO ends better than cEI, PESC and SLACK, but for cEI on the "
            "spring and PESC on the reducer",
            [duel(evidence, problem, "scbo", id_) for problem, id_ in beaten],
            partial(stronger, evidence),
            where=[TITLES[problem] for problem, _ in beaten],
        ),
        Part(
            "the transforms do not change COBYLA",
            "not run: the copula of the values so far changes with every value, so there is no "
            "function that COBYLA could be given. CMA-ES and random search do not see monotone "
            "maps of the values, so they have nothing to compare",
            None,
        ),
    ]


def _transformed_reason(lost: Sequence[Duel]) -> str:
    """Say why transforms may change baselines, mostly for the worse."""
    worse = [one.first for one in lost if one.superiority < 0.5]
    reasons = [RANKS] * bool(worse) + [FEWER] * ("slack-transformed" in worse)
    return "; ".join(reasons) or UNKNOWN
