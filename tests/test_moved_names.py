"""Import paths that were documented before the core had rooms still lead to the same objects."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("documented", "name", "home"),
    [
        ("cbo_suite.ranking", "make_board", "cbo_suite.scoring"),
        ("cbo_suite.references", "load_references", "cbo_suite.scoring"),
        ("cbo_suite.scoring", "paper_curve", "cbo_suite.scoring.runs"),
        ("cbo_suite.leaderboard", "markdown", "cbo_suite.leaderboard.markdown_page"),
        ("cbo_suite.engines.supervise", "supervise", "cbo_suite.engines.supervise.client"),
        ("cbo_suite.problems.lunar_lander", "HEURISTIC", "cbo_suite.problems.lunar_lander"),
    ],
)
def test_documented_paths_stay(documented: str, name: str, home: str) -> None:
    """A script of an earlier version goes on to import what it did."""
    assert getattr(import_module(documented), name) is getattr(import_module(home), name)
