"""The command line, as a person or a script calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cbo_suite import __version__
from cbo_suite.cli import main
from cbo_suite.problems import PROBLEMS
from cbo_suite.scoring import make_board
from tests.make_records import make
from tests.terminal import on_terminal

Command = Callable[..., Result]


@pytest.fixture
def cbo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Call `cbo` in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_help_names_every_command(cbo: Command) -> None:
    """Each command is in the help and answers --help itself."""
    text = cbo("--help").output
    for command in ("list", "run", "leaderboard", "check", "new", "mopta08"):
        assert command in text
        assert cbo(command, "--help").exit_code == 0
    assert __version__ in cbo("--version").output
    assert cbo("nonsense").exit_code == 2


def test_list_prints_tables_and_json(cbo: Command) -> None:
    """Both hold the same ids."""
    table = cbo("list").output
    listing = json.loads(cbo("list", "--json").output)
    assert set(listing) == {"problems", "families", "optimizers", "suites"}
    for rows in listing.values():
        for row in rows:
            assert row["id"] in table
    toy = next(row for row in listing["problems"] if row["id"] == "toy-2d-v1")
    assert (toy["dim"], toy["num_constraints"], toy["package"]) == (2, 2, "cbo-suite")


def test_run_reports_and_resumes(cbo: Command, tmp_path: Path) -> None:
    """Plain lines where there is no terminal; the journal is kept and read again."""
    arguments = ("run", "toy-2d", "random-search", "--budget", "30", "--seed", "4")
    first = cbo(*arguments, "--journal", "run.jsonl")
    assert first.exit_code == 0
    assert "toy-2d random-search seed 4: 30/30 best" in first.output
    assert "feasible objective 0." in first.output
    assert "30 evaluations" in first.output
    stamp = (tmp_path / "run.jsonl").stat().st_mtime_ns
    again = cbo(*arguments, "--journal", "run.jsonl")
    assert "feasible objective 0." in again.output
    assert (tmp_path / "run.jsonl").stat().st_mtime_ns == stamp


def test_run_says_when_nothing_is_feasible(cbo: Command) -> None:
    """Ackley's feasible set is out of reach of ten random points."""
    output = cbo("run", "ackley-10d", "random-search", "--budget", "10").output
    assert "infeasible, violation" in output
    assert "no feasible point; least violation at objective" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run",), "give PROBLEM and OPTIMIZER"),
        (("run", "toy-2d"), "give PROBLEM and OPTIMIZER"),
        (("run", "toy-2d", "random-search", "--suite", "quick"), "not both"),
        (("run", "--suite", "qick"), "unknown suite 'qick'"),
        (("run", "tyo-2d-v1", "random-search"), "did you mean 'toy-2d-v1'"),
        (("run", "toy-2d", "random-search", "--budget", "0"), "--budget"),
        (("leaderboard", "build"), "leaderboard/runs"),
        (("export", "."), ". is no campaign folder: it holds neither a plan nor a journal"),
        (("check", "nothing"), "write it as module:Class"),
        (("check", "nothing_there:Thing"), "cannot import 'nothing_there'"),
        (("check", "json:Thing"), "has no 'Thing'"),
        (("check", "json:dumps"), "is no optimizer"),
        (("new", "optimizer", "Bad Name"), "cannot be a name"),
    ],
)
def test_mistakes_are_answered_without_a_traceback(
    cbo: Command, arguments: tuple[str, ...], message: str
) -> None:
    """A message on one line, a non-zero exit."""
    result = cbo(*arguments)
    assert result.exit_code in (1, 2)
    assert message in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_suite_is_run_ranked_and_resumed(
    cbo: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Runs, records, the ranking table and the path of the page."""
    from cbo_suite import tasks

    block = tasks.Block(("toy-2d-v1", "rosenbrock-5d-v1"), ("random-search", "sobol-search"))
    small = tasks.Suite("small", [block], range(2))
    monkeypatch.setitem(tasks.SUITES, "small", small)
    done = cbo("run", "--suite", "small", "--jobs", "2", "--out", "runs/small")
    assert done.exit_code == 0, done.output
    assert "8 of 8 runs done, 0 skipped, 0 failed, 4 record files" in done.output
    built = cbo("leaderboard", "build", "--runs", "runs/small", "--out", "board")
    assert built.exit_code == 0, built.output
    assert "random-search" in built.output
    assert "wrote board/README.md" in built.output
    page = (tmp_path / "board" / "README.md").read_text()
    assert "## toy-2d-v1" in page
    assert cbo("leaderboard", "build", "--runs", "runs/small", "--out", "board").exit_code == 0
    assert (tmp_path / "board" / "README.md").read_text() == page
    journal = tmp_path / "runs/small/toy-2d-v1/random-search/0.jsonl"
    journal.write_text("damaged\n")
    damaged = cbo("run", "--suite", "small", "--out", "runs/small")
    assert damaged.exit_code == 1
    assert "damaged: toy-2d-v1/random-search/0" in damaged.output
    (tmp_path / "empty").mkdir()
    assert "no records in empty" in cbo("leaderboard", "build", "--runs", "empty").output


def test_the_site_knows_the_suite_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What else is installed on a machine does not change the site that it builds."""
    from cbo_suite import registry
    from cbo_suite.cli.leaderboard import site_facts

    def more() -> list[registry.OptimizerInfo]:
        name = "my-search"
        return [
            registry.OptimizerInfo(name, f"from {name}", "", name, "my_search:S", {}, name),
            *own,
        ]

    own = registry.list_optimizers()
    monkeypatch.setattr(registry, "list_optimizers", more)
    member = "bbob-constrained-f1-10d-i1-v1"
    facts = site_facts(make_board([make([1.0], problem=member)], {}))
    titles, known = facts["titles"], {listed.id: listed for listed in facts["known"]}
    assert "my-search" not in titles
    assert titles["random-search"] == "Uniform random points"
    assert titles[member] == "COCO's constrained function 1, instance 1"
    assert {*PROBLEMS, member} == known.keys() & titles.keys()
    assert known["g09-7d-v1"][2:6] == (7, 4, 100, 1)
    assert known["bbob-constrained-f<k>-<d>d-i<j>-v1"].dim == "2 to 40"
    assert facts["suites"]["g-problems"][1][-1] == "g24-2d-v1"


@pytest.mark.slow
def test_new_optimizer_is_ready_to_use(cbo: Command, tmp_path: Path) -> None:
    """What `cbo new` writes passes `cbo check` and its own test, and is never overwritten."""
    written = cbo("new", "optimizer", "my-search")
    assert "cbo check my_search:MySearch" in written.output
    checked = cbo("check", "my_search:MySearch")
    assert checked.exit_code == 0, checked.output
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_search.py"]
    result = subprocess.run(test, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "2 passed" in result.stdout
    again = cbo("new", "optimizer", "my-search").output
    assert "my_search.py exists already; choose another one, such as my-search-2" in again


def test_new_problem_is_ready_to_use(cbo: Command, tmp_path: Path) -> None:
    """It passes `cbo check`, is never overwritten, and its version is not part of its name."""
    written = cbo("new", "problem", "bowl-2d-v1")
    assert "wrote bowl_2d/__init__.py" in written.output
    assert "cbo check bowl_2d:Bowl2d" in written.output
    assert 'bowl-2d-v1 = "bowl_2d:Bowl2d"' in (tmp_path / "pyproject.toml").read_text()
    checked = cbo("check", "bowl_2d:Bowl2d")
    assert checked.exit_code == 0, checked.output
    assert "bowl_2d exists already; choose another one, such as my-bowl-2d" in (
        cbo("new", "problem", "bowl-2d").output
    )
    assert "cbo-suite has toy-2d-v1 already" in cbo("new", "problem", "toy-2d").output
    assert "in the way" in cbo("new", "problem", "problem").output


@pytest.mark.parametrize(
    ("name", "reason", "suggestion"),
    [
        ("Own Search!", "single hyphens", "own-search"),
        ("own--search", "single hyphens", "own-search"),
        ("own_search_", "single hyphens", "own-search"),
        ("3d-search", "begins with a letter", "my-3d-search"),
        ("a" * 61, "at most 60", "a" * 40),
        ("con", "Windows", "my-con"),
        ("lambda", "word of Python", "my-lambda"),
        ("none", "word of Python", "my-none"),
        ("random", "in the way", "my-random"),
        ("space", "in the way", "my-space"),
        ("scbo", "cbo-suite has scbo already", "my-scbo"),
        ("numpy", "installed here already", "my-numpy"),
    ],
)
def test_new_refuses_names_that_cannot_work(
    cbo: Command, tmp_path: Path, name: str, reason: str, suggestion: str
) -> None:
    """Before anything is written, with a name that would do."""
    refused = cbo("new", "optimizer", name)
    assert refused.exit_code == 1
    assert f"{name!r} cannot be a name" in refused.output
    assert reason in refused.output
    assert refused.output.endswith(f"such as {suggestion}\n")
    assert list(tmp_path.iterdir()) == []
    assert cbo("new", "optimizer", suggestion).exit_code == 0


def test_check_reports_broken_rules(cbo: Command, tmp_path: Path) -> None:
    """A class that breaks the contract is told which rule, and the exit is not zero."""
    (tmp_path / "broken_search.py").write_text(
        "import numpy as np\n"
        "class Broken:\n"
        "    def __init__(self, space, *, budget, batch_size=1, seed=0):\n"
        "        self.space = space\n"
        "    def ask(self, n=1):\n"
        "        return np.full((n, self.space.dim), np.nan)\n"
        "    def tell(self, x, evaluation):\n"
        "        pass\n"
    )
    result = cbo("check", "broken_search:Broken")
    assert result.exit_code == 1
    assert "failed" in result.output
    problem = cbo("check", "cbo_suite.problems.toy:Toy")
    assert problem.exit_code == 0, problem.output


@pytest.mark.slow
def test_a_terminal_gets_a_progress_bar() -> None:
    """On a real terminal the run shows a bar with the best value and the time left."""
    command = [sys.executable, "-m", "cbo_suite", "run", "toy-2d", "random-search"]
    text = on_terminal(command, TERM="xterm", COLUMNS="150")
    assert "━" in text
    assert "100/100" in text
    assert "feasible objective" in text


def test_a_device_is_an_option_of_the_run(cbo: Command, tmp_path: Path) -> None:
    """It is on record like any other, and refused for optimizers that have none."""
    arguments = ("--device", "cpu", "--budget", "12", "--n-init", "10", "--journal", "run.jsonl")
    done = cbo("run", "toy-2d", "scbo", *arguments)
    assert done.exit_code == 0, done.output
    header = json.loads((tmp_path / "run.jsonl").read_text().splitlines()[0])
    assert header["options"] == {"device": "cpu"}
    refused = cbo("run", "toy-2d", "random-search", "--device", "cuda")
    assert refused.exit_code == 2
    assert "random-search has no option device" in refused.output


def test_a_device_that_is_not_there_ends_a_run(cbo: Command) -> None:
    """With the reason that PyTorch gives."""
    failed = cbo("run", "toy-2d", "cei", "--device", "abacus", "--budget", "12")
    assert failed.exit_code == 1
    assert "device 'abacus' cannot be used here" in failed.output
