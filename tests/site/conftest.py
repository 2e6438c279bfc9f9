"""A real Chromium without network, and the site of the real records."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from cbo_suite.board import Board
from cbo_suite.leaderboard import build_board
from cbo_suite.registry import list_optimizers, list_problems
from cbo_suite.site import build, write

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome")
DRAWN = "[...document.querySelectorAll('.chart')].every((chart) => chart.dataset.drawn)"
# Far more than a page takes: other work may share the processor.
TIMEOUT = 30_000


class Visit:
    """A page of the browser that remembers everything it should not have done."""

    def __init__(self, browser: Browser, folder: Path, *, dark_phone: bool = False) -> None:
        """Open an empty page that can reach the files of one folder.

        Args:
            browser: The browser.
            folder: The site.
            dark_phone: Whether the screen is dark and narrow, instead of light and wide.
        """
        self.folder = folder
        self.faults: list[str] = []
        self.context = browser.new_context(
            offline=True,
            color_scheme="dark" if dark_phone else "light",
            viewport={"width": 375 if dark_phone else 1280, "height": 800},
        )
        self.context.set_default_timeout(TIMEOUT)
        self.context.route("**/*", self._guard)
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda message: self.faults.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", self._dismiss)

    def _guard(self, route: Route) -> None:
        """Let files of the site pass, and nothing else."""
        if route.request.url.startswith(self.folder.as_uri()):
            route.continue_()
        else:
            self.faults.append(f"request: {route.request.url}")
            route.abort()

    def _dismiss(self, dialog: object) -> None:
        """Note that a dialog opened, and close it."""
        self.faults.append(f"dialog: {dialog}")
        dialog.dismiss()  # type: ignore[attr-defined]

    def open(self, name: str) -> Page:
        """Open a page of the site and wait until its charts are drawn."""
        # Only the part after "#" changing would not load the page anew.
        self.page.goto("about:blank")
        path, _, fragment = name.partition("#")
        address = (self.folder / path).as_uri()
        self.page.goto(f"{address}#{fragment}" if fragment else address)
        self.wait(DRAWN)
        return self.page

    def wait(self, condition: str) -> None:
        """Wait until an expression is true.

        Playwright's own waiting makes code from text in the page, which its policy forbids.
        """
        end = time.monotonic() + TIMEOUT / 1000
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"{self.page.url}: not in time: {condition}"
            self.page.wait_for_timeout(10)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium; without one skip, or fail where it must be there."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        reason = "Chromium is not installed: `sh tests/site/install_chromium.sh` as root, with apt"
        if os.environ.get("CBO_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    # Chromium refuses to run as root with its sandbox; the pages are our own and offline.
    alone = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--disable-dev-shm-usage", *alone]
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def board() -> Board:
    """Score the records of the repository."""
    return build_board(ROOT / "leaderboard" / "runs")


@pytest.fixture(scope="session")
def titles() -> dict[str, str]:
    """Give the line about each registered problem and optimizer."""
    return {row.id: row.title for row in [*list_problems(), *list_optimizers()]}


@pytest.fixture(scope="session")
def site(board: Board, titles: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site of the real records."""
    folder = tmp_path_factory.mktemp("site")
    write(build(board, titles=titles, docs=ROOT / "docs"), folder)
    return folder


@pytest.fixture
def visit(browser: Browser, site: Path) -> Iterator[Visit]:
    """Visit the site of the real records; nothing may have gone wrong at the end."""
    visit = Visit(browser, site)
    yield visit
    visit.context.close()
    assert visit.faults == []


@pytest.fixture
def visit_to(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Visit any site; nothing may have gone wrong at the end."""
    visits: list[Visit] = []

    def start(folder: Path, *, dark_phone: bool = False) -> Visit:
        visits.append(Visit(browser, folder, dark_phone=dark_phone))
        return visits[-1]

    yield start
    for visit in visits:
        visit.context.close()
        assert visit.faults == []
