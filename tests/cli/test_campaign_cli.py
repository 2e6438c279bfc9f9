"""`cbo run` for campaigns, `cbo status` and `cbo export`, as a person calls them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cbo_suite.campaign.store import Store
from cbo_suite.cli import main
from cbo_suite.cli.campaign import duration
from cbo_suite.engines import Outcome
from cbo_suite.records import read_records
from cbo_suite.tasks import Task
from tests.terminal import on_terminal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="campaigns run on Linux and macOS")
Cbo = Callable[..., Result]
PLAN = ("run", "--problems", "toy-2d", "--optimizers", "random-search,sobol-search")
SHORT = (*PLAN, "--seeds", "0-1", "--budget", "12", "--n-init", "5")


@pytest.fixture
def cbo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cbo:
    """Call `cbo` in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_a_campaign_from_plan_to_export(cbo: Cbo, tmp_path: Path) -> None:
    """Dry run, run, status, run again, export: the words a person sees."""
    plan = cbo(*SHORT, "--dry-run")
    assert plan.exit_code == 0, plan.output
    assert "4 runs: 0 done, 0 failed, 0 skipped, 4 to run" in plan.output
    assert "4 from a rough table that comes with cbo-suite" in plan.output
    assert not (tmp_path / "runs").exists()
    done = cbo(*SHORT, "--jobs", "2")
    assert done.exit_code == 0, done.output
    assert "4 of 4 runs done, 0 skipped, 0 failed, 2 record files written in runs" in done.output
    assert "4/4 toy-2d-v1/" in done.output
    assert "0 running, 0 failed" in done.output
    status = cbo("status")
    assert "4 runs: 4 done, 0 running, 0 failed" in status.output
    again = cbo(*SHORT)
    assert again.exit_code == 0
    assert again.output.startswith("4 of 4 runs done, 0 skipped, 0 failed, 0 record files")
    more = cbo(*PLAN, "--seeds", "0-3", "--budget", "12", "--n-init", "5", "--dry-run")
    assert "8 runs: 4 done, 0 failed, 0 skipped, 4 to run" in more.output
    assert "4 runs estimated from finished ones in runs, 0 from a rough table" in more.output
    exported = cbo("export", "runs", "--to", "board/runs")
    assert "4 records added, 0 replaced, 0 there already; 2 files written" in exported.output
    rows = list(read_records(tmp_path / "board/runs/toy-2d-v1/sobol-search.jsonl"))
    assert [row.task.seed for row in rows] == [0, 1]
    exported = cbo("export", "runs", "--to", "board/runs")
    assert "0 records added, 0 replaced, 4 there already; 0 files written" in exported.output


def test_export_refuses_gaps_and_differences(cbo: Cbo, tmp_path: Path) -> None:
    """Missing seeds and different rows are named; nothing is written until one insists."""
    assert cbo(*SHORT).exit_code == 0
    store = Store(tmp_path / "runs")
    wanted = [Task("toy-2d-v1", "random-search", 12, 1, 5, seed) for seed in range(3)]
    store.write_plan(wanted)
    refused = cbo("export", "runs", "--to", "board")
    assert refused.exit_code == 1
    assert "1 planned runs are not finished: toy-2d-v1/random-search/2" in refused.output
    assert not (tmp_path / "board").exists()
    assert cbo("export", "runs", "--to", "board", "--partial").exit_code == 0
    path = tmp_path / "board/toy-2d-v1/random-search.jsonl"
    before = path.read_bytes()
    # The same seeds with another budget are other rows.
    other = cbo(*PLAN, "--seeds", "0-1", "--budget", "13", "--n-init", "5", "--out", "other")
    assert other.exit_code == 0
    refused = cbo("export", "other", "--to", "board")
    assert refused.exit_code == 1
    assert "4 records in board differ from these: toy-2d-v1/random-search/0" in refused.output
    assert path.read_bytes() == before
    assert "4 replaced" in cbo("export", "other", "--to", "board", "--replace").output
    assert [row.task.budget for row in read_records(path)] == [13, 13]


def test_failures_are_listed_and_tried_again_when_asked(cbo: Cbo, tmp_path: Path) -> None:
    """A failed run makes the exit status 1 until it is tried again."""
    store = Store(tmp_path / "runs")
    task = Task("toy-2d-v1", "random-search", 12, 1, 5, 0)
    store.write_outcome(Outcome(task, "timeout", "it took longer than 5 s and was ended"))
    failed = cbo(*SHORT)
    assert failed.exit_code == 1
    assert "3 of 4 runs done, 0 skipped, 1 failed" in failed.output
    line = "failed: toy-2d-v1/random-search/0: timeout: it took longer than 5 s"
    assert line in failed.output
    assert "add --retry-failed" in failed.output
    status = cbo("status", "runs")
    assert line in status.output
    rows = [json.loads(row) for row in cbo("status", "runs", "--json").output.splitlines()]
    assert [row["status"] for row in rows] == ["failed", "done", "done", "done"]
    again = cbo(*SHORT, "--retry-failed")
    assert again.exit_code == 0, again.output
    assert "4 of 4 runs done" in again.output


def test_status_run_and_export_agree_on_a_damaged_journal(cbo: Cbo, tmp_path: Path) -> None:
    """The same word and the same line in all three, until it is run anew."""
    cbo(*SHORT)
    task = Task("toy-2d-v1", "random-search", 12, 1, 5, 0)
    journal = Store(tmp_path / "runs").journal(task)
    lines = journal.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:5], *lines[6:]])
    journal.write_bytes(damaged)
    line = "random-search/0.jsonl, line 6: its checksum is wrong"
    status = cbo("status")
    assert line in status.output
    assert (
        "4 runs: 3 done, 0 running, 0 failed, 0 skipped, 0 interrupted, 0 missing, 1 damaged"
        in (status.output)
    )
    run = cbo(*SHORT)
    assert run.exit_code == 1
    assert f"damaged: {task.name}: runs/toy-2d-v1/{line}" in run.output
    assert "3 of 4 runs done, 0 skipped, 0 failed, 1 damaged" in run.output
    export = cbo("export", "runs", "--to", "board")
    assert export.exit_code == 1
    assert "1 journals are damaged" in export.output
    assert line in export.output
    assert "3 records added" in cbo("export", "runs", "--to", "board", "--partial").output
    again = cbo(*SHORT, "--retry-damaged")
    assert again.exit_code == 0, again.output
    assert journal.with_name("0.jsonl.damaged-1").read_bytes() == damaged
    assert (
        "1 records added, 0 replaced, 3 there already"
        in cbo("export", "runs", "--to", "board").output
    )


def test_shards_make_the_whole(cbo: Cbo) -> None:
    """Two shards in one folder run every task once; the status knows the whole plan."""
    first = cbo(*SHORT, "--shard", "1/2")
    assert "2 of 2 runs done" in first.output
    assert "4 runs: 2 done, 0 running, 0 failed, 0 skipped, 0 interrupted, 2 missing" in (
        cbo("status").output
    )
    assert "2 of 2 runs done" in cbo(*SHORT, "--shard", "2/2").output
    assert "4 runs: 4 done" in cbo("status").output


def test_a_suite_can_be_narrowed(cbo: Cbo) -> None:
    """With a suite, problems, optimizers and seeds choose among its tasks."""
    narrow = ("run", "--suite", "quick", "--dry-run")
    assert "300 runs: 0 done" in cbo(*narrow).output
    some = cbo(*narrow, "--problems", "toy-2d", "--optimizers", "scbo", "--seeds", "0-2,9,77")
    assert "4 runs: 0 done" in some.output
    assert "has no task of these" in cbo(*narrow, "--problems", "ackley-10d").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--problems", "toy-2d"), "give both --problems and --optimizers"),
        ((*PLAN, "--seed", "3"), "--seed is of a single run"),
        (("run", "toy-2d", "random-search", "--jobs", "2"), "--jobs is of a campaign"),
        (("run", "--problems", "tyo-2d", "--optimizers", "scbo"), "did you mean 'toy-2d-v1'"),
        (("run", "--problems", "toy-2d", "--optimizers", "sbco"), "did you mean 'scbo'"),
        ((*PLAN, "--seeds", "9-3"), "such as 0-29"),
        ((*PLAN, "--seeds", "a"), "such as 0-29"),
        ((*PLAN, "--shard", "3/2"), "such as 2/8"),
        ((*PLAN, "--memory", "2X"), "such as 2G"),
        ((*PLAN, "--time-limit", "0"), "such as 90m"),
        ((*PLAN, "--engine", "cloud"), "unknown engine 'cloud'"),
        ((*PLAN, "--engine-setting", "fast"), "such as partition=short"),
        (("status", "."), "no campaign in ."),
        (("export", "nowhere"), "nowhere"),
    ],
)
def test_mistakes_are_answered_without_a_traceback(
    cbo: Cbo, arguments: tuple[str, ...], message: str
) -> None:
    """A message that says how it is written, a non-zero exit."""
    result = cbo(*arguments)
    assert result.exit_code in (1, 2)
    assert message in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


@pytest.mark.slow
def test_a_terminal_shows_the_campaign_live(tmp_path: Path) -> None:
    """A bar, the counts, the runs under way with their best values, and the time that is left."""
    command = [sys.executable, "-m", "cbo_suite", *PLAN, "--seeds", "0", "--budget", "400"]
    text = on_terminal(command, tmp_path, TERM="xterm", COLUMNS="120", LINES="30")
    assert "━" in text
    assert "left:" in text
    assert "running, 0 failed" in text
    assert "toy-2d-v1/random-search/0" in text
    assert "2 of 2 runs done, 0 skipped, 0 failed" in text


def test_limits_reach_the_runs(cbo: Cbo) -> None:
    """A run that takes longer than it may is ended and named."""
    slow = ("run", "--problems", "toy-2d", "--optimizers", "random-search", "--seeds", "0")
    result = cbo(*slow, "--budget", "100000", "--time-limit", "1s", "--memory", "500M")
    assert result.exit_code == 1
    assert "timeout: it took longer than 1 s and was ended" in result.output


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3599, "1 h 0 min"),
        (7260, "2 h 1 min"),
        (2e5, "2.3 days"),
    ],
)
def test_durations_are_read_at_a_glance(seconds: float, text: str) -> None:
    """Two units at most."""
    assert duration(seconds) == text


def test_status_keeps_names_whole_on_a_narrow_terminal(tmp_path: Path) -> None:
    """At 80 columns counts are left out before a letter of an id is."""
    names = ("lunar-lander-m50-v1", "scbo-untransformed-ei-global")
    Store(tmp_path).write_plan([Task(*names, 1000, 50, 50, seed) for seed in range(3)])
    command = [sys.executable, "-m", "cbo_suite", "status", str(tmp_path)]
    shown = on_terminal(command, TERM="xterm", COLUMNS="80")
    assert f"│ {names[0]} │ {names[1]} │" in shown
    assert "3 runs: 0 done" in shown


def test_a_device_for_all_runs_of_a_campaign(cbo: Cbo, tmp_path: Path) -> None:
    """It is on record; a plan with optimizers that have none is refused before anything runs."""
    refused = cbo(*SHORT, "--device", "cuda")
    assert refused.exit_code == 2
    assert "random-search, sobol-search have no option device" in refused.output
    assert not (tmp_path / "runs").exists()
    plan = ("run", "--problems", "toy-2d", "--optimizers", "scbo,cei", "--seeds", "0")
    done = cbo(*plan, "--device", "cpu", "--budget", "11", "--n-init", "10")
    assert done.exit_code == 0, done.output
    for optimizer in ("scbo", "cei"):
        (row,) = read_records(tmp_path / "runs" / "toy-2d-v1" / f"{optimizer}.jsonl")
        assert row.options == {"device": "cpu"}
