"""Going on from a journal after mistakes and failures: nothing is lost, nothing is mixed up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.errors import EvaluationFailed, JournalError, MalformedEvaluation
from cbo_suite.study import Study
from tests.doubles import contents_of

LOWER, UPPER = [0.0, 0.0], [1.0, 1.0]


def search(fun: Any, **settings: Any) -> Any:
    """Minimise over a square by random search with twelve evaluations."""
    given: dict[str, Any] = {"optimizer": "random-search", "budget": 12} | settings
    return cbo.minimize(fun, LOWER, UPPER, **given)


def total(x: cbo.Array) -> cbo.Array:
    """Objective alone, for points `(n, 2)`."""
    values: cbo.Array = x.sum(axis=1)
    return values


def by_name(x: cbo.Array) -> dict[str, Any]:
    """Two constraints that are told by name."""
    return {
        "objective": x.sum(axis=1),
        "constraints": {"stress": x[:, 0] - 2.0, "heat": x[:, 1] + 5.0},
    }


class Broken:
    """A function that fails until it is mended."""

    def __init__(self) -> None:
        self.calls, self.works = 0, False

    def __call__(self, x: cbo.Array) -> cbo.Array:
        """Count the call, then raise or give the sum."""
        self.calls += 1
        if not self.works:
            raise OSError("the licence server is down")
        return total(x)


def test_constraints_in_another_order_are_refused(tmp_path: Path) -> None:
    """Values on record have the order of then; other calls say the names as they were, or not."""
    path = tmp_path / "run.jsonl"
    search(by_name, constraint_names=["stress", "heat"], journal=path)
    before = path.read_bytes()
    for on_change in ("error", "keep"):
        with pytest.raises(JournalError, match=r"were \['stress', 'heat'\] then"):
            search(
                by_name,
                constraint_names=["heat", "stress"],
                budget=20,
                journal=path,
                on_change=on_change,
            )
    assert path.read_bytes() == before
    longer = search(by_name, constraint_names=["stress", "heat"], budget=20, journal=path)
    assert (longer.run.constraints[:, 0] <= 0.0).all()
    assert (longer.run.constraints[:, 1] >= 5.0).all()


def test_names_that_are_added_or_changed_are_no_contradiction(tmp_path: Path) -> None:
    """A function that gives an array has an order of its own; its names are labels."""

    def plain(x: cbo.Array) -> tuple[cbo.Array, cbo.Array]:
        return total(x), x - 2.0

    path = tmp_path / "run.jsonl"
    first = search(plain, num_constraints=2, journal=path)
    for names in (["a", "b"], ["a", "c"]):
        again = search(plain, constraint_names=names, journal=path)
        assert again.run.digest == first.run.digest


def test_a_cause_of_failures_that_is_mended_lets_the_run_go_on(tmp_path: Path) -> None:
    """What failed is paid for; the same call makes the rest of the evaluations."""
    path, fun = tmp_path / "run.jsonl", Broken()
    with pytest.raises(EvaluationFailed, match=r"each of 5 points: .*licence server is down"):
        search(fun, n_init=5, journal=path)
    assert fun.calls == 5
    # Still down: that is said again after as many points, not at once and not never.
    with pytest.raises(EvaluationFailed, match="licence server"):
        search(fun, n_init=5, journal=path)
    assert fun.calls == 10
    fun.works = True
    result = search(fun, n_init=5, journal=path)
    assert result.run.statuses == ["failed"] * 10 + ["ok"] * 2
    assert result.success


def test_a_few_failures_are_no_verdict() -> None:
    """A design of one point that fails ends no run, and known data speak for the function."""

    def picky(x: cbo.Array) -> cbo.Array:
        if x[0, 0] < 0.6:
            raise ValueError("too thin")
        return total(x)

    seeds = [
        seed for seed in range(8) if "failed" in search(picky, n_init=1, seed=seed).run.statuses
    ]
    assert seeds
    known = np.full((9, 2), 0.9), np.full(9, 1.8), np.empty((9, 0))

    def never(x: cbo.Array) -> cbo.Array:
        raise ValueError("not here")

    result = search(never, data=known)
    assert result.run.statuses == ["failed"] * 12
    assert result.fun == 1.8


def test_values_that_are_never_finite_end_the_run_too() -> None:
    """A function that gives NaN everywhere costs a design, not the whole budget."""
    with pytest.raises(EvaluationFailed, match="each of 6 points: the values are not finite"):
        search(lambda x: x[:, 0] * np.nan, n_init=6, budget=50)


def test_a_wrong_call_costs_a_journal_nothing(tmp_path: Path) -> None:
    """Values of a wrong shape at the first evaluation of a later call end it at once."""
    path = tmp_path / "run.jsonl"

    def one(x: cbo.Array) -> float:
        return float(x.sum())

    search(one, vectorized=False, journal=path)
    batches = contents_of(path).batches
    with pytest.raises(MalformedEvaluation, match="pass vectorized=False"):
        search(one, budget=20, journal=path)
    assert contents_of(path).batches == batches
    assert search(one, vectorized=False, budget=20, journal=path).run.statuses == ["ok"] * 20


def test_a_call_that_evaluated_nothing_binds_nobody(tmp_path: Path) -> None:
    """After a mistake the corrected call begins anew, with the data that the journal knows."""

    def constrained(x: cbo.Array) -> tuple[cbo.Array, cbo.Array]:
        return total(x), x[:, :1] - 0.5

    path = tmp_path / "run.jsonl"
    with pytest.raises(MalformedEvaluation, match=r"gives 1: pass num_constraints=1"):
        search(constrained, journal=path)
    assert search(constrained, num_constraints=1, journal=path).nfev == 12

    def interrupted(x: cbo.Array) -> cbo.Array:
        raise KeyboardInterrupt

    path = tmp_path / "data.jsonl"
    known = np.full((1, 2), 0.01), np.full(1, 0.02), np.empty((1, 0))
    stopped = search(interrupted, data=known, journal=path)
    assert (stopped.nfev, stopped.fun) == (0, 0.02)
    assert "Ctrl-C" in stopped.message
    assert search(total, journal=path).fun == 0.02


def test_a_lambda_is_known_by_itself_not_by_the_statement_around_it(tmp_path: Path) -> None:
    """A larger budget in the same line makes no other function of it."""
    path = tmp_path / "run.jsonl"
    first = search(lambda x: x.sum(axis=1), budget=12, journal=path)
    longer = search(lambda x: x.sum(axis=1), budget=20, journal=path)
    assert np.array_equal(longer.run.x[:12], first.run.x)
    with pytest.raises(JournalError, match=r"source of .*lambda.* has changed"):
        search(lambda x: x.sum(axis=1) * 2, budget=30, journal=path)


def test_a_time_limit_may_be_set_after_a_hang(tmp_path: Path) -> None:
    """The limit is on record, and nothing of what was made is lost."""
    path = tmp_path / "run.jsonl"
    first = search(total, journal=path)
    longer = search(total, budget=20, journal=path, evaluation_timeout=60.0)
    assert np.array_equal(longer.run.x[:12], first.run.x)
    assert contents_of(path).header.facts["evaluation_timeout"] == "60.0"


def test_forgotten_vectorized_is_hinted_at() -> None:
    """The commonest mistake: what such a function raises does not tell it."""

    def one(x: cbo.Array) -> float:
        a, b = x
        return float(a + b)

    with pytest.raises(EvaluationFailed, match=r"not enough values.*pass vectorized=False"):
        search(one)
    with pytest.raises(EvaluationFailed) as caught:
        search(lambda x: 1 / 0, vectorized=False)
    assert "vectorized" not in str(caught.value)


def test_a_function_of_one_point_is_found_where_batches_are_square() -> None:
    """As many points as variables: its values would have the right shape."""
    with pytest.raises(EvaluationFailed, match="pass vectorized=False"):
        search(lambda x: x[0] + x[1], batch_size=2)
    with pytest.raises(MalformedEvaluation, match=r"must have shape \(1,\), got \(2,\)"):
        search(lambda x: x[0], batch_size=2)
    sizes = []

    def many(x: cbo.Array) -> cbo.Array:
        sizes.append(len(x))
        return total(x)

    assert np.array_equal(search(many, batch_size=2).run.x, search(total, batch_size=2).run.x)
    # The first two one by one, once.
    assert sizes == [1, 1, 2, 2, 2, 2, 2]


def test_a_study_is_no_journal(tmp_path: Path) -> None:
    """It is named as what it is, and nothing happens to it."""
    path = tmp_path / "study.jsonl"
    Study(path, cbo.Space(LOWER, UPPER, 0), budget=5, optimizer="random-search")
    before = path.read_bytes()
    with pytest.raises(JournalError, match="is a study"):
        search(total, journal=path)
    assert path.read_bytes() == before
