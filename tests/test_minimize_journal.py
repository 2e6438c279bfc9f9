"""`minimize` over a journal: it knows its function, and a larger budget goes on from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.errors import InvalidTask, JournalError
from cbo_suite.harness.user_function import describe_function
from cbo_suite.journal import read_journal
from cbo_suite.optimizers.random_search import RandomSearch
from cbo_suite.protocols import Array, Space

Fun = Callable[[Array], Array]
CALLS: list[Array] = []
FOLDER = TemporaryDirectory(prefix="cbo-mine-")


def make(text: str) -> Fun:
    """Save the module `mine` with a function `fun`, as an editor does, and import it."""
    path = Path(mkdtemp(dir=FOLDER.name), "mine.py")
    path.write_text(text)
    spec = spec_from_file_location("mine", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    vars(module)["CALLS"] = CALLS
    spec.loader.exec_module(module)
    fun: Fun = vars(module)["fun"]
    return fun


SUM = "def fun(x):\n    CALLS.append(x)\n    return x.sum(axis=1)\n"
COMMENTED = SUM.replace("return", "# the total\n    return")
DOUBLED = SUM.replace("sum(axis=1)", "sum(axis=1) * 2")


def minimize(fun: Fun, journal: Path, **settings: Any) -> Any:
    """Minimise over a square with ten evaluations, by default with random search."""
    given: dict[str, Any] = {"budget": 10, "optimizer": "random-search", "journal": journal}
    given |= settings
    CALLS.clear()
    return cbo.minimize(fun, [0.0, 0.0], [1.0, 1.0], **given)


def test_the_same_function_resumes(tmp_path: Path) -> None:
    """Nothing is evaluated again; a comment makes no other function of it."""
    path = tmp_path / "run.jsonl"
    first = minimize(make(SUM), path)
    assert sum(map(len, CALLS)) == 10
    again = minimize(make(COMMENTED), path)
    assert CALLS == []
    assert again.run.digest == first.run.digest


def test_another_function_is_noticed(tmp_path: Path) -> None:
    """An error by default, the old values on request, or a new run beside the old journal."""
    path = tmp_path / "run.jsonl"
    first = minimize(make(SUM), path)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"source of mine:fun has changed.*on_change"):
        minimize(make(DOUBLED), path)
    assert path.read_bytes() == before
    assert minimize(make(DOUBLED), path, on_change="keep").fun == first.fun
    new = minimize(make(DOUBLED), path, on_change="restart")
    assert new.fun == 2 * first.fun
    assert (tmp_path / "run.jsonl.before-1").read_bytes() == before
    # From now on the journal is that of the new function.
    assert minimize(make(DOUBLED), path).run.digest == new.run.digest
    with pytest.raises(JournalError, match=r"made with the function mine:fun, this is mine:other"):
        minimize(make(SUM.replace("def fun", "def other") + "fun = other\n"), path)
    with pytest.raises(InvalidTask, match="on_change must be one of"):
        minimize(make(DOUBLED), path, on_change="anything")


def test_what_the_source_does_not_show_is_found_by_evaluating_again(tmp_path: Path) -> None:
    """Values caught from outside: one recorded point is evaluated again where that is asked for."""
    path = tmp_path / "run.jsonl"

    def scaled(factor: float) -> Fun:
        def fun(x: Array) -> Array:
            CALLS.append(x)
            total: Array = factor * x.sum(axis=1)
            return total

        return fun

    minimize(scaled(1.0), path)
    minimize(scaled(2.0), path)
    assert CALLS == []
    minimize(scaled(1.0), path, recheck=True)
    assert sum(map(len, CALLS)) == 1
    with pytest.raises(JournalError, match="gives other values"):
        minimize(scaled(2.0), path, recheck=True)


def test_functions_without_source_are_known_by_their_name() -> None:
    """Compiled ones, partial ones, and those of a line that is no statement."""
    assert describe_function(np.sum)["function"] == "numpy:sum"
    assert describe_function(partial(max, 1)) == {"function": "builtins:max"}
    assert "function_source" in describe_function(lambda x: x)


@pytest.mark.parametrize("optimizer", ["random-search", "sobol-search", "cobyla", "cma-es"])
def test_a_larger_budget_goes_on(tmp_path: Path, optimizer: str) -> None:
    """What is there is not evaluated again, and the longer run resumes bit by bit too."""
    path, cut = tmp_path / "run.jsonl", tmp_path / "cut.jsonl"
    short = minimize(make(SUM), path, optimizer=optimizer)
    long = minimize(make(SUM), path, optimizer=optimizer, budget=25)
    assert sum(map(len, CALLS)) == 15
    np.testing.assert_array_equal(long.run.x[:10], short.run.x)
    assert len(np.unique(long.run.x, axis=0)) == 25
    contents = read_journal(path)
    assert contents is not None
    assert contents.header.facts["continued"] == "10"
    assert contents.header.task.n_init == short.run.task.n_init
    lines = path.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[:-6]))
    resumed = minimize(make(SUM), cut, optimizer=optimizer, budget=25)
    assert 0 < sum(map(len, CALLS)) <= 6
    assert resumed.run.digest == long.run.digest


def test_an_optimizer_that_plans_with_its_budget_is_told_what_there_is(tmp_path: Path) -> None:
    """It would propose other points than the shorter run did; it is told those without asking."""

    class Planner(RandomSearch):
        def __init__(self, space: Space, *, budget: int, batch_size: int, seed: int) -> None:
            super().__init__(space, budget=budget, batch_size=batch_size, seed=seed + budget)

        get_state = set_state = None

    path = tmp_path / "run.jsonl"
    short = minimize(make(SUM), path, optimizer=Planner, batch_size=3)
    long = minimize(make(SUM), path, optimizer=Planner, batch_size=3, budget=25)
    assert sum(map(len, CALLS)) == 15
    np.testing.assert_array_equal(long.run.x[:10], short.run.x)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
    again = minimize(make(SUM), path, optimizer=Planner, batch_size=3, budget=25)
    assert again.run.digest == long.run.digest


def test_an_interrupted_run_may_be_given_more(tmp_path: Path) -> None:
    """Also in the middle of its design; a smaller budget than recorded is refused."""
    path = tmp_path / "run.jsonl"
    minimize(make(SUM), path, budget=20)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    longer = minimize(make(SUM), path, budget=30)
    assert (longer.nfev, sum(map(len, CALLS))) == (30, 27)
    assert len(np.unique(longer.run.x, axis=0)) == 30
    with pytest.raises(JournalError, match="cannot be made shorter"):
        minimize(make(SUM), path, budget=20)


def test_a_journal_is_found_below_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tilde is expanded for writing and for reading."""
    monkeypatch.setenv("HOME", str(tmp_path))
    minimize(make(SUM), Path("~/run.jsonl"))
    assert (tmp_path / "run.jsonl").exists()
    minimize(make(SUM), Path("~/run.jsonl"))
    assert CALLS == []
