"""Failures of problems and of optimizers: named, on record, and nothing else is lost."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.errors import EvaluationFailed, MissingExtra, OptimizerFailed, PartialEvaluation
from cbo_suite.journal import read_journal
from cbo_suite.protocols import Array
from cbo_suite.study import Study
from tests.doubles import Disc, Hill, RunSettings, Scripted, defective

NAN, INF = float("nan"), float("inf")
ODD_ANSWERS: dict[str, tuple[Callable[[Array], Any], str]] = {
    "nan objective": (lambda x: (np.full(len(x), NAN), np.zeros((len(x), 1))), "nonfinite"),
    "inf constraint": (lambda x: (np.zeros(len(x)), np.full((len(x), 1), INF)), "nonfinite"),
    "-inf objective": (lambda x: (np.full(len(x), -INF), np.zeros((len(x), 1))), "nonfinite"),
    "none": (lambda x: None, "failed"),
    "complex": (lambda x: (np.zeros(len(x), complex), np.zeros((len(x), 1))), "failed"),
    "integers": (lambda x: (np.zeros(len(x), int), np.zeros((len(x), 1), int)), "ok"),
    "wrong number of constraints": (lambda x: (np.zeros(len(x)), np.zeros((len(x), 3))), "failed"),
    "too few values": (lambda x: (np.zeros(len(x) - 1), np.zeros((len(x), 1))), "failed"),
    "ragged": (lambda x: ([[1], [1, 2]], np.zeros((len(x), 1))), "failed"),
    "strings": (lambda x: (["one"] * len(x), np.zeros((len(x), 1))), "failed"),
    "exception": (lambda x: 1 / 0, "failed"),
}


@pytest.mark.parametrize("name", ODD_ANSWERS)
@pytest.mark.parametrize("batch_size", [1, 4])
def test_odd_answers_of_a_problem_are_recorded(name: str, batch_size: int, tmp_path: Path) -> None:
    """After a good design, an odd answer has its status, costs one evaluation, and the run ends."""
    odd, status = ODD_ANSWERS[name]

    def answer(x: Array) -> Any:
        good = len(problem.points) <= 4
        return (x.sum(axis=1), x[:, :1]) if good else odd(x)

    problem = Scripted(answer)
    settings_: RunSettings = {"budget": 12, "n_init": 4, "batch_size": batch_size}
    run = cbo.run(problem, Hill, journal=tmp_path / "run.jsonl", **settings_)
    assert run.statuses == ["ok"] * 4 + [status] * 8
    assert len(run.x) == 12
    assert run.status == "complete"
    assert (status == "failed") == bool(run.messages)
    again = cbo.run(problem, Hill, journal=tmp_path / "run.jsonl", **settings_)
    assert again.digest == run.digest
    assert np.array_equal(again.objective, run.objective, equal_nan=True)


def test_one_bad_point_does_not_cost_the_others_of_its_batch() -> None:
    """When a batch raises, its points are evaluated one by one."""

    def answer(x: Array) -> tuple[Array, Array]:
        if (x[:, 0] > 0).any():
            raise ValueError("too far right")
        return x.sum(axis=1), x[:, :1]

    run = cbo.run(Scripted(answer), "random-search", budget=40, n_init=0, batch_size=10)
    right = run.x[:, 0] > 0
    assert 0 < right.sum() < 40
    assert [status == "failed" for status in run.statuses] == right.tolist()
    assert set(run.messages.values()) == {"ValueError: too far right"}


def test_a_partial_evaluation_keeps_its_results() -> None:
    """A problem that knows which rows failed is not called again."""

    def answer(x: Array) -> None:
        values = cbo.Evaluation(x.sum(axis=1), x[:, :1].copy())
        values.objective[1] = np.nan
        raise PartialEvaluation("row 1", values, {1: EvaluationFailed("the simulator crashed")})

    problem = Scripted(answer)
    run = cbo.run(problem, Hill, budget=6, n_init=0, batch_size=3)
    assert run.statuses == ["ok", "failed", "ok"] * 2
    assert run.messages == {1: "the simulator crashed", 4: "the simulator crashed"}
    assert len(problem.points) == 6


def test_a_problem_that_never_works_ends_the_run(tmp_path: Path) -> None:
    """If the whole design fails, the error says why, and what was tried is on record."""
    path = tmp_path / "run.jsonl"
    problem = Scripted(lambda x: 1 / 0)
    with pytest.raises(EvaluationFailed, match="each of 5 points: ZeroDivision"):
        cbo.run(problem, Hill, budget=50, n_init=5, journal=path)
    assert len(problem.points) == 5
    assert path.read_text().count('"failed"') == 6


DEFECTS: dict[str, tuple[Callable[[Hill, int], Any], str]] = {
    "one-dimensional": (lambda self, n: np.zeros(2), "array of shape"),
    "too many points": (lambda self, n: np.zeros((n + 1, 2)), "array of shape"),
    "a million points": (lambda self, n: np.zeros((10**6, 2)), "array of shape"),
    "no points": (lambda self, n: np.zeros((0, 2)), "array of shape"),
    "wrong dimension": (lambda self, n: np.zeros((n, 3)), "array of shape"),
    "nan": (lambda self, n: np.full((n, 2), np.nan), "finite and inside the box"),
    "outside": (lambda self, n: np.full((n, 2), 1.01), "outside"),
    "generator": (lambda self, n: (i for i in range(n)), "got generator"),
    "list": (lambda self, n: [[0.0, 0.0]], "got list"),
    "strings": (lambda self, n: np.full((n, 2), "a"), "real numbers"),
    "none": (lambda self, n: None, "got NoneType"),
    "raises": (lambda self, n: 1 / 0, "ZeroDivisionError"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defective_optimizers_fail_by_name_and_lose_nothing(name: str, tmp_path: Path) -> None:
    """A defect in ask is a typed error that names the optimizer; the design stays on record."""
    ask, message = DEFECTS[name]
    path = tmp_path / "run.jsonl"
    with pytest.raises(OptimizerFailed, match=message) as caught:
        cbo.run(Disc(), defective(ask=ask), budget=12, n_init=4, journal=path)
    assert "Defective failed in ask" in str(caught.value)
    assert caught.value.run.status == "failed"
    assert len(caught.value.run.x) == 4
    assert path.read_text().splitlines()[-1].startswith('{"type":"end","status":"failed"')


def test_an_optimizer_that_raises_in_tell_or_in_its_constructor_fails() -> None:
    """Both are named."""
    cls = defective(tell=lambda self, x, evaluation: 1 / 0)
    with pytest.raises(OptimizerFailed, match="failed in tell: ZeroDivisionError") as caught:
        cbo.run(Disc(), cls, budget=12, n_init=4)
    assert len(caught.value.run.x) == 1
    with pytest.raises(OptimizerFailed, match="failed in the constructor: TypeError"):
        cbo.run(Disc(), Hill, budget=12, options={"nonsense": 1})


def test_a_failed_run_goes_on_once_the_optimizer_is_fixed(tmp_path: Path) -> None:
    """The journal of a failed run resumes where it failed."""
    path = tmp_path / "run.jsonl"
    broken = {"now": True}

    def ask(self: Hill, n: int) -> Array:
        if self.asks == 5 and broken["now"]:
            raise RuntimeError("broken")
        return Hill.ask(self, n)

    cls = defective(ask=ask)
    with pytest.raises(OptimizerFailed):
        cbo.run(Disc(), cls, budget=20, n_init=4, journal=path)
    broken["now"] = False
    resumed = cbo.run(Disc(), cls, budget=20, n_init=4, journal=path)
    fresh = cbo.run(Disc(), cls, budget=20, n_init=4)
    assert resumed.digest == fresh.digest


def test_optimizers_are_closed_however_a_run_ends() -> None:
    """An optimizer that holds something lets go of it, after success and after failure."""
    closed: list[Hill] = []

    class Holder(Hill):
        """Remembers that it was closed."""

        def ask(self, n: int = 1) -> Array:
            if self.asks == limit:
                raise RuntimeError("no more")
            return super().ask(n)

        def close(self) -> None:
            closed.append(self)

    limit = 100
    cbo.run(Disc(), Holder, budget=5, n_init=1)
    assert len(closed) == 1
    limit = 2
    with pytest.raises(OptimizerFailed):
        cbo.run(Disc(), Holder, budget=5, n_init=1)
    assert len(closed) == 2


def test_states_must_be_plain_json() -> None:
    """What JSON cannot hold is refused with the name of the method."""

    class Odd(Hill):
        """Gives a state that is no JSON."""

        def get_state(self) -> dict[str, Any]:
            return {"space": self.space}

    with pytest.raises(OptimizerFailed, match="get_state must be plain JSON"):
        cbo.run(Disc(), Odd, budget=5, n_init=1)


def test_a_missing_library_is_no_failure_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is evaluated, nothing is on record, and the same call works once it is installed."""
    journal = tmp_path / "run.jsonl"
    pytest.importorskip("cma")
    line = r'needs pycma: pip install "cbo-suite\[cma\]"'
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "cma", None)
        with pytest.raises(MissingExtra, match=line):
            cbo.run("toy-2d-v1", "cma-es", budget=20, journal=journal)
        with pytest.raises(MissingExtra, match=line):
            Study(tmp_path / "study.jsonl", cbo.Space([0.0], [1.0]), optimizer="cma-es")
    contents = read_journal(journal)
    assert contents is None or (contents.end is None and not contents.batches)
    assert cbo.run("toy-2d-v1", "cma-es", budget=20, journal=journal).status == "complete"
