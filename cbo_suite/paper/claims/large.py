"""Claims 6 to 9: Keane, lunar lander, rover and MOPTA08."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from cbo_suite.paper.claims.small import SCBO_IS_BEST
from cbo_suite.paper.comparisons import (
    LARGE_EFFECT,
    LEVEL,
    Duel,
    Part,
    adjusted,
    always_feasible,
    better,
    duel,
    feasible_text,
    name,
    p_text,
    place_p_value,
    share_p_value,
)
from cbo_suite.paper.evidence import Evidence
from cbo_suite.paper.experiments import KEANE, MOPTA08, ROVER
from cbo_suite.paper.published import PublishedRow, published_numbers
from cbo_suite.paper.reasons import (
    FITTED,
    STRONGER,
    best_of,
    counted,
    no_budget,
    stronger,
)
from cbo_suite.protocols import Array
from cbo_suite.scoring.references import load_references
from cbo_suite.scoring.statistics import holm
from cbo_suite.tasks import LUNAR, SCALABLE

# Evaluations of Keane's 1000 at which "from the start" is looked at; the design has 100.
CHECKPOINTS = (200, 400, 600, 800, 1000)
# A best or worst value no further from a printed one than this share of it counts as the same.
SAME_SHARE = 0.02
# The same for rewards of the rover and values of SCBO, to the last digit that is printed.
ROVER_DIGIT, MOPTA08_DIGIT = 0.005, 0.05
NOBODY = "no method has feasible runs to compare"
RIVALS = [id_ for id_ in SCALABLE if id_ != "scbo"]
TERRAINS = "the paper's terrains, initial states and controller are not published; ours are others"
OBSTACLES = "the paper's obstacles and its way of fitting paths are not published; ours are others"


def judge_keane(evidence: Evidence) -> list[Part]:
    """Claim 6."""
    places = [(t, rival) for t in CHECKPOINTS for rival in RIVALS]
    duels = [duel(evidence, KEANE, "scbo", rival, after=t) for t, rival in places]
    return [
        better(
            f"SCBO is ahead after {', '.join(map(str, CHECKPOINTS))} evaluations",
            duels,
            lambda lost: f"{stronger(evidence, lost)}; {no_budget(KEANE)}",
            where=[f"after {t}" for t, _ in places],
        ),
        _judge_cobyla(evidence, [one for one in duels if one.second == "cobyla"]),
    ]


def _judge_cobyla(evidence: Evidence, duels: Sequence[Duel]) -> Part:
    """Judge that COBYLA ends far behind on Keane's problem, by SCBO's duels with it."""
    ahead = [one.after for one in adjusted(duels) if one.after and one.reverse < LEVEL]
    before = f"; COBYLA is ahead after {counted(ahead)} (Holm)" if ahead else ""
    last = duels[-1]
    return Part(
        "COBYLA is not competitive in the end",
        f"SCBO {last.text} (one-sided Wilcoxon, {last.pairs} pairs; not competitive: "
        f"A12 at least {LARGE_EFFECT}){before}",
        last.p_value < LEVEL and last.superiority >= LARGE_EFFECT,
        stronger(evidence, [last]),
    )


def judge_lunar(evidence: Evidence) -> list[Part]:
    """Claim 7."""
    hard = [(problem, rival) for problem in LUNAR[1:] for rival in RIVALS]
    cells = _cells(evidence)
    return [
        _judge_counts(evidence),
        _judge_medians(cells),
        _judge_ends("best", [(cell, cell.rewards.max(), cell.printed.best) for cell in cells]),
        _judge_ends("worst", [(cell, cell.rewards.min(), cell.printed.worst) for cell in cells]),
        better(
            "SCBO is ahead of all others for m = 30 and m = 50",
            [duel(evidence, problem, "scbo", rival) for problem, rival in hard],
            partial(stronger, evidence),
            where=[_terrains(problem) for problem, _ in hard],
        ),
        _judge_falling(evidence),
        _judge_random(evidence),
    ]


class _Cell(NamedTuple):
    """A method on a number of terrains: what of, rewards of its feasible runs, what is printed."""

    label: str
    rewards: Array
    printed: PublishedRow


def _cells(evidence: Evidence) -> list[_Cell]:
    """Gather the cells of the table in which both the paper and we have a feasible run."""
    found = []
    for problem, id_ in product(LUNAR, SCALABLE):
        rewards = -evidence.runs[problem, id_].finals
        rewards = rewards[~np.isnan(rewards)]
        printed = published_numbers().problems[problem].row(id_)
        if printed.feasible and len(rewards):
            found.append(_Cell(f"{_terrains(problem)} {name(id_)}", rewards, printed))
    return found


def _judge_counts(evidence: Evidence) -> Part:
    """Judge that the numbers of feasible runs are those of the table."""
    tests = []
    for problem in LUNAR:
        for id_ in SCALABLE:
            runs = evidence.runs[problem, id_]
            row = published_numbers().problems[problem].row(id_)
            found, total, printed = runs.num_feasible, len(runs.seeds), row.feasible or 0
            p_value = share_p_value(found, total, printed, row.runs)
            label = f"{_terrains(problem)} {name(id_)}"
            tests.append((label, f"{label} {found}/{total} against {printed}/{row.runs}", p_value))
    p_values = holm([p_value for *_, p_value in tests])
    different = [label for (label, *_), p in zip(tests, p_values, strict=True) if p < LEVEL]
    return Part(
        "as many runs are feasible as in the paper's table",
        "; ".join(text for _, text, _ in tests)
        + f" (Fisher's exact test, Holm over {len(tests)}; different: "
        + (", ".join(different) or "none")
        + ")",
        not different,
        TERRAINS,
    )


def _judge_medians(cells: list[_Cell]) -> Part:
    """Judge that the medians of the feasible runs are those of the table."""
    texts, p_values, few = [], [], []
    for label, rewards, printed in cells:
        theirs, runs = printed.median or 0.0, printed.feasible or 0
        below, ours, place = int((rewards < theirs).sum()), len(rewards), (runs + 1) / 2
        p_values.append(place_p_value(below, ours, place, runs))
        texts.append(f"{label} {np.median(rewards):.1f} against {theirs}")
        if min(place_p_value(all_or_none, ours, place, runs) for all_or_none in (0, ours)) >= LEVEL:
            few.append(label)
    adjusted = holm(p_values)
    different = [cell.label for cell, p in zip(cells, adjusted, strict=True) if p < LEVEL]
    return Part(
        "the median rewards of the feasible runs are those of the table",
        ("; ".join(texts) or NOBODY)
        + f" (tested by how many of our runs lie below the printed median, Holm over {len(texts)}; "
        f"different: {', '.join(different) or 'none'}; too few runs to tell: "
        f"{', '.join(few) or 'none'})",
        not different if texts else None,
        TERRAINS,
    )


def _judge_ends(which: str, ends: list[tuple[_Cell, float, float | None]]) -> Part:
    """Judge that the best or worst rewards of the feasible runs are those of the table."""
    texts, different = [], []
    for cell, ours, theirs in ends:
        texts.append(f"{cell.label} {ours:.1f} against {theirs}")
        if theirs is None or abs(ours - theirs) > SAME_SHARE * abs(theirs):
            different.append(cell.label)
    return Part(
        f"the {which} rewards of the feasible runs are those of the table",
        ("; ".join(texts) or NOBODY)
        + f" (the same: within {SAME_SHARE:.0%}, as no test tells of extremes; different: "
        f"{', '.join(different) or 'none'})",
        not different if texts else None,
        TERRAINS,
    )


def _judge_falling(evidence: Evidence) -> Part:
    """Judge that the best reward of each method falls when there are more terrains."""
    texts, falls = [], []
    for id_ in SCALABLE:
        finals = [-evidence.runs[problem, id_].finals for problem in LUNAR]
        best = [float(np.fmax.reduce(rewards, initial=np.nan)) for rewards in finals]
        if np.isfinite([best[0], best[-1]]).all():
            texts.append(f"{name(id_)} {', '.join(f'{value:.1f}' for value in best)}")
            falls.append(best[0] > best[-1])
    first, last = _terrains(LUNAR[0]), _terrains(LUNAR[-1])
    return Part(
        f"the best reward of each method is lower for {last} than for {first}",
        ("; ".join(texts) or NOBODY)
        + f" ({', '.join(map(_terrains, LUNAR))}; of methods that are feasible for the first and "
        "the last)",
        all(falls) if falls else None,
        TERRAINS,
    )


def _judge_random(evidence: Evidence) -> Part:
    """Judge that random search never finds a feasible point."""
    runs = [evidence.runs[problem, "random-search"] for problem in LUNAR]
    texts = [
        f"{_terrains(problem)} {feasible_text(own.num_feasible, len(own.seeds))}"
        for problem, own in zip(LUNAR, runs, strict=True)
    ]
    never = all(own.num_feasible == 0 for own in runs)
    return Part("random search is never feasible", "; ".join(texts), never, TERRAINS)


def judge_rover(evidence: Evidence) -> list[Part]:
    """Claim 8."""
    duels = [duel(evidence, ROVER, "scbo", rival) for rival in RIVALS]
    lows, highs = zip(*(one.interval for one in duels), strict=True)
    by_far = min(lows) >= LARGE_EFFECT
    printed = published_numbers().problems[ROVER].row("scbo").best or 0.0
    rewards = -evidence.runs[ROVER, "scbo"].finals
    best = float(np.fmax.reduce(rewards, initial=np.nan))
    # What runs of the campaign itself found would hold in any case.
    known = -load_references(1)[ROVER].best
    least = min(printed, known) - ROVER_DIGIT
    return [
        best_of(evidence, ROVER, "scbo", RIVALS, SCBO_IS_BEST),
        Part(
            "it does so by far",
            "; ".join(f"against {name(one.second)} {one.effect}" for one in duels)
            + f" (by far: all intervals from {LARGE_EFFECT} on; not: one below it)",
            None if not by_far and min(highs) >= LARGE_EFFECT else by_far,
            OBSTACLES,
        ),
        Part(
            f"its best reward is {printed}, or what our map allows",
            (f"ours: {best:.4f}" if best == best else "no run of ours is feasible")
            + f" (it holds from {least:.4f} on; the best that is known on our obstacles is "
            f"{known:.4f})",
            bool(best >= least),
            OBSTACLES,
        ),
    ]


def judge_mopta08(evidence: Evidence) -> list[Part]:
    """Claim 9."""
    printed = published_numbers().problems[MOPTA08]
    scbo, cobyla, cei = (evidence.runs[MOPTA08, id_] for id_ in ("scbo", "cobyla", "cei"))
    ours, theirs, other = (
        float(np.fmin.reduce(runs.finals, initial=np.nan)) for runs in (scbo, cobyla, cei)
    )
    row = printed.row("cobyla")
    successes, total = row.feasible or 0, row.runs
    p_value = share_p_value(cobyla.num_feasible, len(cobyla.seeds), successes, total)
    target, rival = printed.row("scbo").best or 0.0, row.best or 0.0
    return [
        always_feasible(evidence, MOPTA08, "scbo", FITTED),
        Part(
            f"the best value of SCBO is {target} or less",
            _best_text(ours),
            bool(ours < target + MOPTA08_DIGIT),
            FITTED,
        ),
        Part(
            f"COBYLA is feasible in {successes} of {total} runs",
            f"{feasible_text(cobyla.num_feasible, len(cobyla.seeds))}, Fisher's exact test against "
            f"the paper's count {p_text(p_value)}",
            p_value >= LEVEL,
            STRONGER["cobyla"],
        ),
        Part(
            f"the best value of COBYLA is {rival}",
            f"{_best_text(theirs)} (the same: within {SAME_SHARE:.0%})",
            bool(abs(theirs - rival) <= SAME_SHARE * rival),
            STRONGER["cobyla"],
        ),
        Part(
            "the best value of SCBO is better than that of COBYLA",
            f"SCBO, {_best_text(ours)}; COBYLA, {_best_text(theirs)}",
            bool(ours < theirs or (np.isfinite(ours) and np.isnan(theirs))),
            STRONGER["cobyla"],
        ),
        Part(
            "cEI finds nothing feasible below 300",
            _best_text(other),
            bool(np.isnan(other) or other >= 300.0),
            STRONGER["cei"],
        ),
    ]


def _best_text(value: float) -> str:
    """Write the best value of some runs."""
    return f"ours: {value:.2f}" if value == value else "ours: no run is feasible"


def _terrains(problem: str) -> str:
    """Name a lunar problem by its number of terrains, as in "m = 30"."""
    return "m = " + problem.removeprefix("lunar-lander-m").removesuffix("-v1")
