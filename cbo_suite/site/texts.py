"""Texts of the site: numbers in words, documents as HTML, and data that scripts can read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib.metadata import PackageNotFoundError, metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from cbo_suite.leaderboard.number_format import number
from cbo_suite.scoring.board import Board, decode_board, encode_board

_PLAIN_NAME = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
# In JSON: what is drawn as nothing or turns the direction of writing, and escapes to step over.
_HIDDEN = re.compile(
    r'\\["\\/]|\\u00[01][0-9a-f]|\\[bfnrt]'
    "|[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
# What scrolls can be reached by keyboard, and what is no heading does not pose as one.
_FITTING = {
    "<table>": '<div class="scroll" tabindex="0"><table>',
    "</table>": "</table></div>",
    "<pre>": '<pre tabindex="0">',
    "<th></th>": "<td></td>",
}
_encoder = msgspec.json.Encoder(order="deterministic")


class Library:
    """What is written about problems and optimizers elsewhere.

    Attributes:
        titles: One line for each id of a problem or an optimizer.
    """

    def __init__(self, titles: Mapping[str, str], docs: Path | None) -> None:
        """Remember where to look.

        Args:
            titles: One line for each id of a problem or an optimizer.
            docs: Folder with `problems/*.md` and `optimizers/*.md`, None for no texts.
        """
        self.titles = titles
        self._docs = docs

    def title(self, id_: str) -> str:
        """Return the line about a problem or an optimizer, "" if there is none."""
        return self.titles.get(id_, "")

    def problem(self, id_: str, family: str) -> Markup:
        """Return the document about a problem or its family, empty if there is none."""
        name = self._problem_documents.get(id_, f"{page_name(family)}.md")
        return self._document(f"problems/{name}")

    def optimizer(self, id_: str) -> Markup:
        """Return the document about an optimizer, empty if there is none."""
        name = self._optimizer_documents.get(id_)
        return self._document(f"optimizers/{name}") if name else Markup()

    def kind(self, id_: str) -> str:
        """Return what kind of optimizer it is, such as "model-based", "" if nobody says so."""
        return self._kinds.get(id_, "")

    def install(self, id_: str) -> str:
        """Return the command that installs an optimizer of the suite, "" for those of others."""
        name = self._optimizer_documents.get(id_)
        text = self._read(f"optimizers/{name}").decode() if name else ""
        extra = re.search(r"`(pip install [^`]+)`", text)
        return extra[1] if extra else "pip install cbo-suite" if text else ""

    def picture(self, family: str) -> bytes:
        """Return the picture of a family of problems as PNG, empty if there is none."""
        return self._read(f"problems/{page_name(family)}.png")

    def caption(self, family: str) -> str:
        """Return what the picture of a family of problems shows, "" if its document is silent."""
        text = self._read(f"problems/{page_name(family)}.md").decode()
        found = re.search(rf"!\[(.*?)\]\({re.escape(page_name(family))}\.png\)", text)
        return found[1] if found else ""

    @cached_property
    def _problem_documents(self) -> dict[str, str]:
        """Find the document of each id in the table of `problems/README.md`."""
        text = self._read("problems/README.md").decode()
        return dict(re.findall(r"^\| *\[([\w-]+)\]\(([\w-]+\.md)\)", text, re.M))

    @cached_property
    def _optimizer_documents(self) -> dict[str, str]:
        """Find the document of each id in the table of `optimizers/README.md`."""
        return {id_: name for id_, (name, _) in self._optimizer_table.items()}

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """Find the kind of each id in the table of `optimizers/README.md`."""
        return {id_: kind for id_, (_, kind) in self._optimizer_table.items()}

    @cached_property
    def _optimizer_table(self) -> dict[str, tuple[str, str]]:
        """Read the table of `optimizers/README.md`: id to its document and its kind."""
        found: dict[str, tuple[str, str]] = {}
        text = self._read("optimizers/README.md").decode()
        line = re.compile(r"^\| *(`.*?) *\| *\[.*?\]\(([\w-]+\.md)\) *\|(?: *(.*?) *\|)?", re.M)
        for ids, name, kind in line.findall(text):
            found.update(dict.fromkeys(re.findall(r"`([^`]+)`", ids), (name, kind)))
        return found

    def _document(self, name: str) -> Markup:
        """Return a document as HTML, empty if there is none."""
        return render_markdown(self._read(name).decode())

    def _read(self, name: str) -> bytes:
        """Read a file of the documents, empty if there is none."""
        path = self._docs / name if self._docs else None
        return path.read_bytes() if path and path.is_file() else b""


def sketch(problem: str) -> Markup:
    """Return the drawing of a problem that ships with the site as SVG, empty if there is none."""
    path = files("cbo_suite.site").joinpath("sketches", f"{page_name(problem)}.svg")
    # Ours, made by tests/site/make_sketches.py: it is markup and no text of a stranger.
    return Markup(path.read_text(encoding="utf-8")) if path.is_file() else Markup()  # noqa: S704


def title_of(drawing: Markup) -> str:
    """Return the title of a drawing, "" if there is none."""
    return "".join(re.findall(r"<title>(.*?)</title>", drawing))


def render_markdown(text: str) -> Markup:
    """Write a document as HTML that fits into a page: no title, no markup of its own.

    Headings go one level down. Links to other documents and pictures are left out, because they
    are not part of the site.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    if tokens and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        tokens = tokens[3:]
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
        if token.children:
            token.children = list(_without_local_links(token.children))
    html = parser.renderer.render(tokens, parser.options, {})
    for plain, fitting in _FITTING.items():
        html = html.replace(plain, fitting)
    # The parser escapes all text and was told to take no HTML.
    return Markup(html)  # noqa: S704


def _without_local_links(tokens: Iterable[Token]) -> Iterable[Token]:
    """Drop pictures, and links that do not lead to the web; the text of links stays."""
    dropping = False
    for token in tokens:
        if token.type == "link_open":
            dropping = not str(token.attrs.get("href", "")).startswith("https://")
        is_link = token.type in ("link_open", "link_close")
        if token.type != "image" and not (is_link and dropping):
            yield token


def source_address() -> str:
    """Return where the source of this package is on the web, as its metadata say, "" if nothing."""
    try:
        entries: list[str] = metadata("cbo-suite").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    return next((entry[8:] for entry in entries if entry.startswith("Source, ")), "")


def make_visible(board: Board) -> Board:
    """Name the characters of a board that nobody would see, as in "⟨U+202E⟩"."""
    return decode_board(_HIDDEN.sub(_name_character, encode_board(board).decode()).encode())


def _name_character(match: re.Match[str]) -> str:
    """Write out a character, unless it is an escape that every reader sees."""
    if match[0] in ('\\"', "\\\\", "\\/"):
        return match[0]
    character = json.loads('"' + match[0] + '"')
    return f"⟨U+{ord(character):04X}⟩"


def page_name(id_: str) -> str:
    """Return a file name for an id, whatever characters it has: itself if it is a plain one."""
    if _PLAIN_NAME.fullmatch(id_) and len(id_) <= 100:
        return id_
    plain = re.sub(r"[^a-z0-9]+", "-", id_.lower())[:40].strip("-")
    return f"{plain or 'x'}-{hashlib.sha256(id_.encode()).hexdigest()[:12]}"


def as_json(data: Any) -> Markup:
    """Write data for a script block of a page; no text in it can end the block."""
    text = _encoder.encode(data).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # Every character that HTML could read as markup has just been replaced.
    return Markup(text)  # noqa: S704


def interval(ends: tuple[float, float] | None, digits: int) -> str:
    """Write an interval with this many decimals, and what is missing as nothing."""
    return "" if ends is None else f"[{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]"


def small_interval(ends: tuple[float, float] | None) -> str:
    """Write an interval of numbers that may be tiny, and what is missing as nothing."""
    return "" if ends is None else f"[{number(ends[0], 3)}, {number(ends[1], 3)}]"
