"""Ten optimizers that break the contract: ten failures with names, and the campaign completes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cbo_suite.campaign import Campaign
from cbo_suite.campaign.condense import write_campaign_records
from cbo_suite.campaign.store import Store
from cbo_suite.engines import Limits
from cbo_suite.engines.local import LocalEngine
from cbo_suite.tasks import Task

pytestmark = pytest.mark.skipif(os.name != "posix", reason="campaigns run on Linux and macOS")
DEFECTS = {
    "wrong-shape": "failed: wrong-shape failed in ask: it must give 1 to 1 points of 2 coordinates",
    "not-a-number": "failed: not-a-number failed in ask",
    "out-of-box": "failed: out-of-box failed in ask",
    "too-many": "got an array of shape (1000000, 2)",
    "no-point": "got an array of shape (0, 2)",
    "generator": "it must give a NumPy array, got generator",
    "complex": "it must give real numbers, got dtype complex128",
    "raises-in-tell": r"failed in tell: ZeroDivisionError: told\x1b[2J too much",
    "raises-in-constructor": "failed in the constructor: LookupError: no licence",
    "hang": "timeout: it took longer than 10 s and was ended",
}


def test_ten_defects_are_ten_named_failures(misbehaviour: Path, tmp_path: Path) -> None:
    """Each is reported by its name and cause; the good optimizer gets its record."""
    names = [*DEFECTS, "random-search"]
    tasks = [Task("toy-2d-v1", name, 12, 1, 5, 0) for name in names]
    store = Store(tmp_path / "runs")
    campaign = Campaign(tasks, store, limits=Limits(seconds=10.0))
    for _ in campaign.run(LocalEngine(2)):
        pass
    assert {task.optimizer for task in campaign.done} == {"random-search"}
    assert {task.optimizer for task in campaign.failed} == set(DEFECTS)
    for task, error in campaign.failed.items():
        assert DEFECTS[task.optimizer] in error
        assert store.state(task).word == "failed"
        assert store.state(task).error == error
    assert not campaign.waiting
    assert not campaign.running
    # Runs are never dropped: what failed is on record, and so is what hung.
    written = {path.stem for path in write_campaign_records(tasks, store)}
    assert written == set(names)
