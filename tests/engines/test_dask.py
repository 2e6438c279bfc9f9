"""The dask engine on a real cluster: lost workers, stopped runs, hostile answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from cbo_suite._version import __version__
from cbo_suite.campaign import Campaign
from cbo_suite.campaign.store import Store
from cbo_suite.engines import Engine, EngineOptions, Job, Outcome, Progress, make_engine
from cbo_suite.engines.dask import accept, accept_progress
from cbo_suite.errors import CboError, InvalidTask, MissingExtra
from cbo_suite.harness import run
from cbo_suite.tasks import Task
from tests.doubles import rechained, without_times
from tests.engines.dask_cluster import ROOT, Cluster

pytest.importorskip("distributed", reason="the dask engine needs cbo-suite[dask]")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a scheduler and a worker."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.add_worker()
        cluster.wait_for_workers(1)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def engine(cluster: Cluster) -> Iterator[Engine]:
    """Connect an engine to the cluster."""
    engine = make_engine("dask", EngineOptions(scheduler=cluster.address))
    yield engine
    engine.close()


def make_task(seed: int, budget: int = 150, optimizer: str = "random-search") -> Task:
    """Make a task that takes a second or so."""
    return Task("toy-2d-v1", optimizer, budget, 1, 10, seed)


def finish(engine: Engine, limit: float = 100.0) -> tuple[Outcome, list[Progress]]:
    """Wait for the next outcome; return it and the progress before."""
    progress: list[Progress] = []
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        for event in engine.wait(1.0):
            if isinstance(event, Outcome):
                return event, progress
            progress.append(event)
    raise AssertionError("no outcome")


def runs_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Find the processes of runs below a worker."""
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "supervise/start.py" in " ".join(child.cmdline())]


def test_a_campaign_survives_the_loss_of_a_worker(cluster: Cluster, tmp_path: Path) -> None:
    """One of two workers is killed: every run completes, with the bytes of the local engine."""
    tasks = [
        make_task(seed, optimizer=name) for seed in range(3) for name in ("cobyla", "random-search")
    ]
    local, store = Store(tmp_path / "local"), Store(tmp_path / "dask")
    for _ in Campaign(tasks, local).run(make_engine("local", EngineOptions(jobs=2))):
        pass
    doomed = cluster.add_worker()
    cluster.wait_for_workers(2)
    engine = make_engine("dask", EngineOptions(scheduler=cluster.address))
    campaign = Campaign(tasks, store)
    children: list[psutil.Process] = []
    done = 0
    for event in campaign.run(engine):
        done += isinstance(event, Outcome)
        if not children and done and runs_of(doomed) and isinstance(event, Progress):
            children = runs_of(doomed)
            cluster.kill(doomed)
    assert children
    assert campaign.done == set(tasks)
    assert campaign.failed == {}
    for task in tasks:
        assert without_times(store.journal(task)) == without_times(local.journal(task))
    _, alive = psutil.wait_procs(children, timeout=5)
    assert [child for child in alive if child.status() != psutil.STATUS_ZOMBIE] == []


def test_a_journal_is_sent_along_and_continued(engine: Engine, tmp_path: Path) -> None:
    """What is on record is not evaluated again, and the rest is the same."""
    task = make_task(7, budget=60)
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    run(task.problem, task.optimizer, budget=60, batch_size=1, n_init=10, seed=7, journal=whole)
    cut.write_bytes(whole.read_bytes()[:4000])
    kept = cut.read_bytes().rpartition(b"\n")[0]
    engine.start(Job(task, str(cut)))
    outcome, _ = finish(engine)
    assert (outcome.status, outcome.evaluations) == ("complete", 60)
    assert cut.read_bytes().startswith(kept)
    assert without_times(cut) == without_times(whole)


def test_a_stopped_run_brings_its_journal_back(
    engine: Engine, cluster: Cluster, tmp_path: Path
) -> None:
    """The run that is under way ends early, the one that waits does not begin."""
    jobs = [
        Job(make_task(seed, budget=100_000), str(tmp_path / f"{seed}.jsonl")) for seed in (0, 1)
    ]
    for job in jobs:
        engine.start(job)
    assert engine.room() == 0
    limit = time.monotonic() + 60
    while not any(isinstance(event, Progress) for event in engine.wait(1.0)):
        assert time.monotonic() < limit
    engine.stop()
    outcomes = dict((outcome.task.seed, outcome) for outcome, _ in (finish(engine), finish(engine)))
    assert [outcomes[seed].status for seed in (0, 1)] == ["stopped", "stopped"]
    written = [seed for seed in (0, 1) if (tmp_path / f"{seed}.jsonl").exists()]
    assert len(written) == 1
    assert len((tmp_path / f"{written[0]}.jsonl").read_bytes().splitlines()) > 10
    assert engine.wait(0.1) == []


CLIENT = """
import sys
from cbo_suite.engines import Engine, EngineOptions, Job, make_engine
from tests.engines.test_dask import make_task
engine = make_engine("dask", EngineOptions(scheduler=sys.argv[1]))
engine.start(Job(make_task(0, budget=100_000), "run.jsonl"))
while True:
    for event in engine.wait(1.0):
        print(event, flush=True)
"""


def test_runs_end_when_the_campaign_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    """Nobody waits for the run any more, so the worker ends it and takes the next."""
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, cluster.address],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
    )
    try:
        assert client.stdout is not None
        assert b"Progress" in client.stdout.readline()
    finally:
        client.send_signal(signal.SIGKILL)
        client.communicate()
    engine = make_engine("dask", EngineOptions(scheduler=cluster.address))
    try:
        engine.start(Job(make_task(1, budget=20), str(tmp_path / "next.jsonl")))
        assert finish(engine)[0].status == "complete"
    finally:
        engine.close()


def test_closing_ends_the_runs_at_once(cluster: Cluster, tmp_path: Path) -> None:
    """The next campaign finds a free worker; closing twice is fine."""
    engine = make_engine("dask", EngineOptions(scheduler=cluster.address))
    engine.start(Job(make_task(0, budget=100_000), str(tmp_path / "long.jsonl")))
    while not engine.wait(1.0):
        pass
    engine.close()
    engine.close()
    engine = make_engine("dask", EngineOptions(scheduler=cluster.address, jobs=3))
    try:
        assert engine.room() == 1
        engine.start(Job(make_task(1, budget=20), str(tmp_path / "next.jsonl")))
        assert finish(engine)[0].status == "complete"
    finally:
        engine.close()


PRELOADS = {
    "has cbo-suite 0.0.7, the campaign": "import cbo_suite._version as v; v.__version__ = '0.0.7'",
    "cannot carry out runs: .*No module named 'cbo_suite'.*install cbo-suite": (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'cbo_suite':\n"
        "            raise ModuleNotFoundError(\"No module named 'cbo_suite'\", name='cbo_suite')\n"
        "sys.meta_path.insert(0, Missing())\n"
    ),
}


@pytest.mark.parametrize("message", PRELOADS)
def test_workers_of_another_kind_are_refused(message: str, tmp_path: Path) -> None:
    """Another version, or none at all, is named with the worker before anything runs."""
    cluster = Cluster(tmp_path)
    try:
        with pytest.raises(CboError, match="has no workers: start some with `dask worker tcp"):
            make_engine("dask", EngineOptions(scheduler=cluster.address))
        (tmp_path / "change.py").write_text(PRELOADS[message])
        cluster.add_worker("--preload", str(tmp_path / "change.py"))
        cluster.wait_for_workers(1)
        with pytest.raises(CboError, match=message):
            make_engine("dask", EngineOptions(scheduler=cluster.address))
    finally:
        cluster.close()


def test_a_run_that_costs_too_many_workers_is_given_up(tmp_path: Path) -> None:
    """After as many losses as dask allows the run has an outcome, and the cluster goes on."""
    cluster = Cluster(tmp_path, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    try:
        doomed = cluster.add_worker()
        cluster.wait_for_workers(1)
        engine = make_engine("dask", EngineOptions(scheduler=cluster.address))
        engine.start(Job(make_task(0, budget=100_000), str(tmp_path / "run.jsonl")))
        while not engine.wait(1.0):
            pass
        cluster.kill(doomed)
        outcome, _ = finish(engine)
        assert outcome.status == "killed"
        assert "the dask cluster lost the run: KilledWorker" in outcome.error
        assert engine.room() == 0
        engine.close()
    finally:
        cluster.close()


def test_a_scheduler_that_goes_away_is_named(tmp_path: Path) -> None:
    """The campaign ends with a clear error instead of waiting for ever."""
    cluster = Cluster(tmp_path)
    try:
        cluster.add_worker()
        cluster.wait_for_workers(1)
        engine = make_engine("dask", EngineOptions(scheduler=cluster.address))
        engine.start(Job(make_task(0, budget=100_000), str(tmp_path / "run.jsonl")))
        while not engine.wait(1.0):
            pass
        cluster.kill(cluster.processes[0])
        with pytest.raises(CboError, match=r"scheduler at .* is gone"):
            finish(engine)
        engine.close()
    finally:
        cluster.close()


def test_addresses_that_lead_nowhere_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address, no scheduler, no library."""
    with pytest.raises(InvalidTask, match="--scheduler tcp://HOST:8786"):
        make_engine("dask", EngineOptions())
    monkeypatch.setattr("cbo_suite.engines.dask.CONNECT_SECONDS", 0.3)
    with pytest.raises(CboError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
        make_engine("dask", EngineOptions(scheduler="tcp://127.0.0.1:9"))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r'pip install "cbo-suite\[dask\]"'):
        make_engine("dask", EngineOptions(scheduler="tcp://127.0.0.1:9"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, bytes]:
    """Make a complete run; return its task and the bytes of its journal."""
    path = tmp_path_factory.mktemp("made") / "run.jsonl"
    task = make_task(0, budget=12)
    run(task.problem, task.optimizer, budget=12, batch_size=1, n_init=10, seed=0, journal=path)
    return task, path.read_bytes()


def answer(task: Task, journal: bytes, **changes: str) -> tuple[bytes, bytes]:
    """Answer as a worker does."""
    outcome = Outcome(task, "complete", evaluations=12)
    return msgspec.json.encode(msgspec.structs.replace(outcome, **changes)), zlib.compress(journal)


def test_an_answer_is_written_without_its_torn_end(
    made: tuple[Task, bytes], tmp_path: Path
) -> None:
    """What a worker sends is a journal of the run; texts become one short line."""
    task, data = made
    job = Job(task, str(tmp_path / "new" / "run.jsonl"))
    lines = data.splitlines(keepends=True)
    sent = answer(
        task, b"".join(lines[:5]) + lines[5][:9], status="killed", error="a\nb\x1b[2J" * 999
    )
    outcome = accept(job, sent, b"")
    assert Path(job.journal).read_bytes() == b"".join(lines[:5])
    assert outcome.error.startswith(r"a b\x1b[2Ja b")
    assert len(outcome.error) == 1200
    assert accept(job, answer(task, data), b"".join(lines[:5])).status == "complete"
    assert Path(job.journal).read_bytes() == data
    # A worker that could not begin sends no journal, and what is there stays.
    assert accept(job, (sent[0], b""), data).status == "killed"
    assert Path(job.journal).read_bytes() == data


def test_what_a_worker_says_of_progress_is_harmless() -> None:
    """Its note becomes one short line; nonsense is dropped."""
    said = Progress(make_task(0), 3, note="a\nb\x1b[2J" * 999)
    heard = accept_progress(msgspec.json.encode(said).decode())
    assert heard is not None
    assert heard.evaluations == 3
    assert heard.note.startswith(r"a b\x1b[2Ja b")
    assert len(heard.note) == 1200
    assert accept_progress('{"note": 1}') is None


def test_hostile_answers_are_refused_and_nothing_is_written(
    made: tuple[Task, bytes], tmp_path: Path
) -> None:
    """Whatever a worker sends, the journal that is there stays as it is."""
    task, data = made
    other = make_task(1, budget=12)
    lines = data.splitlines(keepends=True)
    hostile = {
        "answered with dict": {"status": "complete"},
        "answered with tuple": ("text", b""),
        "answered with nonsense: Input data was truncated": (b"{", b""),
        "answered with nonsense: .*unknown field": (b'{"path": "/etc/passwd"}', b""),
        "answered with nonsense: Error -3": (answer(task, data)[0], b"not compressed"),
        "for another run": answer(other, data),
        "the journal of another run": answer(
            task, rechained(data.replace(b'"seed":0', b'"seed":1'))
        ),
        "line 2: ": answer(task, lines[0] + b'{"type":"batch","evil":1}\n' + lines[1]),
        "does not continue": answer(
            task, rechained(data.replace(b'"clock":2.0,', b'"clock":2.5,'))
        ),
        "has 9 of 12 evaluations": answer(task, b"".join(lines[:10])),
        "has 0 of 12 evaluations": (answer(task, data)[0], b""),
    }
    path = tmp_path / "run.jsonl"
    sent = b"".join(lines[:6])
    path.write_bytes(sent)
    for message, value in hostile.items():
        with pytest.raises(CboError, match=message):
            accept(Job(task, str(path)), value, sent)
        assert path.read_bytes() == sent
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_journal_that_another_campaign_went_on_with_stays(
    made: tuple[Task, bytes], tmp_path: Path
) -> None:
    """What a worker brings back too late is dropped, and the task is the other's."""
    task, data = made
    lines = data.splitlines(keepends=True)
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(lines[:7]))
    outcome = accept(Job(task, str(path)), answer(task, data), b"".join(lines[:6]))
    assert outcome.status == "taken"
    assert path.read_bytes() == b"".join(lines[:7])


def test_a_journal_bomb_is_not_unpacked(
    made: tuple[Task, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What unpacks to more than a journal can be is refused."""
    task, data = made
    monkeypatch.setattr("cbo_suite.engines.dask.JOURNAL_BYTES", 1000)
    with pytest.raises(CboError, match="more than 1000 bytes"):
        accept(Job(task, str(tmp_path / "run.jsonl")), answer(task, data), b"")


def test_the_version_of_the_worker_is_asked_for() -> None:
    """What a worker says is the version that the campaign compares."""
    from cbo_suite.engines.dask_worker import version

    assert version() == __version__
