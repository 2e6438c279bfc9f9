"""The engine of one machine, and the supervision that every engine is made of."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

import cbo_suite as cbo
from cbo_suite.engines import Engine, EngineOptions, Job, Limits, Outcome, Progress, make_engine
from cbo_suite.engines.local import LocalEngine
from cbo_suite.engines.supervise import ForkServerClient, supervise
from cbo_suite.engines.supervise.guard import LINE_BYTES, encode
from cbo_suite.errors import CboError
from cbo_suite.journal import digest, read_journal
from cbo_suite.system import cores
from cbo_suite.tasks import Task

pytestmark = pytest.mark.skipif(os.name != "posix", reason="runs are supervised on Linux and macOS")


def job_of(folder: Path, optimizer: str = "random-search", budget: int = 12, **more: object) -> Job:
    """Make a job of a short run on the toy problem."""
    task = Task("toy-2d-v1", optimizer, budget, 1, 5, 0)
    return Job(task, str(folder / f"{optimizer}.jsonl"), **more)  # type: ignore[arg-type]


def outcomes_of(engine: Engine | ForkServerClient, count: int) -> list[Outcome]:
    """Wait for `count` outcomes."""
    found: list[Outcome] = []
    deadline = time.monotonic() + 120
    while len(found) < count:
        assert time.monotonic() < deadline
        found += [event for event in engine.wait(1.0) if isinstance(event, Outcome)]
    return found


def test_a_supervised_run_is_the_run_itself(tmp_path: Path) -> None:
    """The journal is that of the same run in this process; progress comes before the end."""
    shown: list[Progress] = []
    job = job_of(tmp_path / "new" / "folder", limits=Limits(60.0, 2**30))
    outcome = supervise(job, on_progress=shown.append)
    direct = cbo.run("toy-2d-v1", "random-search", budget=12, n_init=5, seed=0)
    assert outcome.status == "complete", outcome
    assert outcome.evaluations == 12
    assert outcome.best_objective == direct.best_objective
    assert shown
    assert shown[0].task == job.task
    contents = read_journal(job.journal)
    assert contents is not None
    assert contents.end is not None
    assert [x for batch in contents.batches for x in batch.x] == direct.x.tolist()


def test_what_went_wrong_has_a_name(tmp_path: Path) -> None:
    """An unknown problem and a damaged journal are told as the library tells them."""
    unknown = Job(Task("tyo-2d-v1", "random-search", 12, 1, 5, 0), str(tmp_path / "0.jsonl"))
    server = ForkServerClient()
    damaged = job_of(tmp_path)
    Path(damaged.journal).write_text("nonsense\n")
    bad_setting = job_of(tmp_path, "sobol-search", settings={"nonsense": 1})
    try:
        for job in (unknown, damaged, bad_setting):
            server.start(job)
        found = {outcome.task: outcome for outcome in outcomes_of(server, 3)}
    finally:
        server.close()
    assert {outcome.status for outcome in found.values()} == {"failed"}
    assert "did you mean 'toy-2d-v1'" in found[unknown.task].error
    assert "line 1: no header of a journal" in found[damaged.task].error
    assert "unexpected keyword argument 'nonsense'" in found[bad_setting.task].error


@pytest.mark.slow
def test_a_run_can_be_stopped_and_resumed(tmp_path: Path) -> None:
    """Asked to end it ends; what it has evaluated is on record, and the next call goes on."""
    job = job_of(tmp_path, budget=3000)
    stop = threading.Event()
    stopped = supervise(job, on_progress=lambda progress: stop.set(), stop=stop)
    assert stopped.status == "stopped"
    contents = read_journal(job.journal)
    assert contents is not None
    assert contents.end is None
    before = Path(job.journal).read_bytes()
    before = before[: before.rindex(b"\n") + 1]
    server = ForkServerClient()
    try:
        server.start(job)
        known = len(contents.batches)
        while not any(event.evaluations > known + 10 for event in server.wait(1.0)):
            pass
        server.stop(job.task)
        assert outcomes_of(server, 1)[0].status == "stopped"
    finally:
        server.close()
    after = Path(job.journal).read_bytes()
    assert after.startswith(before)
    assert len(after) > len(before)


def test_the_engine_has_room_for_as_many_as_cores(tmp_path: Path) -> None:
    """Room goes down with every start and up with every outcome."""
    engine = make_engine("local", EngineOptions())
    assert engine.room() == cores()
    engine.close()
    engine = make_engine("local", EngineOptions(jobs=2))
    try:
        for name in ("random-search", "sobol-search"):
            assert engine.room() > 0
            engine.start(job_of(tmp_path, name))
        assert engine.room() == 0
        assert {outcome.status for outcome in outcomes_of(engine, 2)} == {"complete"}
        assert engine.room() == 2
    finally:
        engine.close()
        engine.close()


def test_a_fork_server_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that does not work is an error, not a failure of every run."""
    monkeypatch.setattr(sys, "path", [])
    server = ForkServerClient()
    monkeypatch.undo()
    try:
        with pytest.raises(CboError, match="before it could start any: ModuleNotFoundError"):
            outcomes_of(server, 1)
    finally:
        server.close()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(CboError, match="cannot start a process for runs"):
        ForkServerClient()


@pytest.mark.slow
def test_torch_is_loaded_for_those_who_need_it_only(tmp_path: Path) -> None:
    """SCBO's run has torch on record and equals the run of this process; the others have none."""
    pytest.importorskip("torch")
    engine = LocalEngine(2)
    jobs = [job_of(tmp_path, name) for name in ("scbo", "random-search")]
    try:
        for job in jobs:
            engine.start(job)
        assert {outcome.status for outcome in outcomes_of(engine, 2)} == {"complete"}
        # A process with threads must not be forked.
        for server in engine._servers.values():
            status = Path(f"/proc/{server._process.pid}/status")
            assert not status.exists() or "Threads:\t1\n" in status.read_text()
    finally:
        engine.close()
    contents = [read_journal(job.journal) for job in jobs]
    versions = [found.header.versions for found in contents if found is not None]
    assert ["torch" in found for found in versions] == [True, False]
    path = tmp_path / "direct.jsonl"
    cbo.run("toy-2d-v1", "scbo", budget=12, n_init=5, seed=0, journal=path)
    direct = read_journal(path)
    assert direct is not None
    assert contents[0] is not None
    assert digest(direct.batches) == digest(contents[0].batches)
    assert [batch.x for batch in contents[0].batches] == [batch.x for batch in direct.batches]


def test_events_fit_a_pipe() -> None:
    """However long the texts are, a line is written in one piece."""
    fields = {"number": 1, "status": "failed", "error": "what " * 1000, "output": "\0é" * 5000}
    line = encode(fields)
    assert len(line) <= LINE_BYTES
    assert msgspec.json.decode(line)["error"].startswith("what what")
    assert encode({"number": 1, "error": "short", "output": "x" * 9000 + "end"}).count(b"end") == 1
    assert encode({"number": 1, "note": "begin" + "x" * 9000}).count(b"begin") == 1
