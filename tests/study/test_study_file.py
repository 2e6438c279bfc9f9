"""The file of a study: torn, damaged, full, shared, or something else altogether."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cbo_suite import Space
from cbo_suite.errors import InvalidTask, JournalDamaged, JournalError, JournalTakenOver
from cbo_suite.study import Point, Study, read_study
from cbo_suite.study.file import locked_study
from cbo_suite.study.lines import Raised

SPACE = Space([0.0, -1.0], [1.0, 1.0], 1)


def answer(study: Study, points: list[Point]) -> None:
    """Tell a result of every point."""
    for id_, x in points:
        study.tell(id_, float(x.sum()), [-0.5])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a study is to be."""
    return tmp_path / "study.jsonl"


def test_torn_last_line_is_dropped_and_asked_again(path: Path) -> None:
    """Wherever a crash cuts the line of an ask, the next ask gives the same points."""
    study = Study(path, SPACE, optimizer="sobol-search", budget=9, n_init=2)
    answer(study, study.ask(2))
    before = path.read_bytes()
    (point,) = study.ask()
    whole = path.read_bytes()
    for cut in range(len(before), len(whole), 7):
        path.write_bytes(whole[:cut])
        assert len(read_study(path).asked) == 2
        (again,) = Study(path).ask()
        assert np.array_equal(again.x, point.x)
    # Some disks leave zeros in the place of what was not written.
    path.write_bytes(whole[: len(before) + 20] + b"\0" * 30 + b"\n")
    assert len(Study(path).ask()) == 1
    path.write_bytes(before[:10])
    with pytest.raises(InvalidTask, match="empty"):
        Study(path)


def test_damage_is_found(path: Path) -> None:
    """A changed bit and a lost or doubled line are refused with the number of the line."""
    study = Study(path, SPACE, optimizer="sobol-search", budget=9, n_init=2)
    for _ in range(2):
        answer(study, study.ask(1))
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 5
    for number, line in enumerate(lines):
        middle = line[:40] + bytes([line[40] ^ 1]) + line[41:]
        for bad in ([middle], [line, line], []):
            data = b"".join([*lines[:number], *bad, *lines[number + 1 :]])
            if data == b"".join(lines[:-1]):
                continue  # a lost last line leaves no trace
            path.write_bytes(data)
            with pytest.raises(JournalError):
                read_study(path)
            with pytest.raises(JournalError):
                Study(path).ask()
            assert path.read_bytes() == data
    path.write_bytes(b"".join(lines)[:-1] + b" ")
    with pytest.raises(JournalDamaged, match="newline is gone"):
        read_study(path)


def test_something_else_is_left_alone(tmp_path: Path) -> None:
    """No file that is not a study is written to."""
    journal = tmp_path / "other.jsonl"
    journal.write_text('{"type":"header","schema":2}\n')
    with pytest.raises(JournalError, match="no study"):
        Study(journal, SPACE)
    with pytest.raises(JournalError, match="a folder"):
        Study(tmp_path, SPACE)
    assert journal.read_text() == '{"type":"header","schema":2}\n'


def test_newer_format_is_refused(path: Path) -> None:
    """Its version is named."""
    Study(path, SPACE, optimizer="sobol-search")
    path.write_bytes(path.read_bytes().replace(b'"schema":1', b'"schema":9', 1))
    with pytest.raises(JournalError, match="format 9 of a study, this version reads 1"):
        read_study(path)


def test_full_disk_leaves_the_study_as_it_was(path: Path) -> None:
    """The error says so, and what was there is intact."""
    pytest.importorskip("resource", reason="needs limits of Unix")
    Study(path, SPACE, optimizer="sobol-search", budget=9).ask(2)
    before = path.read_bytes()
    code = (
        "import resource\n"
        "from cbo_suite.study import Study\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 20}, {len(before) + 20}))\n"
        f"Study({str(path)!r}).tell(1, 0.5, [-1.0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "JournalNotWritten: cannot write" in done.stderr
    assert path.read_bytes() == before


def test_change_by_another_is_noticed_without_locks(path: Path) -> None:
    """Where a second process could come in, the first one does not write over what it wrote."""
    Study(path, SPACE, optimizer="sobol-search", budget=9).ask(2)
    with locked_study(path) as study:
        with path.open("ab") as file:
            file.write(b"x")
        with pytest.raises(JournalTakenOver, match="changed by another process"):
            study.append(Raised(12))
    assert path.read_bytes().endswith(b"x")


def test_call_waits_for_another_and_says_so(path: Path) -> None:
    """A result that comes while somebody thinks is taken afterwards."""
    pytest.importorskip("fcntl", reason="needs locks of Unix")
    study = Study(path, SPACE, optimizer="sobol-search", budget=9)
    study.ask(2)
    command = [sys.executable, "-m", "cbo_suite", "tell", str(path), "2", "0.5", "-1"]
    with locked_study(path) as held:
        telling = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert telling.stderr is not None
        assert "another process is at work on it; waiting" in telling.stderr.readline()
        held.append(Raised(12))
    telling.communicate()
    assert telling.returncode == 0
    contents = study.contents()
    assert (contents.budget, list(contents.told)) == (12, [2])
