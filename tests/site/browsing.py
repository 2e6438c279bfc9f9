"""A page of a real browser that cannot reach the network and remembers what went wrong."""

from __future__ import annotations

import time
from pathlib import Path

from playwright.sync_api import Browser, Dialog, Page, Route

from cbo_suite.scoring.board import RankingRow, TrackBoard

ROOT = Path(__file__).parents[2]
DRAWN = "[...document.querySelectorAll('.chart')].every((chart) => chart.dataset.drawn)"
# Far more than a page takes: other work may share the processor.
TIMEOUT = 30_000


def first_table(track: TrackBoard) -> list[RankingRow]:
    """Return the rows of a track's first table, whose lines are drawn.

    They are those who are ranked, or while nobody is those who are partial.
    """
    return track.ranked if any(not row.variant for row in track.ranked) else track.partial


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

    def _dismiss(self, dialog: Dialog) -> None:
        """Note that a dialog opened, and close it."""
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

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
