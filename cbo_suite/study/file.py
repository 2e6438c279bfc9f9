"""The file of a study: one process at a time reads it and adds lines, others wait for it."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cbo_suite.errors import JournalError, JournalNotWritten, JournalTakenOver
from cbo_suite.files import lock_file, sync_folder
from cbo_suite.journal.lines import encode_line
from cbo_suite.journal.reading import refuse_special
from cbo_suite.study.lines import Beginning, StudyLine
from cbo_suite.study.reading import StudyContents, parse_study

# Windows would otherwise turn every newline into two characters.
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
# After this many seconds of waiting for another process a person is told.
_PATIENCE = 2.0

_log = logging.getLogger(__name__)


class LockedStudy:
    """A study while this process alone may change it.

    Attributes:
        contents: What it holds, None before its first line.
    """

    def __init__(self, path: Path, handle: int) -> None:
        """Read the file; what is torn at its end is cut off by the next line."""
        self._path, self._handle = path, handle
        self.contents: StudyContents | None = parse_study(_read(handle), path)
        self._length = os.fstat(handle).st_size

    @property
    def begun(self) -> StudyContents:
        """What a study holds that has its first line.

        Raises:
            JournalError: It has it no longer.
        """
        if self.contents is None:
            raise JournalError(f"{self._path} was emptied: restore it from a copy")
        return self.contents

    def append(self, line: StudyLine) -> StudyContents:
        """Write one line, wait until it is on the disk, and take it in.

        Raises:
            JournalNotWritten: The disk is full or fails; the study is as it was before.
            JournalError: The line does not follow from what is there.
            JournalTakenOver: The file was changed meanwhile, where there are no locks.
        """
        contents = self.contents
        size, before = (0, b"") if contents is None else (contents.size, contents.checksum)
        data, checksum = encode_line(line, before)
        if isinstance(line, Beginning):
            contents = StudyContents(line)
        elif contents is None or (reason := contents.add(line)):
            # What a reader would refuse is not written.
            raise JournalError(f"{self._path}: {reason if contents else 'it has not begun'}")
        if os.fstat(self._handle).st_size != self._length:
            raise JournalTakenOver(
                f"{self._path} was changed by another process, and its disk knows no locks: try "
                "again, one call at a time"
            )
        self._write(data, size)
        contents.checksum, contents.size = checksum, size + len(data)
        self.contents, self._length = contents, contents.size
        return contents

    def _write(self, data: bytes, place: int) -> None:
        """Write bytes at a place, the end of the file from then on, and wait for the disk."""
        try:
            os.ftruncate(self._handle, place)
            os.lseek(self._handle, place, os.SEEK_SET)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            os.fsync(self._handle)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, place)
            raise JournalNotWritten(
                f"cannot write {self._path}: {error.strerror}; what was written before is intact"
            ) from error


@contextmanager
def locked_study(path: Path) -> Iterator[LockedStudy]:
    """Open a study, or an empty file for one, and keep others from it until this ends.

    Raises:
        JournalNotWritten: The file cannot be opened or created.
        JournalError: It is something else than a study.
        JournalDamaged: It is not as it was written.
    """
    refuse_special(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        handle = os.open(path, _FLAGS, 0o644)
    except OSError as error:
        raise JournalNotWritten(
            f"cannot write {path}: {error.strerror}; choose a path that can be written"
        ) from error
    try:
        if is_new:
            sync_folder(path.parent)
        _lock(path, handle)
        yield LockedStudy(path, handle)
    finally:
        os.close(handle)


def _lock(path: Path, handle: int) -> None:
    """Wait until no other process has the file; say so if that takes long."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            locked = lock_file(handle, wait=False)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                _log.warning("%s: another process is at work on it; waiting", path)
                locked = lock_file(handle, wait=True)
                break
            time.sleep(0.02)
    if not locked and os.name == "posix":
        _log.warning("%s: the file system knows no locks; make one call at a time", path)


def _read(handle: int) -> bytes:
    """Read a whole file."""
    parts = []
    os.lseek(handle, 0, os.SEEK_SET)
    while part := os.read(handle, 2**20):
        parts.append(part)
    return b"".join(parts)
