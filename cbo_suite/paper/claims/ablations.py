"""Claims 10 to 13: what the parts of SCBO contribute, and what the transforms do for others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cbo_suite.paper.claims.small import BEAM, SPRING
from cbo_suite.paper.comparisons import (
    LEVEL,
    TITLES,
    Duel,
    Part,
    adjusted,
    alike,
    better,
    duel,
    name,
    order,
    order_text,
)
from cbo_suite.paper.evidence import Evidence
from cbo_suite.paper.experiments import KEANE, PERTURBATIONS, ROSENBROCK, TOY
from cbo_suite.tasks import ABLATIONS, PHYSICS, TRANSFORMED

# Shares of the budget at which it is looked whether a sentence that fails at the end holds.
SHARES = (0.2, 0.4, 0.6, 0.8)
SMOOTH = "these functions are smooth, and the models fit them better than their transforms"
UNLIKE = "the paper does not say how its combinations choose points; ours share all but the parts"
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
            better(
                f"on {title}, every combination is better with the trust region than without",
                [duel(evidence, problem, *pair) for pair in REGIONS],
                partial(_when, evidence, problem),
            )
            for problem, title in ((KEANE, "Keane"), (ROSENBROCK, "Rosenbrock"))
        ),
        better(
            "on Keane, the transforms add to the trust region",
            [duel(evidence, KEANE, *pair) for pair in TRANSFORMS],
            partial(_when, evidence, KEANE),
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
            better(
                f"on Rosenbrock, {word} trust region, Thompson sampling beats expected improvement",
                [duel(evidence, ROSENBROCK, *pair) for pair in pairs],
                partial(_when, evidence, ROSENBROCK),
            )
            for word, pairs in regions
        ),
    ]


def _when(evidence: Evidence, problem: str, lost: Sequence[Duel]) -> str:
    """Say whether comparisons that fail at the end hold earlier: the paper tells no budgets."""
    budget = evidence.runs[problem, lost[0].first].best.shape[1]
    times = [round(share * budget) for share in SHARES]
    held = []
    for after in times:
        then = [duel(evidence, problem, one.first, one.second, after=after) for one in lost]
        if all(one.p_value < LEVEL for one in adjusted(then)):
            held.append(after)
    if held:
        return f"the paper gives no budget; it holds after {_counted(held)} of our {budget}"
    return (
        f"the paper gives no budget, and may have a larger one; it does not hold after "
        f"{_counted(times)} of our {budget} evaluations either"
    )


def _counted(numbers: Sequence[int]) -> str:
    """Write numbers with commas and an "and"."""
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last


def _toy_reason(evidence: Evidence) -> str:
    """Say what becomes of expected improvement whose maximum is refined, as that of cEI is."""
    text = "our combinations without a region choose among points drawn in the whole box"
    if (TOY, "cei") not in evidence.runs:
        return text
    duels = [duel(evidence, TOY, "cei", id_) for id_ in ABLATIONS]
    least = min(duels, key=lambda one: one.superiority)
    return (
        f"{text}; cEI, which is expected improvement without a region and refines its maximum, "
        f"has an A12 of {least.superiority:.2f} at least against each of them "
        f"(least against {name(least.second)})"
    )


def judge_transforms(evidence: Evidence) -> list[Part]:
    """Claim 11."""
    copula, bilog = "scbo-copula-only", "scbo-bilog-only"
    return [
        better(
            "on Keane, the bilog alone is better than the copula alone",
            [duel(evidence, KEANE, bilog, copula)],
            partial(_when, evidence, KEANE),
        ),
        better(
            "on Rosenbrock, the copula alone is better than the bilog alone",
            [duel(evidence, ROSENBROCK, copula, bilog)],
            partial(_when, evidence, ROSENBROCK),
        ),
        better(
            "on Keane, both together are better than either alone",
            [duel(evidence, KEANE, "scbo", single) for single in (bilog, copula)],
            partial(_when, evidence, KEANE),
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
    return [better(text, [duel(evidence, KEANE, *PERTURBATIONS)], partial(_when, evidence, KEANE))]


def judge_transformed(evidence: Evidence) -> list[Part]:
    """Claim 13."""
    helped = [(SPRING, "pesc-transformed"), (BEAM, "pesc-transformed")]
    others = [
        (problem, id_) for problem in PHYSICS for id_ in TRANSFORMED if (problem, id_) not in helped
    ]
    return [
        alike(
            "the transforms do not change cEI and SLACK, nor PESC on vessel and reducer",
            [
                duel(evidence, problem, id_, id_.removesuffix("-transformed"), two_sided=True)
                for problem, id_ in others
            ],
            SMOOTH,
            where=[TITLES[problem] for problem, _ in others],
        ),
        better(
            "the transforms help PESC on spring and beam",
            [duel(evidence, problem, id_, "pesc") for problem, id_ in helped],
            SMOOTH,
            where=[TITLES[problem] for problem, _ in helped],
        ),
        Part(
            "the transforms do not change COBYLA",
            "not run: the copula of the values so far changes with every value, so there is no "
            "function that COBYLA could be given. CMA-ES and random search do not see monotone "
            "maps of the values, so they have nothing to compare",
            None,
        ),
    ]
