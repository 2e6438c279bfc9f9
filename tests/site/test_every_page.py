"""Every page in a real browser: drawn, offline, readable in light and dark and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.site.browsing import Visit

pytestmark = pytest.mark.slow

# What of the page's structure a reader who listens or types depends on.
STRUCTURE = """() => {
  const faults = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  if (document.documentElement.lang !== "en") faults.push("no language");
  if (all("h1").length !== 1) faults.push("not one h1");
  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) faults.push(`h${next} after h${level}: ${heading.textContent}`);
    level = next;
  }
  for (const control of all("select, input")) {
    if (control.labels.length === 0) faults.push(`no label: ${control.outerHTML}`);
  }
  for (const button of all("button, a[href]")) {
    if (button.textContent.trim() === "") faults.push(`no name: ${button.outerHTML}`);
  }
  for (const table of all("main table")) {
    for (const head of table.tHead.querySelectorAll("th")) {
      const inText = table.closest(".definition");
      if (head.scope !== "col" && !inText) faults.push(`no scope: ${head.outerHTML}`);
    }
  }
  for (const chart of all(".chart")) {
    if (!chart.getAttribute("aria-label")) faults.push(`chart without label: ${chart.id}`);
    if (chart.textContent === "No run has found a feasible point.") continue;
    if (!chart.querySelector("svg")) faults.push(`no picture: ${chart.id}`);
    const marks = chart.querySelectorAll(".mark-line path, .mark-symbol path").length;
    if (marks === 0) faults.push(`empty chart: ${chart.id}`);
  }
  for (const box of all(".scroll")) if (box.tabIndex !== 0) faults.push("scrolls by mouse only");
  return faults;
}"""

# Contrast by WCAG 2.1 of every text that is shown, against the nearest painted background.
CONTRAST = """() => {
  const channel = (v) => (v /= 255, v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const background = (node) => {
    for (let e = node; e; e = e.parentElement) {
      const found = parse(getComputedStyle(e).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const faults = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (["SCRIPT", "NOSCRIPT", "TITLE"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const ink = parse(element.closest("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(background(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faults.add(`${ratio.toFixed(2)}: ${walker.currentNode.data.trim()}`);
  }
  return [...faults];
}"""
KINDS = (
    "index.html",
    "problems.html",
    "compare.html",
    "scoring.html",
    "paper.html",
    "data.html",
    "problem/toy-2d-v1.html",
    "optimizer/scbo.html",
)
# What is wider than the box that it can be scrolled in.
CUT = """() => [...document.querySelectorAll(".scroll, pre, math, .formula, .facts dd")]
  .filter((box) => box.scrollWidth > box.clientWidth)
  .map((box) => `${box.scrollWidth} > ${box.clientWidth}: ${box.textContent.slice(0, 80)}`)"""
NO_OVERFLOW = "document.documentElement.scrollWidth <= window.innerWidth"


def html_pages(folder: Path) -> list[str]:
    """Name all pages of a site."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))


def look(visit: Visit, name: str) -> list[str]:
    """Open a page with all its tables unfolded and say what is wrong with it."""
    page = visit.open(name)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    wide = [] if page.evaluate(NO_OVERFLOW) else ["wider than the window"]
    # Pages of a kind have the same colours, and looking at each text takes time.
    pale = page.evaluate(CONTRAST) if name in KINDS else []
    return [*page.evaluate(STRUCTURE), *pale, *wide]


def test_every_page_is_drawn_and_readable(visit: Visit, site: Path) -> None:
    """No console message or request, all charts, structure, contrast, and no overflow.

    On a screen of 1280 pixels no table, program or formula needs to be scrolled sideways.
    """
    faults = {name: [*look(visit, name), *visit.page.evaluate(CUT)] for name in html_pages(site)}
    assert set(KINDS) <= set(faults)
    assert {name: found for name, found in faults.items() if found} == {}


def test_pages_are_readable_on_a_dark_phone(visit_to: Callable[..., Visit], site: Path) -> None:
    """One page of each kind on a dark screen of 375 pixels."""
    visit = visit_to(site, dark_phone=True)
    faults = {name: look(visit, name) for name in KINDS}
    assert {name: found for name, found in faults.items() if found} == {}


def test_charts_follow_the_colour_scheme(visit: Visit) -> None:
    """When the reader turns to dark, charts are drawn again in the colours of the dark page."""
    page = visit.open("index.html")
    colour = "getComputedStyle(document.querySelector('.chart .mark-text text')).fill"
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    visit.wait("Number(document.querySelector('.chart').dataset.drawn) >= 2")
    assert page.evaluate(colour) != light


def test_security_policy_holds(visit: Visit) -> None:
    """Script that gets into a page as text, attribute or address does not run."""
    page = visit.open("problems.html")
    for attack in (
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hit=1\">')",
        "document.body.append(Object.assign(document.createElement('script'),"
        " {textContent: 'window.hit=1'}))",
        "document.body.append(Object.assign(document.createElement('iframe'),"
        " {srcdoc: '<script>parent.hit=1</' + 'script>'}))",
    ):
        page.evaluate(f"() => {{ {attack}; }}")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    # Each attempt is refused by the policy, and said so in the console; that was meant.
    refused = [fault for fault in visit.faults if "Content Security Policy" in fault]
    assert len(refused) >= 2
    visit.faults = [fault for fault in visit.faults if fault not in refused]
    visit.faults = [f for f in visit.faults if "ERR_FILE_NOT_FOUND" not in f and "/x" not in f]
