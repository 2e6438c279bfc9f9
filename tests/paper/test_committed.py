"""The committed report is what the committed records give."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from cbo_suite.cli import main

ROOT = Path(__file__).parents[2]


def test_the_report_on_the_board_is_that_of_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report and tables come out the same; every figure that the report shows is there."""
    pytest.importorskip("torch", reason="the check of SCBO's restarts needs the extra scbo")
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(main, ["paper", "build", "--check"])
    assert done.exit_code == 0, done.output
    report = (ROOT / "leaderboard" / "paper" / "report.md").read_text("utf-8")
    shown = [line.split("](")[1].rstrip(")") for line in report.splitlines() if "![" in line]
    assert shown
    assert all((ROOT / "leaderboard" / "paper" / name).exists() for name in shown), shown
