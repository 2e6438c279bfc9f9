"""Evaluations in other processes: the same results, hard time-outs, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from click.testing import CliRunner

import cbo_suite as cbo
from cbo_suite.cli import main
from cbo_suite.engines import Job, Limits, Progress
from cbo_suite.engines.supervise import supervise
from cbo_suite.errors import EvaluationFailed, InvalidTask, JournalError, OptimizerFailed
from cbo_suite.harness.pool import EvaluationPool
from cbo_suite.protocols import Array
from cbo_suite.tasks import Task
from tests import black_boxes
from tests.black_boxes import BEHAVIOURS
from tests.doubles import Disc, Hill, StatefulHill, contents_of, defective, without_times

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
Settings = dict[str, Any]
BOX: Settings = {"lower": [0.0, 0.0], "upper": [float(len(BEHAVIOURS)), 1.0], "num_constraints": 1}


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name the folder for the notes of black boxes."""
    folder = tmp_path / "notes"
    folder.mkdir()
    monkeypatch.setenv("CBO_TEST_FOLDER", str(folder))
    return folder


def noted(folder: Path) -> list[int]:
    """Return the process ids that black boxes wrote down."""
    return [int(path.stem) for path in folder.glob("*.pid")]


def alive(pids: Iterable[int]) -> list[int]:
    """Keep the processes that run."""
    running = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                running.append(pid)
    return running


def gone(pids: list[int], seconds: float = 5.0) -> bool:
    """Tell whether all of these processes end within `seconds`."""
    limit = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < limit:
        time.sleep(0.05)
    return alive(pids) == []


def listed(points: Sequence[tuple[float, float]]) -> type[Hill]:
    """Make an optimizer that asks for these points, one after the other."""

    class Listed(Hill):
        """Knows what it wants."""

        given = 0

        def ask(self, n: int = 1) -> Array:
            first = self.given
            self.given += n
            return np.array(points[first : self.given], dtype=float)

    return Listed


@pytest.mark.parametrize("mode", [{"batch_size": 5}, {"workers": 3}])
@pytest.mark.parametrize("optimizer", [Hill, StatefulHill])
def test_processes_change_nothing_but_the_time(
    mode: Settings, optimizer: type[Hill], tmp_path: Path
) -> None:
    """Batches and workers give the same journal in this process, in two others, and resumed."""
    settings: Settings = {"budget": 23, "n_init": 6, "seed": 4, **mode}
    here, there, cut = (tmp_path / f"{name}.jsonl" for name in ("here", "there", "cut"))
    cbo.run("toy-2d-v1", optimizer, journal=here, **settings)
    cbo.run("toy-2d-v1", optimizer, journal=there, processes=2, **settings)
    assert without_times(there) == without_times(here)
    data = here.read_bytes()
    cut.write_bytes(data[: len(data) * 2 // 3])
    cbo.run("toy-2d-v1", optimizer, journal=cut, processes=2, **settings)
    assert without_times(cut) == without_times(here)


def test_points_are_evaluated_side_by_side() -> None:
    """Two processes overlap: together they take less than the evaluations one after the other."""
    ends = {}
    for processes in (1, 3):
        pool = EvaluationPool(Disc(pause=0.1), 1, processes, None)
        try:
            pool.start(0, np.zeros((3, 2)))
            pool.result(0)
            begin = time.perf_counter()
            pool.start(1, np.zeros((12, 2)))
            result = pool.result(1)
            ends[processes] = time.perf_counter() - begin
        finally:
            pool.close()
        assert result.seconds >= 1.2
    assert ends[1] >= 1.2
    assert ends[3] < ends[1]


def test_every_misbehaviour_costs_one_evaluation_and_nothing_is_left(
    notes: Path, tmp_path: Path
) -> None:
    """Late evaluations are killed within two seconds, dead processes replaced; the run goes on."""
    path = tmp_path / "run.jsonl"
    points = [(k + 0.5, 0.25) for k in range(len(BEHAVIOURS))] + [(0.5, 0.5)]
    settings: Settings = {
        **BOX,
        "budget": len(points),
        "n_init": 0,
        "optimizer": listed(points),
    }
    made = cbo.minimize(
        black_boxes.misbehave, journal=path, processes=2, evaluation_timeout=1.0, **settings
    ).run
    found = dict(
        zip([*BEHAVIOURS, "last"], zip(made.statuses, range(99), strict=False), strict=True)
    )
    messages = {name: made.messages.get(i, "") for name, (_, i) in found.items()}
    assert {name: status for name, (status, _) in found.items()} == {
        "good": "ok",
        "hang": "timeout",
        "ignore": "timeout",
        "grandchild": "timeout",
        "storm": "timeout",
        "segfault": "failed",
        "exit 0": "failed",
        "exit 7": "failed",
        "system exit": "failed",
        "raise": "failed",
        "hold": "timeout",
        "last": "ok",
    }
    assert messages["hang"] == "not done after 1 s, killed"
    assert messages["segfault"].endswith("was killed by SIGSEGV")
    assert messages["exit 0"].endswith("ended with exit status 0")
    assert messages["exit 7"].endswith("ended with exit status 7")
    assert messages["system exit"] == "SystemExit: 3"
    assert np.isnan(made.objective[1])
    assert not made.evaluation.feasible[1]
    late = [batch for batch in contents_of(path).batches if batch.status == ["timeout"]]
    assert all(1.0 <= batch.seconds_evaluation <= 3.0 for batch in late)
    assert len(noted(notes)) > 12
    assert gone(noted(notes))
    header = contents_of(path).header
    assert header.facts["evaluation_timeout"] == "1.0"
    for seconds in (1.0, 0.6):
        again = cbo.minimize(
            black_boxes.misbehave, journal=path, evaluation_timeout=seconds, **settings
        ).run
        assert again.digest == made.digest
        assert contents_of(path).header == header


def test_a_design_that_is_late_as_a_whole_ends_the_run() -> None:
    """The time-out is named as the reason."""
    with pytest.raises(EvaluationFailed, match=r"each of 5 points: not done after 0.2 s, killed"):
        cbo.minimize(black_boxes.sleepy, [5.0], [6.0], num_constraints=1, n_init=2,
                     optimizer="random-search", budget=5, evaluation_timeout=0.2)  # fmt: skip


def test_real_time_order_is_that_of_the_results_and_resumes_as_recorded(tmp_path: Path) -> None:
    """A slow evaluation is told when it is done, and a resumed run follows the record."""
    path = tmp_path / "run.jsonl"
    points = [(1.5, 0.0), *((0.001 * k, 0.0) for k in range(1, 8))]
    settings: Settings = {
        "lower": [0.0, 0.0],
        "upper": [2.0, 1.0],
        "num_constraints": 1,
        "budget": 8,
        "n_init": 0,
        "optimizer": listed(points),
        "workers": 2,
        "journal": path,
    }
    made = cbo.minimize(black_boxes.sleepy, real_time=True, **settings).run
    firsts = [batch.first for batch in contents_of(path).batches]
    assert sorted(firsts) == list(range(8))
    # Both processes start at the same time, and one point takes longer than the start.
    assert firsts.index(0) > 0
    clocks = [batch.clock for batch in contents_of(path).batches]
    assert clocks == sorted(clocks)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    resumed = cbo.minimize(black_boxes.sleepy, real_time=True, **settings).run
    assert [batch.first for batch in contents_of(path).batches][:3] == firsts[:3]
    assert resumed.status == "complete"
    assert np.array_equal(resumed.x[:3], made.x[:3])
    with pytest.raises(JournalError, match="its order is 'real-time', this run's is 'not set'"):
        cbo.minimize(black_boxes.sleepy, **settings)


def test_real_time_order_resumes_from_a_state_too(tmp_path: Path) -> None:
    """Whatever was told when, the optimizer goes on from its recorded state."""
    path = tmp_path / "run.jsonl"
    settings: Settings = {"budget": 14, "n_init": 3, "workers": 3, "real_time": True}
    cbo.run("toy-2d-v1", StatefulHill, journal=path, **settings)
    lines = path.read_bytes().splitlines(keepends=True)
    kept = b"".join(lines[:9])
    path.write_bytes(kept)
    resumed = cbo.run("toy-2d-v1", StatefulHill, journal=path, **settings)
    assert path.read_bytes().startswith(kept)
    assert len(resumed.x) == 14
    assert len({batch.first for batch in contents_of(path).batches}) == 14
    again = [np.array(p.x) for p in contents_of(path).batches[7].pending]
    assert all(any(np.array_equal(x, row[None]) for row in resumed.x) for x in again)


def test_one_thread_each_and_no_process_without_need() -> None:
    """Processes have one thread; points that come one by one are evaluated by one process."""
    made = cbo.minimize(
        black_boxes.threads, optimizer="random-search", budget=6, n_init=1, processes=3, **BOX
    ).run
    assert set(made.objective) == {1.0}
    assert len(set(made.constraints[:, 0])) == 1
    assert made.constraints[0, 0] != os.getpid()


def test_a_complete_journal_starts_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on record is read."""
    settings: Settings = {
        "budget": 6,
        "n_init": 2,
        "journal": tmp_path / "run.jsonl",
        "processes": 1,
    }
    first = cbo.run("toy-2d-v1", Hill, **settings)
    monkeypatch.setattr(EvaluationPool, "start", lambda *_: pytest.fail("was started"))
    assert cbo.run("toy-2d-v1", Hill, **settings).digest == first.digest


def test_the_pool_is_not_imported_unless_it_is_used() -> None:
    """A plain run does not pay for it."""
    code = "import cbo_suite as c, sys; c.run('toy-2d', 'random-search', budget=3, n_init=1)"
    code += "; sys.exit('pebble' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_what_cannot_be_sent_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """Lambdas and nested functions are named, and there is no journal."""
    path = tmp_path / "run.jsonl"
    with pytest.raises(InvalidTask, match="no lambda, no nested function"):
        cbo.minimize(lambda x: x, [0], [1], optimizer=Hill, processes=1, journal=path)
    assert not path.exists()


def run_script(program: str, folder: Path, **options: Any) -> subprocess.Popen[str]:
    """Start a script that can import the tests."""
    script = folder / "script.py"
    script.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script)]
    return subprocess.Popen(command, env=environment, text=True, **options)


def test_a_function_that_only_a_session_knows_is_refused() -> None:
    """What was typed at a prompt cannot be found by another process."""
    code = "import cbo_suite as c\ndef f(x): return x[:, 0]\n"
    code += "c.minimize(f, [0.0], [1.0], optimizer='random-search', budget=4, processes=1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "EvaluationFailed: the problem cannot be made in another process" in done.stderr
    assert "Can't get attribute 'f'" in done.stderr


def test_a_script_without_guard_is_told_so(tmp_path: Path) -> None:
    """Processes that start by running the script again are an error, not a fork bomb."""
    script = run_script(
        "import cbo_suite as c\n"
        "c.run('toy-2d', 'random-search', budget=4, n_init=1, processes=1)\n",
        tmp_path,
        stderr=subprocess.PIPE,
    )
    _, errors = script.communicate(timeout=100)
    assert script.returncode == 1
    assert 'under `if __name__ == "__main__":`' in errors


HANGING = """
import cbo_suite as c
from cbo_suite.tasks import Task
from tests import black_boxes
from tests.harness.test_pool import BOX, listed
if __name__ == "__main__":
    points = [(0.5, 0.5), (3.5, 0.5), (10.5, 0.5)]
    c.minimize(black_boxes.misbehave, optimizer=listed(points), budget=3, n_init=0, workers=3,
               processes=3, journal="run.jsonl", **BOX)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_a_run_that_is_stopped(number: int, notes: Path, tmp_path: Path) -> None:
    """Killed or interrupted, a run takes its processes, their children and hung C code along."""
    script = run_script(HANGING, tmp_path, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + 100
        while len(noted(notes)) < 4 and time.monotonic() < limit:
            time.sleep(0.05)
        assert len(alive(noted(notes))) == 4
        children = [child.pid for child in psutil.Process(script.pid).children(recursive=True)]
        script.send_signal(number)
        script.wait(10)
    finally:
        script.kill()
    assert gone(children)
    assert gone(noted(notes))


def test_nothing_outlives_a_run_that_fails(notes: Path) -> None:
    """The processes end when the optimizer raises while others are being evaluated."""

    def ask(self: Hill, n: int) -> Array:
        if self.asks == 2:
            while not noted(notes):
                time.sleep(0.05)
            raise RuntimeError("enough")
        return Hill.ask(self, n) * 0 + [[1.5, 0.0]]

    with pytest.raises(OptimizerFailed, match="enough"):
        cbo.minimize(
            black_boxes.misbehave, optimizer=defective(ask), budget=9, n_init=0, workers=3,
            processes=2, **BOX,
        )  # fmt: skip
    assert noted(notes)
    assert gone(noted(notes))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"processes": 0}, "processes must be a whole number >= 1, got 0"),
        ({"processes": 1.5}, "processes must be a whole number >= 1, got 1.5"),
        ({"evaluation_timeout": 0}, "evaluation_timeout must be seconds above 0, got 0"),
        ({"evaluation_timeout": float("nan")}, "evaluation_timeout must be seconds above 0"),
        ({"evaluation_timeout": "soon"}, "evaluation_timeout must be seconds above 0, got 'soon'"),
        ({"real_time": True}, "give workers"),
    ],
)
def test_settings_that_make_no_pool_are_refused(change: Settings, message: str) -> None:
    """The message names the setting and what was got."""
    with pytest.raises(InvalidTask, match=message):
        cbo.run(Disc(), Hill, budget=5, n_init=1, **change)


def test_a_supervised_run_takes_its_processes_along(tmp_path: Path) -> None:
    """A run of a campaign may evaluate in processes, and leaves none when it is ended."""
    task = Task("toy-2d-v1", "random-search", 10**6, 5, 10, 0)
    before = set(psutil.Process().children(recursive=True))
    seen: set[psutil.Process] = set()
    stop = threading.Event()

    def look(progress: Progress) -> None:
        seen.update(psutil.Process().children(recursive=True))
        if progress.evaluations > 0:
            stop.set()

    job = Job(task, str(tmp_path / "run.jsonl"), Limits(), {"processes": 2})
    outcome = supervise(job, on_progress=look, stop=stop)
    assert outcome.status == "stopped"
    assert outcome.evaluations > 0
    assert len(seen - before) > 4
    assert gone([process.pid for process in seen - before])


def test_the_command_evaluates_in_processes(tmp_path: Path) -> None:
    """The options of the command line are those of the function."""
    journal = tmp_path / "run.jsonl"
    options = ["--workers", "2", "--real-time", "--evaluation-timeout", "1m", "--budget", "12"]
    done = CliRunner().invoke(
        main, ["run", "toy-2d", "random-search", "--journal", str(journal), *options]
    )
    assert done.exit_code == 0, done.output
    assert "12 evaluations" in done.output
    facts = contents_of(journal).header.facts
    assert (facts["evaluation_timeout"], facts["order"]) == ("60.0", "real-time")
