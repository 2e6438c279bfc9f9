"""A real Chromium without network, and the site of the real records."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from cbo_suite.cli.leaderboard import site_facts
from cbo_suite.cli.record_links import record_addresses
from cbo_suite.leaderboard import build_board
from cbo_suite.paper.claims import judge
from cbo_suite.paper.evidence import Evidence
from cbo_suite.paper.report import encode_claims
from cbo_suite.registry import list_optimizers
from cbo_suite.scoring.board import Board
from cbo_suite.site import build, write
from tests.site.browsing import ROOT, Visit

NAMES = ("chromium", "chromium-browser", "google-chrome")


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
    methods = {row.id: row.method for row in list_optimizers()}
    return build_board(ROOT / "leaderboard" / "runs", methods=methods)


@pytest.fixture(scope="session")
def site(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site of the real records, with a page on the paper that has no runs."""
    folder, paper = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("paper")
    (paper / "claims.json").write_bytes(encode_claims(judge(Evidence({})), [], {}))
    records = record_addresses([ROOT / "leaderboard" / "runs"], folder)
    facts = site_facts(board)
    write(build(board, docs=ROOT / "docs", paper=paper, records=records, **facts), folder)
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
