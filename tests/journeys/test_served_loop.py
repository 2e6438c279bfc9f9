"""Somebody whose simulator is a program of its own, served by `cbo ask` and `cbo tell`.

Everything here happens in real processes, as it would in that person's terminal.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cbo_suite import Space
from cbo_suite.cli import main
from cbo_suite.study import Study, read_study
from tests.terminal import on_terminal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the scripts are for a Unix shell")

CBO = (sys.executable, "-m", "cbo_suite")
BEGIN = ("--lower", "0,0", "--upper", "2,2", "--constraints", "1", "--n-init", "3")

# The simulator: reads x and y, prints the objective and one constraint, and has no mesh for some.
SIMULATOR = """\
#!/bin/sh
awk -v x="$1" -v y="$2" 'BEGIN {
    if (x > 1.8) exit 1
    printf "%.12g %.12g\\n", (x - 1) ^ 2 + (y - 1) ^ 2, 0.5 - x * y
}'
"""

# What the person writes around it; any number of these may run at the same time.
WORKER = """\
cbo() { "$PYTHON" -m cbo_suite "$@"; }
while point=$(cbo ask beam.jsonl "$@" --format text); do
    id=${point%% *} xy=${point#* }
    if values=$(sh simulate.sh $xy); then
        cbo tell beam.jsonl "$id" $values
    else
        cbo tell beam.jsonl "$id" --failed "no mesh at $xy"
    fi
done
"""


def cbo(*arguments: str, cwd: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Call the command in a process of its own."""
    return subprocess.run(
        [*CBO, *arguments], cwd=cwd, input=stdin, capture_output=True, text=True, timeout=120
    )


def start_worker(folder: Path, *begin: str) -> subprocess.Popen[str]:
    """Start the shell script, which asks, simulates and tells until the budget is spent."""
    return subprocess.Popen(
        ["/bin/sh", "worker.sh", *begin],
        cwd=folder,
        env=os.environ | {"PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A folder with the simulator and the script around it."""
    (tmp_path / "simulate.sh").write_text(SIMULATOR)
    (tmp_path / "worker.sh").write_text(WORKER)
    return tmp_path


@pytest.mark.slow
def test_several_shells_share_a_study(bench: Path) -> None:
    """They begin it together, spend its budget exactly, and every point is evaluated once."""
    begin = (*BEGIN, "--optimizer", "sobol-search", "--budget", "7")
    workers = [start_worker(bench, *begin) for _ in range(3)]
    outputs = [worker.communicate(timeout=300) for worker in workers]
    assert all("the budget of 7 points is spent" in errors for _, errors in outputs), outputs
    contents = read_study(bench / "beam.jsonl")
    assert sorted(contents.told) == list(range(1, 8))
    assert not contents.pending
    for id_, result in contents.told.items():
        x, y = contents.asked[id_]
        if x > 1.8:
            assert (result.status, result.message) == ("failed", f"no mesh at {x} {y}")
        else:
            assert float(result.objective) == pytest.approx((x - 1) ** 2 + (y - 1) ** 2)
            assert float(result.constraints[0]) == pytest.approx(0.5 - x * y)
    status = cbo("status", "beam.jsonl", cwd=bench).stdout
    assert "7 of 7 told" in status
    run = Study(bench / "beam.jsonl").run()
    assert f"best {run.best_objective:.6g} feasible" in status


@pytest.mark.slow
def test_killed_calls_lose_and_double_nothing(bench: Path) -> None:
    """A call that is killed at any moment leaves a study that goes on."""
    begin = ("ask", "beam.jsonl", *BEGIN, "--optimizer", "cma-es", "--budget", "60")
    first = cbo(*begin, cwd=bench)
    assert json.loads(first.stdout)["id"] == 1
    for pause in (0.2, 0.5, 0.8, 1.1):
        asking = subprocess.Popen([*CBO, "ask", "beam.jsonl"], cwd=bench, stdout=subprocess.PIPE)
        time.sleep(pause)
        asking.send_signal(signal.SIGKILL)
        printed = asking.communicate()[0]
        contents = read_study(bench / "beam.jsonl")
        if printed:
            # Whoever has seen a point can tell its result.
            assert json.loads(printed)["id"] == contents.last_id
        for id_ in contents.pending:
            Study(bench / "beam.jsonl").tell(id_, 1.0 + id_, [-1.0])
    last = read_study(bench / "beam.jsonl").last_id
    assert json.loads(cbo("ask", "beam.jsonl", cwd=bench).stdout)["id"] == last + 1


def test_results_of_a_queue_come_back_in_any_order(bench: Path) -> None:
    """Four points go out, some come back in one file, one has died, and one was known before."""
    begin = (*BEGIN[:-2], "--optimizer", "random-search", "--budget", "6", "--n-init", "4")
    asked = cbo("ask", "beam.jsonl", "-n", "4", *begin, cwd=bench)
    ids = [json.loads(line)["id"] for line in asked.stdout.splitlines()]
    assert ids == [1, 2, 3, 4]
    results = (
        '{"id": 4, "objective": 0.5, "constraints": [-0.25]}\n'
        '{"id": 1, "failed": "the node went down"}\n'
        '{"x": [1.0, 1.0], "objective": 0.0, "constraints": [-0.5]}\n'
        "3 0.75 -inf\n"
    )
    taken = cbo("tell", "beam.jsonl", cwd=bench, stdin=results).stdout.splitlines()
    assert taken == [
        "4 results taken",
        "3 of 6 told, 1 under way, 1 failed, 1 known from elsewhere, best 0 feasible",
    ]
    again = cbo("tell", "beam.jsonl", cwd=bench, stdin=results).stdout
    assert again.startswith("0 results taken, 4 known before")
    waiting = cbo("ask", "beam.jsonl", "--pending", "--format", "csv", cwd=bench).stdout
    assert waiting.splitlines()[0] == "id,x0,x1"
    assert waiting.splitlines()[1].startswith("2,")
    found = json.loads(cbo("status", "beam.jsonl", "--json", cwd=bench).stdout)
    assert found["pending"] == [2]
    assert found["best"] == {
        "id": None,
        "x": [1.0, 1.0],
        "objective": 0.0,
        "constraints": [-0.5],
        "feasible": True,
    }


def test_own_optimizer_and_a_space_in_a_file(bench: Path) -> None:
    """A class of one's own serves the study; whole numbers and linear constraints are kept."""
    assert cbo("new", "optimizer", "my-search", cwd=bench).returncode == 0
    space = {
        "lower": [0, 1],
        "upper": [9, 100],
        "num_constraints": 1,
        "integer": [0],
        "log_scale": [1],
        "linear": [[[10, 1]], [90]],
    }
    (bench / "space.json").write_text(json.dumps(space))
    ask = ("ask", "beam.jsonl", "--optimizer", "my_search.py:MySearch", "--format", "text")
    begun = cbo(*ask, "--space", "space.json", "--n-init", "0", "-n", "3", cwd=bench)
    assert len(begun.stdout.splitlines()) == 3, begun.stderr
    for line in begun.stdout.splitlines():
        _, first, second = map(float, line.split())
        assert first == round(first)
        assert 10 * first + second <= 90
    without = cbo("ask", "beam.jsonl", cwd=bench)
    assert "give the optimizer again" in without.stderr
    assert cbo("tell", "beam.jsonl", "1", "2.5", "-1", cwd=bench).returncode == 0
    assert len(cbo(*ask, cwd=bench).stdout.splitlines()) == 1


def test_terminal_of_eighty_columns(bench: Path) -> None:
    """What a person sees fits: the help, a point, the progress and the status."""
    begin = ("--optimizer", "sobol-search", "--budget", "20", *BEGIN)
    commands = (
        ("ask", "--help"),
        ("tell", "--help"),
        ("ask", "beam.jsonl", *begin),
        ("tell", "beam.jsonl", "1", "0.25", "-0.125"),
        ("status", "beam.jsonl"),
    )
    for command in commands:
        shown = on_terminal([*CBO, *command], cwd=bench, COLUMNS="80")
        assert shown.strip()
        assert all(len(line) <= 80 for line in shown.replace("\r", "").splitlines()), shown


def mistaken(bench: Path, *arguments: str, stdin: str = "") -> Result:
    """Make a mistake on a study of two points; see that no file is changed by it."""
    Study("old.jsonl", Space([0, 0], [1, 1], 1), optimizer="sobol-search", budget=5).ask(2)
    before = {path.name: path.read_bytes() for path in bench.iterdir()}
    result = CliRunner().invoke(main, arguments, input=stdin)
    assert {path.name: path.read_bytes() for path in bench.iterdir()} == before
    return result


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("ask", "new.jsonl"), 1, "to begin a study, give the bounds"),
        (("ask", "new.jsonl", "--lower", "0,1"), 2, "give both --lower and --upper"),
        (("ask", "new.jsonl", "--lower", "a,b"), 2, "numbers with commas between them"),
        (("ask", "new.jsonl", "--lower", "1", "--upper", "0"), 1, "did you swap the two?"),
        (("ask", "new.jsonl", "--space", "simulate.sh"), 1, "simulate.sh describes no space"),
        (("ask", "new.jsonl", *BEGIN, "--integer", "7"), 1, "there are 2 variables"),
        (("ask", "new.jsonl", *BEGIN, "--optimizer", "scob"), 1, "did you mean 'scbo'"),
        (("ask", "new.jsonl", *BEGIN, "--optimizer", "a.py:B"), 1, "there is no file a.py"),
        (("ask", "new.jsonl", *BEGIN, "--optimizer", "cobyla", "--option", "z=1"), 2, "option z"),
        (("ask", "simulate.sh"), 1, "simulate.sh is no study; it is left as it is"),
        (("tell", "simulate.sh", "1", "2"), 1, "simulate.sh is no study; it is left as it is"),
        (("tell", "old.jsonl", "one", "2"), 2, "'one' is no id"),
        (("tell", "old.jsonl", "1"), 2, "point 1 needs an objective, or --failed REASON"),
        (("tell", "old.jsonl", "1", "2", "--failed", "x"), 2, "no values"),
        (("tell", "old.jsonl", "1", "2"), 1, "point 1 needs 1 constraint values, got 0"),
        (("tell", "old.jsonl", "7", "2", "-1"), 1, "point 7 was never asked"),
        (("tell", "old.jsonl"), 1, "there is no result on standard input"),
    ],
)
def test_bad_input_is_named(
    bench: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    status: int,
    message: str,
) -> None:
    """Every mistake has one clear message."""
    monkeypatch.chdir(bench)
    result = mistaken(bench, *arguments)
    assert result.exit_code == status, result.output
    assert message in result.output


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": 1, "obj": 2}', "line 2: Object contains unknown field `obj`"),
        ('{"id": 1}', 'line 2: "objective" is missing'),
        ('{"objective": 1}', 'line 2: give either "id" or'),
        ('{"id": 1, "failed": "x", "objective": 1}', 'line 2: "failed" goes with "id"'),
        ("1 2 three", "line 2: objective and constraints of point 1 must be numbers"),
        ("first 2 3", "line 2: 'first' is no id"),
        ("1", "line 2: point 1 needs an objective"),
        ("9 1 2", "line 2: point 9 was never asked in old.jsonl; under way: 1, 2"),
        ("1 2", "line 2: point 1 needs 1 constraint values, got 0"),
        ("2 0.75 -1", "line 2: point 2 was told before, with other values: 0.5 -1.0, now 0.75 -1"),
        (
            '{"x": [3, 0], "objective": 1, "constraints": [0]}',
            "line 2: points must be finite and i",
        ),
        ("\n1 2 3 4", "line 3: point 1 needs 1 constraint values, got 2"),
    ],
)
def test_bad_line_names_its_number(
    bench: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    """All lines of standard input are taken, or none."""
    monkeypatch.chdir(bench)
    result = mistaken(bench, "tell", "old.jsonl", stdin=f"2 0.5 -1\n{line}\n")
    assert result.exit_code == 1
    assert message in result.output
    assert "no result was taken" in result.output
