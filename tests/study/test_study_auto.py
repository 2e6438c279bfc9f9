"""A study without a named optimizer: chosen when it is begun, kept from then on."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from cbo_suite import Space, choice
from cbo_suite.errors import InvalidTask, JournalError
from cbo_suite.study import DEFAULT_OPTIMIZER, Study, read_study

SPACE = Space([0.0, -1.0], [1.0, 1.0], 1)


def optimizer_of(path: Path) -> str:
    """Name the optimizer that a study was begun with."""
    return read_study(path).beginning.optimizer


@pytest.mark.parametrize(
    ("numbers", "optimizer"),
    [
        ({}, "cei"),
        ({"optimizer": "auto"}, "cei"),
        ({"batch_size": 4}, "cei"),
        ({"options": {"noisy": True}}, "scbo"),
        ({"budget": 6000}, "cobyla"),
    ],
)
def test_the_file_names_what_was_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, numbers: Any, optimizer: str
) -> None:
    """The log and the study say why; who goes on says nothing more."""
    pytest.importorskip("torch", reason="needs the extra scbo")
    caplog.set_level(logging.INFO, "cbo_suite")
    path = tmp_path / "study.jsonl"
    assert DEFAULT_OPTIMIZER == "auto"
    with Study(path, SPACE, **numbers) as study:
        assert study.choice.startswith(f"{optimizer} for 2 variables, 1 constraint, ")
        assert f"auto took {study.choice}" in caplog.text
    assert optimizer_of(path) == optimizer
    caplog.clear()
    for again in (dict[str, Any](), numbers):
        with Study(path, SPACE, **again) as study:
            assert study.choice == ""
    assert caplog.records == []


def test_a_larger_budget_keeps_the_optimizer(tmp_path: Path) -> None:
    """Also where the rule would now take another one."""
    pytest.importorskip("torch", reason="needs the extra scbo")
    path = tmp_path / "study.jsonl"
    Study(path, SPACE, budget=20)
    with Study(path, SPACE, optimizer="auto", budget=6000) as study:
        assert study.contents().budget == 6000
        assert len(study.ask(1)) == 1
    assert optimizer_of(path) == "cei"


def test_torch_that_was_installed_since_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same call goes on with COBYLA, which was never told of noise."""
    path = tmp_path / "study.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(choice, "find_spec", lambda name: None)
        Study(path, SPACE, options={"noisy": True})
    assert optimizer_of(path) == "cobyla"
    with Study(path, SPACE, options={"noisy": True}) as study:
        assert study.contents().beginning.options == {}
    assert optimizer_of(path) == "cobyla"


def test_a_named_one_is_still_compared(tmp_path: Path) -> None:
    """And the default goes on with whatever was named, and its options."""
    path = tmp_path / "study.jsonl"
    options = {"subproblem": "scipy"}
    with Study(path, SPACE, optimizer="cobyla", options=options) as study:
        assert study.choice == ""
    for again in ({}, {"optimizer": "auto"}, {"options": options}):
        Study(path, SPACE, **again).close()
    with pytest.raises(JournalError, match="its optimizer is 'cobyla', not 'cobyqa'"):
        Study(path, SPACE, optimizer="cobyqa")
    with pytest.raises(JournalError, match="its options is"):
        Study(path, SPACE, options={"subproblem": "exact"})


def test_options_that_cannot_be_placed_leave_no_file(tmp_path: Path) -> None:
    """They are those of one optimizer, and none was named."""
    path = tmp_path / "study.jsonl"
    with pytest.raises(InvalidTask, match="the options delta are those of one optimizer"):
        Study(path, SPACE, options={"delta": 0.1})
    assert not path.exists()
