"""Building the site: same bytes, small pages, whole folders, and boards with gaps."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cbo_suite.scoring.board import Board
from cbo_suite.scoring.overall import make_board
from cbo_suite.scoring.references import load_references
from cbo_suite.scoring.tracks import Track
from cbo_suite.site import LIST_OF_FILES, build, write
from cbo_suite.site.texts import as_json, page_name, render_markdown
from tests.make_records import make, make_reference
from tests.site.browsing import ROOT, Visit
from tests.site.make_chart_asset import ASSET_SHA256
from tests.site.make_sketches import FOLDER, sketches

ASSETS = ROOT / "cbo_suite" / "site" / "assets"
DIGEST = """
import hashlib, sys
from pathlib import Path
from cbo_suite.leaderboard import build_board
from cbo_suite.registry import list_optimizers
from cbo_suite.site import build
methods = {row.id: row.method for row in list_optimizers()}
pages = build(build_board(Path(sys.argv[1]), methods=methods), docs=Path(sys.argv[2]))
print(hashlib.sha256(b"".join(name.encode() + data for name, data in pages.items())).hexdigest())
"""


class Links(HTMLParser):
    """The addresses of a page.

    Attributes:
        found: What `href` and `src` name.
    """

    def __init__(self, html: str) -> None:
        """Read a page."""
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses of a tag."""
        self.found += [value or "" for name, value in attrs if name in ("href", "src")]


@pytest.mark.slow
def test_two_builds_are_the_same_bytes(board: Board) -> None:
    """Here and in another process, with another order of hashing."""
    folders = [str(ROOT / "leaderboard" / "runs"), str(ROOT / "docs")]
    other = subprocess.run(
        [sys.executable, "-c", DIGEST, *folders],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    pages = build(board, docs=ROOT / "docs")
    content = b"".join(name.encode() + data for name, data in pages.items())
    assert other.stdout.strip() == hashlib.sha256(content).hexdigest()


def test_every_link_leads_somewhere(site: Path) -> None:
    """Links and assets of every page are files of the site, or lie on the web."""
    for path in site.rglob("*.html"):
        addresses = Links(path.read_text(encoding="utf-8")).found
        own = [a.partition("#")[0] for a in addresses if not a.startswith(("https://", "#"))]
        assert own
        missing = {address for address in own if not (path.parent / address).is_file()}
        assert missing == set(), path


def test_every_page_has_the_policy_and_no_script_of_its_own(site: Path) -> None:
    """Scripts come from files; blocks in the page are data."""
    for path in site.rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in html
        for script in re.findall(r"<script[^>]*>", html):
            assert re.search(r'src="[./]*assets/[a-z]+\.js"|type="application/json"', script)
        assert " style=" not in html
        assert not re.search(r"\son\w+=", html)


def test_site_quotes_the_documents(site: Path) -> None:
    """Pages have definition, sketch and method card."""
    toy = (site / "problem" / "toy-2d-v1.html").read_text(encoding="utf-8")
    assert "Where definitions disagree" in toy
    assert "The feasible set (shaded)" in toy
    assert "Method card" in (site / "optimizer" / "cma-es.html").read_text(encoding="utf-8")


def test_site_needs_no_documents(board: Board) -> None:
    """Without texts and titles the pages say less."""
    pages = build(board)
    assert b"About the problem" not in pages["problem/toy-2d-v1.html"]
    assert b"<h1>toy-2d-v1</h1>" in pages["problem/toy-2d-v1.html"]


def test_write_removes_only_pages_of_an_earlier_site(tmp_path: Path, board: Board) -> None:
    """Stale pages go, what others put there stays, and nothing outside is touched."""
    folder = tmp_path / "site"
    outside = tmp_path / "outside.html"
    outside.write_text("mine")
    index = write(build(board), folder)
    assert index == folder / "index.html"
    (folder / "note.txt").write_text("mine")
    with (folder / LIST_OF_FILES).open("a") as file:
        file.write("../outside.html\n")
    fewer = msgspec.structs.replace(board, problems=board.problems[:1])
    write(build(fewer), folder)
    kept = sorted(path.name for path in (folder / "problem").iterdir())
    assert kept == [f"{board.problems[0].problem}.{kind}" for kind in ("csv", "html")]
    assert (folder / "note.txt").read_text() == "mine"
    assert outside.read_text() == "mine"
    listed = (folder / LIST_OF_FILES).read_text().splitlines()
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found - {"note.txt", LIST_OF_FILES} == set(listed)


def enlarge(board: Board, optimizers: int, problems: int, seeds: int) -> Board:
    """Repeat the rows of a board until it is this large."""
    model = board.problems[0]
    outcomes = model.rows[0].outcomes
    many = msgspec.structs.replace(
        outcomes,
        **{
            field: (getattr(outcomes, field) * seeds)[:seeds]
            for field in ("seed", "final", "violation", "first_feasible", "gap", "anytime")
        },
        imputed=[False] * seeds,
    )
    random = np.random.default_rng(0)
    # Scores with all their digits: round ones would make the pages small.
    rows = [
        msgspec.structs.replace(
            model.rows[0],
            optimizer=f"optimizer-{i:02d}",
            outcomes=msgspec.structs.replace(many, anytime=random.uniform(10, 90, seeds).tolist()),
        )
        for i in range(optimizers)
    ]
    ids = [f"problem-{i:02d}-9d-v1" for i in range(problems)]
    standing = board.tracks[0].rows[0]
    ranked = [
        msgspec.structs.replace(standing, optimizer=row.optimizer, method=row.optimizer, rank=1)
        for row in rows
    ]
    return msgspec.structs.replace(
        board,
        problems=[msgspec.structs.replace(model, problem=id_, rows=rows) for id_ in ids],
        overall=ranked,
        tracks=[
            msgspec.structs.replace(
                board.tracks[0], families=[[id_] for id_ in ids], ranked=ranked, partial=[]
            )
        ],
    )


def test_large_board_has_small_pages(board: Board) -> None:
    """60 optimizers on 40 problems with 30 seeds: no page of more than 2 MB."""
    pages = build(enlarge(board, optimizers=60, problems=40, seeds=30))
    assert max(len(data) for name, data in pages.items() if name.endswith(".html")) <= 2_000_000
    assert sum(name.startswith("optimizer/") for name in pages) == 60


@pytest.mark.slow
def test_board_with_gaps_has_pages(tmp_path: Path, visit_to: Callable[..., Visit]) -> None:
    """No reference, no feasible run, failed runs, one seed, and a problem that one skipped."""
    toy, hard = "toy-2d-v1", "hard-1d-v1"
    records = [
        *(make([2.0, 1.0, 0.9], optimizer="good", seed=seed, problem=toy) for seed in range(3)),
        make([None, None, 0.8], optimizer="lone", problem=toy),
        make([None, 0.7], optimizer="broken", budget=3, status="failed", problem=toy),
        make([5.0, 4.0], problem="new-1d-v1", optimizer="good"),
        make([None, None], problem=hard, optimizer="good"),
        make([None, None], problem=hard, optimizer="lone"),
    ]
    references = load_references() | {hard: make_reference(budget=2, n_init=0)}
    gaps = Track("gaps-v1", "few runs", ((toy,), (hard,), ("nobody-1d-v1",)))
    empty = Track("empty-v1", "no runs", (("other-1d-v1",),))
    write(build(make_board(records, references, tracks=[gaps, empty])), tmp_path)
    visit = visit_to(tmp_path)
    for name in ("problem/toy-2d-v1.html", "problem/hard-1d-v1.html", "optimizer/lone.html"):
        visit.open(name)
    page = visit.open("problem/new-1d-v1.html")
    assert page.get_by_label("regret", exact=True).is_disabled()
    assert page.get_by_label("linear").is_checked()
    page = visit.open("index.html")
    assert "at least 10 seeds on each of its 3 problems" in page.inner_text("#gaps-v1 .notice")
    assert "nobody-1d-v1 (no runs yet)" in page.inner_text("#gaps-v1 .note")
    assert page.inner_text("#empty-v1 .notice") == "No runs on its problems yet."
    assert page.locator("#gaps-v1-partial .imputed").count() == 1
    page.get_by_label("Problem family").select_option("hard")
    assert page.inner_text("#status") == "1 of 2 problems."
    assert "not run" in page.inner_text("#gaps-v1-partial tbody tr:last-child")
    assert not page.locator("#empty-v1").is_visible()
    page = visit.open("compare.html#a=good&b=broken")
    assert page.locator("#pairs tbody tr").count() == 1


def test_variants_with_the_results_of_their_method_say_so() -> None:
    """Those that differ in a run do not; all of them stand below it."""
    values: dict[str, list[float | None]] = {"m": [9.0, 2.0], "m-a": [9.0, 2.0], "m-b": [9.0, 1.0]}
    records = [
        make(run, problem="toy-2d-v1", optimizer=name, seed=seed)
        for name, run in values.items()
        for seed in range(10)
    ]
    references = {"toy-2d-v1": make_reference(budget=2, n_init=0)}
    track = Track("one-v1", "one problem", (("toy-2d-v1",),))
    methods = {"m-a": "m", "m-b": "m"}
    board = make_board(records, references, methods=methods, tracks=[track])
    page = build(board)["index.html"].decode()
    rows = re.findall(r'<tr[^>]* data-name="(.*?)".*?</tr>', page.partition('id="one-v1"')[2], re.S)
    assert rows == ["m", "m-b", "m-a"]
    assert page.count(">= m</span>") == page.count('data-name="m-a"')
    assert re.search(r'data-name="m-a" data-under="m".*?>= m</span>', page, re.S)


@pytest.mark.slow
def test_variants_of_methods_that_stand_elsewhere_can_be_unfolded(
    tmp_path: Path, visit_to: Callable[..., Visit]
) -> None:
    """The method is ranked, its variants are partial: a button above their table shows them."""
    ranked = {("m", problem): [9.0, 2.0] for problem in ("toy-2d-v1", "rosenbrock-5d-v1")}
    partial = {(name, "toy-2d-v1"): [9.0, 1.0] for name in ("m-a", "m-b")}
    records = [
        make([*values], problem=problem, optimizer=name, seed=seed)
        for (name, problem), values in (ranked | partial).items()
        for seed in range(10)
    ]
    problems = ("toy-2d-v1", "rosenbrock-5d-v1")
    references = dict.fromkeys(problems, make_reference(budget=2, n_init=0))
    track = Track("two-v1", "two problems", tuple((problem,) for problem in problems))
    methods = {"m-a": "m", "m-b": "m"}
    write(build(make_board(records, references, methods=methods, tracks=[track])), tmp_path)
    visit = visit_to(tmp_path)
    page = visit.open("index.html")
    table = page.locator("#two-v1-partial")
    assert not table.is_visible()
    page.get_by_role("button", name="2 variants of m").press("Enter")
    assert table.locator("tbody a").all_inner_texts() == ["m-a", "m-b"]
    assert table.is_visible()
    assert page.url.endswith("#variants=m")
    page = visit.open("index.html#variants=all")
    assert page.locator("#two-v1-partial").is_visible()


def test_sketches_show_the_problems() -> None:
    """The drawings in the package are what the problems give."""
    assert {path.name for path in FOLDER.iterdir()} == set(sketches())
    for name, text in sketches().items():
        drawn = re.findall(r"-?\d+\.\d+", (FOLDER / name).read_text(encoding="utf-8"))
        # Another processor may round the last digit of a coordinate differently.
        assert [float(v) for v in drawn] == pytest.approx(
            [float(v) for v in re.findall(r"-?\d+\.\d+", text)], abs=2e-4
        )


def test_chart_asset_is_the_one_that_was_made() -> None:
    """Nobody has edited the third-party file, and its licences are beside it."""
    data = (ASSETS / "vega.js").read_bytes()
    assert hashlib.sha256(data).hexdigest() == ASSET_SHA256
    assert len(data) < 900_000
    notice = (ASSETS / "vega-licences.txt").read_text(encoding="utf-8")
    assert "Interactive Data Lab" in notice
    assert "Mike Bostock" in notice


@pytest.mark.parametrize("path", sorted(set(ASSETS.glob("*.js")) - {ASSETS / "vega.js"}))
def test_scripts_make_no_markup_and_no_code(path: Path) -> None:
    """Our scripts write text only, and are short."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|fetch\(",
        text,
    )
    assert text.count("\n") < 400
    assert max(map(len, text.splitlines())) <= 110


def test_data_cannot_end_its_block() -> None:
    """No character of the data is one that HTML gives a meaning, and it reads back the same."""
    data = {"</script>": "<!--&\u2028\u2029"}
    text = as_json(data)
    assert not set(text) & set("<>&\u2028\u2029")
    assert msgspec.json.decode(str(text)) == data


def test_documents_bring_no_markup() -> None:
    """HTML in a document is text; links to other documents and pictures are left out."""
    html = render_markdown(
        "# Title\n\n## Part\n\n<b>x</b> [near](other.md) ![p](p.png) [far](https://example.org)\n"
        "[bad](javascript:alert(1))\n\n| a |\n|---|\n| b |\n"
    )
    assert "Title" not in html
    assert "<h3>Part</h3>" in html
    assert "&lt;b&gt;" in html
    assert re.findall(r'href="(.*?)"', html) == ["https://example.org"]
    assert "near" in html
    assert "<img" not in html
    assert "<table>" in html


def test_page_names_are_ids_where_possible() -> None:
    """Plain ids stay; others get a digest, so that no two share a file on any system."""
    assert page_name("toy-2d-v1") == "toy-2d-v1"
    assert page_name("my.module:Thing") != page_name("my.module:thing")
    assert re.fullmatch(r"[a-z0-9-]+", page_name("../../x"))
    assert re.fullmatch(r"x-[0-9a-f]{12}", page_name("\u202e"))
