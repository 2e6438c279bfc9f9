"""The report: what was reproduced, claim by claim, with figures and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from cbo_suite.paper.claims import Judgement
from cbo_suite.paper.comparisons import LARGE_EFFECT, LEVEL
from cbo_suite.paper.evidence import Evidence, needed
from cbo_suite.paper.experiments import ARTEFACTS, SEEDS
from cbo_suite.paper.published import published_numbers
from cbo_suite.paper.tables import Table

VERDICTS = ("reproduced", "reproduced in part", "not reproduced", "cannot be told")
_WORDS = {True: "holds", False: "does not hold", None: "cannot be told"}

HEAD = """# The paper, reproduced

{source}

`cbo paper build` made this report from the records in `leaderboard/runs` and the measurements in
`leaderboard/measurements`; no number of ours and no verdict is written by hand. Every method begins
each of its runs, up to {seeds} of them, with the same design as the others, so comparisons are
paired by seed. Outcomes are ordered: feasible before infeasible, as in the paper, feasible ones by
value, and infeasible ones, which the paper takes as equal, by violation. "Better" is a one-sided
Wilcoxon signed-rank test at {level:.0%} on the ranks of the outcomes of both methods. A12 is the
probability that a run of one method beats one of another, with its 95 % interval in brackets; from
{large} on it is large. Of a sentence that several tests must bear out, none is adjusted; it fails
where an interval leaves no room for a large effect, and cannot be told where there are too few runs
for either. What comes out the other way round is named, by tests that are adjusted by Holm's rule.
Figures show means, which few bad runs decide; tests look at all runs alike.

A claim whose sentences all hold is *reproduced*. Where some hold and others fail or cannot be told,
it is *reproduced in part*; where none holds and one fails, *not reproduced*. Without all of its
runs and measurements it *cannot be told*.
"""


def verdict_text(judgement: Judgement) -> str:
    """Write a verdict, with why it cannot be told where it cannot."""
    return f"{judgement.verdict}: {judgement.why}" if judgement.why else judgement.verdict


def summary(judgements: Sequence[Judgement]) -> str:
    """Say in a line how many claims have which verdict."""
    counts: Counter[str] = Counter(judgement.verdict for judgement in judgements)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])


def write_report(
    evidence: Evidence,
    judgements: Sequence[Judgement],
    tables: Mapping[str, Table],
    figures: Collection[str],
) -> str:
    """Write the report as Markdown.

    Args:
        evidence: What was measured.
        judgements: What came of the claims.
        tables: The tables by artefact.
        figures: The artefacts that have a figure, in `figures/`.
    """
    source = published_numbers().source + "."
    head = HEAD.format(source=source, seeds=SEEDS, level=LEVEL, large=LARGE_EFFECT)
    rows = [
        (str(found.claim.number), found.claim.title, verdict_text(found)) for found in judgements
    ]
    parts = [
        head,
        f"Of {len(judgements)} claims: {summary(judgements)}.\n",
        Table("", ("", "claim", "verdict"), rows, left=3).markdown(),
        "## The claims\n",
        *map(_claim_text, judgements),
        "## Figures and tables\n",
        _seconds_text(evidence),
        *(_artefact_text(evidence, id_, tables, figures) for id_ in _ids()),
    ]
    return "\n".join(parts)


def _seconds_text(evidence: Evidence) -> str:
    """Say how the seconds of the tables were measured."""
    what = (
        "In means, a run without a feasible point counts with the largest feasible value that any "
        "run found on the problem (in the paper with the largest value). The tables give "
        "processor seconds of a method per evaluation (s / eval)"
    )
    measured = evidence.measurements.seconds
    if measured is None:
        return f"{what}: the median of the runs, which were made side by side.\n"
    return (
        f"{what}: those of one run, one after the other with nothing else running, on one core of "
        f"{measured.processor} (load of the machine beforehand: at most {measured.load:.2g}).\n"
    )


def _claim_text(judgement: Judgement) -> str:
    """Write what came of one claim."""
    claim = judgement.claim
    lines = [
        f"### {claim.number}. {claim.title}: {judgement.verdict}\n",
        f"The paper ({claim.place}): {claim.says}\n",
    ]
    if judgement.why:
        lines.append(f"Cannot be told: {judgement.why}.\n")
    for part in judgement.parts:
        reason = f" Likely reason: {part.reason}." if part.holds is False and part.reason else ""
        said, evidence = _sentence(part.text), _sentence(part.evidence)
        lines.append(f"- **{_WORDS[part.holds]}**: {said} {evidence}{reason}")
    return "\n".join(lines) + ("\n" if judgement.parts else "")


def _sentence(text: str) -> str:
    """Begin with a capital letter and end with a full stop."""
    return _capital(text) + "."


def _capital(text: str) -> str:
    """Begin with a capital letter, unless it is a name."""
    return text if text.startswith(("cEI", "m = ")) else text[:1].upper() + text[1:]


def _ids() -> list[str]:
    """Name the artefacts in the order of the paper."""
    return [artefact.id for artefact in ARTEFACTS]


def _artefact_text(
    evidence: Evidence, id_: str, tables: Mapping[str, Table], figures: Collection[str]
) -> str:
    """Show one artefact."""
    artefact = next(found for found in ARTEFACTS if found.id == id_)
    have, wanted = evidence.have(artefact.pairs), needed(artefact.pairs)
    lines = [f"### Artefact {artefact.number}: {artefact.title}\n"]
    if have < wanted:
        lines.append(f"{have} of {wanted} runs.\n")
    if id_ in figures:
        lines.append(f"![{artefact.title}](figures/{id_}.png)\n")
    if id_ in tables:
        lines += [f"{tables[id_].title}.\n", tables[id_].markdown()]
    return "\n".join(lines)


def encode_claims(
    judgements: Sequence[Judgement], figures: Sequence[str], tables: Mapping[str, Table]
) -> bytes:
    """Write what the site shows, as JSON: claims, figures, tables and the paper's numbers.

    Of the tables it shows those of artefacts without a figure.
    """
    titles = {artefact.id: artefact.title for artefact in ARTEFACTS}
    data: dict[str, Any] = {
        "source": published_numbers().source,
        "summary": summary(judgements),
        "claims": [
            {
                "number": found.claim.number,
                "title": found.claim.title,
                "says": found.claim.says,
                "place": found.claim.place,
                "verdict": found.verdict,
                "why": found.why,
                "parts": [
                    {
                        "text": _capital(part.text),
                        "outcome": _WORDS[part.holds],
                        "evidence": _capital(part.evidence),
                        "reason": part.reason if part.holds is False else "",
                    }
                    for part in found.parts
                ],
            }
            for found in judgements
        ],
        "figures": [{"id": id_, "title": titles[id_]} for id_ in figures],
        "tables": [
            {"id": id_, "name": titles[id_], **tables[id_]._asdict()}
            for id_ in _ids()
            if id_ in tables and id_ not in figures
        ],
        "problems": published_numbers().problems,
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n"
