"""The leaderboard's site: a board to static pages.

The pages work from a disk and offline: everything they need is in the folder, nothing is fetched,
and their security policy allows nothing else. The same board gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cbo_suite.errors import RecordError
from cbo_suite.files import write_whole
from cbo_suite.scoring.board import Board, encode_board
from cbo_suite.site.catalogue import Listed
from cbo_suite.site.pages import Bests, make_pages
from cbo_suite.site.paper_page import read_paper
from cbo_suite.site.texts import Library, make_visible

__all__ = ["LIST_OF_FILES", "Bests", "build", "write"]

LIST_OF_FILES = "files.txt"


def build(
    board: Board,
    *,
    titles: Mapping[str, str] | None = None,
    docs: Path | None = None,
    paper: Path | None = None,
    known: Sequence[Listed] = (),
    suites: Mapping[str, tuple[str, Sequence[str]]] | None = None,
    bests: Bests | None = None,
    records: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, bytes]:
    """Make the pages of a board.

    Args:
        board: What is shown.
        titles: One line for each id of a problem or an optimizer; ids without one stand alone.
        docs: Folder with `problems/*.md` and `optimizers/*.md`, which the pages quote; pages
            without a text say less.
        paper: Folder that `cbo paper build` has written; without it there is no page on the paper.
        known: Problems to list beside those of the board.
        suites: Name of a suite to its title and the ids of its problems, which are put together.
        bests: What is shown of the best runs beside their scores.
        records: Problem and optimizer, with "/" between them, to the addresses of their record
            files, as a page in a folder of the site leads to them.

    Raises:
        RecordError: The folder of the paper holds something else.

    Returns:
        Path inside the site, with "/", to content. `index.html` is where to begin.
    """
    report = None if paper is None else read_paper(paper)
    library = Library(titles or {}, docs)
    pages = make_pages(
        make_visible(board), library, known, suites or {}, report, bests, records or {}
    )
    pages["scores.json"] = encode_board(board)
    pages[LIST_OF_FILES] = "".join(f"{name}\n" for name in sorted(pages)).encode()
    return dict(sorted(pages.items()))


def write(pages: Mapping[str, bytes], folder: Path) -> Path:
    """Put pages into a folder, each in one step, and remove pages of an earlier site.

    Only files that an earlier call has listed are removed.

    Returns:
        The path of the page to begin with.

    Raises:
        RecordError: The folder is that of another site.
    """
    listed = folder / LIST_OF_FILES
    if (folder / "index.html").exists() and not listed.exists():
        raise RecordError(
            f"{folder} holds another site, which is left as it is: choose another folder"
        )
    before = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    for name, content in pages.items():
        path = folder / name
        if not (path.is_file() and path.read_bytes() == content):
            write_whole(path, content)
    root = folder.resolve()
    for name in set(before) - set(pages):
        path = (folder / name).resolve()
        # The list is a file like any other: what it names outside the folder is not ours.
        if path.is_relative_to(root):
            path.unlink(missing_ok=True)
    return folder / "index.html"
