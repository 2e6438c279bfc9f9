"""The results in README.md are those of the committed board and the judged claims."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.write_readme import BEGIN, END, filled, results

ROOT = Path(__file__).parents[1]


def invent(folder: Path, verdicts: list[str], ranked: list[dict[str, Any]]) -> Path:
    """Write the generated files of a leaderboard with these verdicts and rows."""
    leaderboard = folder / "leaderboard"
    (leaderboard / "paper").mkdir(parents=True)
    claims = [{"title": f"Claim {i}", "verdict": verdict} for i, verdict in enumerate(verdicts)]
    (leaderboard / "paper" / "claims.json").write_text(json.dumps({"claims": claims}))
    track = {
        "track": "small-v1",
        "title": "Few variables",
        "families": [["toy-2d-v1"]],
        "ranked": ranked,
        "partial": [],
    }
    empty = {**track, "track": "mopta08-v1", "ranked": []}
    (leaderboard / "scores.json").write_text(json.dumps({"tracks": [track, empty]}))
    return leaderboard


def row(optimizer: str, rank: int | None, method: str = "") -> dict[str, Any]:
    """One row of a track."""
    return {
        "optimizer": optimizer,
        "method": method or optimizer,
        "rank": rank,
        "anytime": 50.04,
        "anytime_interval": [48.0, 52.0],
        "feasible_runs": 29,
        "runs": 30,
    }


def test_readme_shows_the_board_as_it_is() -> None:
    """The section was written from the files that are committed with it."""
    readme = (ROOT / "README.md").read_text("utf-8")
    assert filled(readme, ROOT / "leaderboard") == readme
    for path in re.findall(r"\]\((leaderboard/[^)]+)\)", readme):
        assert (ROOT / path).exists(), path


def test_words_follow_verdicts_and_ranks(tmp_path: Path) -> None:
    """Other verdicts and rows make other words; variants and empty tracks are left out."""
    verdicts = ["reproduced", "not reproduced", "not reproduced", "cannot be told"]
    rows = [row("scbo", 1), row("scbo-ei", None, "scbo"), row("cei", 2)]
    text = results(invent(tmp_path, verdicts, rows))
    assert "1 is reproduced (Claim 0); 2 are not reproduced (Claim 1, Claim 2)." in text
    assert ". 1 cannot be told yet, because" in text
    assert "| 1 | scbo | 50.0 | 48.0 to 52.0 | 29/30 |\n| 2 | cei |" in text
    assert "scbo-ei" not in text
    assert "mopta08" not in text
    other = results(invent(tmp_path / "other", ["reproduced in part"] * 2, [row("cei", 1)]))
    assert "2 are reproduced in part" in other
    assert "cannot be told" not in other


def test_a_page_without_the_place_is_left_alone(tmp_path: Path) -> None:
    """Nothing is guessed where the comments are missing."""
    leaderboard = invent(tmp_path, ["reproduced"], [row("cei", 1)])
    with pytest.raises(SystemExit, match="to write between"):
        filled(f"# Title\n{BEGIN}\n", leaderboard)
    assert filled(f"a\n{BEGIN}\nold\n{END}\nb\n", leaderboard).startswith(
        f"a\n{BEGIN}\n\n## Results"
    )
