"""Readers at work in a real browser: sorting, filtering, switching views and comparing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from cbo_suite.leaderboard import iterate_folder
from cbo_suite.leaderboard.looks import PAPER_METHODS
from cbo_suite.leaderboard.number_format import whole_share
from cbo_suite.registry import list_optimizers
from cbo_suite.scoring.board import Board, ProblemBoard, RankingRow
from cbo_suite.scoring.overall import make_board
from cbo_suite.scoring.references import load_references
from cbo_suite.scoring.tracks import TRACKS, Track
from cbo_suite.site import build, write
from cbo_suite.site.texts import Library
from tests.make_records import make
from tests.site.browsing import ROOT, Visit, first_table

pytestmark = pytest.mark.slow

# The first of the small track: who is ranked, or while nobody is who is partial.
TABLE = "#small-v1 > :nth-child(1 of .scroll)"
CHART = "small-v1-chart"


def column(page: Page, name: str) -> list[float]:
    """Read a column of the table of the small track as numbers, from the top."""
    cells = page.locator(f"{TABLE} tr:not([hidden]) [data-column='{name}']")
    return [float(text) for text in cells.evaluate_all("(all) => all.map((c) => c.dataset.value)")]


def names(page: Page) -> list[str]:
    """Read the optimizers that the table shows, from the top."""
    return page.locator(f"{TABLE} tbody tr:not([hidden]) th a").all_inner_texts()


def methods(board: Board) -> list[RankingRow]:
    """Return the rows that the table shows at first: the variants are folded away."""
    return [row for row in first_table(board.tracks[0]) if not row.variant]


def of_tracks(board: Board) -> list[ProblemBoard]:
    """Return the problems that the front page is about; others have pages and no ranking."""
    ranked = {problem for track in board.tracks for family in track.families for problem in family}
    return [problem for problem in board.problems if problem.problem in ranked]


def drawings(page: Page, chart: str) -> int:
    """Count how often a chart was drawn."""
    return int(page.evaluate(f"Number(document.getElementById('{chart}').dataset.drawn)"))


def wait_for_drawing(visit: Visit, chart: str, before: int) -> None:
    """Wait until a chart was drawn once more."""
    visit.wait(f"Number(document.getElementById('{chart}').dataset.drawn) > {before}")


def test_ranking_sorts_by_mouse_and_keyboard(visit: Visit, board: Board) -> None:
    """Any column sorts both ways and says so; Enter does as the mouse."""
    page = visit.open("index.html")
    rows = methods(board)
    assert names(page) == [row.optimizer for row in rows]
    button = page.locator(TABLE).get_by_role("button", name="seconds / eval")
    button.click()
    seconds = [row.seconds_per_evaluation for row in rows]
    assert column(page, "seconds") == sorted(seconds)
    head = page.locator(f"{TABLE} thead th", has_text="seconds / eval")
    assert head.get_attribute("aria-sort") == "ascending"
    button.focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, "seconds") == sorted(seconds, reverse=True)
    assert "Sorted by seconds / eval, descending" in page.locator("#status").inner_text()
    for _ in range(4):
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    assert names(page) == sorted(row.optimizer for row in rows)


@pytest.fixture(scope="module")
def folded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Board, Path]:
    """Invent a board whose methods are ranked together with their variants, and its site."""
    references, random = load_references(), np.random.default_rng(0)
    records = []
    for problem in TRACKS[0].problems:
        best, level = references[problem].best, references[problem].level
        for name, seed in product(("scbo", "scbo-ei", "scbo-global", "cma-es", "cei"), range(10)):
            last = best + (level - best) * 10 ** random.uniform(-3, 0)
            records.append(make([level, last], problem=problem, optimizer=name, seed=seed))
    of = {row.id: row.method for row in list_optimizers()}
    board, folder = make_board(records, references, methods=of), tmp_path_factory.mktemp("folded")
    write(build(board), folder)
    return board, folder


def test_variants_stand_folded_under_their_method(
    visit_to: Callable[[Path], Visit], folded: tuple[Board, Path]
) -> None:
    """By mouse and keyboard, one method or all; sorting leaves them there, and links keep them."""
    board, folder = folded
    visit = visit_to(folder)
    page = visit.open("index.html")
    rows = first_table(board.tracks[0])
    sizes = Counter(row.method for row in rows)
    method = max((row.method for row in methods(board)), key=lambda name: sizes[name])
    own = {row.optimizer for row in rows if row.method == method}
    assert len(own) > 1
    fold = page.locator(f"{TABLE} [data-name='{method}'] .fold")
    assert fold.get_attribute("aria-expanded") == "false"
    assert " ".join(fold.inner_text().split()) == f"{len(own) - 1} variants of {method}"
    fold.focus()
    page.keyboard.press("Enter")
    assert fold.get_attribute("aria-expanded") == "true"
    variants = {row.optimizer for track in board.tracks for row in track.rows if row.variant}
    place = names(page).index(method)
    assert set(names(page)[place : place + len(own)]) == own
    assert page.url.endswith(f"#variants={method}")
    page.locator(TABLE).get_by_role("button", name="seconds / eval").click()
    place = names(page).index(method)
    assert set(names(page)[place : place + len(own)]) == own
    page.get_by_label(f"All variants ({len(variants)})").check()
    assert len(names(page)) == len(rows)
    page.get_by_label("All variants").uncheck()
    assert len(names(page)) == len(methods(board))
    page = visit.open(f"index.html#variants={method}")
    assert len(names(page)) == len(methods(board)) + len(own) - 1
    page = visit.open("optimizer/scbo.html")
    page.get_by_role("link", name="scbo-ei").click()
    assert "A variant of scbo" in page.inner_text("main")


def test_filters_of_optimizers_stand_in_the_address(visit: Visit, board: Board) -> None:
    """Kind and mark hide rows, in table and chart, and change no number; a link does the same."""
    page = visit.open("index.html")
    page.get_by_label("Kind of optimizer").select_option("direct search")
    page.get_by_label("Only verified").check()
    kind = Library({}, ROOT / "docs").kind
    all_of = {
        wanted: [row for row in methods(board) if kind(row.optimizer) == wanted]
        for wanted in ("direct search", "evolutionary", "sampling")
    }
    rows = [row.optimizer for row in all_of["direct search"] if row.verified]
    assert names(page) == rows
    assert page.url.endswith("#kind=direct+search&verified=yes")
    # Who is not among them, or whose box is not ticked, is not drawn.
    ticked = page.locator("input[data-group='small-v1']:checked").evaluate_all(
        "(all) => all.map((box) => box.value)"
    )
    drawn = len(set(ticked) & set(rows))
    visit.wait(f"document.querySelectorAll('#{CHART} .mark-line path').length === {drawn}")
    page = visit.open("index.html#kind=evolutionary&family=toy&small-v1=cma-es")
    assert set(names(page)) == {row.optimizer for row in all_of["evolutionary"]}
    assert page.get_by_label("Problem family").input_value() == "toy"
    assert page.locator(f"#{CHART} .mark-line path").count() == 1
    page.evaluate("location.hash = 'kind=sampling'")
    visit.wait("document.getElementById('family').value === ''")
    assert set(names(page)) == {row.optimizer for row in all_of["sampling"]}
    page.get_by_role("button", name="Show all").click()
    assert "#" not in page.url
    assert len(names(page)) == len(methods(board))


def test_chart_of_a_track_has_the_score_as_its_area(visit: Visit, board: Board) -> None:
    """The mean height of each line is the anytime score; the paper's methods are drawn at first."""
    page = visit.open("index.html")
    boxes = page.locator("input[data-group='small-v1']:checked")
    shown = boxes.evaluate_all("(all) => all.map((box) => box.value)")
    ranked = [row.optimizer for row in methods(board)]
    assert set(shown) == {*ranked[:3], *(name for name in ranked if name in PAPER_METHODS)}
    assert page.locator(f"#{CHART} .mark-line path").count() == len(shown)
    areas = page.evaluate(
        """() => cbo.data.tracks.slice(0, 1).flatMap((track) => track[track.draws]).map(
        ({ id, entries }) => [id, entries.filter((e) => e)
        .map(({ curve }) => curve && curve.reduce((a, b) => a + b, 0) / curve.length)])"""
    )
    scores = {row.optimizer: row.anytime for row in first_table(board.tracks[0])}
    for name, shares in areas:
        if name in ranked:
            assert 100 * np.mean(shares) == pytest.approx(scores[name], abs=1.5)


def test_filters_compute_the_ranking_of_the_chosen_problems(visit: Visit, board: Board) -> None:
    """The numbers under a filter are those of a board of these problems alone."""
    every = of_tracks(board)
    chosen = [p.problem for p in every if p.dim is not None and p.dim <= 5]
    assert 1 < len(chosen) < len(every)
    records = list(iterate_folder(ROOT / "leaderboard" / "runs"))
    track = Track("chosen-v1", "", tuple((problem,) for problem in chosen))
    expected = make_board(records, load_references(), tracks=[track]).tracks[0]
    page = visit.open("index.html")
    page.get_by_label("All variants").check()
    before = drawings(page, CHART)
    page.get_by_label("Dimension").select_option("up to 5")
    wait_for_drawing(visit, CHART, before)
    # Equal scores may stand in any order.
    rows = {row.optimizer: row for row in expected.rows}
    order = [rows[name] for name in names(page)]
    assert len(order) == len(first_table(board.tracks[0]))
    top = [row for row in order if row.optimizer in {own.optimizer for own in methods(board)}]
    assert [row.anytime for row in top] == sorted((row.anytime for row in top), reverse=True)
    assert column(page, "anytime") == pytest.approx([row.anytime for row in order])
    assert column(page, "seconds") == pytest.approx([row.seconds_per_evaluation for row in order])
    shares = [row.feasible_runs / row.runs for row in order]
    assert column(page, "feasible") == pytest.approx(shares)
    texts = page.locator(f"{TABLE} [data-column='anytime'] .spread").all_inner_texts()
    for row, text in zip(order, texts, strict=True):
        assert row.anytime_interval is not None
        ends = [float(end) for end in re.findall(r"[\d.]+", text)]
        assert ends == pytest.approx(row.anytime_interval, abs=0.0501)
    assert f"{len(chosen)} of {len(every)} problems" in page.inner_text("#status")
    page.get_by_label("Problem family").select_option("speed-reducer")
    assert page.locator("#none").is_visible()
    page.get_by_role("button", name="Show all").click()
    assert names(page) == [row.optimizer for row in methods(board)]
    assert column(page, "anytime") == [row.anytime for row in methods(board)]


def test_filter_by_family_and_batch(visit: Visit, board: Board) -> None:
    """One family leaves its own scores; a batch size that all share leaves everything."""
    page = visit.open("index.html")
    page.get_by_label("Problem family").select_option("toy")
    toy = next(problem for problem in board.problems if problem.family == "toy")
    scores = {row.optimizer: row.anytime for row in toy.rows}
    assert column(page, "anytime") == pytest.approx([scores[name] for name in names(page)])
    page.get_by_label("Problem family").select_option("")
    page.get_by_label("Batch size").select_option("1")
    every = of_tracks(board)
    single = [problem for problem in every if problem.batch_size == 1]
    assert f"{len(single)} of {len(every)}" in page.inner_text("#status")


def test_problem_page_switches_views_and_axes(visit: Visit) -> None:
    """Paper and regret, linear and log, and the choice of optimizers redraw the chart."""
    page = visit.open("problem/toy-2d-v1.html")
    titles = page.locator("#convergence .role-axis-title text")
    lines = page.locator("#convergence .mark-line path")
    assert "score above the best known value" in titles.all_text_contents()
    count = lines.count()
    assert count == page.locator("input[name='series']:checked").count()
    before = drawings(page, "convergence")
    page.get_by_label("linear").check()
    wait_for_drawing(visit, "convergence", before)
    assert "score by the paper's rule" in titles.all_text_contents()
    before = drawings(page, "convergence")
    page.get_by_label("paper", exact=True).focus()
    page.keyboard.press("ArrowRight")
    wait_for_drawing(visit, "convergence", before)
    assert page.get_by_label("regret", exact=True).is_checked()
    assert "regret" in titles.all_text_contents()
    before = drawings(page, "feasible")
    page.locator("input[name='series']").first.uncheck()
    wait_for_drawing(visit, "feasible", before)
    visit.wait(f"document.querySelectorAll('#convergence .mark-line path').length === {count - 1}")
    assert page.locator("#targets .mark-line path").count() == count - 1
    page.get_by_role("button", name="anytime").click()
    shown = page.locator("table.sortable tbody tr td:nth-child(9)").evaluate_all(
        "(cells) => cells.map((cell) => Number(cell.dataset.value))"
    )
    assert shown == sorted(shown, reverse=True)


def test_optimizer_page_tells_where_it_comes_from(visit: Visit, board: Board) -> None:
    """Its course on every problem, install, identity, versions, replayed share, and BibTeX."""
    page = visit.open("optimizer/cma-es.html")
    rows = {p.problem: row for p in board.problems for row in p.rows if row.optimizer == "cma-es"}
    assert page.locator(".multiples .chart svg").count() == len(rows)
    assert page.locator("#course-0 .mark-line path").count() == 2
    assert page.locator(".multiples .note").first.inner_text().startswith("thin: ")
    text = page.inner_text("main")
    for said in ('pip install "cbo-suite[cma]"', "@software{cbo_suite,", "@misc{hansen2016cma,"):
        assert said in text
    shown = page.locator("table.sortable tbody tr td:last-child").all_inner_texts()
    shares = [whole_share(rows[name].replayed) if rows[name].verified else "no" for name in rows]
    assert shown == [share for _, share in sorted(zip(rows, shares, strict=True))]
    assert page.locator("#made ~ div table tbody tr").count() == len(
        {row.versions.get("optimizer-source", "") for row in rows.values()}
    )


def test_problem_page_names_the_best_and_gives_files(visit: Visit, board: Board) -> None:
    """The best value of all runs with who found it, records, curves, and a chart as SVG."""
    page = visit.open("problem/rosenbrock-5d-v1.html")
    problem = next(found for found in board.problems if found.problem == "rosenbrock-5d-v1")
    best, name = min((row.best, row.optimizer) for row in problem.rows if row.best is not None)
    facts = page.locator(".facts > div", has_text="best found").inner_text()
    assert f"{best:.10g}" in facts
    assert f"by {name}" in facts
    links = page.locator("#downloads + ul a[download]").evaluate_all(
        "(all) => all.map((a) => a.href)"
    )
    assert links[0].endswith("problem/rosenbrock-5d-v1.csv")
    runs = ROOT / "leaderboard" / "runs" / "rosenbrock-5d-v1"
    paths = [(runs / f"{row.optimizer}.jsonl").resolve() for row in problem.rows]
    assert links[1:] == [path.as_uri() for path in paths]
    assert all(path.is_file() for path in paths)
    with page.expect_download() as download:
        page.get_by_role("button", name="The convergence chart").click()
    assert download.value.suggested_filename == "rosenbrock-5d-v1-convergence.svg"
    text = download.value.path().read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert text.count("mark-line") >= 5


def test_every_problem_of_the_board_has_a_picture(board: Board) -> None:
    """A drawing of the site, or a picture of the documents; those of the tracks anyway."""
    drawn = {path.stem for path in (ROOT / "cbo_suite" / "site" / "sketches").glob("*.svg")}
    shown = {path.stem for path in (ROOT / "docs" / "problems").glob("*.png")}
    problems = {problem.problem for problem in board.problems}
    for problem in problems.union(*(track.problems for track in TRACKS[:2])):
        assert problem in drawn or any(problem.startswith(name) for name in shown), problem
