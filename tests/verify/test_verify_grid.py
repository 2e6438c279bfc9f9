"""Verifying a whole grid of runs: one identity, and runs that failed or lost evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cbo_suite.problems.toy import Toy
from cbo_suite.protocols import Evaluation
from cbo_suite.records import Record
from cbo_suite.verify import verify_file
from tests.submissions.honest import condensed, failed_at_once, put, run_records


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Twenty honest runs on the toy problem."""
    folder = tmp_path_factory.mktemp("journals")
    return run_records(folder, "toy-2d-v1", "random-search", range(20))


def with_versions(records: Sequence[Record], seeds: set[int], **changes: str) -> list[Record]:
    """Let the runs of some seeds name other versions; an empty one is not named."""
    changed = []
    for record in records:
        versions = dict(record.versions)
        if record.task.seed in seeds:
            named = {name.replace("_", "-"): version for name, version in changes.items()}
            versions = {name: word for name, word in (versions | named).items() if word}
        changed.append(msgspec.structs.replace(record, versions=versions))
    return changed


def test_all_runs_are_of_one_identity(records: list[Record], tmp_path: Path) -> None:
    """All runs name the same one, and none leaves it out."""
    for number, (source, seeds, message) in enumerate(
        [
            ("0" * 64, {9}, "line 10, field versions: optimizer-source 0000"),
            ("", {9}, "line 10, field versions: no optimizer-source"),
            ("", {0}, "line 2, field versions: optimizer-source "),
        ]
    ):
        runs = with_versions(records, seeds, optimizer_source=source)
        (complaint,) = verify_file(put(tmp_path / str(number), runs)).complaints
        assert message in complaint
        assert "unlike a line above: one version" in complaint


def test_other_versions_are_shown_and_no_fault(records: list[Record], tmp_path: Path) -> None:
    """The identity says that the method is the same; libraries move on."""
    runs = with_versions(records, set(range(10, 20)), numpy="1.0", python="", my_search="2.0")
    verdict = verify_file(put(tmp_path, runs))
    assert (verdict.status, verdict.complaints) == ("verified", [])
    numpy = records[0].versions["numpy"]
    assert verdict.findings[1].detail.endswith(f"what random-search is here; numpy 1.0, {numpy}")


def test_runs_that_failed_are_part_of_the_grid(records: list[Record], tmp_path: Path) -> None:
    """Also two that failed before their first evaluation, which are alike."""
    failed = [failed_at_once(record) for record in records[3:5]]
    verdict = verify_file(put(tmp_path, [*records[:3], *failed, *records[5:]]))
    assert (verdict.status, verdict.complaints) == ("verified", [])
    assert verdict.findings[3].detail == "1,800 of 1,800 evaluations again: bit-equal"
    assert verdict.findings[4].detail == "20 of 20 computed again: equal"


def test_a_grid_without_a_single_evaluation_is_unverified(
    records: list[Record], tmp_path: Path
) -> None:
    """There is nothing to replay, and nothing to complain of."""
    failed = [failed_at_once(record) for record in records]
    verdict = verify_file(put(tmp_path, failed))
    assert (verdict.status, verdict.complaints) == ("unverified", [])


def test_lost_evaluations_of_an_expensive_problem_may_come_back(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time-out is no forgery if the point can be evaluated now; a value that is not finite is."""
    problem = Toy()
    monkeypatch.setattr("cbo_suite.verify.replay.SAMPLE", 1.0)
    x = records[4].points
    objective, constraints = problem.evaluate(x)
    number = next(i for i in range(60, 100) if i not in records[4].steps)
    objective[number], constraints[number] = np.nan, np.nan
    values = Evaluation(objective, constraints)
    for cheap, letter, status in (
        (False, "t", "verified"),
        (False, "f", "verified"),
        (False, "n", "refused"),
        (True, "t", "refused"),
    ):
        monkeypatch.setattr(Toy, "cheap", cheap)
        lost = condensed(records[4].task, x, values, "0" * 64, records[4], lost=letter)
        verdict = verify_file(put(tmp_path, [*records[:4], lost, *records[5:]]))
        assert verdict.status == status
        if status == "verified":
            assert verdict.findings[3].detail == "2,000 of 2,000 evaluations again: bit-equal"
            assert "19 of 20 computed again" in verdict.findings[4].detail
        else:
            assert f"line 5, field objective: evaluation {number} " in verdict.complaints[0]
