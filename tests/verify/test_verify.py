"""Verifying: honest files pass, any forged value is found, published rows stay as they are."""

from __future__ import annotations

import hashlib
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
from cbo_suite.harness.design import initial_design
from cbo_suite.optimizers.random_search import RandomSearch
from cbo_suite.problems.toy import Toy
from cbo_suite.protocols import Evaluation
from cbo_suite.records import Record
from cbo_suite.registry import protocol_of
from cbo_suite.tasks import Task
from cbo_suite.verify import verify_file
from cbo_suite.verify.replay import select_points
from cbo_suite.verify.submission import Complaints, read_submission
from tests.submissions.honest import condensed, invented_runs, put, renamed, run_records


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Twelve honest runs on the toy problem."""
    folder = tmp_path_factory.mktemp("journals")
    return run_records(folder, "toy-2d-v1", "random-search", range(12))


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
    """Every point is replayed, every digest computed again; twelve runs are provisional."""
    verdict = verify_file(put(tmp_path, records), rerun=2)
    assert verdict.complaints == verdict.flags == []
    assert (verdict.status, verdict.runs, verdict.provisional) == ("verified", 12, True)
    found = {finding.rule: finding.detail for finding in verdict.findings}
    assert list(found) == ["records", "points", "replay", "digest", "rerun"]
    assert found["replay"] == "1,200 of 1,200 evaluations again: bit-equal"
    assert found["digest"] == "12 of 12 computed again: equal"
    assert found["rerun"].count("identical") == 2


@pytest.mark.parametrize(
    ("problem", "optimizer"),
    [("speed-reducer-7d-v1", "cobyla"), ("vehicle-124d-v1", "random-search")],
)
def test_other_honest_files_pass(problem: str, optimizer: str, tmp_path: Path) -> None:
    """So do sequential optimizers, and runs of which only the improvements are kept."""
    runs = run_records(tmp_path, problem, optimizer, range(10))
    verdict = verify_file(put(tmp_path / "runs", runs))
    assert verdict.complaints == []
    assert verdict.status == "verified"
    assert "bit-equal" in verdict.findings[2].detail
    assert (runs[0].points is None) == (problem == "vehicle-124d-v1")


def test_digests_of_irregular_batches_are_computed(tmp_path: Path) -> None:
    """An optimizer that asks for fewer points than it may has its batches on record."""

    class Fewer(RandomSearch):
        """Half of the points it is asked for."""

        def ask(self, n: int = 1) -> np.ndarray:
            """Propose half of the points."""
            return super().ask(max(1, n // 2))

    runs = renamed(run_records(tmp_path, "keane-30d-v1", Fewer, range(10)), "my-search")
    assert runs[0].batches is not None
    verdict = verify_file(put(tmp_path, runs))
    assert verdict.complaints == []
    assert verdict.findings[3].detail == "10 of 10 computed again: equal"
    regular = msgspec.structs.replace(runs[6], batches=None)
    (complaint,) = verify_file(put(tmp_path, [*runs[:6], regular, *runs[7:]])).complaints
    assert "line 7, field digest: it is not that of the points and values" in complaint


@given(
    seed=st.integers(0, 11),
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
    """One objective off by 1,000 units in the last place, or one constraint of another sign.

    The forger has made the rest of the record consistent. With its digest, even the last bit
    counts.
    """

    def change(objective: np.ndarray, constraints: np.ndarray) -> None:
        if kind == "ulps":
            objective[number] -= 1000 * np.spacing(objective[number])
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
        assert f"evaluation {number} does not come out again" in found[0]


@pytest.fixture(scope="module")
def large(records: list[Record]) -> list[Record]:
    """A hundred thousand evaluations of a 30-dimensional problem in a hundred runs."""
    return invented_runs("keane-30d-v1", "my-search", range(100), records[0])


def test_one_forged_value_in_a_hundred_thousand_is_found(
    large: list[Record], tmp_path: Path
) -> None:
    """Both kinds of forgery, at a random place of 1e5 rows each; the rest is as it was."""
    random = np.random.default_rng(0)
    for trial in range(2):
        seed, number = int(random.integers(100)), int(random.integers(1000))

        def change(objective: np.ndarray, constraints: np.ndarray) -> None:
            if trial % 2:  # noqa: B023
                objective[number] -= 1000 * np.spacing(objective[number])  # noqa: B023
            else:
                constraints[number] = -constraints[number]  # noqa: B023

        changed = [*large[:seed], forged(large[seed], change), *large[seed + 1 :]]
        found = complaints_of(tmp_path / str(trial), changed)
        assert f"line {seed + 1}, field " in found[0]
        assert f"evaluation {number} does not come out again" in found[0]


def test_the_digest_of_invented_runs_is_found(large: list[Record], tmp_path: Path) -> None:
    """All values are true, but no run has this digest."""
    found = complaints_of(tmp_path, large)
    assert len(found) == 1
    assert "line 1, field digest: it is not that of the points and values" in found[0]


def test_rounding_of_another_machine_is_accepted(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If many values differ, by less than 1e-12, it is the arithmetic; more is refused."""
    path = put(tmp_path, records)
    true = Toy._evaluate
    for size, share, expected in (
        (1e-15, 0.05, "within 1e-13"),
        (3e-13, 1.0, "within 1e-12"),
        (3e-12, 1.0, None),
        (3e-13, 0.05, None),
    ):

        def rounded(self: Any, x: np.ndarray) -> Evaluation:
            objective, constraints = true(self, x)
            random = np.random.default_rng(1)
            off = size * (random.random(len(x)) < share)  # noqa: B023
            return Evaluation(objective * (1 + off), constraints)

        monkeypatch.setattr(Toy, "_evaluate", rounded)
        verdict = verify_file(path)
        if expected is None:
            assert verdict.status == "refused"
            assert "field objective: evaluation" in verdict.complaints[0]
            assert len(verdict.complaints) <= 11
        else:
            assert verdict.complaints == []
            assert expected in verdict.findings[2].detail
            assert verdict.findings[3].outcome == "skipped"


def test_digests_are_compared_run_by_run(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of one run that round differently leave the others to be checked."""
    path = put(tmp_path, records)
    true = Toy._evaluate

    def rounded(self: Any, x: np.ndarray) -> Evaluation:
        objective, constraints = true(self, x)
        objective[750] = np.nextafter(objective[750], np.inf)
        # A constraint that is kept and not on record, of another run.
        row = next(i for i in range(450, 500) if constraints[i, 0] < -0.1)
        constraints[row, 0] = np.nextafter(constraints[row, 0], 0.0)
        return Evaluation(objective, constraints)

    monkeypatch.setattr(Toy, "_evaluate", rounded)
    verdict = verify_file(path)
    assert (verdict.status, verdict.complaints) == ("verified", [])
    assert verdict.findings[3].detail == (
        "10 of 12 computed again: equal; others: values are not bit-equal here"
    )


def test_an_expensive_problem_is_sampled(records: list[Record], tmp_path: Path) -> None:
    """Of an expensive problem every improvement and some five percent are replayed."""
    path = put(tmp_path, records)
    submission = read_submission(path, Complaints(path))
    assert submission is not None
    every, some = (select_points(submission, cheap, "5eed") for cheap in (True, False))
    steps = sum(len(record.improvements) for record in records)
    assert len(every.x) == 1200
    assert (some.step >= 0).sum() == steps
    assert 0.02 < (len(some.x) - steps) / (1200 - steps) < 0.09
    again, other = (select_points(submission, False, salt) for salt in ("5eed", "0dd"))
    assert np.array_equal(some.x, again.x)
    assert not np.array_equal(some.number, other.number)


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
        record = condensed(task, x[:1], Evaluation(values[0][:1], values[1][:1]), "", records[0])
        long = {"objective": [1.0] * 2000, "violation": [0.0] * 2000, "feasible": "1" * 2000}
        made.append(msgspec.structs.replace(record, points=None, digest=f"{seed:064x}", **long))
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
    x = record.x
    assert x is not None
    x[60] = problem.best_known.x  # type: ignore[attr-defined]
    changed = condensed(record.task, x, problem.evaluate(x), record.digest, record)
    verdict = verify_file(put(tmp_path, [*records[:4], changed, *records[5:]]))
    assert verdict.flags == ["line 5: evaluation 60 is the best known point to the last bit"]
    assert "line 5, field digest" in verdict.complaints[0]


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


def test_all_runs_are_of_one_version(records: list[Record], tmp_path: Path) -> None:
    """Source, packages, Python: all runs name the same, and none leaves one out."""
    for number, (changes, seeds, message) in enumerate(
        [
            ({"optimizer_source": "0" * 16}, {9}, "line 10, field versions: optimizer-source 0000"),
            ({"optimizer_source": ""}, {9}, "line 10, field versions: no optimizer-source"),
            ({"optimizer_source": ""}, {0}, "line 2, field versions: optimizer-source "),
            ({"python": ""}, {3, 5}, "line 4, field versions: no python"),
            ({"my_search": "1.0"}, {9}, "line 10, field versions: my-search 1.0"),
            ({"numpy": "1.0"}, {9}, "line 10, field versions: numpy 1.0"),
        ]
    ):
        runs = with_versions(records, seeds, **changes)
        (complaint,) = complaints_of(tmp_path / str(number), runs)
        assert message in complaint
        assert "unlike a line above: one version" in complaint


def test_libraries_agree_wherever_they_are_named(records: list[Record], tmp_path: Path) -> None:
    """What ran before in the same process may have imported one; its version is one."""
    runs = with_versions(records, {5, 7}, cma="4.5.0")
    assert complaints_of(tmp_path, runs) == []
    (complaint,) = complaints_of(tmp_path, with_versions(runs, {9}, cma="4.4.0"))
    assert "line 10, field versions: cma 4.4.0, unlike a line above" in complaint


def test_runs_that_failed_are_part_of_the_grid(records: list[Record], tmp_path: Path) -> None:
    """Also two that failed before their first evaluation, which are alike."""
    nothing = {"objective": [], "violation": [], "feasible": "", "improvements": [], "points": ""}
    empty = hashlib.sha256().hexdigest()
    failed = [
        msgspec.structs.replace(r, status="failed", error="it broke", digest=empty, **nothing)
        for r in records[3:5]
    ]
    verdict = verify_file(put(tmp_path, [*records[:3], *failed, *records[5:]]))
    assert (verdict.status, verdict.complaints) == ("verified", [])
    assert verdict.findings[2].detail == "1,000 of 1,000 evaluations again: bit-equal"
    assert verdict.findings[3].detail == "12 of 12 computed again: equal"


def test_a_grid_without_a_single_evaluation_is_unverified(
    records: list[Record], tmp_path: Path
) -> None:
    """There is nothing to replay, and nothing to complain of."""
    nothing = {"objective": [], "violation": [], "feasible": "", "improvements": [], "points": ""}
    failed = [msgspec.structs.replace(r, status="failed", **nothing) for r in records]
    verdict = verify_file(put(tmp_path, failed))
    assert (verdict.status, verdict.complaints) == ("unverified", [])


def test_lost_evaluations_of_an_expensive_problem_may_come_back(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time-out on record is no forgery if the point can be evaluated now; a wrong value is."""
    pytest.importorskip("Box2D")
    monkeypatch.setattr("cbo_suite.verify.replay.SAMPLE", 0.001)
    name = "lunar-lander-m10-v1"
    problem, protocol = cbo.make_problem(name, workers=1), protocol_of(name)
    made = []
    for seed in range(10):
        x = np.ones((protocol.budget, problem.space.dim))
        x[: protocol.n_init] = initial_design(name, problem.space, protocol.n_init, seed)
        values = Evaluation(np.full(len(x), np.nan), np.full((len(x), 10), np.nan))
        for all_values, some in zip(values, problem.evaluate(x[:2]), strict=True):
            all_values[:2] = some
        task = Task(name, "my-search", *protocol, seed)
        made.append(condensed(task, x, values, f"{seed:064x}", records[0]))
    verdict = verify_file(put(tmp_path, made))
    assert verdict.complaints == []
    assert verdict.findings[2].detail.endswith("of 10,000 evaluations again: bit-equal")
    assert verdict.findings[3][:2] == ("digest", "skipped")
    values.objective[0] -= 1.0
    made[9] = condensed(task, x, values, made[9].digest, records[0])
    (complaint,) = verify_file(put(tmp_path, made)).complaints
    assert "line 10, field objective: evaluation 0 does not come out again" in complaint
