"""Claims 10 to 13: what the parts of SCBO contribute, and what the transforms do for others."""

from __future__ import annotations

from cbo_suite.paper.claims.small import BEAM, SPRING, STRONGER
from cbo_suite.paper.comparisons import Part, alike, better, duel, order, order_text
from cbo_suite.paper.evidence import Evidence
from cbo_suite.paper.experiments import KEANE, PERTURBATIONS, ROSENBROCK, TOY
from cbo_suite.tasks import ABLATIONS, PHYSICS, TRANSFORMED

BUDGETS = "the paper gives no budgets for these problems; ours may end before or after theirs"
# Each with its trust region, and without.
REGIONS = [
    (id_, f"{id_}-global")
    for id_ in ("scbo", "scbo-ei", "scbo-untransformed", "scbo-untransformed-ei")
]
# Each with its transforms, and without; with Thompson sampling, and with expected improvement.
TRANSFORMS = [("scbo", "scbo-untransformed"), ("scbo-ei", "scbo-untransformed-ei")]
ACQUISITIONS = [("scbo", "scbo-ei"), ("scbo-untransformed", "scbo-untransformed-ei")]
NO_REGION_EI = ("scbo-ei-global", "scbo-untransformed-ei-global")


def judge_ablation(evidence: Evidence) -> list[Part]:
    """Claim 10."""
    parts = [
        better(
            f"on {title}, every combination is better with the trust region than without",
            [duel(evidence, problem, *pair) for pair in REGIONS],
            BUDGETS,
            where=[first for first, _ in REGIONS],
        )
        for problem, title in ((KEANE, "Keane"), (ROSENBROCK, "Rosenbrock"))
    ]
    toy = order(evidence, TOY, ABLATIONS)
    return [
        *parts,
        better(
            "on Keane, the transforms add to the trust region",
            [duel(evidence, KEANE, *pair) for pair in TRANSFORMS],
            BUDGETS,
            where=[first for first, _ in TRANSFORMS],
        ),
        alike(
            "on Keane, with the trust region, the acquisition makes no difference",
            [duel(evidence, KEANE, *pair, two_sided=True) for pair in ACQUISITIONS],
            BUDGETS,
        ),
        Part(
            "on the toy problem, expected improvement without trust region is best",
            f"mean ranks of the outcomes: {order_text(toy)}",
            toy[0][0] in NO_REGION_EI,
            BUDGETS,
        ),
        better(
            "on Rosenbrock, with the trust region, Thompson sampling beats expected improvement",
            [duel(evidence, ROSENBROCK, *pair) for pair in ACQUISITIONS],
            BUDGETS,
            where=[first for first, _ in ACQUISITIONS],
        ),
    ]


def judge_transforms(evidence: Evidence) -> list[Part]:
    """Claim 11."""
    copula, bilog = "scbo-copula-only", "scbo-bilog-only"
    return [
        better(
            "on Keane, the bilog alone is better than the copula alone",
            [duel(evidence, KEANE, bilog, copula)],
            BUDGETS,
        ),
        better(
            "on Rosenbrock, the copula alone is better than the bilog alone",
            [duel(evidence, ROSENBROCK, copula, bilog)],
            BUDGETS,
        ),
        better(
            "on Keane, both together are better than either alone",
            [duel(evidence, KEANE, "scbo", single) for single in (bilog, copula)],
            BUDGETS,
        ),
        alike(
            "on Rosenbrock, both together end as the copula alone does",
            [duel(evidence, ROSENBROCK, "scbo", copula, two_sided=True)],
            BUDGETS,
        ),
    ]


def judge_perturbation(evidence: Evidence) -> list[Part]:
    """Claim 12."""
    text = (
        "on Keane, candidates that differ from the centre in few variables are better than those "
        "that differ in all"
    )
    return [better(text, [duel(evidence, KEANE, *PERTURBATIONS)], BUDGETS)]


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
            STRONGER,
            where=[problem for problem, _ in others],
        ),
        better(
            "the transforms help PESC on spring and beam",
            [duel(evidence, problem, id_, "pesc") for problem, id_ in helped],
            STRONGER,
            where=[problem for problem, _ in helped],
        ),
        Part(
            "the transforms do not change COBYLA",
            "not run: the copula of the values so far changes with every value, so there is no "
            "function that COBYLA could be given. CMA-ES and random search do not see monotone "
            "maps of the values, so they have nothing to compare",
            None,
        ),
    ]
