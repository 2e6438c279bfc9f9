"""Several campaigns on one folder share the work: every task once, every line whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from cbo_suite.campaign.store import Store
from cbo_suite.journal import read_journal
from cbo_suite.tasks import Task
from tests.faults.helpers import FULL

pytestmark = pytest.mark.skipif(os.name != "posix", reason="campaigns run on Linux and macOS")
CAMPAIGNS, RUNS_EACH = (8, 50) if FULL else (3, 8)

PROGRAM = """
import json, sys
from cbo_suite.campaign import run_tasks
from cbo_suite.tasks import Task
tasks = [Task("toy-2d-v1", "counted", 6, 1, 3, seed) for seed in range(int(sys.argv[2]))]
for event in run_tasks(tasks, sys.argv[1], jobs=1):
    if hasattr(event, "status"):
        print(json.dumps([event.task.seed, event.status]), flush=True)
"""


def test_no_task_is_run_twice(misbehaviour: Path, tmp_path: Path) -> None:
    """Eight processes, fifty runs each: 400 runs, no duplicate, no torn or mixed line."""
    total = CAMPAIGNS * RUNS_EACH
    folder = tmp_path / "runs"
    command = [sys.executable, "-c", PROGRAM, str(folder), str(total)]
    begun = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(CAMPAIGNS)]
    outputs = [process.communicate(timeout=500)[0] for process in begun]
    assert [process.returncode for process in begun] == [0] * CAMPAIGNS
    reported = [json.loads(line) for output in outputs for line in output.splitlines()]
    assert sorted(reported) == [[seed, "complete"] for seed in range(total)]
    # More than one took part, and the optimizer of each task was made once.
    assert sum(bool(output) for output in outputs) > 1
    made = Counter(misbehaviour.read_text().splitlines())
    assert made == Counter(f"2 {seed}" for seed in range(total))
    store = Store(folder)
    for seed in range(total):
        task = Task("toy-2d-v1", "counted", 6, 1, 3, seed)
        contents = read_journal(store.journal(task))
        assert contents is not None
        assert contents.end is not None
        assert contents.header.task == task
        assert [batch.first for batch in contents.batches] == list(range(6))
    [records] = folder.glob("*/*.jsonl")
    assert len(records.read_bytes().splitlines()) == total
    assert not list(folder.rglob("*.claim"))
