"""Write the results into README.md, from the board and the judged claims of the paper.

Run from the root of the repository after `cbo leaderboard build` and `cbo paper build`:

    python -m tests.write_readme

It replaces what stands between the two comments that begin and end the results.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from cbo_suite.paper.report import VERDICTS

README, LEADERBOARD = Path("README.md"), Path("leaderboard")
BEGIN = "<!-- results: written by `python -m tests.write_readme` -->"
END = "<!-- end of the results -->"
FIGURE = "paper/figures/synthetic.png"
*TOLD, OPEN = VERDICTS
SHOWN = 8  # rows of a track


def results(leaderboard: Path) -> str:
    """Return the section of results, from the generated files of a leaderboard."""
    board = msgspec.json.decode((leaderboard / "scores.json").read_bytes())
    claims = msgspec.json.decode((leaderboard / "paper" / "claims.json").read_bytes())["claims"]
    figure = f"{leaderboard.name}/{FIGURE}"
    parts = [
        "## Results",
        _judged(claims, leaderboard.name),
        f"[![Mean best value and standard error against evaluations]({figure})]({figure})",
        *(_track(track) for track in board["tracks"] if track["ranked"] or track["partial"]),
        f"Everything else is on the [leaderboard]({leaderboard.name}/README.md).",
    ]
    return "\n\n".join(parts)


def _judged(claims: list[dict[str, Any]], folder: str) -> str:
    """Two sentences: what was reproduced of the paper, and what was not."""
    told = []
    for verdict in TOLD:
        titles = [claim["title"] for claim in claims if claim["verdict"] == verdict]
        if titles:
            verb = "are" if len(titles) > 1 else "is"
            told.append(f"{len(titles)} {verb} {verdict} ({', '.join(titles)})")
    missing = sum(claim["verdict"] == OPEN for claim in claims)
    first = f"Of the {len(claims)} claims of the SCBO paper " + "; ".join(told) + "."
    second = (
        f"{missing} cannot be told yet, because runs or an executable are missing; "
        if missing
        else "Each has its evidence, its test and a likely reason where it fails; "
    )
    return f"{first} {second}[the report]({folder}/paper/report.md) judges them one by one."


def _track(track: dict[str, Any]) -> str:
    """Who is ahead in a track, methods only."""
    ranked = [row for row in track["ranked"] if row["optimizer"] == row["method"]]
    lines = [f"**{track['track']}**: {track['title'][0].lower()}{track['title'][1:]}."]
    if not ranked:
        problems = sum(map(len, track["families"]))
        return f"{lines[0]} Nobody is ranked yet; it takes ten seeds on all {problems} problems."
    lines += ["", "| rank | method | anytime | 95 % | feasible runs |", "|---|---|---|---|---|"]
    for row in ranked[:SHOWN]:
        low, high = row["anytime_interval"]
        score = f"{row['anytime']:.1f} | {low:.1f} to {high:.1f}"
        feasible = f"{row['feasible_runs']}/{row['runs']}"
        lines.append(f"| {row['rank']} | {row['optimizer']} | {score} | {feasible} |")
    return "\n".join(lines)


def filled(text: str, leaderboard: Path) -> str:
    """Return the text of a README with the results in their place.

    Raises:
        SystemExit: It has no such place.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md has no lines {BEGIN!r} and {END!r} to write between")
    return f"{before}{BEGIN}\n\n{results(leaderboard)}\n\n{END}{after}"


def main() -> None:
    """Write the section."""
    text = README.read_text("utf-8")
    README.write_text(filled(text, LEADERBOARD), "utf-8")
    sys.stdout.write("wrote the results into README.md\n")


if __name__ == "__main__":
    main()
