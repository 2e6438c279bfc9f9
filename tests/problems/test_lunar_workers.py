"""Landings on many processes: same rewards, and no trouble for whoever starts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from cbo_suite.errors import EvaluationFailed
from cbo_suite.problems.lunar_lander import HEURISTIC, LunarLander
from cbo_suite.problems.lunar_lander import workers as lunar_workers
from cbo_suite.problems.lunar_lander.flight import fly
from cbo_suite.problems.lunar_lander.workers import Flight, Pool, fly_all

pytestmark = pytest.mark.slow

# Importing Box2D to see whether it is there would turn its warnings into errors, and crash.
if find_spec("Box2D") is None:
    pytest.skip("needs the extra lunar", allow_module_level=True)

FLIGHTS: list[Flight] = [
    (weights, terrain)
    for weights in np.random.default_rng(0).uniform(0, 2, (6, 12)).tolist()
    for terrain in range(4)
]
# Evaluates with two processes and prints the rewards' exact bits.
SCRIPT = """
import numpy as np
from cbo_suite.problems.lunar_lander import HEURISTIC, LunarLander

def bits(workers):
    values = LunarLander(10, workers=workers).evaluate(np.array([HEURISTIC, [1.0] * 12]))
    return [value.hex() for value in values.constraints.ravel().tolist()]
"""
posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")


@pytest.fixture
def pool() -> Iterator[Pool]:
    """A pool of its own."""
    pool = Pool()
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def rewards() -> list[float]:
    """The rewards of `FLIGHTS`, flown in this process."""
    return [fly(weights, terrain) for weights, terrain in FLIGHTS]


def run_script(tmp_path: Path, code: str) -> str:
    """Run a script of its own as a user would, and return what it prints."""
    file = tmp_path / "script.py"
    file.write_text(SCRIPT + code, encoding="utf-8")
    command = [sys.executable, str(file)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout.strip()


def gone(process: int) -> bool:
    """Tell whether a process has ended, waiting for it up to ten seconds."""
    for _ in range(200):
        try:
            os.kill(process, 0)
            # A process that nobody has waited for is still listed, as a zombie.
            if ") Z" in Path(f"/proc/{process}/stat").read_text(encoding="utf-8"):
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_number_of_workers_gives_the_same_rewards(
    pool: Pool, rewards: list[float], count: int
) -> None:
    """In order, in reverse, and in a second batch."""
    assert pool.fly(FLIGHTS, count) == rewards
    assert pool.fly(FLIGHTS[::-1], count) == rewards[::-1]
    assert len(pool.processes) == count


def test_threads_share_a_pool(pool: Pool, rewards: list[float]) -> None:
    """Batches from several threads do not mix."""
    with ThreadPoolExecutor(3) as threads:
        results = threads.map(lambda _: pool.fly(FLIGHTS[:8], 2), range(3))
        assert list(results) == [rewards[:8]] * 3


@posix
def test_killed_worker_is_replaced(pool: Pool, rewards: list[float]) -> None:
    """Workers that die between batches or in the middle of one cost time, nothing else."""
    pool.fly(FLIGHTS[:2], 2)
    first = pool.processes
    os.kill(first[0], signal.SIGKILL)
    assert pool.fly(FLIGHTS, 2) == rewards
    with ThreadPoolExecutor(1) as threads:
        batch = threads.submit(pool.fly, FLIGHTS * 10, 2)
        time.sleep(0.1)
        os.kill(pool.processes[0], signal.SIGKILL)
        assert batch.result() == rewards * 10
    assert first[0] not in pool.processes


def test_workers_that_cannot_fly_are_reported(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A worker that ends at once is an error with advice, not an endless loop."""
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setenv("PYTHONHOME", str(Path(__file__).parent))
    with pytest.raises(EvaluationFailed, match=r"ended with exit status \[1\].*workers=1"):
        pool.fly(FLIGHTS, 2)
    assert capfd.readouterr().err


def test_few_flights_start_no_process(
    monkeypatch: pytest.MonkeyPatch, rewards: list[float]
) -> None:
    """Processes are started when enough was flown for them to pay, by anybody."""
    monkeypatch.setattr(lunar_workers, "_shared", None)
    monkeypatch.setattr(lunar_workers, "_flown", 0)
    monkeypatch.setattr(lunar_workers, "cores", lambda: 2)
    for _ in range(4):
        assert fly_all(FLIGHTS) == rewards
        assert lunar_workers._shared is None
    assert fly_all(FLIGHTS) == rewards
    started = lunar_workers.shared_pool()
    assert len(started.processes) == 2
    assert fly_all(FLIGHTS[:1]) == rewards[:1]
    started.close()
    assert started.processes == []


def test_one_worker_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """All flights stay in this process when asked to."""
    monkeypatch.setattr(lunar_workers, "_shared", None)
    monkeypatch.setattr(lunar_workers, "_flown", 10**6)
    LunarLander(3, workers=1).evaluate(np.array([HEURISTIC]))
    assert lunar_workers._shared is None


def test_script_without_guard(tmp_path: Path) -> None:
    """A script that evaluates at top level runs once, not once per worker."""
    output = run_script(tmp_path, "print('begin'); print(bits(2) == bits(1))")
    assert output.split() == ["begin", "True"]


@pytest.mark.parametrize("method", ["spawn", "fork"])
@posix
def test_inside_a_daemonic_worker(tmp_path: Path, method: str) -> None:
    """A worker of another pool flies by itself, or on two processes of its own if told so."""
    code = f"""
import multiprocessing
from cbo_suite.problems.lunar_lander import workers as lunar_workers

def child(queue):
    lunar_workers._flown = 10**6
    queue.put((bits(None), lunar_workers._shared is None, bits(2)))

if __name__ == "__main__":
    here = bits(2)
    context = multiprocessing.get_context({method!r})
    queue = context.SimpleQueue()
    process = context.Process(target=child, args=(queue,), daemon=True)
    process.start()
    alone, patient, together = queue.get()
    process.join()
    print(here == alone == together == bits(2), patient)
"""
    assert run_script(tmp_path, code) == "True True"


@posix
def test_workers_end_with_a_killed_owner(tmp_path: Path) -> None:
    """Workers of a process that was killed end by themselves."""
    code = """
import os, signal
from cbo_suite.problems.lunar_lander.workers import shared_pool

bits(2)
print(*shared_pool().processes, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    file = tmp_path / "script.py"
    file.write_text(SCRIPT + code, encoding="utf-8")
    result = subprocess.run([sys.executable, str(file)], capture_output=True, text=True)
    assert result.returncode == -signal.SIGKILL
    processes = [int(process) for process in result.stdout.split()]
    assert len(processes) == 2
    assert all(gone(process) for process in processes)


@posix
def test_workers_end_with_their_owner(tmp_path: Path) -> None:
    """A script that ends takes its workers along, without a word and without waiting."""
    code = "from cbo_suite.problems.lunar_lander.workers import shared_pool\nbits(2)\n"
    output = run_script(tmp_path, code + "print(*shared_pool().processes)")
    assert all(gone(int(process)) for process in output.split())


@posix
def test_interrupt_stops_a_batch_and_leaves_the_pool_usable(tmp_path: Path) -> None:
    """After Ctrl-C, which all processes of a terminal get, the next batch is right."""
    code = """
import os, signal, threading
from cbo_suite.problems.lunar_lander.workers import shared_pool

expected = bits(2)
workers = shared_pool().processes

def interrupt():
    for process in (*workers, os.getpid()):
        os.kill(process, signal.SIGINT)

threading.Timer(0.3, interrupt).start()
try:
    LunarLander(50, workers=2).evaluate(np.tile(HEURISTIC, (100, 1)))
except KeyboardInterrupt:
    print("interrupted", shared_pool().processes == workers, bits(2) == expected)
"""
    assert run_script(tmp_path, code) == "interrupted True True"
