"""The folder of a campaign: leases that nobody has twice, and what files say of a run."""

from __future__ import annotations

import errno
import multiprocessing
import os
import subprocess
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import msgspec
import pytest

import cbo_suite as cbo
from cbo_suite.campaign.leases import Lease, Leases, machine_name, started
from cbo_suite.campaign.store import Store
from cbo_suite.engines import Outcome
from cbo_suite.errors import InvalidTask, StoreNotWritten
from cbo_suite.tasks import Task

pytestmark = pytest.mark.skipif(os.name != "posix", reason="campaigns run on Linux and macOS")
TASK = Task("toy-2d-v1", "random-search", 12, 1, 5, 0)


def lease_of(path: Path, **changes: object) -> None:
    """Write a lease as another campaign would."""
    lease = Lease("someone", "another machine", 1, "1")
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(lease, **changes)))


def test_a_lease_is_taken_once_and_given_back(tmp_path: Path) -> None:
    """Two campaigns, one lease."""
    path = tmp_path / "0.claim"
    one, two = Leases(tmp_path), Leases(tmp_path)
    assert one.take(path)
    assert not two.take(path)
    assert two.is_alive(path)
    two.release(path)
    assert path.exists()
    one.release(path)
    assert not path.exists()
    assert two.take(path)
    two.close()
    assert not path.exists()
    one.close()


def take_all(folder: str, count: int, barrier: Barrier, results: object) -> None:
    """Take as many leases as possible, at the same time as others."""
    leases = Leases(Path(folder))
    barrier.wait()
    mine = [number for number in range(count) if leases.take(Path(folder) / f"{number}.claim")]
    results.put(mine)  # type: ignore[attr-defined]
    barrier.wait()  # nobody dies before all have tried
    leases.close()


@pytest.mark.parametrize("dead", [False, True])
def test_every_lease_has_one_owner(dead: bool, tmp_path: Path) -> None:
    """Four processes race for 100 leases, new ones or those of a dead campaign."""
    if dead:
        for number in range(100):
            lease_of(tmp_path / f"{number}.claim", machine=machine_name(), process=2**22 + 1)
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(4), context.Queue()
    racers = [
        context.Process(target=take_all, args=(str(tmp_path), 100, barrier, results))
        for _ in range(4)
    ]
    for racer in racers:
        racer.start()
    taken = [number for _ in racers for number in results.get(timeout=60)]
    for racer in racers:
        racer.join()
    assert sorted(taken) == list(range(100))


def test_a_dead_process_of_this_machine_is_dead_at_once(tmp_path: Path) -> None:
    """Its lease is taken over without waiting; one of a living process never is."""
    path = tmp_path / "0.claim"
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lease_of(path, machine=machine_name(), process=sleeper.pid, started=started(sleeper.pid))
    os.utime(path, (1.0, 1.0))
    leases = Leases(tmp_path, patience=0.01)
    assert not leases.take(path)
    # The same id with another start is another process.
    lease_of(path, machine=machine_name(), process=sleeper.pid, started="1")
    assert leases.take(path) == Path("/proc/self").exists()
    leases.release(path)
    lease_of(path, machine=machine_name(), process=sleeper.pid, started=started(sleeper.pid))
    sleeper.communicate(b"\n")
    assert leases.take(path)
    leases.close()


def test_a_dead_machine_is_dead_after_a_while_of_watching(tmp_path: Path) -> None:
    """Not while its lease is renewed, however old or new it is by whoever's clock."""
    path = tmp_path / "0.claim"
    lease_of(path)
    leases = Leases(tmp_path, patience=0.4)
    begin = time.monotonic()
    # A clock that is years behind, one that is ahead; each change is a sign of life.
    for stamp in (1.0, time.time() + 1e6, 2.0, 1.0, 3.0):
        os.utime(path, (stamp, stamp))
        assert not leases.take(path)
        time.sleep(0.15)
    assert time.monotonic() - begin > leases.patience
    watched = time.monotonic()
    os.utime(path, (4.0, 4.0))
    while not leases.take(path):
        assert time.monotonic() - watched < 20
        time.sleep(0.01)
    assert time.monotonic() - watched >= leases.patience
    assert leases.holds(path)
    leases.close()


def test_a_lease_cut_off_in_writing_is_respected_for_a_while(tmp_path: Path) -> None:
    """Nobody knows whose it is, so it is watched like that of another machine."""
    path = tmp_path / "0.claim"
    path.write_bytes(b'{"owner":"some')
    os.utime(path, (1.0, 1.0))
    leases = Leases(tmp_path, patience=0.2)
    assert not leases.take(path)
    time.sleep(0.25)
    assert leases.take(path)
    leases.close()


def test_without_locks_a_dead_lease_is_taken_over_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The folder of a network disk may know no locks: said once, and gone on."""

    def flock(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)
    leases = Leases(tmp_path)
    for number in range(2):
        path = tmp_path / f"{number}.claim"
        lease_of(path, machine=machine_name(), process=2**22 + 1)
        assert leases.take(path)
        assert leases.holds(path)
    leases.close()
    assert not list(tmp_path.glob("*.claim"))
    [record] = caplog.records
    assert "knows no locks" in record.getMessage()


def test_leases_are_renewed_and_losses_noticed(tmp_path: Path) -> None:
    """The time of the file goes on; when another has taken over, the owner learns of it."""
    path = tmp_path / "0.claim"
    leases = Leases(tmp_path, patience=0.3)
    assert leases.take(path)
    os.utime(path, (1.0, 1.0))
    deadline = time.monotonic() + 20
    while path.stat().st_mtime < 2.0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert path.stat().st_mtime > 2.0
    assert leases.lost() == set()
    lease_of(path)
    while not leases.lost() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert leases.lost() == {path}
    leases.release(path)
    assert leases.lost() == set()
    assert path.exists()  # it belongs to another
    leases.close()


def test_a_lease_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    """A file where a folder should be."""
    (tmp_path / "toy-2d-v1").write_text("")
    store = Store(tmp_path)
    with pytest.raises(StoreNotWritten, match=r"cannot write .*0\.claim: .*intact"):
        store.leases.take(store.lease_path(TASK))


def test_the_states_of_a_run(tmp_path: Path) -> None:
    """From nothing through a torn journal and a failure to the end."""
    store = Store(tmp_path)
    assert store.state(TASK) == ("missing", None, "")
    assert store.tasks() == []
    path = store.journal(TASK)
    cbo.run("toy-2d-v1", "random-search", budget=12, n_init=5, seed=0, journal=path)
    whole = path.read_bytes()
    assert store.state(TASK).word == "done"
    assert store.tasks() == [TASK]
    for size in (1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert store.state(TASK).word == "interrupted"
    outcome = Outcome(TASK, "timeout", "it took too long", "last words", 3.0)
    store.write_outcome(outcome)
    assert store.state(TASK) == ("failed", outcome, "timeout: it took too long")
    store.write_outcome(Outcome(TASK, "killed", "by somebody"))
    assert store.state(TASK)[::2] == ("interrupted", "killed: by somebody")
    # The journal decides.
    path.write_bytes(whole)
    assert store.state(TASK).word == "done"
    path.unlink()
    assert store.state(TASK).word == "missing"


def test_a_damaged_journal_is_a_state_of_its_own(tmp_path: Path) -> None:
    """With the line, whatever the last attempt said; set aside it is kept under another name."""
    store = Store(tmp_path)
    path = store.journal(TASK)
    cbo.run("toy-2d-v1", "random-search", budget=12, n_init=5, seed=0, journal=path)
    lines = path.read_bytes().splitlines(keepends=True)
    store.write_outcome(Outcome(TASK, "complete"))
    for number, changed in enumerate(([*lines[:3], *lines[4:]], [b"\xff\xfe\n\n"]), start=1):
        path.write_bytes(b"".join(changed))
        word, _, error = store.state(TASK)
        assert word == "damaged"
        assert f"0.jsonl, line {(4, 1)[number - 1]}:" in error
        aside = store.set_aside(TASK)
        assert aside.name == f"0.jsonl.damaged-{number}"
        assert aside.read_bytes() == b"".join(changed)
        assert store.state(TASK).word == "missing"
    assert store.tasks() == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names on POSIX only")
def test_what_is_no_file_in_the_place_of_a_journal_is_damage(tmp_path: Path) -> None:
    """A pipe that nobody writes to is not waited for."""
    store = Store(tmp_path)
    path = store.journal(TASK)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert store.state(TASK).word == "damaged"
    assert store.tasks() == []


def test_a_damaged_plan_is_a_typed_error(tmp_path: Path) -> None:
    """It is named, with what to do."""
    store = Store(tmp_path)
    store.write_plan([TASK])
    [plan] = (tmp_path / "plans").iterdir()
    plan.write_bytes(plan.read_bytes()[:20])
    with pytest.raises(InvalidTask, match="is no plan"):
        store.tasks()


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "nul\0", "x" * 300])
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    """Ids become folders, so they must be fit for that."""
    store = Store(tmp_path)
    for task in (Task(name, "scbo", 1, 1, 0, 0), Task("toy-2d-v1", name, 1, 1, 0, 0)):
        with pytest.raises(InvalidTask, match="cannot name a folder"):
            store.journal(task)


def test_plans_add_up(tmp_path: Path) -> None:
    """What was ever planned is known; the same plan twice is one file."""
    store = Store(tmp_path)
    second = Task("toy-2d-v1", "random-search", 12, 1, 5, 1)
    store.write_plan([second])
    store.write_plan([second])
    store.write_plan([TASK, second])
    assert len(list((tmp_path / "plans").iterdir())) == 2
    assert store.tasks() == [TASK, second]
