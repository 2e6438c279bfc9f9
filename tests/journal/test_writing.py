"""Writing: nothing but a journal is ever written to, and of two writers one stops."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import cbo_suite as cbo
from cbo_suite.errors import JournalError, JournalNotWritten, JournalTakenOver
from cbo_suite.journal import JournalWriter, read_journal
from tests.doubles import Disc, Hill

SETTINGS: dict[str, Any] = {"budget": 12, "batch_size": 2, "n_init": 4, "seed": 5}


@pytest.mark.parametrize(
    "content",
    [
        b"my thesis",
        b"my thesis\n",
        b"a,b\n1,2\n",
        b"\0",
        b"\n",
        b"{}",
        b"{}\n",
        b"[1, 2]\n",
        b'{"schema":2}\n',
        b'{"type":"headers"}',
        b'{"type":"header","schema":2,"task":{"problem":"another-v1"',
        b'{"type":"header","schema":2} my notes',
        b"\xff\xfe\x00",
        bytes(range(256)) * 20,
    ],
)
def test_a_file_that_is_no_journal_stays_as_it_is(content: bytes, tmp_path: Path) -> None:
    """With or without a newline, whatever it looks like."""
    path = tmp_path / "file"
    path.write_bytes(content)
    before = path.stat()
    with pytest.raises(JournalError, match=r"no journal|line 1: no header|line 1: its checksum"):
        cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    assert path.read_bytes() == content
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices have names on POSIX only")
def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """A folder, a pipe that nobody reads, a device; by its own name or by a link."""
    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for path in (folder, pipe, link, Path("/dev/null")):
        with pytest.raises(JournalError, match="no journal: choose the path of a file"):
            cbo.run(Disc(), Hill, journal=path, **SETTINGS)
        with pytest.raises(JournalError, match="no journal"):
            read_journal(path)


def test_paths_that_cannot_be_are_typed_errors(tmp_path: Path) -> None:
    """A zero byte, a name that is too long, the home of nobody."""
    for path in (tmp_path / "a\0b", tmp_path / ("x" * 300), "~nobody-here/run.jsonl"):
        with pytest.raises(JournalNotWritten, match="cannot create"):
            cbo.run(Disc(), Hill, journal=path, **SETTINGS)


def test_the_home_folder_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a shell."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    cbo.run(Disc(), Hill, journal="~/run.jsonl", **SETTINGS)
    assert read_journal(tmp_path / "run.jsonl") is not None


def test_the_beginning_of_this_header_may_be_replaced(tmp_path: Path) -> None:
    """An empty file and a header that was cut off, of this version or another machine."""
    path = tmp_path / "run.jsonl"
    cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    header = path.read_bytes().splitlines()[0]
    versions = header.index(b'"versions":') + 15
    for start in (b"", header[:1], header[:60], header[:versions], header[:versions] + b"x"):
        path.write_bytes(start)
        cbo.run(Disc(), Hill, journal=path, **SETTINGS)
        contents = read_journal(path)
        assert contents is not None
        assert contents.end is not None


@pytest.mark.skipif(os.name != "posix", reason="links and modes of POSIX")
def test_a_link_and_a_mode_outlive_a_resumed_run(tmp_path: Path) -> None:
    """The target of a link is replaced, not the link, and it keeps its mode."""
    path, link = tmp_path / "run.jsonl", tmp_path / "link.jsonl"
    cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    path.chmod(0o640)
    link.symlink_to(path)
    cbo.run(Disc(), Hill, journal=link, **SETTINGS)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    contents = read_journal(path)
    assert contents is not None
    assert contents.end is not None


def replaced(path: Path) -> None:
    """Put a copy in the place of a file, as another writer does."""
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def extended(path: Path) -> None:
    """Write to a file as somebody would who knows no rules."""
    with path.open("ab") as file:
        file.write(b'{"type":"batch"')


@pytest.mark.parametrize("change", [replaced, extended, Path.unlink])
@pytest.mark.parametrize("at", [2, 12])
def test_a_writer_stops_when_the_file_is_no_longer_its_own(
    change: Any, at: int, tmp_path: Path
) -> None:
    """Another inode, another size, or none: the writer says so and writes nothing more."""
    path = tmp_path / "run.jsonl"
    left: list[bytes] = []

    class Interfering(Hill):
        """While it is told its last batches, somebody takes over."""

        def tell(self, x: Any, evaluation: Any) -> None:
            super().tell(x, evaluation)
            self.told = getattr(self, "told", 0) + len(x)
            if self.told == at:
                change(path)
                left.append(path.read_bytes() if path.exists() else b"")

    with pytest.raises(JournalTakenOver, match="by another process: this one stops"):
        cbo.run(Disc(), Interfering, journal=path, **SETTINGS)
    assert (path.read_bytes() if path.exists() else b"") == left[0]


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_named_and_used(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning, once, and the run; of two writers the first to begin stops."""

    def flock(handle: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", flock)
    path = tmp_path / "run.jsonl"
    assert cbo.run(Disc(), Hill, journal=path, **SETTINGS).status == "complete"
    [record] = caplog.records
    assert "knows no locks" in record.getMessage()
    path.unlink()
    begun, taken = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def pause(progress: Any) -> None:
        begun.set()
        taken.wait(20)

    def first() -> None:
        try:
            cbo.run(Disc(), Hill, journal=path, callback=pause, **SETTINGS)
        except JournalTakenOver as error:
            errors.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(20)
    second = cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    whole = path.read_bytes()
    taken.set()
    thread.join()
    assert len(errors) == 1
    assert path.read_bytes() == whole
    assert len(second.x) == SETTINGS["budget"]


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_another_failure_of_a_lock_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as an error of the disk."""

    def flock(handle: int, operation: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(JournalNotWritten, match="Input/output error"):
        JournalWriter(tmp_path / "run.jsonl")


def test_a_disk_that_fails_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When fsync fails, at the first line or a later one, what was written is intact."""
    fsync, left = os.fsync, [0]

    def failing(handle: int) -> None:
        if left[0] == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        left[0] -= 1
        fsync(handle)

    path = tmp_path / "run.jsonl"
    for calls in (1, 4, 6):
        path.unlink(missing_ok=True)
        left[0] = calls
        monkeypatch.setattr(os, "fsync", failing)
        with pytest.raises(JournalNotWritten, match=r"Input/output error.* intact"):
            cbo.run(Disc(), Hill, journal=path, **SETTINGS)
        monkeypatch.undo()
        assert cbo.run(Disc(), Hill, journal=path, **SETTINGS).status == "complete"
