"""Supervised executables: every misbehaviour is a typed error and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cbo_suite.errors import (
    ExecutableCrashed,
    ExecutableFailed,
    ExecutableFlooded,
    ExecutableLeftProcesses,
    ExecutableOutputInvalid,
    ExecutableTimeout,
)
from cbo_suite.problems.mopta08 import executable, executable_guard
from cbo_suite.problems.mopta08.executable import (
    evaluate_points,
    read_numbers,
    run_all,
)
from cbo_suite.protocols import Array
from tests.problems.stand_ins import batch, compile_c, processes_of, script, wait_until_gone

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="looks into /proc for what is left behind"
)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the folder of all temporary folders, and check at the end that nothing is left."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []
    assert processes_of(tmp_path) == []


def evaluate(
    path: Path, x: Array, timeout: float = 30.0, workers: int = 2
) -> tuple[Array, dict[int, ExecutableFailed]]:
    """Evaluate points with a script, which gives 69 values."""
    return evaluate_points(path, x, 69, timeout=timeout, workers=workers)


def test_numbers_arrive_with_full_precision(tmp_path: Path, scratch: Path) -> None:
    """What a script copies from its input is the point itself, to the bit."""
    x = batch(4)
    x[0, :6] = [0.0, 1.0, 5e-324, 1 - 2**-53, 0.1, 1 / 3]
    values, failures = evaluate(script(tmp_path / "copy", "exit 1"), x)
    assert failures == {}
    assert np.array_equal(values, x[:, :69])


def test_the_points_of_a_batch_run_side_by_side(tmp_path: Path, scratch: Path) -> None:
    """Two calls that wait for each other both end."""
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    wait = f'touch {meeting}/$$; until [ "$(ls {meeting} | wc -l)" = 2 ]; do sleep 0.01; done'
    path = script(tmp_path / "meet", "", good=f"{wait}; head -n 69 input.txt > output.txt")
    assert evaluate(path, batch(2))[1] == {}


def test_results_keep_the_order_asked(tmp_path: Path, scratch: Path) -> None:
    """The call that ends last stands where its point stood."""
    path = script(tmp_path / "late", "sleep 0.5; head -n 69 input.txt > output.txt")
    x = batch(5, bad=0)
    values, failures = evaluate(path, x, workers=3)
    assert failures == {}
    assert np.array_equal(values, x[:, :69])


def test_the_executable_sees_its_own_folder_and_hardly_any_environment(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No variable of the user, no argument, a new folder for every call, and limits."""
    monkeypatch.setenv("SECRET_TOKEN", "x")
    seen = tmp_path / "seen"
    look = f'echo "$# $PWD $(ulimit -f) $(ulimit -c)" >> {seen}; /usr/bin/env >> {seen}.env'
    path = script(tmp_path / "look", "", good=f"{look}; head -n 69 input.txt > output.txt")
    assert evaluate(path, batch(2), workers=1)[1] == {}
    first, second = (line.split() for line in seen.read_text().splitlines())
    assert first[0] == second[0] == "0"
    assert first[1] != second[1]
    assert Path(first[1]).parent == scratch
    assert first[3] == "0"
    assert int(first[2]) * 512 <= executable.FILE_BYTES
    names = {line.partition("=")[0] for line in Path(f"{seen}.env").read_text().splitlines()}
    assert names <= {"PATH", "LC_ALL", "HOME", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"}


STAY = "sleep 1000"
FULL = "head -n 69 input.txt > output.txt"
MISBEHAVIOURS = {
    "hangs": ("sleep 1000", ExecutableTimeout, r"did not end within 1 s and was killed"),
    "hangs and ignores signals": (
        "trap '' TERM INT HUP; while true; do sleep 1000; done",
        ExecutableTimeout,
        "did not end",
    ),
    "spins": ("while true; do :; done", ExecutableTimeout, "did not end"),
    "segfault": ("kill -SEGV $$", ExecutableCrashed, "killed by SIGSEGV"),
    "status": (
        "printf 'no licence\\033[31m\\nline two\\n' >&2; exit 3",
        ExecutableCrashed,
        r"ended with status 3; its stderr begins: no licence\\x1b\[31m \| line two",
    ),
    "68 numbers": (
        "head -n 68 input.txt > output.txt",
        ExecutableOutputInvalid,
        r"must write 69 numbers to output.txt, got 68",
    ),
    "70 numbers": ("head -n 70 input.txt > output.txt", ExecutableOutputInvalid, "got 70"),
    "no number": (": > output.txt", ExecutableOutputInvalid, "got 0"),
    "NaN": (f"{FULL}; sed -i 5s/.*/NaN/ output.txt", ExecutableOutputInvalid, "'NaN' in place 5"),
    "infinite": (f"{FULL}; sed -i 5s/.*/inf/ output.txt", ExecutableOutputInvalid, "'inf'"),
    "overflow": (f"{FULL}; sed -i 5s/.*/1e999/ output.txt", ExecutableOutputInvalid, "1e999"),
    "text": (f"{FULL}; sed -i 5s/.*/1_0/ output.txt", ExecutableOutputInvalid, "'1_0'"),
    "no output": ("echo sorry >&2", ExecutableOutputInvalid, r"no file output\.txt.*sorry"),
    "output is a pipe": ("mkfifo output.txt", ExecutableOutputInvalid, "no file output.txt"),
    "output is a link": (
        "ln -s input.txt output.txt",
        ExecutableOutputInvalid,
        "no file output.txt",
    ),
    "floods stdout": ("yes", ExecutableFlooded, "may write 1048576 bytes.*stdout"),
    "floods stderr": ("yes >&2", ExecutableFlooded, "wrote more to stderr"),
    "floods output.txt": ("yes > output.txt", ExecutableFlooded, r"wrote more to output\.txt"),
    "floods and stays": ("yes; sleep 1000", ExecutableFlooded, "stdout"),
    "leaves a child": (f"{FULL}; {STAY} &", ExecutableLeftProcesses, "left 1 running processes"),
    "leaves a child in another session": (
        f"{FULL}; (setsid {STAY} &) ; sleep 0.1",
        ExecutableLeftProcesses,
        "left 1 running",
    ),
    "leaves a hundred": (
        f"{FULL}; i=0; while [ $i -lt 50 ]; do setsid {STAY} & {STAY} & i=$((i+1)); done",
        ExecutableLeftProcesses,
        r"left \d+ running",
    ),
    "hangs with children": (f"setsid {STAY} & {STAY} & {STAY}", ExecutableTimeout, "did not end"),
    "removes its folder": ('rm -rf "$PWD"', ExecutableOutputInvalid, "no file output.txt"),
    "kills its guard": ("kill -9 $PPID; sleep 1000", ExecutableCrashed, "guard was killed"),
    "stops its guard": ("kill -STOP $PPID; sleep 1000", ExecutableTimeout, "did not answer"),
}


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_misbehaviour_is_a_typed_error_of_its_point_alone(
    name: str, tmp_path: Path, scratch: Path
) -> None:
    """The points before and after are evaluated, and no process and no folder is left."""
    commands, kind, message = MISBEHAVIOURS[name]
    path = script(tmp_path / "misbehave", commands)
    x = batch(3, bad=1)
    # A hang is not waited for; all else may take its time on a busy machine.
    timeout = 1.0 if kind is ExecutableTimeout else 30.0
    if name == "floods and stays":
        timeout = 1.0
    values, failures = evaluate(path, x, timeout=timeout)
    assert list(failures) == [1]
    assert type(failures[1]) is kind
    assert failures[1].args == (str(failures[1]),)
    assert np.array_equal(values[[0, 2]], x[[0, 2], :69])
    assert np.isnan(values[1]).all()
    with pytest.raises(kind, match=message):
        raise failures[1]
    if "guard" in name:
        wait_until_gone(tmp_path, scratch)


def test_memory_is_limited(tmp_path: Path, scratch: Path) -> None:
    """A program that asks for more than it may is refused by the system."""
    source = (
        "#include <stdlib.h>\n"
        f"int main(void) {{ return malloc({2 * executable.MEMORY_BYTES}UL) == NULL ? 9 : 0; }}"
    )
    _, failures = evaluate(compile_c(tmp_path, source), batch(1))
    assert "status 9" in str(failures[0])


def test_what_cannot_be_started_says_why(tmp_path: Path, scratch: Path) -> None:
    """A file for another machine, one without permission, none at all."""
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"\x7fELF" + bytes(60))
    foreign.chmod(0o755)
    plain = tmp_path / "plain"
    plain.write_text("1\n")
    for path, reason in [
        (foreign, "Exec format error"),
        (plain, "Permission denied"),
        (tmp_path / "absent", "No such file"),
    ]:
        _, failures = evaluate(path, batch(1))
        assert isinstance(failures[0], ExecutableCrashed)
        assert reason in str(failures[0])


def test_an_empty_batch_needs_no_executable(tmp_path: Path) -> None:
    """No point, no call."""
    values, failures = evaluate(tmp_path / "absent", np.empty((0, 124)))
    assert values.shape == (0, 69)
    assert failures == {}


def test_a_full_disk_is_an_error_of_the_point(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be made ends no batch."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    outputs = run_all(script(tmp_path / "copy", ""), ["1\n"], timeout=5.0, workers=1)
    assert isinstance(outputs[0], ExecutableFailed)
    assert "could not be set up" in str(outputs[0])


def test_windows_is_told_to_use_the_subsystem(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no supervision there, so there is no evaluation."""
    monkeypatch.setattr(executable, "SUPERVISED", False)
    with pytest.raises(ExecutableFailed, match="Windows Subsystem for Linux"):
        run_all(Path("x"), ["1\n"], timeout=1.0, workers=1)


@pytest.mark.parametrize("text", ["1 2", "1\n2", " +1.5e0\n.5E-3 ", "1.\n-0"])
def test_numbers_are_read_as_written(text: str) -> None:
    """Any white space, any usual form."""
    assert read_numbers(text, 2) == [float(word) for word in text.split()]


OWNER = """
import sys
from pathlib import Path
from cbo_suite.problems.mopta08.executable import run_all
run_all(Path(sys.argv[1]), ["1\\n"] * 5, timeout=300.0, workers=3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_owner_is_the_end_of_its_calls(
    number: signal.Signals, tmp_path: Path, scratch: Path
) -> None:
    """Ctrl-C and even SIGKILL leave no process and no folder."""
    started = tmp_path / "started"
    started.mkdir()
    hang = f"(setsid {STAY} &); touch {started}/$$; {STAY}"
    path = script(tmp_path / "hang", "", good=hang)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(path)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
        cwd=ROOT,
    )
    while len(list(started.iterdir())) < 3:
        assert owner.poll() is None
        time.sleep(0.02)
    owner.send_signal(number)
    _, errors = owner.communicate(timeout=30)
    assert owner.returncode != 0
    assert ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)
    wait_until_gone(tmp_path, scratch)
    # Two calls had not begun, and never did.
    assert len(list(started.iterdir())) == 3


def test_calls_from_many_threads_do_not_disturb_each_other(tmp_path: Path, scratch: Path) -> None:
    """Batches of several threads at once, some with a bad point."""
    path = script(tmp_path / "crash", "exit 1")
    results: dict[int, tuple[Array, dict[int, ExecutableFailed]]] = {}

    def work(bad: int) -> None:
        results[bad] = evaluate(path, batch(3, bad=bad))

    threads = [threading.Thread(target=work, args=(bad,)) for bad in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {bad: list(failures) for bad, (_, failures) in results.items()} == {
        0: [0],
        1: [1],
        2: [2],
    }


def test_the_guard_sweeps_a_process_group_where_orphans_are_not_adopted(tmp_path: Path) -> None:
    """This is how it works on macOS: the group is found, killed and gone."""
    group = subprocess.Popen(
        ["/bin/sh", "-c", f"{STAY} & {STAY}"], start_new_session=True, cwd=tmp_path
    )
    assert executable_guard.survivors(group.pid, adopts=False) == [-group.pid]
    os.killpg(group.pid, signal.SIGKILL)
    group.wait()
    deadline = time.monotonic() + 20.0
    while executable_guard.survivors(group.pid, adopts=False) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert executable_guard.survivors(group.pid, adopts=False) == []
