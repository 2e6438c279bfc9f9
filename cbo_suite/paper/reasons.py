"""Why sentences probably fail: what sets our methods apart, and what the paper does not tell.

None of these is proven; docs/optimizers says more of each. Judgements that give them for whatever
comparisons they lose stand here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cbo_suite.paper.comparisons import LEVEL, Duel, Part, better, duel, name
from cbo_suite.paper.evidence import Evidence
from cbo_suite.paper.experiments import KEANE, MOPTA08, ROVER
from cbo_suite.paper.published import published_numbers

FITTED = "our models are fitted otherwise than the paper's, which publishes few of its settings"
UNKNOWN = "the paper's settings are not all published; ours may be others"
# What sets our baselines apart, where they do better than the paper's.
STRONGER = {
    "cei": "our cEI works on logarithms, which do not vanish, and looks at neighbours of the best "
    "point",
    "pesc": "our PESC also evaluates the points that it recommends",
    "slack": "our SLACK gives every draw of the constraints a slack of its own",
    "cobyla": "our COBYLA works in the unit cube and solves its steps exactly",
}
# Problems of more than 20 variables, in which cEI draws candidates in another way.
WIDE = (KEANE, ROVER, MOPTA08)
WIDE_CEI = "half of our cEI's candidates change some 20 variables of the best point, as SCBO's do"
# Shares of the budget at which it is looked whether a sentence that fails at the end holds.
SHARES = (0.2, 0.4, 0.6, 0.8)


def best_of(
    evidence: Evidence, problem: str, winner: str, rivals: Sequence[str], text: str
) -> Part:
    """Judge that one method ends better than each of its rivals."""
    methods = [winner, *(id_ for id_ in rivals if id_ != winner)]
    duels = [duel(evidence, problem, winner, rival) for rival in methods[1:]]
    part = better(text, duels, partial(stronger, evidence))
    least = min(methods, key=lambda id_: float(evidence.imputed(problem, id_)[:, -1].mean()))
    if part.holds and least != winner:
        return part._replace(evidence=f"{part.evidence}; {name(least)} has the least mean")
    return part


def stronger(evidence: Evidence, lost: Sequence[Duel]) -> str:
    """Say what sets those apart that another method is not better than."""
    texts = [_apart(evidence, one) for one in lost]
    known = list(dict.fromkeys(filter(None, texts))) or [UNKNOWN]
    if known != [UNKNOWN] and any(one.first == "scbo" for one in lost):
        known.append(f"or our SCBO is weaker: {FITTED}")
    return "; ".join(known)


def _apart(evidence: Evidence, one: Duel) -> str:
    """Say what sets the second of a pair apart, "" if nothing is known."""
    method = one.second.removesuffix("-transformed")
    if method == "cei" and one.problem in WIDE:
        return WIDE_CEI
    text = STRONGER.get(method, "")
    runs = evidence.runs[one.problem, one.second]
    begun = [own for own in runs.restarts if own and own[0] <= (one.after or runs.best.shape[1])]
    if method == "cobyla" and begun:
        return f"{text}, and started again in {len(begun)} of {len(runs.seeds)} runs"
    return text


def better_in_the_end(text: str, evidence: Evidence, duels: Sequence[Duel]) -> Part:
    """Judge a sentence on a problem whose budget the paper does not tell."""
    return better(text, duels, lambda _: _earlier(evidence, duels))


def _earlier(evidence: Evidence, duels: Sequence[Duel]) -> str:
    """Say whether a sentence that fails at the end holds earlier: a look, not a test."""
    problem = duels[0].problem
    budget = evidence.runs[problem, duels[0].first].best.shape[1]
    times = [round(share * budget) for share in SHARES]
    held = [
        after
        for after in times
        if all(
            duel(evidence, problem, one.first, one.second, after=after).p_value < LEVEL
            for one in duels
        )
    ]
    if held:
        return f"{no_budget(problem)}; it holds after {counted(held)} of our {budget}"
    return (
        f"{no_budget(problem)}, and may have a larger one; it does not hold after "
        f"{counted(times)} of our {budget} evaluations"
    )


def no_budget(problem: str) -> str:
    """Say that the paper tells no budget for a problem, and what speaks for a large one."""
    printed = published_numbers().restarts.values.get(problem)
    if problem != KEANE or printed is None:
        return "the paper gives no budget"
    return f"the paper gives no budget, only that SCBO restarts every {printed:g} evaluations"


def counted(numbers: Sequence[int]) -> str:
    """Write numbers with commas and an "and"."""
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last
