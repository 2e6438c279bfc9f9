"""A board of 25 close optimizers: what is drawn, written and computed is what the board says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser
from scipy.stats import ttest_1samp

from cbo_suite.records import Record
from cbo_suite.scoring.board import Board, ProblemBoard, encode_board
from cbo_suite.scoring.overall import make_board
from cbo_suite.scoring.references import load_references
from cbo_suite.scoring.tracks import Track
from cbo_suite.site import build, texts, write
from tests.make_records import make
from tests.site.browsing import ROOT, Visit

REDUCER = "speed-reducer-7d-v1"
PROBLEMS = (REDUCER, "toy-2d-v1", "rover-60d-v1", "rover-60d-alt-v1")
ENDS = """() => [...document.querySelectorAll("#convergence .mark-line path")].map(
  (path) => path.getPointAtLength(path.getTotalLength()).y)"""
LINES = """() => [...document.querySelectorAll("#convergence .mark-line path")].map((path) => {
  const style = getComputedStyle(path);
  return [style.stroke, style.strokeDasharray.match(/[\\d.]+/g).map(Number)];
})"""
SWATCHES = """() => [...document.querySelectorAll(".swatch")].map((swatch) => {
  const style = getComputedStyle(swatch);
  const ends = style.backgroundImage.match(/[\\d.]+(?=px)/g).map(Number);
  return [style.color, ends.flatMap((end, i) => (i % 2 ? [end - ends[i - 1]] : []))];
})"""
CHECK_ALL = """() => {
  const boxes = [...document.querySelectorAll("input[name='series']")];
  for (const box of boxes) box.checked = true;
  boxes[0].dispatchEvent(new Event("change"));
}"""
ROOM = """() => [...document.querySelectorAll("munderover")].flatMap((sum) => {
  const [sign, low, high] = [...sum.children].map((child) => child.getBoundingClientRect());
  const [, below, above] = [...sum.children].map((child) => getComputedStyle(child));
  return [
    low.top + parseFloat(below.paddingTop) - sign.bottom,
    sign.top - high.bottom + parseFloat(above.paddingBottom),
  ];
})"""


@pytest.fixture(scope="module")
def runs() -> list[Record]:
    """Make ten runs of 25 optimizers; on the speed reducer they end 6e-4 and more too high."""
    random = np.random.default_rng(0)
    references = load_references()
    records = []
    for problem in PROBLEMS:
        best, level = references[problem].best, references[problem].level
        for i in range(25):
            for seed in range(10):
                if problem == REDUCER:
                    last = best + 5.7e-4 * 1.6**i * random.uniform(0.9, 1.1)
                else:
                    last = best + (level - best) * 10 ** random.uniform(-3, 0)
                values: list[float | None] = [level, (level + last) / 2, last]
                name = f"solver-{i:02d}"
                records.append(make(values, problem=problem, optimizer=name, seed=seed))
    return records


@pytest.fixture(scope="module")
def crowd(runs: list[Record]) -> Board:
    """Score them."""
    track = Track("crowd-v1", "close", ((REDUCER,), ("toy-2d-v1",), PROBLEMS[2:]))
    return make_board(runs, load_references(), tracks=[track])


@pytest.fixture(scope="module")
def folder(crowd: Board, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build its site."""
    folder = tmp_path_factory.mktemp("crowd")
    write(build(crowd), folder)
    return folder


@pytest.fixture
def visit(browser: Browser, folder: Path) -> Iterator[Visit]:
    """Visit it; nothing may have gone wrong at the end."""
    visit = Visit(browser, folder)
    yield visit
    visit.context.close()
    assert visit.faults == []


def problem_of(board: Board, id_: str) -> ProblemBoard:
    """Return the board of one problem."""
    return next(problem for problem in board.problems if problem.problem == id_)


def spreads(visit: Visit, table: str, cells: str) -> dict[str, list[float]]:
    """Read the intervals in a column of a table, by the name of the row."""
    wanted = visit.page.locator(f"{cells} .spread")
    rows = visit.page.locator(f"{table} tbody tr", has=wanted).all()
    return {
        row.locator("th a").inner_text(): [
            float(end)
            for end in re.findall(r"-?[\d.]+", row.locator(f"{cells} .spread").inner_text())
        ]
        for row in rows
    }


@pytest.mark.slow
def test_log_axis_shows_the_distance_to_the_best_known_value(visit: Visit, crowd: Board) -> None:
    """The first three are drawn, each where its mean minus the best known value is."""
    visit.open(f"problem/{REDUCER}.html")
    ends = visit.page.evaluate(ENDS)
    problem = problem_of(crowd, REDUCER)
    assert problem.best is not None
    distances = [row.paper_mean - problem.best for row in problem.rows[:3] if row.paper_mean]
    assert distances[0] < 1e-3
    assert len(ends) == len(distances) == 3
    # Height is linear in the logarithm; half a pixel is less than a hundredth of the distance.
    slope, height = np.polyfit(np.log10(distances[::2]), ends[::2], 1)
    assert slope < -20
    assert ends == pytest.approx(slope * np.log10(distances) + height, abs=0.5)


@pytest.mark.slow
def test_legend_shows_lines_as_they_are_drawn(visit: Visit) -> None:
    """All 25 at once, no two alike."""
    page = visit.open(f"problem/{REDUCER}.html")
    before = int(page.locator("#convergence").get_attribute("data-drawn") or 0)
    page.evaluate(CHECK_ALL)
    visit.wait(f"Number(document.getElementById('convergence').dataset.drawn) > {before}")
    lines = page.evaluate(LINES)
    assert len(lines) == len({str(line) for line in lines}) == 25
    assert page.evaluate(SWATCHES) == lines


@pytest.mark.slow
def test_compare_page_never_compares_one_with_itself(visit: Visit, crowd: Board) -> None:
    """A link that names one picks another; who picks the same twice is told so."""
    first, second, *_ = [row.optimizer for row in crowd.overall]
    for name, pair in (
        (f"a={second}", (second, first)),
        (f"b={first}", (second, first)),
        (f"a={first}", (first, second)),
    ):
        page = visit.open(f"compare.html#{name}")
        found = tuple(
            page.get_by_label(label, exact=True).input_value() for label in ("First", "Second")
        )
        assert found == pair
        assert f"{pair[0]} is ahead of {pair[1]} on" in page.inner_text("#status")
    page.get_by_label("Second", exact=True).select_option(first)
    assert page.inner_text("#status") == "Choose two different optimizers."
    assert not page.locator("#result").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [("toy-2d-v1",), PROBLEMS[2:]])
def test_filtered_ranking_is_that_of_a_track(
    visit: Visit, runs: list[Record], chosen: tuple[str, ...]
) -> None:
    """Scores, ranks and the intervals of both are those of a track of the chosen problems alone."""
    track = Track("chosen-v1", "", (chosen,))
    expected = make_board(runs, load_references(), tracks=[track]).tracks[0].ranked
    page = visit.open("index.html")
    page.get_by_label("Problem family").select_option(chosen[0].split("-")[0])
    read = "(rows) => rows.map((row) => [0, 2, 1, 4].map((i) => row.cells[i].textContent))"
    found = page.locator("#crowd-v1-ranked tbody tr").evaluate_all(read)
    rows = {row.optimizer: row for row in expected}
    # Equal scores may stand in any order.
    order = [rows.pop(cells[2].split()[0]) for cells in found]
    assert rows == {}
    for shown, row in zip(found, order, strict=True):
        assert row.rank_interval is not None
        assert row.anytime_interval is not None
        low, high = row.anytime_interval
        assert shown[:2] == [
            f"{row.rank} [{row.rank_interval[0]}, {row.rank_interval[1]}]",
            f"{row.anytime:.1f} [{low:.1f}, {high:.1f}]",
        ]
        assert float(shown[3]) == pytest.approx(row.mean_rank, abs=0.0051)
    circles = page.locator("#crowd-v1-ranked circle")
    drawn = circles.evaluate_all("(all) => all.map((dot) => Number(dot.getAttribute('cx')))")
    assert drawn == pytest.approx([row.anytime for row in expected], abs=1e-4)
    assert not page.locator("#overall").is_visible()


@pytest.mark.slow
def test_ranks_keep_to_their_rows(visit: Visit, crowd: Board) -> None:
    """They are the board's with their intervals, however a table is sorted."""
    page = visit.open("index.html")
    read = "(all) => all.map((cell) => cell.textContent)"
    for table in ("overall", "crowd-v1"):
        shown = page.locator(f"#{table}-ranked [data-column='place']").evaluate_all(read)
        assert shown == [
            f"{row.rank} [{row.rank_interval[0]}, {row.rank_interval[1]}]"
            for row in crowd.overall
            if row.rank_interval
        ]
    page.locator("#crowd-v1-ranked").get_by_role("button", name="optimizer").click()
    ranks = {row.optimizer: row.rank for row in crowd.overall}
    places = page.locator("#crowd-v1-ranked [data-column='place']")
    values = places.evaluate_all("(all) => all.map((cell) => Number(cell.dataset.value))")
    assert values == [ranks[name] for name in sorted(ranks)]


@pytest.mark.slow
def test_intervals_of_differences_are_students(visit: Visit, crowd: Board) -> None:
    """With ten seeds 2.26 standard errors, not 1.96."""
    pair = [row.optimizer for row in crowd.overall[:2]]
    visit.open(f"compare.html#a={pair[0]}&b={pair[1]}")
    found = spreads(visit, "#pairs", "td")
    assert set(found) == set(PROBLEMS)
    for id_, ends in found.items():
        scores = {row.optimizer: row.outcomes.anytime for row in problem_of(crowd, id_).rows}
        one, other = (np.array(scores[name], dtype=float) for name in pair)
        student = ttest_1samp(one - other, 0).confidence_interval(0.95)
        assert ends == pytest.approx([student.low, student.high], abs=0.0501)


@pytest.mark.slow
def test_limits_keep_clear_of_their_sum(visit: Visit) -> None:
    """Below and above, in every formula."""
    page = visit.open("scoring.html")
    assert len(rooms := page.evaluate(ROOM)) == 4
    assert min(rooms) >= 3


def test_intervals_contain_their_regret(folder: Path) -> None:
    """Also where a regret is tiny."""
    html = (folder / "problem" / f"{REDUCER}.html").read_text(encoding="utf-8")
    number = r"([\d.e-]+)"
    found = re.findall(rf'>{number} <span class="spread">\[{number}, {number}\]</span></td>', html)
    tiny = [list(map(float, texts)) for texts in found if float(texts[0]) < 1e-3]
    assert len(tiny) >= 5
    assert all(0 < low < value < high for value, low, high in tiny)


def test_every_page_leads_to_the_project_and_its_data(crowd: Board, folder: Path) -> None:
    """To the address that the project states; the data are part of the site."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project["urls"]["Source"]
    for path in folder.rglob("*.html"):
        foot = path.read_text(encoding="utf-8").partition("<footer")[2]
        links = dict((name, to) for to, name in re.findall(r'<a href="([^"]+)">([^<]+)</a>', foot))
        assert links["Code"] == source
        for name, file in (
            ("Submit results", "blob/main/CONTRIBUTING.md"),
            ("Cite", "blob/main/CITATION.cff"),
            ("Records", "tree/main/leaderboard/runs"),
        ):
            assert links[name] == f"{source}/{file}"
            assert (ROOT / file.split("/", maxsplit=2)[2]).exists()
        assert (path.parent / links["Data"]).resolve() == folder / "data.html"
    assert (folder / "scores.json").read_bytes() == encode_board(crowd)
    assert "arxiv.org/abs/2002.08526" in (folder / "scoring.html").read_text(encoding="utf-8")


def test_site_of_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its data and no links that lead nowhere."""

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(texts, "metadata", missing)
    page = build(make_board([make([1.0])], {}))["index.html"].decode()
    foot = page.partition("<footer")[2]
    assert re.findall(r'href="([^"]*)"', foot) == ["data.html", "assets/vega-licences.txt"]
