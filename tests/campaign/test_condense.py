"""The records of a campaign are those of its journals."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest

import cbo_suite as cbo
from cbo_suite.campaign import run_tasks
from cbo_suite.campaign.condense import write_campaign_records
from cbo_suite.campaign.export import export_records
from cbo_suite.campaign.store import Store
from cbo_suite.engines import Outcome, Status
from cbo_suite.errors import InvalidTask
from cbo_suite.leaderboard import read_folder
from cbo_suite.records import read_records
from cbo_suite.records.blocks import draw_block, opens
from cbo_suite.tasks import Task
from tests.campaign.test_campaign import small_tasks

pytestmark = pytest.mark.skipif(os.name != "posix", reason="campaigns run on Linux and macOS")


def test_records_hold_all_seeds_that_ended(tmp_path: Path) -> None:
    """A smaller plan later does not drop the seeds of a larger one."""
    tasks = small_tasks()
    list(run_tasks(tasks, tmp_path))
    Store(tmp_path).records("toy-2d-v1", "random-search").unlink()
    assert len(write_campaign_records(tasks[:1], Store(tmp_path))) == 1
    assert [record.task for record in read_folder(tmp_path)] == tasks


def test_records_of_merged_shards_are_those_of_the_journals(tmp_path: Path) -> None:
    """Whatever record file was copied last, with whatever times, and what was taken away since."""
    tasks = [Task("toy-2d-v1", "random-search", 8, 1, 4, seed) for seed in range(6)]
    whole = tmp_path / "whole"
    for part in range(3):
        folder = tmp_path / str(part)
        list(run_tasks(tasks[part::3], folder))
        shutil.copytree(folder, whole, dirs_exist_ok=True)
    records = Store(whole).records("toy-2d-v1", "random-search")
    assert len(list(read_records(records))) == 2
    os.utime(records, (2e9, 2e9))
    assert list(run_tasks(tasks, whole)) == []
    assert [record.task for record in read_records(records)] == tasks
    assert write_campaign_records(tasks, Store(whole)) == []
    # Another run of the same seed, as old as you like, is another record.
    journal = Store(whole).journal(tasks[0])
    os.utime(journal, (1.0, 1.0))
    text = journal.read_bytes()
    journal.unlink()
    list(run_tasks(tasks[:1], whole))
    assert journal.read_bytes() != text
    os.utime(journal, (1.0, 1.0))
    [record, *_] = read_records(records)
    assert (
        record.seconds_optimizer
        == cbo.run(
            "toy-2d-v1", "random-search", budget=8, n_init=4, journal=journal
        ).seconds_optimizer
    )
    Store(whole).journal(tasks[5]).unlink()
    write_campaign_records(tasks[:5], Store(whole))
    assert [record.task for record in read_records(records)] == tasks[:5]


def test_records_of_others_are_not_replaced(tmp_path: Path) -> None:
    """A campaign in the folder of published rows, or where something else has their names."""
    task = Task("toy-2d-v1", "random-search", 8, 1, 4, 0)
    other = msgspec.structs.replace(task, seed=1)
    list(run_tasks([task, other], tmp_path / "runs"))
    export_records(Store(tmp_path / "runs"), tmp_path / "published")
    path = Store(tmp_path / "published").records("toy-2d-v1", "random-search")
    for data in (path.read_bytes(), b"notes"):
        path.write_bytes(data)
        with pytest.raises(InvalidTask, match=r"random-search\.jsonl holds records whose journals"):
            list(run_tasks([task], tmp_path / "published"))
        with pytest.raises(InvalidTask, match="cbo export"):
            write_campaign_records([task], Store(tmp_path / "published"))
        assert path.read_bytes() == data
    assert not Store(tmp_path / "published").journal(task).exists()


@pytest.mark.parametrize("status", ["timeout", "memory", "crashed", "killed"])
def test_a_run_that_could_not_write_its_end_is_a_failed_record(
    status: Status, tmp_path: Path
) -> None:
    """What it evaluated counts; a run that was interrupted from outside has no record yet."""
    tasks, store = small_tasks()[:2], Store(tmp_path)
    list(run_tasks(tasks, tmp_path, jobs=1))
    store.records("toy-2d-v1", "random-search").unlink()
    whole = store.journal(tasks[1]).read_bytes().splitlines(keepends=True)
    store.journal(tasks[1]).write_bytes(b"".join(whole[:-4]))
    store.write_outcome(Outcome(tasks[1], status, "it took too long"))
    written = write_campaign_records(tasks, store)
    assert len(written) == (status != "killed")
    if written:
        record = read_folder(tmp_path)[-1]
        assert (record.status, record.error) == ("failed", f"{status}: it took too long")
        assert len(record.objectives) == 12


def test_large_runs_are_sealed_when_their_ten_seeds_are_there(tmp_path: Path) -> None:
    """In the folder of the campaign and where records are exported to; once sealed they stay."""
    store, target = Store(tmp_path / "runs"), tmp_path / "records"
    tasks = [Task("rover-60d-v1", "random-search", 180, 60, 20, seed) for seed in range(12)]
    path = target / "rover-60d-v1" / "random-search.jsonl"
    for first, last, sealed in ((0, 4, 0), (4, 12, 10)):
        for task in tasks[first:last]:
            cbo.run(
                task.problem,
                task.optimizer,
                budget=task.budget,
                batch_size=task.batch_size,
                n_init=task.n_init,
                seed=task.seed,
                journal=store.journal(task),
            )
        store.write_plan(tasks[:last])
        write_campaign_records(tasks[:last], store)
        export_records(store, target)
        for file in (store.records("rover-60d-v1", "random-search"), path):
            records = list(read_records(file))
            assert len(records) == last
            assert sum(record.sample is not None for record in records) == sealed
    block = list(read_records(path))[:10]
    assert all(opens(*pair) for pair in zip(block, draw_block(block), strict=True))
    before = path.read_bytes()
    assert export_records(store, target).files == []
    assert path.read_bytes() == before
