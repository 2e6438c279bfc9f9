"""Replay where values round differently: what a problem declares, and points at the very limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbo_suite.problems.toy import Toy
from cbo_suite.protocols import Evaluation
from cbo_suite.records import Record
from cbo_suite.verify import verify_file
from tests.submissions.honest import put, run_records


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Ten honest runs on the toy problem."""
    folder = tmp_path_factory.mktemp("journals")
    return run_records(folder, "toy-2d-v1", "random-search", range(10))


def at_the_limit(monkeypatch: pytest.MonkeyPatch, point: np.ndarray, excess: float) -> None:
    """Let a constraint of one point be just above its limit."""
    true = Toy._evaluate

    def rounded(self: Any, x: np.ndarray) -> Evaluation:
        objective, constraints = true(self, x)
        constraints[(x == point).all(axis=1), 0] = excess
        return Evaluation(objective, constraints)

    monkeypatch.setattr(Toy, "_evaluate", rounded)


@pytest.mark.parametrize(
    ("which", "excess", "status"),
    [
        ("other", 1e-16, "unverified"),
        ("other", 1e-9, "refused"),
        ("improvement", 1e-16, "refused"),
        ("largest", 1e-16, "refused"),
    ],
)
def test_a_point_at_the_limit(
    records: list[Record],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    which: str,
    excess: float,
    status: str,
) -> None:
    """It is not feasible; the row is refused if it claims anything by it, and never verified."""
    record = records[4]
    feasible = np.flatnonzero(record.feasible)
    largest = int(feasible[record.objectives[feasible].argmax()])
    late = [n for n in feasible.tolist() if n >= 10 and n not in record.steps and n != largest]
    number = {"other": late[-1], "improvement": int(record.steps[-1]), "largest": largest}[which]
    path = put(tmp_path, records)
    at_the_limit(monkeypatch, record.points[number], excess)
    verdict = verify_file(path)
    assert verdict.status == status
    if status == "refused":
        assert f"line 5, field feasible: evaluation {number} " in verdict.complaints[0]
    else:
        assert verdict.complaints == []
        assert verdict.findings[-1].rule == "feasible"
        assert verdict.findings[-1].detail.startswith("1 recorded as feasible are not here")


@pytest.mark.parametrize(("declared", "status"), [(1e-11, "verified"), (1e-13, "refused")])
def test_a_problem_declares_its_rounding(
    records: list[Record],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    declared: float,
    status: str,
) -> None:
    """What it declares is allowed, and no more."""
    path = put(tmp_path, records)
    true = Toy._evaluate

    def rounded(self: Any, x: np.ndarray) -> Evaluation:
        objective, constraints = true(self, x)
        return Evaluation(objective * (1 + 1e-12), constraints)

    monkeypatch.setattr(Toy, "_evaluate", rounded)
    monkeypatch.setattr(Toy, "rounding", declared)
    assert verify_file(path).status == status


def test_a_machine_with_another_problem_verifies_and_refuses_nothing(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best known point tells, whatever is on file."""
    path = put(tmp_path, records)
    true = Toy._evaluate

    def chaotic(self: Any, x: np.ndarray) -> Evaluation:
        objective, constraints = true(self, x)
        return Evaluation(objective + 1e-6, constraints)

    monkeypatch.setattr(Toy, "_evaluate", chaotic)
    verdict = verify_file(path)
    assert (verdict.status, verdict.complaints, verdict.replayed) == ("unverified", [], 0.0)
    assert "best known point has another value" in verdict.findings[-1].detail
