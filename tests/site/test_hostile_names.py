"""Names with markup and script: they are shown as text, whatever they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from unicodedata import category
from urllib.parse import quote

import msgspec
import pytest

from cbo_suite.scoring.board import Board, Comparison, NewBest, ProblemBoard, ProblemRow
from cbo_suite.site import build, write
from cbo_suite.site.texts import page_name
from tests.site.browsing import Visit

pytestmark = pytest.mark.slow

PAYLOADS = (
    "<script>window.hit=1</script>",
    "</script><script>window.hit=1</script>",
    '"><img src=x onerror=window.hit=1>',
    "'><svg onload=window.hit=1>",
    "<svg><script>window.hit=1</script></svg>",
    "<iframe srcdoc='<script>parent.hit=1</script>'>",
    "javascript:window.hit=1",
    '" onmouseover="window.hit=1" autofocus onfocus="window.hit=1',
    "' onfocus='window.hit=1' autofocus='",
    "{{ 7 * 7 }}{% for x in range(9) %}{{ x }}{% endfor %}",
    "${window.hit=1}`+window.hit=1+`",
    "<!--<script>",
    "]]><![CDATA[<script>window.hit=1</script>",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "&#x3c;img src=x onerror=window.hit=1&#x3e;",
    "</title></head><body onload=window.hit=1>",
    "</option></select><img src=x onerror=window.hit=1>",
    "</textarea></style><script>window.hit=1</script>",
    "<math><mtext><img src=x onerror=window.hit=1></mtext></math>",
    "<a href='javascript:window.hit=1'>click</a>",
    "<meta http-equiv=refresh content='0;url=data:text/html,hit'>",
    "<base href='https://example.org/'><link rel=stylesheet href=//example.org/x.css>",
    "../../../etc/passwd\u0000<x>",
    "\u202egnp.exe\u2028\u2029<b>\r\n\t\u0007",
    '__proto__"];window.hit=1;//\\u003cscript\\u003e[datum.x]',
)


class Shape(HTMLParser):
    """What a page is made of: tags with the names of their attributes, and its links.

    Attributes:
        tags: How often each tag with its attributes occurs.
        links: All addresses.
    """

    def __init__(self, html: str) -> None:
        """Read a page."""
        super().__init__()
        self.tags: Counter[tuple[str, ...]] = Counter()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count a tag."""
        self.tags[(tag, *sorted(name for name, _ in attrs))] += 1
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]


def disguise(board: Board, names: Sequence[str]) -> Board:
    """Give everything on a board that has a name one of these names instead.

    The first problem has one optimizer for every name; the others have three each.
    """
    model = board.problems[0]

    def row(i: int) -> ProblemRow:
        return msgspec.structs.replace(
            model.rows[i % len(model.rows)],
            optimizer=names[i],
            versions={names[i]: names[(i + 1) % len(names)]},
            imputed=0.5,
            verified=True,
        )

    def problem(i: int) -> ProblemBoard:
        return msgspec.structs.replace(
            model,
            problem=names[i],
            family=names[i],
            digest=names[i],
            control=names[i],
            rows=[row(j) for j in (range(len(names)) if i == 0 else (0, 1, i))],
        )

    methods = [
        msgspec.structs.replace(
            board.tracks[0].rows[0], optimizer=name, method=name, rank=i + 1, anytime=float(i)
        )
        for i, name in enumerate(names)
    ]
    return msgspec.structs.replace(
        board,
        problems=[problem(i) for i in range(len(names))],
        overall=methods,
        tracks=[
            msgspec.structs.replace(
                board.tracks[0],
                title=names[0],
                families=[[name] for name in names],
                ranked=methods,
                partial=[
                    msgspec.structs.replace(row, method=names[i - 1], rank=None)
                    for i, row in enumerate(methods)
                ],
            )
        ],
        comparison=Comparison(
            problems=len(names),
            optimizers=list(names),
            mean_ranks=[float(i + 1) for i in range(len(names))],
            p_value=0.01,
            critical_difference=2.0,
            p_values=[None, *[0.5] * (len(names) - 1)],
        ),
        new_best=[NewBest(name, name, 0, 1.0, 2.0) for name in names],
    )


def plain_names() -> list[str]:
    """Name as many things harmlessly."""
    return [f"name-{i:02d}" for i in range(len(PAYLOADS))]


def pages_of(board: Board, names: Sequence[str]) -> dict[str, bytes]:
    """Build the site of the disguised board, with titles and record files that are names too."""
    records = {
        f"{visible(problem)}/{visible(name)}": [
            f"https://example.org/runs/{quote(problem, safe='')}/{quote(name, safe='')}.jsonl"
        ]
        for problem in names
        for name in names
    }
    titles = {visible(name): name for name in names}
    return build(disguise(board, names), titles=titles, records=records)


def visible(name: str) -> str:
    """Name the characters that nobody would see, one by one."""
    hidden = {"Cc", "Cf", "Zl", "Zp"}
    return "".join(f"⟨U+{ord(c):04X}⟩" if category(c) in hidden else c for c in name)


def test_there_are_enough_payloads() -> None:
    """25 different ones."""
    assert len(set(PAYLOADS)) == 25


def test_every_page_keeps_its_shape(board: Board) -> None:
    """With hostile names each page has the same tags and attributes as with plain ones."""
    names = plain_names()
    hostile, plain = pages_of(board, PAYLOADS), pages_of(board, names)
    for folder in ("problem", "optimizer"):
        for payload, name in zip(PAYLOADS, names, strict=True):
            found = Shape(hostile[f"{folder}/{page_name(visible(payload))}.html"].decode())
            expected = Shape(plain[f"{folder}/{name}.html"].decode())
            assert found.tags == expected.tags, payload
    for page in ("index.html", "problems.html", "compare.html", "scoring.html"):
        found = Shape(hostile[page].decode())
        assert found.tags == Shape(plain[page].decode()).tags
        assert not [link for link in found.links if link.startswith(("javascript:", "data:"))]
    assert len(hostile) == len(plain)


def test_file_names_are_plain(board: Board, tmp_path: Path) -> None:
    """No name leads out of the folder, and no two names share a file."""
    pages = pages_of(board, PAYLOADS)
    names = [path for path in pages if path.startswith(("problem/", "optimizer/"))]
    # Of an optimizer a page, of a problem a page and its curves.
    assert len(names) == 75
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-./") for name in names)
    assert not any(".." in name for name in names)
    write(pages, tmp_path / "site")
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


# Nodes that no template and no chart makes, and attributes or addresses that would run script.
INJECTED = """([known, links]) => {
  const charts = ["svg", "g", "path", "line", "rect", "text", "defs", "clippath", "form"];
  const faults = [];
  for (const element of document.querySelectorAll("*")) {
    const tag = element.tagName.toLowerCase();
    const inChart = element.closest(".chart") && !element.classList.contains("chart");
    if (!(inChart ? charts : known).includes(tag)) faults.push(element.outerHTML);
    for (const { name, value } of element.attributes) {
      const address = ["href", "src", "action", "srcdoc", "xlink:href"].includes(name);
      const foreign = address && /^\\s*(javascript|data|https?):/i.test(value);
      // Records have addresses whose parts are names, and nothing but names.
      const record = /^https:.*\\/runs\\/[\\w.~%-]+\\/[\\w.~%-]+\\.jsonl$/.test(value);
      if (name.startsWith("on") || (foreign && !record && !links.includes(value))) {
        faults.push(`${name}=${value}`);
      }
    }
  }
  return faults;
}"""


def test_nothing_runs_and_no_node_is_injected(
    board: Board, tmp_path: Path, visit_to: Callable[..., Visit]
) -> None:
    """In Chromium: no dialog, no console message, no request, no node that is not ours.

    The ranking, the comparison and the first problem show all 25 names at once.
    """
    plain = pages_of(board, plain_names())
    shapes = {name: Shape(data.decode()) for name, data in plain.items() if ".html" in name}
    known = sorted({tag for shape in shapes.values() for tag, *_ in shape.tags})
    assert "img" not in known
    links = sorted({link for shape in shapes.values() for link in shape.links})
    write(pages_of(board, PAYLOADS), tmp_path)
    visit = visit_to(tmp_path)
    first, last = (page_name(visible(name)) for name in (PAYLOADS[0], PAYLOADS[-1]))
    for name, twin in {
        "index.html": "index.html",
        "compare.html": "compare.html",
        f"problem/{first}.html": "problem/name-00.html",
        f"optimizer/{last}.html": "optimizer/name-24.html",
        "compare.html#a=<img src=x onerror=window.hit=1>&b=%3Cscript%3E": "compare.html",
    }.items():
        page = visit.open(name)
        for box in page.locator("#variants").all():
            box.check()
        for control in page.locator("select").all():
            # Nobody is compared with itself.
            control.select_option(index=2 if control.get_attribute("id") == "second" else 1)
        for button in page.locator("thead button:visible").all()[:2]:
            button.click()
        assert page.evaluate(INJECTED, [known, links]) == []
        tags = shapes[twin].tags.items()
        scripts = sum(count for (tag, *_), count in tags if tag == "script")
        assert page.locator("script").count() == scripts
        assert page.evaluate("window.hit") is None


def test_names_are_shown_as_they_are(
    board: Board, tmp_path: Path, visit_to: Callable[..., Visit]
) -> None:
    """Every payload can be read on the ranking, letter by letter."""
    write(pages_of(board, PAYLOADS), tmp_path)
    page = visit_to(tmp_path).open("index.html")
    links = page.locator("#small-v1-ranked tbody th a")
    texts = links.evaluate_all("(all) => all.map((a) => a.text)")
    assert sorted(texts) == sorted(map(visible, PAYLOADS))
    assert "⟨U+202E⟩gnp.exe⟨U+2028⟩⟨U+2029⟩<b>⟨U+000D⟩⟨U+000A⟩⟨U+0009⟩⟨U+0007⟩" in texts
