"""Verifying: honest files pass, any forged value is found, published rows stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.cli import main
from cbo_suite.journal import read_journal
from cbo_suite.optimizers.random_search import RandomSearch
from cbo_suite.problems.toy import Toy
from cbo_suite.protocols import Evaluation
from cbo_suite.records import Record, make_record
from cbo_suite.registry import protocol_of
from cbo_suite.scoring.references import load_references
from cbo_suite.tasks import Task
from cbo_suite.verify import Designs, points, verify_file
from cbo_suite.verify.replay import compute_fingerprints
from tests.submissions.honest import (
    condensed,
    invented_runs,
    put,
    run_records,
)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Twenty honest runs on the toy problem."""
    folder = tmp_path_factory.mktemp("journals")
    return run_records(folder, "toy-2d-v1", "random-search", range(20))


def forged(record: Record, change: Callable[[np.ndarray, np.ndarray], object]) -> Record:
    """Change objective or constraints of a record in place; all else follows from them."""
    x = record.x
    assert x is not None
    objective, constraints = cbo.make_problem(record.task.problem).evaluate(x)
    change(objective, constraints)
    return condensed(record.task, x, Evaluation(objective, constraints), record.digest, record)


def complaints_of(folder: Path, records: Sequence[Record]) -> list[str]:
    """Verify records as a file."""
    return verify_file(put(folder, records)).complaints


def test_an_honest_file_is_verified_to_the_bit(records: list[Record], tmp_path: Path) -> None:
    """Every point is replayed, every digest computed again; twenty runs are provisional."""
    verdict = verify_file(put(tmp_path, records), rerun=2)
    assert verdict.complaints == verdict.flags == []
    assert (verdict.status, verdict.runs, verdict.provisional) == ("verified", 20, True)
    found = {finding.rule: finding.detail for finding in verdict.findings}
    assert list(found) == ["records", "identity", "points", "replay", "digest", "rerun"]
    assert found["replay"] == "2,000 of 2,000 evaluations again: bit-equal"
    assert found["digest"] == "20 of 20 computed again: equal"
    assert found["rerun"].count("seed ") == 2
    assert found["rerun"].endswith(" identical")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "optimizer"),
    [("speed-reducer-7d-v1", "cobyla"), ("vehicle-124d-v1", "random-search")],
)
def test_other_honest_files_pass(problem: str, optimizer: str, tmp_path: Path) -> None:
    """So do sequential optimizers, and runs of which not all points are kept."""
    runs = run_records(tmp_path, problem, optimizer, range(10))
    verdict = verify_file(put(tmp_path / "runs", runs))
    assert verdict.complaints == []
    assert verdict.status == "verified"
    found = {finding.rule: finding.detail for finding in verdict.findings}
    assert found["replay"].endswith(" evaluations again: bit-equal")
    assert ("sample" in found) == (problem == "vehicle-124d-v1")
    if "sample" in found:
        steps = sum((record.steps >= 130).sum() for record in runs)
        assert verdict.replayed == (10 * (130 + 32) + steps) / 20_000


def test_digests_of_irregular_batches_are_computed(tmp_path: Path) -> None:
    """An optimizer that asks for fewer points than it may has its batches on record."""

    class Fewer(RandomSearch):
        """Half of the points it is asked for."""

        def ask(self, n: int = 1) -> np.ndarray:
            """Propose half of the points."""
            return super().ask(max(1, n // 2))

    path = tmp_path / "run.jsonl"
    run = cbo.run("toy-2d-v1", Fewer, batch_size=8, journal=path)
    contents = read_journal(path)
    assert contents is not None
    record = make_record(contents)
    assert record.batches is not None
    assert compute_fingerprints(record, run.evaluation) == (record.digest, record.root)
    regular = msgspec.structs.replace(record, batches=None)
    assert compute_fingerprints(regular, run.evaluation)[0] != record.digest


@given(
    seed=st.integers(0, 19),
    number=st.integers(0, 99),
    kind=st.sampled_from(["ulps", "sign", "tiny", "last digit"]),
)
@settings(max_examples=60, deadline=None)
def test_a_forged_value_is_found_wherever_it_is(
    records: list[Record],
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    number: int,
    kind: str,
) -> None:
    """One objective off by a trifle, or one constraint of another sign.

    The forger has made the rest of the record consistent. With its digest, even the last bit
    counts.
    """

    def change(objective: np.ndarray, constraints: np.ndarray) -> None:
        if kind == "ulps":
            objective[number] -= 2e-13
        elif kind == "last digit":
            objective[number] = np.nextafter(objective[number], -np.inf)
        elif kind == "tiny":
            constraints[number] = np.where(constraints[number] > 0, -1e-300, 1e-300)
        else:
            constraints[number, 0] = -constraints[number, 0]

    changed = [*records[:seed], forged(records[seed], change), *records[seed + 1 :]]
    found = complaints_of(tmp_path_factory.mktemp("forged"), changed)
    if kind == "last digit":
        # A unit in the last place is what another processor gives; it passes, and changes nothing.
        assert found == []
    else:
        assert found
        assert f"line {seed + 1}, field " in found[0]
        assert f"evaluation {number} " in found[0]


@pytest.fixture(scope="module")
def large(records: list[Record]) -> list[Record]:
    """Twenty thousand evaluations of a 10-dimensional problem in a hundred runs."""
    return invented_runs("ackley-10d-v1", "my-search", range(100), records[0])


def test_one_forged_value_in_twenty_thousand_is_found(large: list[Record], tmp_path: Path) -> None:
    """Both kinds of forgery, each at a random place; the rest is as it was."""
    random = np.random.default_rng(0)
    for trial in range(2):
        seed, number = int(random.integers(100)), int(random.integers(200))

        def change(objective: np.ndarray, constraints: np.ndarray) -> None:
            if trial % 2:  # noqa: B023
                objective[number] -= 1e-11  # noqa: B023
            else:
                constraints[number] = -constraints[number]  # noqa: B023

        changed = [*large[:seed], forged(large[seed], change), *large[seed + 1 :]]
        found = complaints_of(tmp_path / str(trial), changed)
        assert f"line {seed + 1}, field " in found[0]
        assert f"evaluation {number} " in found[0]


def test_the_digest_of_invented_runs_is_found(large: list[Record], tmp_path: Path) -> None:
    """All values are true, but no run has this digest."""
    found = complaints_of(tmp_path, large)
    assert len(found) == 1
    assert "line 1, field digest: it is not that of the points and values" in found[0]


@pytest.mark.parametrize(("size", "accepted"), [(1e-15, True), (5e-14, True), (3e-13, False)])
def test_rounding_of_another_machine_is_accepted(
    records: list[Record],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: float,
    accepted: bool,
) -> None:
    """Values may differ by 1e-13 of the problem's scale, however many do; more is refused."""
    path = put(tmp_path, records)
    true = Toy._evaluate

    def rounded(self: Any, x: np.ndarray) -> Evaluation:
        objective, constraints = true(self, x)
        # Away from the limit, so that nothing becomes infeasible.
        return Evaluation(
            objective * (1 + size), np.where(constraints > 0, constraints, constraints - size)
        )

    monkeypatch.setattr(Toy, "_evaluate", rounded)
    verdict = verify_file(path)
    if accepted:
        assert (verdict.status, verdict.complaints) == ("verified", [])
        assert "bit-equal, others within 1e-13 of their scale" in verdict.findings[3].detail
        assert verdict.findings[4].outcome == "skipped"
    else:
        assert verdict.status == "refused"
        assert "field objective: evaluation" in verdict.complaints[0]
        assert len(verdict.complaints) <= 11


@pytest.mark.parametrize("excess", [5e-324, 1e-16, 1e-14])
def test_a_point_that_is_not_feasible_here_is_not_feasible(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, excess: float
) -> None:
    """However little a constraint is above zero, and whatever the other values are."""
    path = put(tmp_path, records)
    true = Toy._evaluate

    def rounded(self: Any, x: np.ndarray) -> Evaluation:
        objective, constraints = true(self, x)
        feasible = (constraints <= 0).all(axis=1)
        constraints[feasible, 0] = excess
        return Evaluation(objective * (1 + 5e-15), constraints)

    monkeypatch.setattr(Toy, "_evaluate", rounded)
    verdict = verify_file(path)
    assert verdict.status == "refused"
    assert "field feasible: evaluation" in verdict.complaints[0]
    assert "is recorded as feasible; the problem says its violation is" in verdict.complaints[0]


def test_no_tolerance_comes_from_the_file(records: list[Record], tmp_path: Path) -> None:
    """Huge values in most of the file do not make room for a small lie in the rest."""
    problem = Toy()
    made = []
    for record in records:
        x = record.points.copy()
        objective, constraints = problem.evaluate(x)
        # All after the design is invented on a scale of 1e30, but for one claim of interest.
        objective[10:] = 1e30
        constraints[10:] = 1e30
        objective[99], constraints[99] = problem.evaluate(x[99:])[0][0] - 0.01, -1.0
        made.append(condensed(record.task, x, Evaluation(objective, constraints), "0" * 64, record))
        made[-1] = msgspec.structs.replace(made[-1], digest=f"{record.task.seed:064x}")
    verdict = verify_file(put(tmp_path, made))
    assert verdict.status == "refused"
    assert "evaluation 10 does not come out again" in verdict.complaints[0]


def test_digests_are_compared_run_by_run(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of one run that round differently leave the others to be checked."""
    path = put(tmp_path, records)
    true = Toy._evaluate
    # A constraint that is kept and not on record, of another run.
    known = records[4].points
    row = next(i for i in range(50, 100) if true(Toy(), known)[1][i, 0] < -0.1)

    def rounded(self: Any, x: np.ndarray) -> Evaluation:
        objective, constraints = true(self, x)
        one, other = ((x == point).all(axis=1) for point in (records[7].points[50], known[row]))
        objective[one] = np.nextafter(objective[one], np.inf)
        constraints[other, 0] = np.nextafter(constraints[other, 0], 0.0)
        return Evaluation(objective, constraints)

    monkeypatch.setattr(Toy, "_evaluate", rounded)
    verdict = verify_file(path)
    assert (verdict.status, verdict.complaints) == ("verified", [])
    assert verdict.findings[4].detail == (
        "18 of 20 computed again: equal; others: values are not bit-equal here"
    )


def test_an_expensive_problem_is_sampled(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The design, every improvement and some five percent of the rest; one run if in a hurry."""
    path = put(tmp_path, records)
    monkeypatch.setattr(Toy, "cheap", False)
    true = Toy._evaluate
    replayed: list[set[bytes]] = []

    def noted(self: Any, x: np.ndarray) -> Evaluation:
        replayed[-1].update(point.tobytes() for point in x)
        return true(self, x)

    monkeypatch.setattr(Toy, "_evaluate", noted)
    steps = sum((record.steps >= 10).sum() for record in records)
    found = []
    for salt in ("5eed", "5eed", "0dd"):
        replayed.append(set())
        found.append(verify_file(path, salt=salt))
    least = (200 + steps) / 2000
    assert all(least < verdict.replayed < least + 0.09 for verdict in found)
    assert found[0] == found[1]
    # Other points, not only another number of them: two samples may well be of one size.
    assert replayed[0] == replayed[1] != replayed[2]
    assert all(verdict.status == "verified" for verdict in found)
    quick = verify_file(path, quick=True)
    assert (quick.status, quick.complaints) == ("unverified", [])
    assert 0.005 < quick.replayed < 0.05
    assert quick.findings[-1].detail.startswith("only one run of an expensive problem is replayed")


def test_designs_are_evaluated_once(records: list[Record], tmp_path: Path) -> None:
    """Files that are verified together share them."""
    counted = []
    problem = Toy()

    class Counting:
        """Counts the points that it evaluates."""

        id, space = problem.id, problem.space

        def evaluate(self, x: np.ndarray) -> Evaluation:
            """Evaluate and count."""
            counted.append(len(x))
            return problem.evaluate(x)

    designs = Designs()
    first = designs.evaluated(Counting(), 10, range(3))
    designs.evaluated(Counting(), 10, range(5))
    again = designs.evaluated(Counting(), 10, range(3))
    designs.scale(Counting(), 10)
    assert counted == [30, 20]
    assert all(np.array_equal(first[seed].x, again[seed].x) for seed in range(3))


def test_a_problem_that_cannot_be_made_here_is_unverified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: list[Record]
) -> None:
    """Results of MOPTA08 are read strictly; without its executable they are not replayed."""
    monkeypatch.delenv("CBO_MOPTA08", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    problem, protocol = "mopta08-124d-v1", protocol_of("mopta08-124d-v1")
    x = np.full((protocol.budget, 124), 0.5)
    values = Evaluation(np.ones(protocol.budget), np.full((protocol.budget, 68), -1.0))
    made = []
    for seed in range(10):
        task = Task(problem, "my-search", *protocol, seed)
        made.append(condensed(task, x, values, f"{seed:064x}", records[0]))
    path = put(tmp_path / "runs", made)
    verdict = verify_file(path)
    assert (verdict.status, verdict.complaints) == ("unverified", [])
    assert verdict.findings[-1].outcome == "skipped"
    assert "MOPTA08" in verdict.findings[-1].detail
    done = CliRunner().invoke(main, ["verify", str(path)])
    assert done.exit_code == 0
    assert "0 verified, 1 unverified, 0 refused" in done.output


def test_the_best_known_point_is_flagged(records: list[Record], tmp_path: Path) -> None:
    """An optimizer that proposes the very best known point is worth a look, not refused."""
    record, problem = records[4], cbo.make_problem("toy-2d-v1")
    x = record.points.copy()
    x[60] = problem.best_known.x  # type: ignore[attr-defined]
    changed = condensed(record.task, x, problem.evaluate(x), record.digest, record)
    verdict = verify_file(put(tmp_path, [*records[:4], changed, *records[5:]]))
    assert verdict.flags == ["line 5: evaluation 60 is the best known point to the last bit"]
    assert "line 5, field digest" in verdict.complaints[0]


def test_the_run_that_found_the_best_known_point_is_not_flagged(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own point became the best known; another run with the same point is flagged."""
    problem, changed = cbo.make_problem("toy-2d-v1"), []
    for record in records[3:5]:
        x = record.points.copy()
        x[60] = problem.best_known.x  # type: ignore[attr-defined]
        changed.append(condensed(record.task, x, problem.evaluate(x), record.digest, record))
    task = records[4].task
    source = f"best: found by {task.optimizer} with seed {task.seed}, a script"
    reference = msgspec.structs.replace(load_references()[task.problem], source=source)
    monkeypatch.setattr(points, "load_references", lambda: {task.problem: reference})
    verdict = verify_file(put(tmp_path, [*records[:3], *changed, *records[5:]]))
    assert verdict.flags == ["line 4: evaluation 60 is the best known point to the last bit"]
