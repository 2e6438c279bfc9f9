"""What a reader sees: axes, empty states, and tables, charts and formulas on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from cbo_suite.scoring.board import Board
from cbo_suite.scoring.overall import make_board
from cbo_suite.scoring.tracks import Track
from cbo_suite.site import build, write
from tests.make_records import make, make_reference
from tests.site.browsing import Visit

VESSEL = "pressure-vessel-4d-v1"
# One after the other, faster than charts are drawn.
UNCHECK_ALL = """() => {
  for (const box of document.querySelectorAll("input[name='series']:checked")) box.click();
}"""
# Points of the stuck head, while the table is scrolled, where something else lies on top of it.
SHINING_THROUGH = """() => {
  const box = document.querySelector(".scroll");
  const head = box.querySelector("th.stuck");
  head.scrollIntoView({ behavior: "instant", block: "center" });
  let found = 0;
  const end = Math.min(300, box.scrollWidth - box.clientWidth);
  for (let left = 0; left <= end; left += 7) {
    box.scrollLeft = left;
    const area = head.getBoundingClientRect();
    for (let x = Math.max(area.left, 20); x < area.right - 2; x += 3) {
      for (let y = area.top + 2; y < area.bottom - 2; y += 3) {
        if (!head.contains(document.elementFromPoint(x, y))) found += 1;
      }
    }
  }
  return [box.scrollLeft, found];
}"""
ROOM_OF_NUMBERS = """() => {
  const box = document.querySelector(".scroll").getBoundingClientRect();
  const [name, number] = ["th.stuck", "th.stuck + .number"].map(
    (cell) => document.querySelector(`.scroll tbody ${cell}`).getBoundingClientRect());
  return [name.width / box.width, number.right <= box.right];
}"""
SHOWN_LABELS = """(chart) => [...document.querySelectorAll(`#${chart} .role-axis-label text`)]
  .filter((text) => text.getAttribute("opacity") !== "0").map((text) => text.textContent)"""
CUT_FORMULAS = """() => [...document.querySelectorAll("math, .formula")]
  .filter((formula) => formula.scrollWidth > formula.clientWidth).length"""


def wait_for(visit: Visit, chart: str, before: int) -> None:
    """Wait until a chart was drawn more often than before."""
    visit.wait(f"Number(document.getElementById('{chart}').dataset.drawn) > {before}")


def drawn(page: Page, chart: str) -> int:
    """Count how often a chart was drawn."""
    return int(page.locator(f"#{chart}").get_attribute("data-drawn") or 0)


def vertical_labels(page: Page) -> list[str]:
    """Read the labels of the vertical axis of the convergence chart, from below."""
    axes = page.locator("#convergence .role-axis-label").all()
    texts = [axis.locator("text").all_text_contents() for axis in axes]
    return next(labels for labels in texts if "20" not in labels)


@pytest.mark.slow
def test_log_axis_has_powers_of_ten_and_a_line_for_each(visit: Visit) -> None:
    """No label such as 0.000001, and no lines between the powers."""
    page = visit.open("problem/toy-2d-v1.html")
    labels = vertical_labels(page)
    assert len(labels) >= 6
    superscripts = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    plain = {"1": 0, "10": 1}
    exponents = [
        plain[text] if text in plain else int(text.removeprefix("10").translate(superscripts))
        for text in labels
    ]
    assert exponents == list(range(exponents[0], exponents[0] + len(labels)))
    lines = page.locator("#convergence .role-axis-grid line")
    assert lines.count() == len(labels)


@pytest.mark.slow
def test_log_axes_fit_their_values(visit: Visit) -> None:
    """Without empty decades; between few powers of ten their double and fivefold have lines too."""
    page = visit.open("compare.html")
    made = page.evaluate(
        """(ranges) => ranges.map((ends) => cbo.charts.decades(ends.map((y) => ({ y }))))""",
        [[12, 110], [3e-5, 0.2], [0.61, 0.63], [5, 5], [1.9e-7, 8.3e-7]],
    )
    expected: list[list[float]] = [
        [20, 50, 100],
        [1e-4, 1e-3, 1e-2, 1e-1],
        [0.1, 1],
        [1, 10],
        [5e-7],
    ]
    for axis, ticks in zip(made, expected, strict=True):
        assert set(ticks) <= set(axis["axis"]["values"])
        low, high = axis["scale"]["domain"]
        assert low <= min(ticks) <= max(ticks) <= high
    assert made[0]["axis"]["labelExpr"].startswith('["20","50","100"]')
    assert 10 < made[0]["scale"]["domain"][0] < made[0]["scale"]["domain"][1] < 130
    assert made[1]["axis"]["labelExpr"].startswith('["10⁻⁴","10⁻³","10⁻²","10⁻¹"]')
    assert "5·10⁻⁷" in made[4]["axis"]["labelExpr"]


@pytest.mark.slow
def test_axes_of_shares_fit_their_values(visit: Visit) -> None:
    """From nothing to a quarter, a half or the whole: low curves would lie on the axis else."""
    page = visit.open(f"problem/{VESSEL}.html")
    tops = page.evaluate(
        "() => [0, 0.25, 0.26, 0.5, 0.51, 1, 1.0000001].map((y) =>"
        " cbo.charts.shares([{ y: 0.1 }, { y }]).scale.domain)"
    )
    assert tops == [[0, top] for top in (0.25, 0.25, 0.5, 0.5, 1, 1, 1)]
    labels = page.locator("#feasible .role-axis-label text").all_text_contents()
    assert {"0%", "100%"} <= set(labels)


@pytest.mark.slow
def test_linear_axis_shows_what_follows_the_initial_design(visit: Visit, board: Board) -> None:
    """Its points are so bad that all curves would lie on the axis."""
    page = visit.open(f"problem/{VESSEL}.html")
    before = drawn(page, "convergence")
    page.get_by_label("linear").check()
    wait_for(visit, "convergence", before)
    problem = next(problem for problem in board.problems if problem.problem == VESSEL)
    shown = page.locator("input[name='series']:checked").evaluate_all(
        "(boxes) => boxes.map((box) => box.value)"
    )
    means = [row.curves.paper_mean for row in problem.rows if row.optimizer in shown]
    later = [i for i, t in enumerate(problem.evaluations) if t >= 2 * problem.n_init]
    reached = max(mean[i] or 0 for mean in means for i in later)
    top = max(float(label.replace(",", "")) for label in vertical_labels(page))
    assert reached < top < 2 * reached
    assert top < min(mean[0] or 0 for mean in means) / 4


@pytest.mark.slow
def test_a_problem_page_without_optimizers_says_so(visit: Visit) -> None:
    """Instead of an empty frame; choosing one draws it."""
    page = visit.open(f"problem/{VESSEL}.html")
    before = drawn(page, "feasible")
    page.evaluate(UNCHECK_ALL)
    wait_for(visit, "feasible", before)
    for chart in ("convergence", "targets", "feasible"):
        container = page.locator(f"#{chart}")
        assert "No optimizer is chosen" in container.inner_text()
        assert container.locator("svg").count() == 0
        assert container.get_attribute("role") == "note"
    assert not page.locator("#convergence + figcaption").is_visible()
    before = drawn(page, "convergence")
    page.locator("input[name='series']").first.check()
    wait_for(visit, "convergence", before)
    assert page.locator("#convergence .mark-line path").count() == 1
    assert page.locator("#convergence").get_attribute("role") == "img"


@pytest.mark.slow
def test_filters_that_leave_nothing_leave_no_chart(visit: Visit) -> None:
    """Only the sentence that says so."""
    page = visit.open("index.html")
    page.get_by_label("Dimension").select_option("up to 5")
    page.get_by_label("Problem family").select_option("speed-reducer")
    assert page.locator("#none").is_visible()
    for gone in ("#small-v1 .ranking", "#small-v1-chart"):
        assert page.locator(gone).count() > 0
        assert not any(found.is_visible() for found in page.locator(gone).all())
    page.get_by_role("button", name="Show all").click()
    assert page.locator("#small-v1-chart").is_visible()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site of four optimizers on ten problems; two of them do the same."""
    values: dict[str, list[float | None]] = {
        "best": [3.0, 0.6],
        "copy": [3.0, 2.0],
        "echo": [3.0, 2.0],
        "last": [3.0, 2.5],
    }
    problems = ["toy-2d-v1", *(f"some-{i}d-v1" for i in range(9))]
    records = [
        make(run, optimizer=name, problem=problem, seed=seed)
        for name, run in values.items()
        for problem in problems
        for seed in range(10)
    ]
    references = dict.fromkeys(problems, make_reference(budget=2, n_init=0))
    track = Track("ten-v1", "ten problems", tuple((problem,) for problem in problems))
    folder = tmp_path_factory.mktemp("small")
    write(build(make_board(records, references, tracks=[track])), folder)
    return folder


@pytest.mark.slow
def test_ranks_are_drawn_from_the_first_to_the_last(
    small: Path, visit_to: Callable[..., Visit]
) -> None:
    """No rank is below one, however large the critical difference."""
    visit = visit_to(small)
    visit.open("index.html")
    labels = visit.page.evaluate(SHOWN_LABELS, "difference-chart")
    numbers = [float(label) for label in labels if re.fullmatch(r"\S?[\d.]+", label)]
    assert min(numbers) == 1
    assert max(numbers) == 4


@pytest.mark.slow
def test_comparing_what_is_identical_says_so(small: Path, visit_to: Callable[..., Visit]) -> None:
    """An axis of zeros would say nothing."""
    visit = visit_to(small)
    page = visit.open("compare.html#a=copy&b=echo")
    assert "There is no difference" in page.inner_text("#differences")
    before = drawn(page, "differences")
    page.get_by_label("Second", exact=True).select_option("best")
    wait_for(visit, "differences", before)
    assert page.locator("#differences svg").count() == 1


def test_problem_pages_name_optimizers_with_identical_results(small: Path) -> None:
    """Their lines cover each other."""
    html = (small / "problem" / "toy-2d-v1.html").read_text(encoding="utf-8")
    assert re.findall(r">([^<>]*) have identical results", html) == ["copy and echo"]


@pytest.mark.slow
def test_a_problem_that_nobody_solves_says_so(
    tmp_path: Path, visit_to: Callable[..., Visit]
) -> None:
    """There is no curve to draw; the share of feasible runs, zero, is drawn."""
    records = [make([None, None], problem="toy-2d-v1", seed=seed) for seed in range(10)]
    references = {"toy-2d-v1": make_reference(budget=2, n_init=0)}
    write(build(make_board(records, references)), tmp_path)
    page = visit_to(tmp_path).open("problem/toy-2d-v1.html")
    assert page.inner_text("#convergence") == "No run has found a feasible point."
    assert page.locator("#feasible .mark-line path").count() == 1
    text = page.inner_text("main")
    assert "0/10" in text
    assert "no run has found a feasible point" in text
    assert "None" not in text


@pytest.mark.slow
def test_tables_on_a_phone(visit_to: Callable[..., Visit], site: Path) -> None:
    """Nothing shines through the stuck column, and it leaves room for numbers."""
    visit = visit_to(site, dark_phone=True)
    for name in ("index.html", "problem/toy-2d-v1.html", "optimizer/scbo.html"):
        page = visit.open(name)
        share, whole = page.evaluate(ROOM_OF_NUMBERS)
        assert share < 0.45, name
        assert whole, name
        scrolled, found = page.evaluate(SHINING_THROUGH)
        assert scrolled > 100, name
        assert found == 0, name


@pytest.mark.slow
def test_menu_on_a_phone_is_one_line(visit_to: Callable[..., Visit], site: Path) -> None:
    """All five pages of the menu stand side by side, also on the narrowest phones."""
    visit = visit_to(site, dark_phone=True)
    page = visit.open("paper.html")
    page.set_viewport_size({"width": 360, "height": 640})
    entries = page.locator(".site-head nav li")
    assert entries.count() == 5
    tops = entries.evaluate_all("(all) => all.map((entry) => entry.getBoundingClientRect().top)")
    assert len(set(tops)) == 1, tops


@pytest.mark.slow
def test_chart_and_formulas_on_a_phone(
    visit_to: Callable[..., Visit], site: Path, board: Board
) -> None:
    """All names and both ends of the scale are written; no formula is cut."""
    visit = visit_to(site, dark_phone=True)
    page = visit.open("optimizer/scbo.html")
    labels = page.evaluate(SHOWN_LABELS, "anytime")
    assert {"0", "100"} <= set(labels)
    assert [label for label in labels if not label.isdigit()] == [
        problem.problem
        for problem in board.problems
        if any(row.optimizer == "scbo" for row in problem.rows)
    ]
    page = visit.open("scoring.html")
    assert page.locator("math, .formula").count() >= 5
    assert page.evaluate(CUT_FORMULAS) == 0
