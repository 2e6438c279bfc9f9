"""The comparison of two optimizers in a real browser: its tests are those of the package."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from cbo_suite.leaderboard.number_format import number
from cbo_suite.protocols import Array
from cbo_suite.scoring.board import Board, ProblemBoard
from cbo_suite.scoring.runs import outcome_ranks
from cbo_suite.scoring.statistics import holm, paired_wilcoxon, probability_of_superiority
from tests.site.browsing import Visit
from tests.site.test_use import drawings, wait_for_drawing

pytestmark = pytest.mark.slow


def pair_statistics(problem: ProblemBoard, pair: Sequence[str]) -> tuple[float, float] | None:
    """Test two optimizers on a problem in Python: p-value and A12; None if one was not run."""
    rows = [row for name in pair for row in problem.rows if row.optimizer == name]
    if len(rows) < 2:
        return None
    ends = [
        dict(
            zip(
                row.outcomes.seed,
                zip(row.outcomes.final, row.outcomes.violation, strict=True),
                strict=True,
            )
        )
        for row in rows
    ]
    seeds = sorted(set(ends[0]) & set(ends[1]))
    table = np.array([[side[seed] for seed in seeds] for side in ends], dtype=float)
    mine, theirs = outcome_ranks(table[:, :, 0], table[:, :, 1])
    return paired_wilcoxon(mine, theirs), probability_of_superiority(mine, theirs)


def test_compare_page_tests_any_pair(visit: Visit, board: Board) -> None:
    """The page's p-values, A12 and Holm's adjustment are those of the package."""
    page = visit.open("compare.html#a=scbo&b=random-search")
    assert page.get_by_label("First", exact=True).input_value() == "scbo"
    for pair in (("scbo", "random-search"), ("cma-es", "sobol-search")):
        before = drawings(page, "differences")
        page.get_by_label("First", exact=True).select_option(pair[0])
        page.get_by_label("Second", exact=True).select_option(pair[1])
        wait_for_drawing(visit, "differences", before)
        found = [pair_statistics(problem, pair) for problem in board.problems]
        expected = [statistics for statistics in found if statistics is not None]
        cells = page.locator("#pairs tbody tr").evaluate_all(
            "(rows) => rows.map((row) => [5, 4, 6].map((i) => Number(row.cells[i].dataset.value)))"
        )
        p_values, superiorities, adjusted = np.array(cells).T
        assert p_values == pytest.approx([p for p, _ in expected], rel=1e-9)
        assert superiorities == pytest.approx([a for _, a in expected], rel=1e-12)
        assert adjusted == pytest.approx(holm([p for p, _ in expected]), rel=1e-9)
        assert page.url.endswith(f"#a={pair[0]}&b={pair[1]}")
    page.get_by_role("button", name="Swap").click()
    assert page.get_by_label("First", exact=True).input_value() == "sobol-search"
    assert "sobol-search is ahead of cma-es" in page.inner_text("#status")


def test_wilcoxon_in_the_browser_is_the_packages(visit: Visit) -> None:
    """200 random cases, small and large, with and without ties and zeros.

    That of the package is tested against SciPy.
    """
    page = visit.open("compare.html")
    rng = np.random.default_rng(0)
    cases = []
    for i in range(200):
        size = int(rng.integers(1, 9) if i % 4 == 0 else rng.integers(14, 70))
        values = rng.normal(loc=rng.normal(), size=size)
        cases.append((np.rint(4 * values) / 4 if i % 2 else values).tolist())
    cases = [case for case in cases if any(case)]
    found = page.evaluate("(cases) => cases.map((case_) => cbo.statistics.wilcoxon(case_))", cases)
    expected = [paired_wilcoxon(np.array(case), np.zeros(len(case))) for case in cases]
    assert np.max(np.abs(np.array(found) - expected)) < 1e-12
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert page.evaluate("cbo.statistics.wilcoxon([0, 0, 0])") == 1


def test_numbers_in_the_browser_are_the_builders(visit: Visit) -> None:
    """Both write the same number the same way."""
    page = visit.open("compare.html")
    rng = np.random.default_rng(1)
    values = [*(10.0 ** rng.uniform(-8, 9, 300) * rng.choice([-1, 1], 300)), 0.0, 1e-3, 999999.4]
    found = page.evaluate("(values) => values.map((value) => cbo.format(value))", values)
    assert found == [number(value) for value in values]


def paired(problem: ProblemBoard, pair: Sequence[str]) -> tuple[Array, float] | None:
    """Return the scores of two optimizers on common seeds, and wins less losses of the first."""
    rows = [row.outcomes for name in pair for row in problem.rows if row.optimizer == name]
    if len(rows) < len(pair):
        return None
    seeds = sorted(set(rows[0].seed) & set(rows[1].seed))

    def column(field: str) -> Array:
        values = [dict(zip(row.seed, getattr(row, field), strict=True)) for row in rows]
        return np.array([[own[seed] for seed in seeds] for own in values], dtype=float)

    one, other = outcome_ranks(column("final"), column("violation"))
    return column("anytime").mean(axis=1), float(np.sign(other - one).sum())


@pytest.mark.parametrize("pair", [("scbo", "cei"), ("scbo", "random-search")])
def test_comparison_says_by_what_somebody_is_ahead(
    visit: Visit, board: Board, pair: tuple[str, str]
) -> None:
    """By score and by wins, the problems where these disagree, and a line for each track."""
    page = visit.open(f"compare.html#a={pair[0]}&b={pair[1]}")
    both = {problem.problem: paired(problem, pair) for problem in board.problems}
    found = {name: result for name, result in both.items() if result}
    split = [name for name, (score, wins) in found.items() if (score[0] - score[1]) * wins < 0]
    why = page.inner_text("#why")
    same = "Score and wins name the same optimizer on every problem"
    assert (same in why) == (not split)
    assert re.findall(r"([\w-]+-v1) \(", why) == split
    marked = page.locator("#pairs tr", has=page.locator(".badge")).locator("a").all_inner_texts()
    assert marked == split
    ahead = sum(score[0] > score[1] for score, _ in found.values())
    said = f"By anytime score {pair[0]} is ahead of {pair[1]} on {ahead} of {len(found)}"
    assert said in page.inner_text("#status")
    # Each family of this track is one problem.
    small = [found[name] for name in board.tracks[0].problems if name in found]
    cells = page.locator("#summary tbody tr").all_inner_texts()[0].split("\t")
    assert cells[:2] == ["small-v1", f"{len(small)} of 7"]
    means = np.mean([score for score, _ in small], axis=0)
    assert [float(cell) for cell in cells[2:4]] == pytest.approx(means, abs=0.0501)
    signs = [np.sign(score[0] - score[1]) for score, _ in small]
    assert cells[6] == " / ".join(str(signs.count(sign)) for sign in (1, 0, -1))
