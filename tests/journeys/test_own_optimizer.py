"""Somebody with an optimizer of their own tries it on the suite, from the command line alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cbo_suite.cli import main
from cbo_suite.journal import read_header
from cbo_suite.registry import list_problems
from cbo_suite.scoring.tracks import TRACKS

CBO = (sys.executable, "-m", "cbo_suite")


def cbo(*arguments: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Call the command in a process of its own, with a folder more on Python's path."""
    folders = [str(path)] if path is not None else []
    folders += [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    return subprocess.run(
        [*CBO, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with a new optimizer as `cbo new` writes it, and an option added."""
    made = cbo("new", "optimizer", "my-search", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    code = (tmp_path / "my_search.py").read_text()
    code = code.replace("seed: int = 0)", "seed: int = 0, step: float = 0.1)", 1)
    (tmp_path / "my_search.py").write_text(code)
    return tmp_path


def install(desk: Path) -> Path:
    """Give the optimizer its id, as `pip install --editable .` does; return the folder of it."""
    metadata = desk / "site" / "my_search-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-search\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[cbo_suite.optimizers]\nmy-search = my_search:MySearch\n"
    )
    (desk / "site" / "my_search.py").symlink_to(desk / "my_search.py")
    return desk / "site"


def test_file_and_class_are_enough_for_a_run(desk: Path) -> None:
    """The file need not be installed, nor lie in the current folder; options reach the class."""
    elsewhere = desk / "elsewhere"
    elsewhere.mkdir()
    done = cbo(
        "run",
        "toy-2d",
        "../my_search.py:MySearch",
        *("--budget", "20", "--option", "step=0.5", "--journal", "toy.jsonl"),
        cwd=elsewhere,
    )
    assert done.returncode == 0, done.stderr
    assert "toy-2d ../my_search.py:MySearch seed 0: 20/20" in done.stdout
    header = read_header(elsewhere / "toy.jsonl")
    assert header is not None
    assert header.task.optimizer == "my_search:MySearch"
    assert header.options == {"step": 0.5}


def test_problem_of_ones_own_runs_too(desk: Path) -> None:
    """A class with `evaluate` is a problem."""
    (desk / "bowl.py").write_text(
        "from cbo_suite import Evaluation, Space\n"
        "class Bowl:\n"
        "    id = 'bowl-2d-v1'\n"
        "    space = Space([-1, -1], [1, 1], 1)\n"
        "    def evaluate(self, x):\n"
        "        return Evaluation((x**2).sum(axis=1), x[:, :1])\n"
    )
    done = cbo("run", "bowl.py:Bowl", "my_search.py:MySearch", "--budget", "15", cwd=desk)
    assert done.returncode == 0, done.stderr
    assert "15 evaluations" in done.stdout


@pytest.mark.slow
def test_suite_runs_a_foreign_optimizer(desk: Path) -> None:
    """With its id, it is run on the problems of the suite beside those of the suite."""
    site = install(desk)
    only = ("--problems", "toy-2d,rosenbrock-5d", "--seeds", "0", "--budget", "15")
    names = ("--optimizers", "my-search,sobol-search")
    done = cbo("run", "--suite", "quick", *names, *only, cwd=desk, path=site)
    assert done.returncode == 0, done.stderr
    assert "4 of 4 runs done" in done.stdout
    status = cbo("status", "runs", "--json", cwd=desk, path=site).stdout
    assert {json.loads(line)["run"] for line in status.splitlines()} == {
        f"{problem}/{optimizer}/0"
        for problem in ("toy-2d-v1", "rosenbrock-5d-v1")
        for optimizer in ("my-search", "sobol-search")
    }


@pytest.mark.parametrize("name", ["all", "small-v1", "large-v1", "small-v1,toy-2d,rover-60d"])
def test_problems_may_be_a_track_or_all(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan has every one of them once."""
    monkeypatch.chdir(tmp_path)
    tracks = {track.id: set(track.problems) for track in TRACKS}
    wanted = {
        "all": {problem.id for problem in list_problems()},
        "small-v1,toy-2d,rover-60d": tracks["small-v1"] | {"rover-60d-v1"},
        **tracks,
    }[name]
    names = ("--problems", name, "--optimizers", "sobol-search", "--seeds", "0")
    result = CliRunner().invoke(main, ("run", *names, "--dry-run"))
    assert result.exit_code == 0, result.output
    assert f"{len(wanted)} runs: 0 done" in result.output
    assert all(result.output.count(f" {id_} ") == 1 for id_ in wanted)


def test_options_are_json_or_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What parses as JSON is what it says there, anything else is text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "options.py").write_text(
        "from cbo_suite.optimizers.random_search import RandomSearch\n"
        "class Any(RandomSearch):\n"
        "    def __init__(self, space, *, budget, batch_size=1, seed=0, **options):\n"
        "        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)\n"
    )
    given = ("a=1", "b=0.5", "c=true", "d=null", "e=[1, 2]", "f=ei", 'g="7"', "h=x=y", "i=")
    options = [word for text in given for word in ("--option", text)]
    arguments = ("run", "toy-2d", "options.py:Any", "--budget", "3", "--journal", "a.jsonl")
    result = CliRunner().invoke(main, (*arguments, *options))
    assert result.exit_code == 0, result.output
    header = read_header("a.jsonl")
    assert header is not None
    assert header.options == {
        "a": 1,
        "b": 0.5,
        "c": True,
        "d": None,
        "e": [1, 2],
        "f": "ei",
        "g": "7",
        "h": "x=y",
        "i": "",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "toy-2d", "nowhere.py:A"), "there is no file nowhere.py"),
        (("run", "toy-2d", "mine.py:Mein"), "has no 'Mein'"),
        (("run", "toy-2d", "mine.py:"), "write it as module:Class or file.py:Class"),
        (("run", "toy-2d", "torn.py:A"), "torn.py is no Python"),
        (("run", "toy-2d", "json.py:JSONDecoder"), "has the name of another module"),
        (("run", "mine.py:Mine", "cobyla"), "mine.py:Mine is no problem"),
        (("run", "toy-2d", "cobyla", "--option", "rho"), "write name=value"),
        (("run", "toy-2d", "cobyla", "--option", "rho=1"), "cobyla has no option rho"),
        (("run", "toy-2d", "scbo", "--option", "delta=1", "--option", "delta=2"), "given twice"),
        (("run", "--suite", "quick", "--optimizers", "mine.py:Mine"), "needs ids"),
        (("run", "--suite", "quick", "--optimizers", "my-serch"), "unknown optimizer"),
        (("run", "--problems", "tiny-v1", "--optimizers", "scbo"), "unknown problem 'tiny-v1'"),
        (
            ("run", "--suite", "quick", "--problems", "large-v1"),
            "suite quick has no task of these problems",
        ),
    ],
)
def test_mistakes_are_named(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine.py").write_text("class Mine: pass\n")
    (tmp_path / "torn.py").write_text("class A(:\n")
    (tmp_path / "json.py").write_text("class JSONDecoder: pass\n")
    result = CliRunner().invoke(main, arguments)
    sys.modules.pop("mine", None)
    assert result.exit_code in (1, 2)
    assert message in result.output, result.output
    assert not (tmp_path / "runs").exists()
