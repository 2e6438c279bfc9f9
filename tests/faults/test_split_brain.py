"""Two campaigns on one folder whose locks are of no use, one of which sleeps too long."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cbo_suite.campaign.store import Store
from cbo_suite.journal import read_journal
from cbo_suite.records import read_records
from cbo_suite.tasks import Task
from tests.faults.helpers import FULL, ROOT, children

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the processes of a run are found in /proc"
)
MACHINES = Path(__file__).with_name("machines")
SEEDS = 4


class Case(NamedTuple):
    """One way to sleep.

    Attributes:
        locks: How locks fail, see machines/sitecustomize.py.
        whole: Whether the runs sleep with their campaign; else they go on, nobody renewing their
            leases, and must take longer than the patience of the other.
        patience: Seconds without a sign of life after which a campaign counts as dead.
        sleep: Seconds of sleep, at least; it ends when the other has taken over.
        budget: Evaluations of a run, of 10 ms each.
    """

    locks: str
    whole: bool
    patience: float
    sleep: float
    budget: int


SHORT = [Case("none", True, 1.5, 3.0, 150)]
LONG = [
    Case("local", True, 60.0, 90.0, 150),
    Case("none", True, 60.0, 90.0, 150),
    Case("local", False, 3.0, 12.0, 1500),
]

PROGRAM = """
import json, sys
from cbo_suite.campaign import Campaign
from cbo_suite.campaign.condense import write_campaign_records
from cbo_suite.campaign.store import Store
from cbo_suite.engines import EngineOptions, Outcome, make_engine
from cbo_suite.tasks import Task
folder, patience, seeds, budget, jobs = sys.argv[1], *map(float, sys.argv[2:])
tasks = [Task("toy-2d-v1", "slow-hill", int(budget), 1, 3, seed) for seed in range(int(seeds))]
campaign = Campaign(tasks, Store(folder, patience))
for event in campaign.run(make_engine("local", EngineOptions(jobs=int(jobs)))):
    if isinstance(event, Outcome):
        print(json.dumps([event.task.seed, event.status]), flush=True)
write_campaign_records(tasks, campaign.store)
sys.exit(len(campaign.done) != len(tasks) or bool(campaign.failed or campaign.damaged))
"""


def wait_until(happened: Callable[[], bool], seconds: float = 200.0) -> None:
    """Wait for something that must happen."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def start(folder: Path, machine: str, jobs: int, case: Case) -> subprocess.Popen[str]:
    """Start a campaign on a machine of its own."""
    path = os.pathsep.join([str(MACHINES), os.environ["PYTHONPATH"]])
    arguments = [str(folder), *map(str, (case.patience, SEEDS, case.budget, jobs))]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=os.environ
        | {"PYTHONPATH": path, "CBO_TEST_MACHINE": machine, "CBO_TEST_LOCKS": case.locks},
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


@pytest.mark.usefixtures("misbehaviour")
@pytest.mark.parametrize("case", LONG if FULL else SHORT, ids=str)
def test_a_sleeper_spoils_nothing(case: Case, tmp_path: Path) -> None:
    """Every journal has its budget, once, whether runs sleep with their campaign or go on."""
    folder = tmp_path / "runs"
    store = Store(folder)
    tasks = [Task("toy-2d-v1", "slow-hill", case.budget, 1, 3, seed) for seed in range(SEEDS)]
    journals = [store.journal(task) for task in tasks]
    first = start(folder, "one", 2, case)
    begun = [first]
    try:
        # Until it has written something of two runs: then it stands still in the middle of both.
        wait_until(lambda: all(p.exists() and p.stat().st_size > 10_000 for p in journals[:2]))
        asleep = [first.pid, *children(first.pid)] if case.whole else [first.pid]
        for process in asleep:
            os.kill(process, signal.SIGSTOP)
        wake_up = time.monotonic() + case.sleep
        inodes = [path.stat().st_ino for path in journals[:2]]
        begun.append(start(folder, "two", SEEDS, case))
        wait_until(
            lambda: (
                time.monotonic() > wake_up
                and any(p.stat().st_ino != i for p, i in zip(journals, inodes, strict=False))
            )
        )
        for process in reversed(asleep):
            os.kill(process, signal.SIGCONT)
        outputs = [campaign.communicate(timeout=400)[0] for campaign in begun]
    finally:
        for campaign in begun:
            if campaign.poll() is None:
                campaign.kill()
                campaign.communicate()
    assert [campaign.returncode for campaign in begun] == [0, 0], outputs
    for task in tasks:
        contents = read_journal(store.journal(task))
        assert contents is not None
        assert contents.end is not None
        assert [batch.first for batch in contents.batches] == list(range(case.budget))
    reported = [json.loads(line) for output in outputs for line in output.splitlines()]
    assert {status for _, status in reported} == {"complete"}
    assert {seed for seed, _ in reported} == set(range(SEEDS))
    records = list(read_records(store.records("toy-2d-v1", "slow-hill")))
    assert [record.task for record in records] == tasks
    assert not list(folder.rglob("*.claim"))
