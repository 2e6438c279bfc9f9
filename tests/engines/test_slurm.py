"""The Slurm engine: submitit's local executor, and arrays with commands that stand in for Slurm."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from cbo_suite.campaign import Campaign
from cbo_suite.campaign.store import Store
from cbo_suite.engines import Engine, EngineOptions, Job, Limits, Outcome, make_engine
from cbo_suite.engines.slurm_job import Carrier
from cbo_suite.errors import CboError, InvalidTask, MissingExtra
from cbo_suite.tasks import Task
from tests.doubles import without_times
from tests.engines import fake_slurm

pytest.importorskip("submitit", reason="the slurm engine needs cbo-suite[slurm]")
pytestmark = pytest.mark.slow


def make_task(seed: int, budget: int = 40, optimizer: str = "random-search") -> Task:
    """Make a short task."""
    return Task("toy-2d-v1", optimizer, budget, 1, 10, seed)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put commands of Slurm on the path; return the folder with what they were told."""
    home = tmp_path / "slurm"
    home.mkdir()
    fake_slurm.install(tmp_path / "bin")
    monkeypatch.setenv("FAKE_SLURM", str(home))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return home


def local_engine(folder: Path, jobs: int = 2) -> Engine:
    """Make an engine whose jobs are processes of this machine."""
    return make_engine("slurm", EngineOptions(jobs, "", str(folder), {"cluster": "local"}))


def outcomes_of(engine: Engine, count: int, limit: float = 120.0) -> list[Outcome]:
    """Wait for `count` outcomes."""
    outcomes: list[Outcome] = []
    deadline = time.monotonic() + limit
    while len(outcomes) < count and time.monotonic() < deadline:
        outcomes += [event for event in engine.wait(1.0) if isinstance(event, Outcome)]
    return outcomes


@pytest.mark.parametrize("kind", ["local executor", "array"])
def test_a_campaign_gives_what_the_local_engine_gives(
    kind: str, slurm: Path, tmp_path: Path
) -> None:
    """Every run completes with the same bytes; submitit's files of complete runs are removed."""
    tasks = [
        make_task(seed, optimizer=name) for seed in (0, 1) for name in ("cobyla", "sobol-search")
    ]
    local, store = Store(tmp_path / "local"), Store(tmp_path / "submitted")
    for _ in Campaign(tasks, local).run(make_engine("local", EngineOptions(jobs=2))):
        pass
    settings = {"cluster": "local"} if kind == "local executor" else {"partition": "short"}
    engine = make_engine("slurm", EngineOptions(4, "", str(store.folder), settings))
    campaign = Campaign(tasks, store)
    for _ in campaign.run(engine):
        pass
    assert campaign.done == set(tasks)
    for task in tasks:
        assert without_times(store.journal(task)) == without_times(local.journal(task))
    assert list((store.folder / ".slurm").rglob("*.pkl")) == []
    if kind == "array":
        (submission,) = slurm.glob("*.json")
        options = json.loads(submission.read_text())
        assert options["array"].strip("'") == "0-3%4"
        assert options["partition"] == "short"
        assert options["time"] == str(24 * 60)


def test_limits_and_settings_reach_slurm(slurm: Path, tmp_path: Path) -> None:
    """Time and memory of the run, with room for its start, unless a setting says otherwise."""
    job = Job(make_task(0), str(tmp_path / "0.jsonl"), Limits(600, 2**31), {"processes": 3})
    engine = make_engine("slurm", EngineOptions(None, "", str(tmp_path), {"account": "a1"}))
    engine.start(job)
    assert [outcome.status for outcome in outcomes_of(engine, 1)] == ["complete"]
    settings = {"time": "77", "mem": "9GB", "setup": "export A=1"}
    engine = make_engine("slurm", EngineOptions(None, "", str(tmp_path), settings))
    engine.start(job)
    assert [outcome.status for outcome in outcomes_of(engine, 1)] == ["complete"]
    first, second = (json.loads(path.read_text()) for path in sorted(slurm.glob("*.json")))
    assert (first["time"], first["mem"], first["cpus-per-task"]) == ("15", "3GB", "3")
    assert first["account"] == "a1"
    assert (second["time"], second["mem"]) == ("77", "9GB")


def test_an_interrupted_run_goes_on_from_its_journal(tmp_path: Path) -> None:
    """What is on record is not evaluated again."""
    task = make_task(3)
    path = tmp_path / "3.jsonl"
    engine = local_engine(tmp_path)
    engine.start(Job(task, str(path)))
    assert outcomes_of(engine, 1)[0].status == "complete"
    whole, lines = without_times(path), path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20]))
    engine.start(Job(task, str(path)))
    assert outcomes_of(engine, 1)[0].status == "complete"
    assert path.read_bytes().startswith(b"".join(lines[:20]))
    assert without_times(path) == whole
    engine.close()


@pytest.mark.parametrize("kind", ["local executor", "array"])
def test_stopped_jobs_end_soon_and_keep_their_journals(
    kind: str, slurm: Path, tmp_path: Path
) -> None:
    """Runs under way are cancelled, what waits is withdrawn, and all have an outcome."""
    settings = {"cluster": "local"} if kind == "local executor" else {}
    engine = make_engine("slurm", EngineOptions(3, "", str(tmp_path), settings))
    jobs = [Job(make_task(seed, 10**6), str(tmp_path / f"{seed}.jsonl")) for seed in range(3)]
    for job in jobs[:2]:
        engine.start(job)
    engine.wait(0.0)
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        journals = [Path(job.journal) for job in jobs[:2]]
        # A journal that was just made is empty until its header is written.
        if all(path.exists() and path.stat().st_size for path in journals):
            break
        time.sleep(0.1)
    engine.start(jobs[2])
    begin = time.monotonic()
    engine.stop()
    outcomes = outcomes_of(engine, 3, limit=20.0)
    assert time.monotonic() - begin < 10.0
    assert sorted((outcome.task.seed, outcome.status) for outcome in outcomes) == [
        (0, "stopped"),
        (1, "stopped"),
        (2, "stopped"),
    ]
    sizes = [Path(job.journal).stat().st_size for job in jobs[:2]]
    assert min(sizes) > 0
    time.sleep(1.5)
    engine.close()
    sizes = [Path(job.journal).stat().st_size for job in jobs[:2]]
    time.sleep(0.5)
    assert sizes == [Path(job.journal).stat().st_size for job in jobs[:2]]
    if kind == "array":
        assert (slurm / "cancelled.log").read_text().startswith("4000_0 4000_1\n")


@pytest.mark.parametrize("place", ["foreground", "background"])
def test_closing_ends_what_runs(place: str, tmp_path: Path) -> None:
    """Nothing is written any more afterwards; closing twice is fine."""
    engine = local_engine(tmp_path)
    path = tmp_path / "run.jsonl"
    engine.start(Job(make_task(0, 10**6), str(path)))
    # As a shell starts what a script puts into the background.
    heed = signal.default_int_handler if place == "foreground" else signal.SIG_IGN
    before = signal.signal(signal.SIGINT, heed)
    try:
        engine.wait(0.0)
        assert signal.getsignal(signal.SIGINT) is heed
    finally:
        signal.signal(signal.SIGINT, before)
    limit = time.monotonic() + 60
    while not path.exists() and time.monotonic() < limit:
        time.sleep(0.1)
    engine.close()
    engine.close()
    time.sleep(0.5)
    size = path.stat().st_size
    time.sleep(0.5)
    assert path.stat().st_size == size


def test_jobs_come_in_arrays_not_singly(slurm: Path, tmp_path: Path) -> None:
    """There is room for the next array when half of the last is done."""
    engine = make_engine("slurm", EngineOptions(4, "", str(tmp_path), {}))
    assert engine.room() == 4
    for seed in range(4):
        assert engine.room() == 4 - seed
        engine.start(Job(make_task(seed), str(tmp_path / f"{seed}.jsonl")))
    assert engine.room() == 0
    done = 0
    while done < 4:
        done += len(engine.wait(1.0))
        assert engine.room() == (0 if done < 2 else done)
    engine.close()


def test_a_job_that_dies_is_an_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job without a result says what submitit knows of it."""
    monkeypatch.setattr("cbo_suite.engines.slurm.RESULT_SECONDS", 1.0)
    monkeypatch.setattr(Carrier, "__reduce__", lambda self: (os._exit, (3,)))
    engine = local_engine(tmp_path)
    engine.start(Job(make_task(0), str(tmp_path / "run.jsonl")))
    (outcome,) = outcomes_of(engine, 1)
    assert outcome.status == "crashed"
    assert "ended as FINISHED without a result: see " in outcome.error
    assert Path(outcome.error.rpartition(" ")[2]).exists()
    engine.close()


def test_another_version_on_the_node_is_named() -> None:
    """The run is not begun, and the next campaign tries again."""
    import msgspec

    carrier = Carrier(msgspec.json.encode(Job(make_task(0), "run.jsonl")))
    carrier.version = "0.0.7"
    outcome = msgspec.json.decode(carrier(), type=Outcome)
    assert outcome.status == "stopped"
    assert "the campaign 0.0.7: install the same version" in outcome.error
    assert not Path("run.jsonl").exists()


def test_a_preempted_job_is_submitted_again_as_it_is() -> None:
    """Asked what to do it says the same, because the journal says where to go on."""
    carrier = Carrier(b"{}")
    assert carrier.checkpoint().function is carrier


def test_where_slurm_is_not_and_what_it_does_not_know(
    tmp_path: Path, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command, unknown settings, no library: each is named."""
    with pytest.raises(InvalidTask, match="Unknown argument 'colour' for executor 'slurm'"):
        make_engine("slurm", EngineOptions(None, "", str(tmp_path), {"colour": "red"}))
    with pytest.raises(InvalidTask, match="time must be a whole number of minutes, got '2h'"):
        make_engine("slurm", EngineOptions(None, "", str(tmp_path), {"time": "2h"}))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(CboError, match=r'Could not detect "srun".*where `sbatch` works'):
        make_engine("slurm", EngineOptions(None, "", str(tmp_path), {}))
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(MissingExtra, match=r'pip install "cbo-suite\[slurm\]"'):
        make_engine("slurm", EngineOptions(None, "", str(tmp_path), {}))
