"""Record files are downloads: where they are, or where they are published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from cbo_suite.cli import main
from cbo_suite.cli.record_links import record_addresses
from cbo_suite.records import write_records
from tests.make_records import make
from tests.site.browsing import Visit

TOY = "toy-2d-v1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write published runs and one's own, and go there."""
    published = "leaderboard/runs"
    for where, name, first in ((published, "scbo", 0), (published, "a b", 0), ("mine", "scbo", 2)):
        runs = [
            make([2.0, 0.7], optimizer=name, problem=TOY, seed=seed)
            for seed in range(first, first + 2)
        ]
        write_records(tmp_path / where / TOY / f"{name}.jsonl", runs)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str) -> str:
    """Run `cbo leaderboard` and return what it prints."""
    done = CliRunner().invoke(main, ["leaderboard", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def links(page: Path) -> list[str]:
    """Read the addresses of the record files on a page."""
    lines = page.read_text("utf-8").splitlines()
    line = next(line for line in lines if "The record file of" in line)
    return [part.partition('"')[0] for part in line.split('<a href="') if "download>" in part]


def test_links_lead_to_the_files_where_they_are(folder: Path) -> None:
    """Of the leaderboard and, in a comparison, of one's own runs."""
    call("build")
    page = folder / "leaderboard" / "site" / "problem" / f"{TOY}.html"
    assert links(page) == [f"../../runs/{TOY}/a%20b.jsonl", f"../../runs/{TOY}/scbo.jsonl"]
    call("compare", "mine")
    assert set(links(folder / "comparison" / "problem" / f"{TOY}.html")) == {
        f"../../leaderboard/runs/{TOY}/a%20b.jsonl",
        f"../../leaderboard/runs/{TOY}/scbo.jsonl",
        f"../../mine/{TOY}/scbo.jsonl",
    }


def test_links_lead_to_where_files_are_published(folder: Path) -> None:
    """By an address of the web, and by no other."""
    call("build", "--records-at", "https://example.org/runs/")
    page = folder / "leaderboard" / "site" / "problem" / f"{TOY}.html"
    assert links(page) == [
        f"https://example.org/runs/{TOY}/a%20b.jsonl",
        f"https://example.org/runs/{TOY}/scbo.jsonl",
    ]
    for wrong in ("javascript:alert(1)", "ftp://example.org"):
        refused = CliRunner().invoke(main, ["leaderboard", "build", "--records-at", wrong])
        assert refused.exit_code == 2
        assert "is no address that begins with https://" in refused.output


def test_a_row_may_have_several_files(folder: Path) -> None:
    """Where its seeds stand in several folders."""
    found = record_addresses([Path("leaderboard/runs"), Path("mine")], folder / "site")
    assert [len(found[f"{TOY}/{name}"]) for name in ("scbo", "a b")] == [2, 1]
    call("build", "--runs", "leaderboard/runs", "--runs", "mine", "--out", "both")
    page = folder / "both" / "site" / "problem" / f"{TOY}.html"
    assert "scbo (2)</a>" in page.read_text("utf-8")


@pytest.mark.slow
def test_record_files_open_by_a_click(folder: Path, visit_to: Callable[..., Visit]) -> None:
    """Offline, from a site on a disk, where browsers show the file; from a server they save it."""
    call("compare", "mine")
    page = visit_to(folder).open(f"comparison/problem/{TOY}.html")
    page.locator("#downloads + ul").get_by_role("link", name="mine:scbo").click()
    page.wait_for_url("**/scbo.jsonl")
    text = (folder / "mine" / TOY / "scbo.jsonl").read_text("utf-8")
    assert page.locator("pre").inner_text() == text
