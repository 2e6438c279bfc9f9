"""The records of the leaderboard are data under test: each file passes what a submission must."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbo_suite.verify import verify_file

RUNS = Path(__file__).parents[2] / "leaderboard" / "runs"
FILES = sorted(path for path in RUNS.rglob("*") if not path.is_dir())


def test_there_are_records() -> None:
    """The board shows real runs."""
    assert len(FILES) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(RUNS).as_posix())
def test_published_records_are_verified(path: Path) -> None:
    """Well formed, a full grid, and every value comes out again."""
    verdict = verify_file(path)
    assert verdict.complaints == []
    if verdict.status == "unverified":
        pytest.skip(verdict.findings[-1].detail)
    assert verdict.status == "verified"
