"""Journals: durable, resumable, refused when they do not fit."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.errors import JournalDamaged, JournalError, JournalLocked, JournalNotWritten
from cbo_suite.journal import Batch, JournalWriter, digest, read_journal, restarts, to_json_numbers
from tests.doubles import (
    Disc,
    Hill,
    RunSettings,
    StatefulHill,
    contents_of,
    defective,
    without_times,
)

# Python 3.12 warns of any fork beside threads; the children here use none of the parent's.
FORK_WARNING = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
SETTINGS: RunSettings = {"budget": 31, "batch_size": 4, "n_init": 6, "seed": 5}


@pytest.mark.parametrize("optimizer", [Hill, StatefulHill])
@pytest.mark.parametrize("workers", [None, 3])
def test_a_run_cut_at_any_byte_resumes_to_the_same_bytes(
    optimizer: type[Hill], workers: int | None, tmp_path: Path
) -> None:
    """Whatever the length of what is left, the resumed run equals the uninterrupted one."""
    whole = tmp_path / "whole.jsonl"
    expected = cbo.run(Disc(), optimizer, journal=whole, workers=workers, **SETTINGS)
    data = whole.read_bytes()
    random = np.random.default_rng(0)
    cut = tmp_path / "cut.jsonl"
    for size in [0, 1, *random.integers(2, len(data), 25).tolist(), len(data) - 1]:
        cut.write_bytes(data[:size])
        contents = read_journal(cut)
        kept = 0 if contents is None else sum(len(batch.x) for batch in contents.batches)
        problem = Disc()
        resumed = cbo.run(problem, optimizer, journal=cut, workers=workers, **SETTINGS)
        assert resumed.digest == expected.digest
        assert without_times(cut) == without_times(whole)
        assert len(problem.points) == SETTINGS["budget"] - kept


def test_a_complete_run_is_read_without_running_anything(tmp_path: Path) -> None:
    """The same call again gives the run of the journal and evaluates nothing."""
    path = tmp_path / "run.jsonl"
    first = cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    before = path.read_bytes()
    problem = Disc()
    asked = defective(ask=lambda self, n: 1 / 0)
    asked.__qualname__, asked.__module__ = Hill.__qualname__, Hill.__module__
    again = cbo.run(problem, asked, journal=path, **SETTINGS)
    assert problem.points == []
    assert again.digest == first.digest
    assert again.seconds_optimizer == first.seconds_optimizer
    assert path.read_bytes() == before


def test_a_state_spares_the_recomputation(tmp_path: Path) -> None:
    """With a state the resumed optimizer is asked only for what is new."""
    path = tmp_path / "run.jsonl"
    cbo.run(Disc(), StatefulHill, journal=path, **SETTINGS)
    lines = path.read_bytes().splitlines(keepends=True)
    made: list[Hill] = []

    class Counting(StatefulHill):
        """Remembers its instances."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            made.append(self)

    Counting.__qualname__ = StatefulHill.__qualname__
    Counting.__module__ = StatefulHill.__module__
    path.write_bytes(b"".join(lines[:-3]))
    cbo.run(Disc(), Counting, journal=path, **SETTINGS)
    assert made[0].asks == 2


@pytest.mark.parametrize(
    ("change", "workers", "difference"),
    [
        ({"seed": 6}, None, "its seed is 5, this run's is 6;"),
        ({"batch_size": 3}, None, "its batch_size is 4, this run's is 3;"),
        ({"n_init": 5}, None, "its n_init is 6, this run's is 5;"),
        ({}, 2, "its workers is None, this run's is 2;"),
    ],
)
def test_a_journal_of_another_task_is_refused_and_kept(
    change: RunSettings, workers: int | None, difference: str, tmp_path: Path
) -> None:
    """The message says what differs; the file is untouched."""
    path = tmp_path / "run.jsonl"
    cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=f"belongs to another run: {difference}"):
        cbo.run(Disc(), Hill, journal=path, workers=workers, **(SETTINGS | change))
    assert path.read_bytes() == before


def test_a_journal_of_another_box_is_refused(tmp_path: Path) -> None:
    """The same function on another box is another problem."""
    path = tmp_path / "run.jsonl"

    def minimize(upper: list[float]) -> None:
        cbo.minimize(
            lambda x: x.sum(axis=1),
            [0, 0],
            upper,
            optimizer="random-search",
            budget=12,
            journal=path,
        )

    minimize([1, 1])
    with pytest.raises(JournalError, match="its bounds, kinds of variables or linear"):
        minimize([1, 2])


def test_an_optimizer_that_does_not_replay_is_found(tmp_path: Path) -> None:
    """A resumed run whose optimizer asks for other points stops and loses nothing."""
    path = tmp_path / "run.jsonl"
    cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))
    kept = path.read_bytes()
    moody = defective(ask=lambda self, n: self.space.from_unit(np.full((n, 2), 0.123)))
    moody.__qualname__, moody.__module__ = Hill.__qualname__, Hill.__module__
    with pytest.raises(JournalError, match="does not replay: evaluation 6"):
        cbo.run(Disc(), moody, journal=path, **SETTINGS)
    assert path.read_bytes() == kept


def test_a_changed_line_in_the_middle_is_named_and_the_file_kept(tmp_path: Path) -> None:
    """What is not a torn tail is damage, and nothing is thrown away."""
    path = tmp_path / "run.jsonl"
    cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    lines = path.read_bytes().splitlines(keepends=True)
    changed = b"".join([*lines[:3], b'{"type":"batch","first":1}\n', *lines[4:]])
    path.write_bytes(changed)
    with pytest.raises(JournalDamaged, match=r"run\.jsonl, line 4: its checksum is wrong"):
        cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    assert path.read_bytes() == changed


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    """A journal that is being written is refused to a second writer."""
    path = tmp_path / "run.jsonl"
    with JournalWriter(path), pytest.raises(JournalLocked, match="another process"):
        cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    assert cbo.run(Disc(), Hill, journal=path, **SETTINGS).status == "complete"


def run_into_a_limit(path: Path, limit: int) -> None:
    """Run with a limit on the size of files: the disk is full in the middle of a line."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    except JournalNotWritten as error:
        os._exit(0 if "File too large" in str(error) and "intact" in str(error) else 3)
    os._exit(4)


@FORK_WARNING
@pytest.mark.parametrize("limit", [100, 1000, 1500, 2000])
def test_a_full_disk_is_a_clear_error_and_what_was_written_is_intact(
    limit: int, tmp_path: Path
) -> None:
    """The journal holds whole lines only, and the run resumes once there is room."""
    path = tmp_path / "run.jsonl"
    child = multiprocessing.get_context("fork").Process(target=run_into_a_limit, args=(path, limit))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert path.stat().st_size == 0 or path.read_bytes().endswith(b"\n")
    resumed = cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    assert resumed.digest == cbo.run(Disc(), Hill, **SETTINGS).digest


def test_a_path_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    """A folder that is a file is named with the reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalNotWritten, match=r"cannot create .*run\.jsonl"):
        cbo.run(Disc(), Hill, journal=tmp_path / "file" / "run.jsonl", **SETTINGS)


@given(st.lists(st.floats(), min_size=1, max_size=20))
@settings(deadline=None)
def test_numbers_survive_the_journal(values: list[float]) -> None:
    """Every double comes back with its bits, NaN as NaN."""
    array = np.array(values)
    text = json.dumps(to_json_numbers(array), allow_nan=False)
    back = np.array([float(value) for value in json.loads(text)])
    assert np.array_equal(back, array, equal_nan=True)
    assert np.array_equal(np.signbit(back), np.signbit(array) & ~np.isnan(array))


def test_the_digest_sees_every_value(tmp_path: Path) -> None:
    """One changed bit in a point, an objective or a constraint gives another digest."""
    path = tmp_path / "run.jsonl"
    cbo.run(Disc(), Hill, journal=path, **SETTINGS)
    batches = contents_of(path).batches
    original = digest(batches)
    for field in ("x", "objective", "constraints"):
        line = json.loads(path.read_bytes().splitlines()[3])
        values = np.array(line[field], dtype=float)
        values.flat[-1] = np.nextafter(values.flat[-1], np.inf)
        changed = type(batches[2])(
            **{name: getattr(batches[2], name) for name in batches[2].__struct_fields__}
            | {field: values.tolist()}
        )
        assert digest([*batches[:2], changed, *batches[3:]]) != original


def told(size: int, inspection: dict[str, Any] | None) -> Batch:
    """Make a batch of `size` points with what the optimizer said."""
    return Batch(
        first=0,
        x=[[0.0]] * size,
        objective=[0.0] * size,
        constraints=[[]] * size,
        status=["ok"] * size,
        clock=1.0,
        seconds_optimizer=0.0,
        seconds_evaluation=0.0,
        inspection=inspection,
    )


def test_restarts_are_the_first_evaluations_after_each() -> None:
    """By what the optimizer says with each batch; whoever says nothing has None."""
    counts = [0, 0, 1, 1, 3, 3]
    batches = [
        told(size, {"restarts": c}) for size, c in zip([5, 2, 2, 3, 1, 1], counts, strict=True)
    ]
    assert restarts(batches) == [7, 12]
    assert restarts(batches[:2]) == []
    assert restarts([told(3, None), told(2, {"length": 0.8}), told(1, {"restarts": "?"})]) is None


KILLS = 200


def run_and_acknowledge(path: Path, pipe: int, workers: int | None) -> None:
    """Run in a child and tell the parent every acknowledged evaluation."""
    cbo.run(
        Disc(pause=0.0005),
        StatefulHill,
        journal=path,
        workers=workers,
        callback=lambda progress: os.write(pipe, b"."),
        **(SETTINGS | {"budget": 60}),
    )
    os._exit(0)


@pytest.mark.slow
@FORK_WARNING
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork to start 200 runs quickly")
def test_200_kills_lose_nothing(tmp_path: Path) -> None:
    """Killed at random moments, every journal is readable and resumes to the same bytes.

    No evaluation that was acknowledged to the caller is lost.
    """
    random = np.random.default_rng(1)
    settings_: RunSettings = SETTINGS | {"budget": 60}
    whole = {}
    for workers in (None, 2):
        whole[workers] = tmp_path / f"whole-{workers}.jsonl"
        cbo.run(Disc(), StatefulHill, journal=whole[workers], workers=workers, **settings_)
    context = multiprocessing.get_context("fork")
    interrupted = 0
    for trial in range(KILLS):
        workers = (None, 2)[trial % 2]
        path = tmp_path / f"{trial}.jsonl"
        reader, writer = os.pipe()
        child = context.Process(target=run_and_acknowledge, args=(path, writer, workers))
        child.start()
        assert child.pid is not None
        os.close(writer)
        child.join(float(random.uniform(0, 0.12)))
        if child.is_alive():
            os.kill(child.pid, signal.SIGKILL)
        child.join()
        acknowledged = len(os.read(reader, 10_000))
        os.close(reader)
        contents = read_journal(path) if path.exists() else None
        written = 0 if contents is None else len(contents.batches)
        assert written >= acknowledged
        interrupted += child.exitcode == -signal.SIGKILL
        cbo.run(Disc(), StatefulHill, journal=path, workers=workers, **settings_)
        assert without_times(path) == without_times(whole[workers])
    assert interrupted > KILLS / 4
