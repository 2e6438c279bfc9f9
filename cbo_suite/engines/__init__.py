"""Where runs are carried out: on this machine, on a dask cluster, by Slurm.

A campaign decides what is run; an engine carries it out. The campaign gives an engine one `Job` at
a time while it has room, and takes `Progress` and `Outcome` as they come:

    engine = make_engine("local", EngineOptions(jobs=2))
    try:
        while jobs or running:
            while jobs and engine.room() > 0:
                engine.start(jobs.pop())
            for event in engine.wait(1.0):
                ...
    finally:
        engine.close()

Every job that was started gives exactly one `Outcome`, whatever happens to it, unless the engine is
closed before. An engine never decides that a run is to be repeated for a fault of the run itself;
when it loses a machine it starts the job again there or elsewhere, from the journal that it has.

The journal is what counts. When an engine gives the outcome of a job, the file `job.journal` holds
all that the run has written, on the disk of the campaign: an engine whose machines do not share
that disk sends the journal there, lets it grow there and brings it back, before the outcome.
`cbo_suite.engines.supervise.supervise` carries out one job in processes of its own, wherever it is
called; engines on other machines are made of that function and of what moves files and words.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal, Protocol, cast

import msgspec

from cbo_suite.errors import UnknownId
from cbo_suite.tasks import Task

ENGINES = ("local", "dask", "slurm")

# How a run ended:
#   complete  the whole budget is on record
#   skipped   the optimizer declares that it cannot handle the task
#   failed    an error with a name: of the optimizer, the problem, the journal, a missing library
#   timeout   it took longer than it may and was ended
#   memory    it wanted more memory than it may have
#   crashed   it ended by itself without a word: an exit status, a segmentation fault
#   killed    it was ended from outside: a signal, a machine that disappeared
#   stopped   it was asked to end, or its journal cannot be written: disk full
#   taken     another process has its journal, or took it over
Status = Literal[
    "complete", "skipped", "failed", "timeout", "memory", "crashed", "killed", "stopped", "taken"
]
# Of these the next campaign makes a new attempt of its own accord: no fault of the run.
INTERRUPTED: tuple[Status, ...] = ("killed", "stopped", "taken")


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a run may use.

    Attributes:
        seconds: Time on the wall from its start, None for any.
        memory: Bytes of memory (of address space, where the system can limit that) beyond what
            the interpreter and the libraries take before the run begins; None for any.
    """

    seconds: float | None = None
    memory: int | None = None


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task that is to be carried out. Plain data: it goes as JSON from machine to machine.

    Attributes:
        task: What to run.
        journal: Path of the journal. It is resumed if it is there, and made with its folders if
            not.
        limits: What the run may use.
        settings: Fields of `cbo_suite.harness.Settings` beside journal and callback, as plain JSON.
    """

    task: Task
    journal: str
    limits: Limits = Limits()
    settings: dict[str, Any] = {}


class Progress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a run is; given now and then, never after the outcome.

    Attributes:
        task: The task.
        evaluations: Number of evaluations so far.
        best_objective: Objective value of the best point, None if there is none.
        best_violation: Its total violation, 0 if it is feasible, None if there is none.
        note: What keeps the run from going on for a while, "" for nothing.
    """

    task: Task
    evaluations: int = 0
    best_objective: float | None = None
    best_violation: float | None = None
    note: str = ""


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a run ended.

    Attributes:
        task: The task.
        status: One word, see `Status`.
        error: What went wrong, in a line, "" for a run that is complete.
        output: The end of what the run printed; bounded, whatever it printed.
        seconds: Time on the wall of this attempt.
        evaluations: Number of evaluations, those of earlier attempts among them, as far as known.
        best_objective: Objective value of the best point, None if none is known.
        best_violation: Its total violation, 0 if it is feasible, None if none is known.
    """

    task: Task
    status: Status
    error: str = ""
    output: str = ""
    seconds: float = 0.0
    evaluations: int = 0
    best_objective: float | None = None
    best_violation: float | None = None


Event = Progress | Outcome


class EngineOptions(msgspec.Struct, frozen=True):
    """What the command line knows of an engine; each engine takes what concerns it.

    Attributes:
        jobs: Number of runs side by side, None for as many as the engine has room for.
        scheduler: Address of a dask scheduler, "" for none.
        folder: Folder of the campaign; an engine may keep its own files in `folder/.<engine>`.
        settings: Settings of the engine by name, such as the partition of Slurm.
    """

    jobs: int | None = None
    scheduler: str = ""
    folder: str = ""
    settings: dict[str, str] = {}


class Engine(Protocol):
    """Carries out jobs. Not thread-safe: one thread calls all methods."""

    def room(self) -> int:
        """Return how many more jobs could begin now; 0 if none. It may change at any time."""
        ...

    def start(self, job: Job) -> None:
        """Begin a job, soon and without waiting for it.

        A job that cannot begin gives an outcome like any other.

        Raises:
            CboError: The engine as a whole does not work (no scheduler, no processes).
        """
        ...

    def wait(self, seconds: float) -> list[Event]:
        """Wait until something happens, at most `seconds`, and return what has happened.

        Raises:
            CboError: The engine as a whole does not work any more.
        """
        ...

    def stop(self, task: Task | None = None) -> None:
        """Ask one run, or all, to end early; does not wait.

        What has not begun does not begin. The outcomes follow through `wait`, soon: "stopped" for
        runs that had to be ended.
        """
        ...

    def close(self) -> None:
        """End all runs at once, wait for that (two seconds at most) and let go of everything.

        No outcome follows. To be called in any case, also twice, also after an exception.
        """
        ...


def other_version(who: str, version: str, campaign: str) -> str:
    """Say that somebody has another version of cbo-suite than the campaign, and what to do."""
    return f"{who} has cbo-suite {version}, the campaign {campaign}: install the same version"


def make_engine(name: str, options: EngineOptions) -> Engine:
    """Make the engine of this name: the function `make` of the module `cbo_suite.engines.<name>`.

    Raises:
        UnknownId: No such engine.
        MissingExtra: It needs a library that is not installed.
    """
    if name not in ENGINES:
        raise UnknownId(f"unknown engine {name!r}: choose one of {', '.join(ENGINES)}")
    return cast(Engine, import_module(f"cbo_suite.engines.{name}").make(options))
