"""The engine of a dask.distributed cluster: runs on workers that share no disk with the campaign.

The client, in the process of the campaign, alone writes journals: a worker is sent the journal of a
run as it is, and the journal comes back with the outcome. When a worker is lost, dask gives its
runs to others, which begin where the journal stood when it was sent; how often it does is its
setting `distributed.scheduler.allowed-failures`.

A cluster is trusted as far as dask trusts it, which sends Python objects between its parts. What a
worker answers is checked all the same before it is written.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
import zlib
from concurrent.futures import CancelledError
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import msgspec

from cbo_suite._version import __version__
from cbo_suite.engines import EngineOptions, Event, Job, Outcome, Progress, other_version
from cbo_suite.errors import (
    TEXT_LENGTH,
    CboError,
    InvalidTask,
    MissingExtra,
    describe,
    one_line,
)
from cbo_suite.files import write_whole
from cbo_suite.journal import Contents, parse_journal
from cbo_suite.tasks import Task

if TYPE_CHECKING:
    from distributed import Client

# Progress as text, None to look at the futures, or an answer to `stop`: the jobs that were to be
# stopped, and those of them that workers have begun.
_News = str | None | tuple[list[str], set[str]]

CONNECT_SECONDS = 10.0
FETCH_SECONDS = 30.0
ROOM_SECONDS = 1.0
CLOSE_SECONDS = 1.5
# No journal is longer; a compressed one that claims to be is refused unread.
JOURNAL_BYTES = 2**30


class _Sent(msgspec.Struct):
    """A job that a worker shall carry out: its future, and the journal that was sent along."""

    job: Job
    future: Any
    journal: bytes
    begin: float


class DaskEngine:
    """Carries out jobs on the workers of a cluster."""

    def __init__(self, scheduler: str, jobs: int | None) -> None:
        """Connect to the scheduler and look at its workers.

        Args:
            scheduler: Its address, such as "tcp://10.0.0.1:8786".
            jobs: Number of runs side by side, None for one on each thread of the workers.

        Raises:
            CboError: No scheduler answers, it has no workers, or they cannot carry out runs.
        """
        from distributed import Client

        self._address, self._jobs = scheduler, jobs
        self._name = f"cbo-{uuid.uuid4().hex}"
        self._sent: dict[str, _Sent] = {}
        self._news: SimpleQueue[_News] = SimpleQueue()
        self._threads, self._looked = 0, 0.0
        try:
            self._client: Client = Client(
                scheduler, timeout=CONNECT_SECONDS, set_as_default=False, name=self._name
            )
        except (OSError, ValueError) as error:
            raise CboError(
                f"no dask scheduler answers at {scheduler}: {error}; start one with "
                "`dask scheduler` and give its address"
            ) from error
        try:
            self._check_workers()
            self._client.subscribe_topic(self._name, self._listen)
        except BaseException:
            self.close()
            raise

    def room(self) -> int:
        """Return how many more runs could begin, by the threads of the workers."""
        now = time.monotonic()
        if now - self._looked > ROOM_SECONDS:
            self._check_connection()
            self._threads = sum(self._client.nthreads().values())
            self._looked = now
        limit = self._threads if self._jobs is None else min(self._jobs, self._threads)
        return max(0, limit - len(self._sent))

    def start(self, job: Job) -> None:
        """Send a job with its journal to the cluster."""
        from cbo_suite.engines.dask_worker import carry_out

        self._check_connection()
        name = f"{self._name}-{uuid.uuid4().hex}"
        path = Path(job.journal)
        journal = path.read_bytes() if path.exists() else b""
        future = self._client.submit(
            carry_out,
            __version__,
            name,
            # Paths of the campaign are no business of a worker.
            msgspec.json.encode(msgspec.structs.replace(job, journal="")),
            zlib.compress(journal, 1) if journal else b"",
            self._name,
            key=name,
            pure=False,
        )
        self._sent[name] = _Sent(job, future, journal, time.monotonic())
        future.add_done_callback(lambda _: self._news.put(None))

    def wait(self, seconds: float) -> list[Event]:
        """Return what happened, after `seconds` at most; journals are written by then."""
        self._check_connection()
        deadline = time.monotonic() + seconds
        events: list[Event] = []
        while True:
            for name in [name for name, sent in self._sent.items() if sent.future.done()]:
                events += self._fetch(name)
            while not self._news.empty():
                events += self._hear(self._news.get())
            left = deadline - time.monotonic()
            if events or left <= 0.0:
                return events
            with contextlib.suppress(Empty):
                events += self._hear(self._news.get(timeout=left))

    def stop(self, task: Task | None = None) -> None:
        """Ask the workers to end runs; what no worker has begun is withdrawn."""
        from cbo_suite.engines.dask_worker import stop_here

        names = [name for name, sent in self._sent.items() if task in (None, sent.job.task)]

        def ask() -> None:
            answers = self._client.run(stop_here, names, on_error="ignore")
            self._news.put((names, {name for begun in answers.values() for name in begun}))

        # The workers may take their time, for which nobody has to wait.
        threading.Thread(target=ask, name="cbo-stop", daemon=True).start()

    def close(self) -> None:
        """Withdraw all jobs, on which the workers end their runs, and disconnect."""
        futures = [sent.future for sent in self._sent.values()]
        self._sent.clear()

        def leave() -> None:
            if futures and self._client.status == "running":
                self._client.cancel(futures, force=True)
            self._client.close(timeout=CLOSE_SECONDS)

        leaving = threading.Thread(target=leave, name="cbo-close", daemon=True)
        leaving.start()
        leaving.join(CLOSE_SECONDS)

    def _check_workers(self) -> None:
        """Refuse a cluster without workers, or with workers that have no cbo-suite of our kind."""
        from cbo_suite.engines.dask_worker import version

        answers: dict[str, Any] = self._client.run(version, on_error="return")
        if not answers:
            raise CboError(
                f"the dask scheduler at {self._address} has no workers: start some with "
                f"`dask worker {self._address}`"
            )
        for worker, answer in sorted(answers.items()):
            if isinstance(answer, Exception):
                raise CboError(
                    f"dask worker {worker} cannot carry out runs: {answer}; install cbo-suite "
                    f"{__version__} there, with the extras that the runs need"
                )
            if answer != __version__:
                raise CboError(other_version(f"dask worker {worker}", answer, __version__))

    def _check_connection(self) -> None:
        """Refuse to go on without a scheduler."""
        if self._client.status != "running":
            raise CboError(
                f"the dask scheduler at {self._address} is gone; journals that arrived are kept, "
                "run again to go on"
            )

    def _listen(self, event: tuple[Any, Any]) -> None:
        """Take what a worker says of its progress, if it is a text."""
        self._news.put(event[1] if isinstance(event[1], str) else None)

    def _hear(self, news: _News) -> list[Event]:
        """Make events of what happened."""
        if isinstance(news, str):
            progress = accept_progress(news)
            tasks = [sent.job.task for sent in self._sent.values()]
            return [progress] if progress is not None and progress.task in tasks else []
        if news is None:
            return []
        names, begun = news
        events: list[Event] = []
        for name in names:
            sent = self._sent.get(name)
            if name not in begun and sent is not None and not sent.future.done():
                self._client.cancel([sent.future], force=True)
                del self._sent[name]
                events.append(Outcome(sent.job.task, "stopped", "withdrawn before it began"))
        return events

    def _fetch(self, name: str) -> list[Event]:
        """Bring back what a worker answered and write the journal."""
        sent = self._sent[name]
        try:
            answer = sent.future.result(timeout=FETCH_SECONDS)
        except TimeoutError:
            # The worker was lost with its answer, and dask has it made again.
            return []
        except (Exception, CancelledError) as error:
            # A scheduler that goes away takes all futures with it.
            self._check_connection()
            text = f"the dask cluster lost the run: {describe(error)}"
            outcome = Outcome(sent.job.task, "killed", text)
        else:
            try:
                outcome = accept(sent.job, answer, sent.journal)
            except CboError as error:
                outcome = Outcome(sent.job.task, "failed", describe(error))
        del self._sent[name]
        return [outcome]


def accept(job: Job, answer: object, sent: bytes) -> Outcome:
    """Check what a worker answered, and write the journal that came with it.

    Args:
        job: The job.
        answer: Outcome as JSON and compressed journal, if the worker is what it should be.
        sent: The journal that it was given.

    Raises:
        CboError: The answer is not what it should be; nothing was written.
    """
    match answer:
        case (bytes() as data, bytes() as packed):
            pass
        case _:
            raise CboError(f"a dask worker answered with {type(answer).__name__}")
    try:
        outcome = msgspec.json.decode(data, type=Outcome)
        unpacking = zlib.decompressobj()
        journal = unpacking.decompress(packed, JOURNAL_BYTES)
    except (msgspec.DecodeError, zlib.error) as error:
        raise CboError(f"a dask worker answered with nonsense: {error}") from error
    if outcome.task != job.task:
        raise CboError(f"a dask worker answered for another run, {one_line(outcome.task.name)}")
    if unpacking.unconsumed_tail:
        raise CboError(f"a dask worker sent a journal of more than {JOURNAL_BYTES} bytes")
    contents = parse_journal(journal, "the journal from a dask worker")
    _check_journal(contents, job, outcome, sent)
    path = Path(job.journal)
    if (path.read_bytes() if path.exists() else b"") != sent:
        text = "another campaign went on with the journal meanwhile: this one's part is dropped"
        return Outcome(job.task, "taken", text, seconds=outcome.seconds)
    if contents is not None:
        # A last line that is torn is dropped here already.
        write_whole(path, journal[: journal.rfind(b"\n") + 1])
    return msgspec.structs.replace(
        outcome, error=one_line(outcome.error), output=outcome.output[-TEXT_LENGTH:]
    )


def accept_progress(text: str) -> Progress | None:
    """Take what a worker says of a run's progress, None if it is nonsense."""
    try:
        progress = msgspec.json.decode(text, type=Progress)
    except msgspec.DecodeError:
        return None
    return msgspec.structs.replace(progress, note=one_line(progress.note))


def _check_journal(contents: Contents | None, job: Job, outcome: Outcome, sent: bytes) -> None:
    """Refuse a journal of another run, one that lost something, or one that is not complete."""
    if contents is not None and contents.header.task != job.task:
        raise CboError("a dask worker sent the journal of another run")
    earlier = parse_journal(sent, job.journal)
    if earlier is not None and contents is not None:
        kept = contents.batches[: len(earlier.batches)]
        # A journal of an older format is brought to the present one by who goes on with it.
        header = msgspec.structs.replace(earlier.header, schema=contents.header.schema)
        if earlier.batches != kept or header != contents.header:
            raise CboError("a dask worker sent a journal that does not continue the one it got")
    if outcome.status == "complete":
        done = 0 if contents is None else sum(len(batch.x) for batch in contents.batches)
        ended = contents is not None and contents.end is not None
        if not ended or done != job.task.budget:
            raise CboError(
                f"a dask worker says that a run is complete, but its journal has {done} of "
                f"{job.task.budget} evaluations"
            )


def make(options: EngineOptions) -> DaskEngine:
    """Make the engine.

    Raises:
        MissingExtra: distributed is not installed.
        InvalidTask: There is no address of a scheduler.
    """
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra.of("the dask engine", error.name, "dask") from error
    if not options.scheduler:
        raise InvalidTask(
            "the dask engine needs the address of a scheduler: --scheduler tcp://HOST:8786"
        )
    return DaskEngine(options.scheduler, options.jobs)
