"""The tables of docs/choose.md, made from the evidence for the rule.

They stand between `<!-- table: NAME -->` and `<!-- end of table -->`, and are never edited by hand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cbo_suite.choice import RULE
from tests.golden.choice_evidence import STOPS, Evidence, mean_score, weigh
from tests.golden.derive_choice import (
    REGIONS,
    SMALL,
    VARIATIONS,
    Region,
    judge_region,
    judge_tracks,
)

_TABLE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def write_tables(page: str, evidence: Evidence) -> str:
    """Put the tables of the evidence into the page."""
    tables = make_tables(evidence)
    return _TABLE.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n\n{found[3]}", page)


def make_tables(evidence: Evidence) -> dict[str, str]:
    """Make all tables, by name."""
    return {
        "rule": _rule(),
        **{name: _scores(evidence, region) for name, region in REGIONS.items()},
        "reached": _reached(evidence),
        "left-out": _left_out(evidence),
        "variations": _variations(evidence),
    }


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("| --- ", "|---") for line in lines).replace(
        "--- |", "---|"
    )


def _rule() -> str:
    """Write the rule, line by line."""
    rows = []
    for number, branch in enumerate(RULE, start=1):
        first, *others = (f"`{id_}`" for id_ in branch.optimizers)
        taken = first + "".join(f"; {id_} if that is not installed" for id_ in others)
        rows.append([str(number), branch.when, taken, branch.why])
    return _table(["", "when", "it takes", "because"], rows)


def _scores(evidence: Evidence, region: Region) -> str:
    """Write the scores of the candidates of a region, the best of each line in bold."""
    head = [
        "problem",
        "d",
        "m",
        "evaluations",
        "at once",
        *(f"`{id_}`" for id_ in region.candidates),
    ]
    rows = []
    weights = weigh(region.problems(evidence))
    if not weights:
        return (
            "*No problem has rows of all of these yet: the rule goes by what its optimizer is made "
            "for.*"
        )
    for id_ in weights:
        problem = evidence[id_]
        numbers = [problem.dim, problem.num_constraints, problem.budget, problem.batch_size]
        found = [problem.rows[name] for name in region.candidates]
        best = max(row.score for row in found)
        rows.append(
            [f"`{id_}`", *map(str, numbers)]
            + [_bold(f"{row.score:.1f} ± {row.error:.1f}", row.score == best) for row in found]
        )
    means = [mean_score(evidence, weights, name) for name in region.candidates]
    rows.append(
        ["mean", "", "", "", "", *(_bold(f"{mean:.1f}", mean == max(means)) for mean in means)]
    )
    return _table(head, rows)


def _reached(evidence: Evidence) -> str:
    """Write how many targets were reached after how many evaluations, on small problems."""
    rows = []
    weights = weigh(SMALL.problems(evidence))
    for name in SMALL.candidates:
        means = [
            sum(weight * evidence[id_].rows[name].reached[i] for id_, weight in weights.items())
            for i in range(len(STOPS))
        ]
        rows.append([f"`{name}`", *(f"{mean:.0f} %" for mean in means)])
    return _table(["evaluations", *map(str, STOPS)], rows)


def _left_out(evidence: Evidence) -> str:
    """Write what would have been taken for each problem by the others alone."""
    rows = []
    for track, judgement in judge_tracks(evidence).items():
        for id_, name in judgement.took.items():
            row, best = evidence[id_].rows[name], evidence[id_].rows[judgement.best]
            rows.append(
                [
                    f"`{id_}`",
                    f"`{name}`",
                    f"{row.score:.1f} ± {row.error:.1f}",
                    f"`{judgement.best}` {best.score:.1f} ± {best.error:.1f}",
                ]
            )
        rows.append(
            [
                f"**mean of {track}**",
                "",
                f"**{judgement.score:.1f}**",
                f"`{judgement.best}` **{judgement.best_score:.1f}**, "
                f"difference {_tenths(judgement.loss)} ± {judgement.error:.1f}",
            ]
        )
    return _table(["left out", "taken by the others", "score", "best single method"], rows)


def _variations(evidence: Evidence) -> str:
    """Write how the choice does where other candidates are allowed, or no track judges it."""
    rows = []
    for title, region in VARIATIONS.items():
        judgement = judge_region(evidence, region)
        if judgement is None:
            continue
        others = [f"`{name}` for `{id_}`" for id_, name in judgement.took.items()]
        others = [text for text in others if not text.startswith(f"`{judgement.best}`")]
        rows.append(
            [
                title,
                str(len(judgement.took)),
                f"`{judgement.best}`",
                ", ".join(others) or "none",
                f"{_tenths(judgement.loss)} ± {judgement.error:.1f}",
            ]
        )
    return _table(["choice among", "problems", "best", "taken instead", "loss"], rows)


def _tenths(value: float) -> str:
    """Write a number with one digit behind the point, and zero without a sign."""
    return f"{round(value, 1) + 0.0:.1f}"


def _bold(text: str, is_bold: bool) -> str:
    """Set a text in bold, or leave it."""
    return f"**{text}**" if is_bold else text
