"""Files that are whole or not there after a crash, and locks that their holder cannot outlive."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no flock
    fcntl = None  # type: ignore[assignment]

# What a file system says that knows no locks, such as some network disks.
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file durably and put it in place in one step; a reader never sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def move_aside(path: Path, word: str) -> Path:
    """Give a file a name beside its own, such as `a.jsonl.damaged-1`, and return that."""
    number = 1
    while (aside := path.with_name(f"{path.name}.{word}-{number}")).exists():
        number += 1
    path.rename(aside)
    sync_folder(path.parent)
    return aside


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; some systems cannot open a folder, which is no loss."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock_file(handle: int, *, wait: bool) -> bool:
    """Lock an open file against other processes until it is closed or its holder dies.

    Args:
        handle: The open file.
        wait: Whether to wait for another holder.

    Returns:
        Whether it is locked: not where the file system knows no locks.

    Raises:
        BlockingIOError: Another process holds the lock, and there was no waiting for it.
        OSError: The lock failed otherwise.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True
