"""One look per optimizer: on all pages, in figures, in light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from PIL import Image

from cbo_suite.leaderboard.looks import COLOURS, DARK_COLOURS, DASHES, looks_of, shown_first
from cbo_suite.paper.experiments import PERTURBATIONS, TRANSFORM_ABLATIONS
from cbo_suite.plots import draw, make_panels
from cbo_suite.registry import list_optimizers
from cbo_suite.scoring.board import Board
from cbo_suite.site.texts import Library
from cbo_suite.tasks import ABLATIONS
from tests.make_records import make
from tests.site.browsing import ROOT, Visit, first_table

SHEET = (ROOT / "cbo_suite" / "site" / "assets" / "site.css").read_text(encoding="utf-8")
LINES = """(chart) => [...document.querySelectorAll(`#${chart} .mark-line path`)].map((path) => {
  const style = getComputedStyle(path);
  return [style.stroke, style.strokeDasharray];
})"""
SWATCHES = """(all) => all.map((swatch) => {
  const style = getComputedStyle(swatch);
  const ends = style.backgroundImage.match(/[\\d.]+(?=px)/g).map(Number);
  const dash = ends.flatMap((end, i) => (i % 2 ? [end - ends[i - 1]] : []));
  return [style.color, dash.join(", ")];
})"""
CHECKED = "(boxes) => boxes.map((box) => box.value)"


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2.1."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_sheet_has_the_colours_of_figures_with_contrast() -> None:
    """At least 3 to 1 against the paper, as WCAG 2.1 asks of graphics, in both themes."""
    found = re.findall(r"--series-\d: (#[0-9a-f]{6});", SHEET)
    assert found == [*COLOURS, *DARK_COLOURS]
    papers = re.findall(r"--paper: (#[0-9a-f]{6});", SHEET)
    for paper, colours in zip(papers, (COLOURS, DARK_COLOURS), strict=True):
        for colour in colours:
            light, dark = sorted((luminance(paper), luminance(colour)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 3, colour


@given(st.lists(st.text(max_size=8), max_size=50, unique=True))
def test_looks_differ_and_those_of_the_suite_never_move(names: list[str]) -> None:
    """Whoever else takes part."""
    own = [row.id for row in list_optimizers() if row.package == "cbo-suite"]
    looks = looks_of([*own, *names])
    assert len(set(looks.values())) == len(set(own) | set(names))
    assert {name: looks[name] for name in own} == looks_of(own)
    alone = {name: looks_of([name])[name] for name in own}
    assert looks_of(own) == alone
    assert looks_of(["mine:scbo"])["mine:scbo"].colour == alone["scbo"].colour


def test_variants_of_scbo_can_be_told_apart() -> None:
    """Where two have one colour, one line has long dashes and the other dots."""
    looks = looks_of(["scbo", *ABLATIONS, *TRANSFORM_ABLATIONS, *PERTURBATIONS])
    assert len(looks) == 11
    for colour in {look.colour for look in looks.values()}:
        dashes = [DASHES[look.dash] for look in looks.values() if look.colour == colour]
        assert len(dashes) <= 2
        assert sorted(max(dash) <= 2 for dash in dashes)[1:] in ([], [True])


def test_charts_begin_with_leaders_and_the_papers_methods() -> None:
    """In the order given."""
    names = ["new", "cei", "other", "third", "scbo", "fourth", "random-search"]
    assert shown_first(names, 2) == ["new", "cei", "scbo", "random-search"]


def test_every_optimizer_has_a_kind() -> None:
    """The third column of the table in docs/optimizers/README.md; the ranking filters by it."""
    library = Library({}, ROOT / "docs")
    own = [row.id for row in list_optimizers() if row.package == "cbo-suite"]
    kinds = {name: library.kind(name) for name in own}
    assert [name for name, kind in kinds.items() if not kind] == []
    assert set(kinds.values()) <= {"model-based", "evolutionary", "direct search", "sampling"}


def test_every_optimizer_has_bibtex() -> None:
    """Of its method, on its page; keys are not given twice to different publications."""
    library = Library({}, ROOT / "docs")
    entries: dict[str, str] = {}
    for row in list_optimizers():
        if row.package == "cbo-suite":
            cite = library.optimizer(row.id).partition(">Cite</h3>")[2]
            found = re.findall(r"@\w+\{(\w+),(.*?)\n\}", cite, re.S)
            assert found, row.id
            for key, entry in found:
                fields = re.findall(r"^ *(\w+) *= \{", entry, re.M)
                assert "title" in fields, entry
                assert {"year", "url", "doi"} & set(fields), entry
                assert entries.setdefault(key, entry) == entry


@pytest.mark.slow
def test_lines_look_alike_on_all_pages_and_in_figures(visit: Visit, board: Board) -> None:
    """Colour and dash of the ranking are those of the problem pages and of `cbo plot`."""
    drawn = [row.optimizer for row in first_table(board.tracks[0]) if not row.variant]
    # One with a solid line, and one with dashes if there is any.
    pair = ["scbo", *(name for name in drawn if looks_of([name])[name].dash)][:2]
    page = visit.open(f"index.html#small-v1={'&small-v1='.join(pair)}")
    ranking = page.evaluate(LINES, "small-v1-chart")
    page = visit.open(f"problem/toy-2d-v1.html#show={'&show='.join(pair)}&scale=linear")
    checked = page.locator("input[name='series']:checked").evaluate_all(CHECKED)
    assert set(checked) == set(pair)
    problem = page.evaluate(LINES, "convergence")
    assert page.get_by_label("linear").is_checked()
    assert sorted(ranking) == sorted(problem)
    runs = [make([3.0, 2.0], optimizer=name) for name in (*pair, "other")]
    (axes,) = draw(make_panels(runs)).axes
    looks = looks_of(pair)
    colours = {to_hex(line.get_color()) for line in axes.get_lines()[:3]}
    for look in looks.values():
        assert COLOURS[look.colour] in colours
        channels = [int(COLOURS[look.colour][i : i + 2], 16) for i in (1, 3, 5)]
        assert f"rgb({', '.join(map(str, channels))})" in [stroke for stroke, _ in ranking]
    dashes = {tuple(float(n) for n in re.findall(r"[\d.]+", dash)) for _, dash in ranking}
    assert dashes == {tuple(map(float, DASHES[look.dash])) for look in looks.values()}


@pytest.mark.slow
def test_keys_of_suites_show_lines_as_they_are_drawn(visit: Visit) -> None:
    """Colour and dash of each optimizer beside its name are those of its line."""
    page = visit.open("problems.html")
    assert page.locator(".chart").count() > 0
    for place, keys in enumerate(page.locator(".keys").all()):
        swatches = keys.locator(".swatch").evaluate_all(SWATCHES)
        lines = page.evaluate(LINES, f"suite-{place}")
        assert len(lines) == len(swatches) > 1
        assert [[colour, dash.replace("px", "")] for colour, dash in lines] == swatches


@pytest.mark.slow
def test_variants_stand_apart_in_the_legend(visit: Visit, board: Board) -> None:
    """Folded away after the methods, unless a link shows one of them."""
    page = visit.open("problem/toy-2d-v1.html")
    rows = next(problem.rows for problem in board.problems if problem.problem == "toy-2d-v1")
    boxes = "(boxes) => boxes.map((box) => [box.value, box.checkVisibility()])"
    shown = dict(page.locator("input[name='series']").evaluate_all(boxes))
    methods = {row.id for row in list_optimizers() if row.id == row.method}
    assert shown == {row.optimizer: row.optimizer in methods for row in rows}
    page = visit.open("problem/toy-2d-v1.html#show=scbo&show=scbo-ei")
    assert page.get_by_label("scbo-ei", exact=True).is_visible()
    assert page.locator("#convergence .mark-line path").count() == 2


@pytest.mark.slow
def test_the_other_line_of_a_course_is_thin(visit: Visit) -> None:
    """And of another colour, also where the optimizer is grey itself."""
    for name in ("scbo", "cmes-ibo"):
        page = visit.open(f"optimizer/{name}.html")
        lines = page.locator("#course-0 .mark-line path").evaluate_all(
            """(all) => all.map((line) => getComputedStyle(line))
            .map((style) => [style.strokeWidth, style.stroke])"""
        )
        assert [width for width, _ in lines] == ["1px", "2.5px"]
        assert lines[0][1] != lines[1][1]


@pytest.mark.slow
def test_choices_of_a_problem_stand_in_its_address(visit: Visit) -> None:
    """View, axis and optimizers; what is as the page is opened is left out."""
    page = visit.open("problem/toy-2d-v1.html")
    page.get_by_label("regret", exact=True).check()
    page.get_by_label("linear").check()
    assert page.url.endswith("#view=regret&scale=linear")
    shown = page.locator("input[name='series']:checked")
    while shown.count() > 1:
        shown.last.uncheck()
    only = page.locator("input[name='series']:checked").input_value()
    assert page.url.endswith(f"#view=regret&scale=linear&show={only}")
    page = visit.open("problem/toy-2d-v1.html#view=nonsense&show=scbo")
    assert page.get_by_label("paper", exact=True).is_checked()
    assert page.locator("#convergence .mark-line path").count() == 1


@pytest.mark.slow
@pytest.mark.parametrize("dark_phone", [False, True])
def test_tables_show_that_they_scroll(
    visit_to: Callable[..., Visit], site: Path, dark_phone: bool
) -> None:
    """Where there is more the edge is shaded, where there is none it is not; the name stays."""
    visit = visit_to(site, dark_phone=dark_phone)
    page = visit.open("index.html")
    page.set_viewport_size({"width": 390, "height": 800})
    box = page.locator(".scroll").first
    edges = []
    for left in (0, 10_000):
        box.evaluate("(box, left) => { box.scrollLeft = left; }", left)
        picture = Image.open(BytesIO(box.screenshot())).convert("L")
        # The column of pixels at the right edge, between the lines of the table.
        edges.append(np.median([picture.getpixel((picture.width - 2, y)) for y in range(4, 60)]))
    assert box.evaluate("(box) => box.scrollLeft") > 50
    assert abs(edges[0] - edges[1]) > 15
    name = box.locator("tbody tr th").first
    assert name.evaluate("(cell) => cell.getBoundingClientRect().left") == pytest.approx(
        box.evaluate("(box) => box.getBoundingClientRect().left"), abs=1
    )
