"""The table of docs/problems/README.md lists every problem and repeats what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cbo_suite as cbo
from cbo_suite.errors import MissingExecutable, MissingExtra
from cbo_suite.problems import PROBLEMS
from cbo_suite.scoring.references import load_references

INDEX = Path(__file__).parents[2] / "docs" / "problems" / "README.md"
ROW = re.compile(r"^\| \[(?P<id>[a-z0-9-]+)\]\((?P<page>[^)]+)\) \|(?P<cells>.*)\|$", re.MULTILINE)
ROWS = {
    match["id"]: (match["page"], [cell.strip() for cell in match["cells"].split("|")])
    for match in ROW.finditer(INDEX.read_text(encoding="utf-8"))
}


def test_every_problem_has_a_row_and_every_row_a_problem() -> None:
    """A missing row and an orphaned row both fail."""
    assert set(ROWS) == set(PROBLEMS)


@pytest.mark.parametrize("problem_id", ROWS)
def test_the_row_leads_to_a_page_of_that_problem(problem_id: str) -> None:
    """The page exists and names the id; dimension and number of constraints are right."""
    page, cells = ROWS[problem_id]
    assert f"`{problem_id}`" in (INDEX.parent / page).read_text(encoding="utf-8")
    assert cells[:2] == [
        str(PROBLEMS[problem_id].dim),
        str(PROBLEMS[problem_id].num_constraints),
    ]


@pytest.mark.parametrize("problem_id", ROWS)
def test_the_row_has_the_best_known_value_and_the_feasible_share(problem_id: str) -> None:
    """Ten digits of the value, as many of the share as are given; words where it is not known."""
    best, share = ROWS[problem_id][1][2:]
    reference = load_references()[problem_id].best
    assert float(best) == pytest.approx(reference, rel=1e-9, abs=0.0)
    try:
        known = getattr(cbo.make_problem(problem_id), "feasible_fraction", None)
    except (MissingExecutable, MissingExtra):
        known = None
    if known is None:
        assert not re.match(r"[0-9]", share)
    else:
        # To half a unit of the last digit that stands there.
        digits = len(share.partition("e")[0].replace(".", "").lstrip("0"))
        assert float(share) == pytest.approx(known, rel=0.5 * 10.0 ** (1 - digits))
