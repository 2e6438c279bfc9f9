"""The page of problems: all that are known, with and without records, and the suites' curves."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from cbo_suite.cli.leaderboard import site_facts
from cbo_suite.problems import PROBLEMS
from cbo_suite.scoring import make_board
from cbo_suite.scoring.board import Board
from cbo_suite.scoring.references import load_references
from cbo_suite.site import build
from cbo_suite.site.catalogue import Listed, suite_charts, table
from cbo_suite.site.texts import Library
from tests.make_records import make, make_reference
from tests.site.browsing import ROOT

SUITE = {"pair": ("two problems", ["one-1d-v1", "two-1d-v1", "three-1d-v1"])}


def some_board() -> Board:
    """Make a board of two problems, of which one optimizer was run on both."""
    records = [
        make([9.0, 1.0], problem="one-1d-v1", optimizer="a"),
        make([9.0, 2.0], problem="two-1d-v1", optimizer="a"),
        make([9.0, 3.0], problem="two-1d-v1", optimizer="b"),
    ]
    references = dict.fromkeys(["one-1d-v1", "two-1d-v1"], make_reference(budget=2, n_init=0))
    return make_board(records, references)


def data_of(page: bytes) -> Any:
    """Read the data of a page."""
    found = re.search(rb'<script type="application/json" id="data">(.*?)</script>', page)
    assert found
    return msgspec.json.decode(found[1])


def test_every_problem_of_the_suite_is_listed(board: Board) -> None:
    """Once each, with a page; those without records say so, and a family has no page."""
    pages = build(board, **site_facts(board))
    html = pages["problems.html"].decode()
    heads = re.findall(
        r'<th scope="row" class="stuck(?: family)?" data-value="(.*?)">(.*?)</th>', html
    )
    names = [name for name, _ in heads]
    assert names == sorted(names)
    assert set(names) == {*PROBLEMS, "bbob-constrained-f&lt;k&gt;-&lt;d&gt;d-i&lt;j&gt;-v1"}
    recorded = {problem.problem for problem in board.problems}
    assert {name for name, cell in heads if "<a href" in cell} == set(PROBLEMS)
    for name in PROBLEMS:
        page = pages[f"problem/{name}.html"].decode()
        assert ("Nobody has published runs" in page) == (name not in recorded)
    assert html.count(">no records</td>") == len(names) - len(recorded)
    assert "2 to 40" in html
    assert f"{load_references()['g09-7d-v1'].best:.4g}"[:4] in html


def test_rows_of_the_board_come_before_what_is_known() -> None:
    """A problem with records has the numbers of its records; without any title it has none."""
    known = [Listed("one-1d-v1", "other", 9, 9), Listed("zero-1d-v1", "zero", 1, 0, 100, 1, None)]
    rows = table(some_board(), {"one-1d-v1": "one"}, known)
    assert [row.listed.id for row in rows] == ["one-1d-v1", "two-1d-v1", "zero-1d-v1"]
    assert rows[0].listed[1:4] == ("one", 1, 1)
    assert rows[1].listed.title == ""
    assert rows[2].board is None


def test_a_suite_has_one_curve_for_all_its_problems() -> None:
    """Only of who was run on all that count; a suite of the same problems is not shown twice."""
    again = {"again": ("the same", ["two-1d-v1", "one-1d-v1"]), "none": ("no", ["two-1d-v1"])}
    (chart,) = suite_charts(some_board(), SUITE | again)
    assert (chart.id, chart.problems, chart.size, chart.partial) == ("pair", 2, 3, ["b"])
    ((name, share),) = chart.rows
    assert name == "a"
    assert share == sorted(share)
    page = build(some_board(), suites=SUITE)["problems.html"]
    assert b"2 of 3 problems have records" in page
    assert b"Not run on all of these: b." in page
    (drawn,) = data_of(page)
    assert len(drawn["evaluations"]) == len(drawn["rows"][0]["reached"])


def test_without_suites_there_is_no_chart() -> None:
    """And nothing for the script to draw."""
    page = build(some_board())["problems.html"]
    assert b"Suites" not in page
    assert data_of(page) == []


def test_problems_of_a_family_have_the_page_of_the_family() -> None:
    """As the table of the documents says, or by the name of the family."""
    library = Library({}, ROOT / "docs")
    assert "CEC 2006" in library.problem("g19-15d-v1", "g19")
    assert "coco" in library.problem("bbob-constrained-f1-10d-i1-v1", "bbob-constrained")
    assert library.problem("nobody-1d-v1", "nobody") == ""
