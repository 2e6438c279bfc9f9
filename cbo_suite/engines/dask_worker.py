"""What happens on a worker of a dask cluster: one supervised run in a folder of its own.

The worker is sent a job and its journal so far, and answers with the outcome and the journal as it
is then. Both ways the job and the outcome are JSON and the journal is compressed, so that what is
sent means the same to all versions of all libraries.
"""

from __future__ import annotations

import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from distributed import get_worker

from cbo_suite._version import __version__
from cbo_suite.engines import Job, Outcome, Progress, other_version
from cbo_suite.engines.local import LocalEngine
from cbo_suite.engines.supervise import follow
from cbo_suite.errors import CboError

WATCH_SECONDS = 0.5
# An engine that has nothing to do waits this long for its next run.
IDLE_SECONDS = 120.0

# Jobs by their names: those that this worker has begun, those it shall not begin or go on with.
_begun: set[str] = set()
_stopped: set[str] = set()
_running: dict[str, threading.Event] = {}
# Engines that are free: they have the libraries loaded, which takes longer than a short run.
_idle: list[LocalEngine] = []
_lock = threading.Lock()


def version() -> str:
    """Return the version of cbo-suite on this worker."""
    return __version__


def carry_out(
    wanted_version: str, name: str, data: bytes, journal: bytes, topic: str
) -> tuple[bytes, bytes]:
    """Carry out a job on this worker.

    Args:
        wanted_version: Version of cbo-suite that the campaign has.
        name: Name of the job, unique in the cluster.
        data: The `Job` as JSON; its path is not used.
        journal: The compressed journal so far, empty if there is none.
        topic: Where progress is told.

    Returns:
        The `Outcome` as JSON, and the compressed journal, empty if there is none.
    """
    job = msgspec.json.decode(data, type=Job)
    worker = get_worker()
    if version() != wanted_version:
        who = f"worker {worker.address}"
        return _refuse(job, other_version(who, version(), wanted_version))

    def tell(progress: Progress) -> None:
        worker.log_event(topic, msgspec.json.encode(progress).decode())

    with (
        _known(name, worker) as stop,
        # The worker's own folder, because dask clears it away should the worker be killed.
        tempfile.TemporaryDirectory(prefix="cbo-", dir=worker.local_directory) as folder,
    ):
        path = Path(folder, "journal.jsonl")
        if journal:
            path.write_bytes(zlib.decompress(journal))
        try:
            outcome = _supervise(msgspec.structs.replace(job, journal=str(path)), tell, stop)
        except CboError as error:
            return _refuse(job, f"worker {worker.address}: {error}")
        written = path.read_bytes() if path.exists() else b""
    return msgspec.json.encode(outcome), zlib.compress(written, 1) if written else b""


def stop_here(names: Iterable[str]) -> list[str]:
    """End these jobs on this worker and begin none of them; return those that it has begun."""
    with _lock:
        _stopped.update(names)
        for name in names:
            if name in _running:
                _running[name].set()
        return [name for name in names if name in _begun]


def _supervise(job: Job, tell: Callable[[Progress], object], stop: threading.Event) -> Outcome:
    """Carry out a job in processes of its own, which die with this worker.

    Raises:
        CboError: No process could be started here.
    """
    with _lock:
        engine = _idle.pop() if _idle else LocalEngine(1)
    try:
        outcome = follow(engine, job, on_progress=tell, stop=stop)
    except BaseException:
        engine.close()
        raise
    _keep(engine)
    return outcome


def _keep(engine: LocalEngine) -> None:
    """Keep an engine for the next run, but not for ever."""

    def retire() -> None:
        with _lock:
            if engine not in _idle:
                return
            _idle.remove(engine)
        engine.close()

    with _lock:
        _idle.append(engine)
    timer = threading.Timer(IDLE_SECONDS, retire)
    timer.daemon = True
    timer.start()


def _refuse(job: Job, error: str) -> tuple[bytes, bytes]:
    """Answer that this worker is not able to carry out a job; another attempt may find another."""
    return msgspec.json.encode(Outcome(job.task, "stopped", error)), b""


@contextmanager
def _known(name: str, worker: Any) -> Iterator[threading.Event]:
    """Let a job be stopped: by name, or because nobody waits for it any more."""
    stop, done = threading.Event(), threading.Event()
    with _lock:
        _begun.add(name)
        _running[name] = stop
        if name in _stopped:
            stop.set()
    key = worker.get_current_task()

    def watch() -> None:
        # A thread cannot be ended from outside, so that dask only marks what was cancelled, as
        # it also does when the campaign has disappeared.
        while not done.wait(WATCH_SECONDS):
            task = worker.state.tasks.get(key)
            if task is None or task.state not in ("executing", "long-running"):
                stop.set()
                return

    watcher = threading.Thread(target=watch, name="cbo-watch", daemon=True)
    watcher.start()
    try:
        yield stop
    finally:
        done.set()
        with _lock:
            del _running[name]
