"""Writing a journal: durably, by one process at a time, and to nothing but a journal.

A lock keeps a second writer away where locks work. Where they do not, or hold on one machine only,
this keeps two writers apart: whoever goes on with a journal works on a copy that takes its place,
and a writer that finds another file in its place, or one of another size than it left, stops. So a
process that stood still while another took over can spoil nothing when it wakes up.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from cbo_suite.errors import JournalError, JournalLocked, JournalNotWritten, JournalTakenOver
from cbo_suite.files import lock_file, sync_folder
from cbo_suite.journal.lines import SCHEMA, Batch, End, Header, Line, encode_line
from cbo_suite.journal.reading import parse_journal, refuse_special

# Windows would otherwise turn every newline into two characters.
_BINARY = getattr(os, "O_BINARY", 0)
# Opening a pipe that took the place of a file must not wait for its other end.
_FLAGS = os.O_RDWR | os.O_CREAT | _BINARY | getattr(os, "O_NONBLOCK", 0)
# How often a file may be replaced while it is opened before that is somebody at work.
_ATTEMPTS = 5

_log = logging.getLogger(__name__)


class JournalWriter:
    """Appends lines durably; one process at a time.

    Attributes:
        path: The path as it was given.
        contents: What the journal held when it was opened, None for nothing.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file, or make an empty one, lock it and read it; it is left as it is.

        Raises:
            JournalNotWritten: The file cannot be opened or created.
            JournalLocked: Another process writes it.
            JournalError: It is something else than a journal.
            JournalDamaged: It is not as it was written.
        """
        self.path = Path(path)
        self._file = -1
        self._warned = os.name != "posix"
        self._size: int | None = None
        self._checksum, self._evaluations = b"", 0
        try:
            # A link is followed now: its target is what is replaced.
            self._place = Path(os.path.realpath(self.path.expanduser()))
            self._place.parent.mkdir(parents=True, exist_ok=True)
            self._open()
            data = self._read()
        except (OSError, RuntimeError, ValueError) as error:
            self.close()
            if isinstance(error, JournalError | JournalLocked):
                raise
            reason = getattr(error, "strerror", None) or error
            raise JournalNotWritten(
                f"cannot create {self.path}: {reason}; choose a path that can be written"
            ) from error
        try:
            self.contents = parse_journal(data, self.path)
        except JournalError:
            self.close()
            raise
        self._torn = data if self.contents is None else b""

    def _open(self) -> None:
        """Open the file in our place and lock it."""
        for _ in range(_ATTEMPTS):
            refuse_special(self._place)
            is_new = not self._place.exists()
            self._file = os.open(self._place, _FLAGS, 0o644)
            self._lock(self._file)
            if is_new:
                sync_folder(self._place.parent)
            # Whoever had the lock before may have put a copy in its place.
            if self._is_ours():
                return
            os.close(self._file)
            self._file = -1
        raise JournalLocked(f"{self.path} is being replaced by another process: wait for it")

    def _lock(self, handle: int) -> None:
        """Lock a file; where there are no locks, say so and go on without."""
        try:
            locked = lock_file(handle, wait=False)
        except BlockingIOError as error:
            raise JournalLocked(
                f"{self.path} is being written by another process: wait for it, or choose "
                "another path"
            ) from error
        if not locked and not self._warned:
            self._warned = True
            _log.warning(
                "%s: the file system knows no locks; a second writer takes over, which this one "
                "notices and stops",
                self.path,
            )

    def _read(self) -> bytes:
        """Read the whole file."""
        parts = []
        os.lseek(self._file, 0, os.SEEK_SET)
        while part := os.read(self._file, 2**20):
            parts.append(part)
        return b"".join(parts)

    def _is_ours(self) -> bool:
        """Tell whether the file in our place is ours, as we left it.

        Before we begin, another that counts as dead may still be writing: what it adds to the file
        that we are about to replace does not keep us from that.
        """
        try:
            found = self._place.stat()
        except FileNotFoundError:
            return False
        ours = os.fstat(self._file)
        return os.path.samestat(found, ours) and self._size in (None, found.st_size)

    def _check_ours(self) -> None:
        """Stop if another process took over."""
        if not self._is_ours():
            raise JournalTakenOver(
                f"{self.path} was replaced, changed or removed by another process: this one stops"
            )

    def begin(self, header: Header, batches: Sequence[Batch] = ()) -> None:
        """Put a journal of these lines in the place of what was there, to go on with it.

        Raises:
            JournalError: What is there is neither a journal nor the beginning of this one.
            JournalNotWritten: The disk is full or fails; the file is as it was before.
            JournalTakenOver: Another process goes on with this journal.
        """
        lines, checksum = [], b""
        first: Line = msgspec.structs.replace(header, schema=SCHEMA)
        for line in (first, *batches):
            data, checksum = encode_line(line, checksum)
            lines.append(data)
        if self.contents is None and not _is_torn_header(self._torn, lines[0]):
            raise JournalError(
                f"{self.path} is no journal of this run; it is left as it is: choose another path"
            )
        try:
            self._replace(b"".join(lines))
        except OSError as error:
            raise self._not_written(error) from error
        self._checksum = checksum
        self._evaluations = sum(len(batch.status) for batch in batches)

    def _replace(self, data: bytes) -> None:
        """Put a file of these bytes in our place, locked before it is there."""
        handle, name = tempfile.mkstemp(dir=self._place.parent, prefix=f".{self._place.name}.")
        temporary = Path(name)
        try:
            self._lock(handle)
            temporary.chmod(stat.S_IMODE(os.fstat(self._file).st_mode))
            _write(handle, data)
            self._check_ours()
            if os.name != "posix":  # Windows replaces no file that is open
                os.close(handle)
                self.close()
                temporary.replace(self._place)
                handle = os.open(self._place, os.O_RDWR | _BINARY)
                os.lseek(handle, 0, os.SEEK_END)
            else:
                temporary.replace(self._place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.close(handle)
            temporary.unlink(missing_ok=True)
            raise
        self.close()
        self._file, self._size = handle, len(data)
        sync_folder(self._place.parent)

    def append(self, line: Line) -> None:
        """Write one line and wait until it is on the disk; an end is given the count.

        Raises:
            JournalNotWritten: The disk is full or fails; the file is as it was before.
            JournalTakenOver: Another process goes on with this journal.
        """
        if isinstance(line, End):
            line = msgspec.structs.replace(line, evaluations=self._evaluations)
        data, checksum = encode_line(line, self._checksum)
        self._check_ours()
        size = os.fstat(self._file).st_size
        try:
            _write(self._file, data)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
                os.lseek(self._file, size, os.SEEK_SET)
            raise self._not_written(error) from error
        self._size = size + len(data)
        self._checksum = checksum
        self._evaluations += len(line.status) if isinstance(line, Batch) else 0
        # What was written to a file that is no longer in its place was written in vain.
        self._check_ours()

    def _not_written(self, error: OSError) -> JournalNotWritten:
        """Say that a line cannot be written."""
        return JournalNotWritten(
            f"cannot write {self.path}: {error.strerror}; what was written before is intact, fix "
            "the cause and run again to resume"
        )

    def close(self) -> None:
        """Close the file, which also unlocks it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> JournalWriter:
        """Return the writer itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def _write(handle: int, data: bytes) -> None:
    """Write bytes and wait until they are on the disk."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.fsync(handle)


def _is_torn_header(data: bytes, header: bytes) -> bool:
    """Tell whether bytes are the beginning of a header, whatever versions it goes on to name."""
    start = header[: header.index(b',"options":')]
    written = data.replace(b'"schema":1,', b'"schema":%d,' % SCHEMA, 1)
    return start.startswith(written) or written.startswith(start)
