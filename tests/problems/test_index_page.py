"""The table of docs/problems/README.md lists every problem and repeats what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cbo_suite as cbo
from cbo_suite.problems import PROBLEMS
from cbo_suite.problems.base import Problem

INDEX = Path(__file__).parents[2] / "docs" / "problems" / "README.md"
ROW = re.compile(r"^\| \[(?P<id>[a-z0-9-]+)\]\((?P<page>[^)]+)\) \|(?P<cells>.*)\|$", re.MULTILINE)
ROWS = {
    match["id"]: (match["page"], [cell.strip() for cell in match["cells"].split("|")])
    for match in ROW.finditer(INDEX.read_text(encoding="utf-8"))
}
ANALYTIC = (
    "tension-string-3d-v1",
    "pressure-vessel-4d-v1",
    "welded-beam-4d-v1",
    "speed-reducer-7d-v1",
    "ackley-10d-v1",
    "keane-30d-v1",
    "toy-2d-v1",
    "rosenbrock-5d-v1",
)


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


@pytest.mark.parametrize("problem_id", ANALYTIC)
def test_the_row_has_the_best_known_value_and_the_feasible_share(problem_id: str) -> None:
    """Ten digits of the value, as many of the share as are given."""
    problem = cbo.make_problem(problem_id)
    assert isinstance(problem, Problem)
    assert problem.best_known is not None
    assert problem.feasible_fraction is not None
    best, share = (float(cell) for cell in ROWS[problem_id][1][2:])
    assert best == pytest.approx(problem.best_known.objective, rel=1e-9, abs=0.0)
    assert share == pytest.approx(problem.feasible_fraction, rel=5e-4)
