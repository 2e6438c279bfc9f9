"""Who works on what: leases on the tasks of a folder that several campaigns share.

A lease is a file that is created or not, in one step; while its owner works, the owner renews the
time of the file. An owner on this machine is dead when its process is; an owner elsewhere when its
lease was not renewed while somebody watched it for a minute, by the watcher's own clock: no clocks
of two machines are compared. A lock makes sure that of several who take over one succeeds. Where
there are no locks two may succeed for a moment, and the journal sees to it that only the later goes
on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from cbo_suite.errors import StoreNotWritten
from cbo_suite.files import lock_file

PATIENCE_SECONDS = 60.0  # without renewal, after which the owner of a lease counts as dead
RENEWALS = 6  # how often a lease is renewed in that time


_log = logging.getLogger(__name__)


class Lease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is in a lease.

    Attributes:
        owner: Name of the campaign, new with every call.
        machine: Name of the machine, its start and its process table, for comparison only.
        process: Process id of the campaign.
        started: When that process started, in the words of the system.
    """

    owner: str
    machine: str
    process: int
    started: str


def machine_name() -> str:
    """Name the machine such that equal names share a process table."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def started(process: int) -> str:
    """Say when a process of this machine started, "" if there is none.

    Process ids are used again; with the time of the start there is no mistake. Where the system
    does not tell it, every living process says the same.
    """
    try:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if Path("/proc/self").exists() or not _exists(process) else "running"
    # Field 3 is the state, field 22 the start.
    return "" if after_name[0] in "ZX" else after_name[19]


def _exists(process: int) -> bool:
    """Tell whether there is a process of this id."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


class Leases:
    """The leases of one campaign in a folder.

    Renewal has a thread of its own, so that a campaign that is busy keeps what it has.
    """

    def __init__(self, folder: Path, patience: float = PATIENCE_SECONDS) -> None:
        """Hold nothing yet.

        Args:
            folder: Folder of the campaign, which exists.
            patience: Seconds of watching without a renewal after which an owner elsewhere counts
                as dead.
        """
        self.patience = patience
        self.me = Lease(uuid.uuid4().hex, machine_name(), os.getpid(), started(os.getpid()))
        self._lock_path = folder / ".lock"
        self._content = msgspec.json.encode(self.me)
        self._held: set[Path] = set()
        self._lost: set[Path] = set()
        # Leases of others: what was last read of each, and since when it is the same.
        self._watched: dict[Path, tuple[_Reading, float]] = {}
        self._warned = False
        self._guard = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, path: Path) -> bool:
        """Take the lease that a path stands for; tell whether it is ours now.

        Raises:
            StoreNotWritten: The file cannot be written.
        """
        if not self._create(path):
            if self.is_alive(path) or not self._take_over(path):
                return False
        with self._guard:
            self._held.add(path)
        if self._thread is None:
            self._thread = threading.Thread(target=self._renew_all, name="leases", daemon=True)
            self._thread.start()
        return True

    def release(self, path: Path) -> None:
        """Give back a lease, unless it was lost."""
        with self._guard:
            self._held.discard(path)
            self._lost.discard(path)
        with contextlib.suppress(OSError), self._locked():
            if _read(path).lease == self.me:
                path.unlink(missing_ok=True)

    def holds(self, path: Path) -> bool:
        """Tell whether a lease is ours, by a look at the file."""
        try:
            return _read(path).lease == self.me
        except OSError:
            return False

    def lost(self) -> set[Path]:
        """Return leases that others took over because this process stood still for too long."""
        with self._guard:
            return set(self._lost)

    def close(self) -> None:
        """Give back all leases and end the thread, until something is taken again."""
        if self._thread is not None:
            self._closing.set()
            self._thread.join()
            self._closing.clear()
            self._thread = None
        for path in list(self._held):
            self.release(path)

    def is_alive(self, path: Path) -> bool:
        """Tell whether there is a lease whose owner lives, as far as that can be known.

        An owner elsewhere counts as living until its lease was watched for the whole patience.
        """
        try:
            found = _read(path)
        except OSError:
            self._watched.pop(path, None)
            return False
        lease, now = found.lease, time.monotonic()
        if lease is not None and lease.machine == self.me.machine:
            return lease.started != "" and started(lease.process) == lease.started
        before, since = self._watched.get(path, (None, now))
        if before != found:
            since = now
        self._watched[path] = found, since
        return now - since < self.patience

    def silent_seconds(self, path: Path) -> float:
        """Say how old the last sign of life is, by the clocks of two machines: a hint, no more."""
        try:
            found = _read(path)
        except OSError:
            return 0.0
        if found.lease is not None and found.lease.machine == self.me.machine:
            return 0.0
        return max(0.0, time.time() - found.renewed / 1e9)

    def _create(self, path: Path) -> bool:
        """Create the file of a lease; tell whether it was not there."""
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            except FileExistsError:
                return False
            try:
                os.write(handle, self._content)
            except OSError:
                path.unlink(missing_ok=True)
                raise
            finally:
                os.close(handle)
        return True

    def _take_over(self, path: Path) -> bool:
        """Replace a dead lease by ours; of several that try one succeeds, where locks work."""
        try:
            with self._locked():
                # Another may have taken it over meanwhile.
                if self.is_alive(path):
                    return False
                path.unlink(missing_ok=True)
                return self._create(path)
        except StoreNotWritten:
            raise
        except OSError:
            return False  # better wait than run a task twice

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the folder, which the system releases when its holder dies."""
        handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not lock_file(handle, wait=True) and not self._warned:
                self._warned = True
                _log.warning(
                    "%s: the file system knows no locks; campaigns on this folder go by leases and "
                    "by the files that journals are",
                    self._lock_path.parent,
                )
            yield
        finally:
            os.close(handle)

    def _renew_all(self) -> None:
        """Renew the leases held, again and again."""
        while not self._closing.wait(self.patience / RENEWALS):
            with self._guard:
                held = set(self._held)
            for path in held:
                ours = False
                with contextlib.suppress(OSError):
                    ours = _read(path).lease == self.me
                    if ours:
                        os.utime(path)
                if not ours:
                    with self._guard:
                        self._lost |= self._held & {path}


class _Reading(NamedTuple):
    """What a lease says: whose it is, None if its writing was cut off, and when it was renewed."""

    lease: Lease | None
    renewed: int


def _read(path: Path) -> _Reading:
    """Read a lease.

    A file that is opened has the time that the server knows, not one from a cache.
    """
    with path.open("rb") as file:
        content, renewed = file.read(), os.fstat(file.fileno()).st_mtime_ns
    try:
        return _Reading(msgspec.json.decode(content, type=Lease), renewed)
    except msgspec.DecodeError:
        return _Reading(None, renewed)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say of an error in writing what it means for the campaign.

    Raises:
        StoreNotWritten: The file cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise StoreNotWritten(
            f"cannot write {path}: {error.strerror}; what was written before is intact: fix the "
            "cause, or choose another folder, and run again"
        ) from error
