"""Ending a run before its budget is spent, and going on."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.errors import InvalidTask
from cbo_suite.harness import Progress
from cbo_suite.protocols import Array
from tests.doubles import Disc, Hill, StatefulHill, contents_of


def total(x: Array) -> Array:
    """The sum."""
    values: Array = x.sum(axis=1)
    return values


def slow(x: Array) -> Array:
    """The sum, after a while."""
    time.sleep(0.1)
    return total(x)


def minimize(**settings: Any) -> Any:
    """Minimise the sum over the unit square with thirty evaluations."""
    given: dict[str, Any] = {"fun": total, "budget": 30, "optimizer": "random-search"}
    return cbo.minimize(lower=[0, 0], upper=[1, 1], **(given | settings))


def test_a_target_that_is_reached_ends_the_run() -> None:
    """At the first feasible value that is low enough, and not at an infeasible one."""
    result = minimize(stop_at=0.4)
    assert result.run.status == "stopped"
    assert result.fun <= 0.4
    assert (result.run.objective[:-1] > 0.4).all()
    assert "a feasible value of at most 0.4 was reached" in result.message
    never = minimize(fun=lambda x: (total(x), np.ones((len(x), 1))), num_constraints=1, stop_at=0.4)
    assert (never.nfev, never.run.status) == (30, "complete")


def test_time_that_has_passed_ends_the_run() -> None:
    """The batch under way is still told."""
    result = minimize(fun=slow, stop_after=0.25)
    assert 1 <= result.nfev <= 3
    assert "0.25 s have passed" in result.message


def test_time_that_passes_before_the_first_batch_leaves_one_result() -> None:
    """However short the time is, there is a point to return."""
    result = minimize(fun=total, stop_after=1e-9)
    assert result.nfev == 1
    assert "1e-09 s have passed" in result.message


def test_however_short_the_time_is_every_call_gets_further(tmp_path: Path) -> None:
    """Neither the replay of what is on record nor known data use up the time."""
    path = tmp_path / "run.jsonl"
    made = [minimize(stop_after=1e-9, journal=path).nfev for _ in range(3)]
    assert made == [1, 2, 3]
    assert minimize(stop_after=1e-9, data=([[0.5, 0.5]], [1.0], [[]])).nfev == 1


def test_a_callback_that_returns_true_ends_the_run() -> None:
    """True and nothing else; it sees the failures too."""
    seen: list[Progress] = []

    def fun(x: Array) -> Array:
        return np.where(x[:, 0] > 0.5, np.nan, x[:, 0])

    def callback(progress: Progress) -> object:
        seen.append(progress)
        return np.True_ if progress.done == 12 else 1

    result = minimize(fun=fun, callback=callback)
    assert (result.nfev, len(seen)) == (12, 12)
    assert seen[-1].failures == result.failures["nonfinite"] > 0
    assert "the callback returned True" in result.message
    assert cbo.run("toy-2d", "random-search", callback=lambda progress: True).status == "stopped"


@pytest.mark.parametrize("optimizer", [Hill, StatefulHill])
def test_a_run_that_stopped_goes_on_from_its_journal(tmp_path: Path, optimizer: Any) -> None:
    """To the end that it would have had; a target that was reached stays reached."""
    path = tmp_path / "run.jsonl"
    whole = minimize(optimizer=optimizer)
    target = float(np.sort(np.minimum.accumulate(whole.run.objective))[12])
    stopped = minimize(optimizer=optimizer, stop_at=target, journal=path)
    assert 0 < stopped.nfev < 30
    assert contents_of(path).end is None
    assert f"the same call without stop_at goes on from {path}" in stopped.message
    again = minimize(optimizer=optimizer, stop_at=target, journal=path)
    assert again.run.digest == stopped.run.digest
    assert minimize(optimizer=optimizer, journal=path).run.digest == whole.run.digest


def enough(progress: Progress) -> bool:
    """Three evaluations will do."""
    return progress.done >= 3


@pytest.mark.parametrize(
    ("stop", "without"),
    [
        ({"callback": enough}, " without callback"),
        ({"stop_at": 1.5}, " without stop_at"),
        ({"stop_after": 0.5, "fun": slow}, ""),
    ],
)
def test_the_message_names_what_would_stop_the_same_call_again(
    tmp_path: Path, stop: dict[str, Any], without: str
) -> None:
    """The call that it tells makes further evaluations, with a journal and without."""
    path = tmp_path / "run.jsonl"
    first = minimize(journal=path, **stop)
    assert first.nfev < 30
    assert f"; the same call{without} goes on from {path}" in first.message
    same = minimize(journal=path, **stop)
    assert (same.nfev == first.nfev) == bool(without)
    if without:
        assert minimize(journal=path).nfev == 30
    advice = f"; to go on, call again{without} with data=result.as_data() and a budget of "
    assert advice in minimize(**stop).message


@pytest.mark.parametrize("optimizer", [Hill, "cobyla"])
def test_ctrl_c_returns_what_there_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, optimizer: Any
) -> None:
    """With a note how to go on, and that works."""
    calls = 0

    def fun(x: Array) -> Array:
        nonlocal calls
        calls += len(x)
        if calls == 14:
            raise KeyboardInterrupt
        return total(x)

    with caplog.at_level(logging.WARNING):
        part = minimize(fun=fun, optimizer=optimizer)
    assert (part.nfev, part.run.status) == (13, "stopped")
    note = "stopped after 13 of 30 evaluations: interrupted by Ctrl-C; to go on, call again with "
    assert note + "data=result.as_data() and a budget of 17" in part.message
    assert note in caplog.text
    rest = minimize(fun=fun, optimizer=optimizer, data=part.as_data(), budget=17)
    assert rest.nfev == 17
    calls, path = 0, tmp_path / "run.jsonl"
    minimize(fun=fun, optimizer=optimizer, journal=path)
    resumed = minimize(fun=fun, optimizer=optimizer, journal=path)
    assert resumed.run.digest == minimize(optimizer=optimizer).run.digest


def test_ctrl_c_while_a_journal_is_replayed_loses_nothing(tmp_path: Path) -> None:
    """What is on record was evaluated, whether the optimizer was led there again or not."""
    path = tmp_path / "run.jsonl"
    whole = minimize(optimizer=Hill, journal=path)
    before = path.read_bytes()

    def interrupt(progress: Progress) -> None:
        if progress.done == 15:
            raise KeyboardInterrupt

    part = minimize(optimizer=Hill, journal=path, budget=40, callback=interrupt)
    assert part.run.status == "stopped"
    np.testing.assert_array_equal(part.run.x, whole.run.x)
    longer = minimize(optimizer=Hill, journal=path, budget=40)
    np.testing.assert_array_equal(longer.run.x[:30], whole.run.x)
    assert before != path.read_bytes()


def test_ctrl_c_before_the_first_result_is_ctrl_c() -> None:
    """And `run` hands it on in any case, as campaigns want it."""

    def fun(x: Array) -> Array:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        minimize(fun=fun)
    disc, seen = Disc(), []

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        if progress.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cbo.run(disc, Hill, budget=9, n_init=3, callback=interrupt)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"stop_at": "low"}, "stop_at must be a number, got 'low'"),
        ({"stop_at": float("nan")}, "stop_at must be a number"),
        ({"stop_at": True}, "stop_at must be a number, got True"),
        ({"stop_after": "3"}, "stop_after must be seconds above 0, got '3'"),
        ({"stop_after": 0}, "stop_after must be seconds above 0, got 0"),
        ({"callback": 3}, "callback must be a function, got 3"),
        ({"progress": "yes"}, "progress must be True, False or None, got 'yes'"),
        ({"fun": 3}, "fun must be a function, got 3"),
    ],
)
def test_nonsense_is_refused(settings: dict[str, Any], words: str) -> None:
    """Each in a sentence."""
    with pytest.raises(InvalidTask, match=words):
        minimize(**settings)
