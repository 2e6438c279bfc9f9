"""A study: ask and tell over a file that several processes share."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbo_suite import Space
from cbo_suite.errors import (
    InvalidPoint,
    InvalidResult,
    InvalidTask,
    JournalError,
    OptimizerFailed,
    UnknownId,
    UnsupportedTask,
)
from cbo_suite.study import Point, Study
from tests.doubles import Hill, StatefulHill

SPACE = Space([0.0, -1.0], [1.0, 1.0], 1)


def values(x: np.ndarray) -> tuple[float, list[float]]:
    """A bowl whose bottom a constraint cuts off."""
    return float(((x - 0.3) ** 2).sum()), [0.5 - x.sum()]


def answer(study: Study, points: list[Point]) -> None:
    """Evaluate points and tell the results, the last one first."""
    for id_, x in reversed(points):
        study.tell(id_, *values(x))


class CountingHill(StatefulHill):
    """Counts how often any of its kind was asked."""

    total: ClassVar[int] = 0

    def ask(self, n: int = 1) -> np.ndarray:
        """Count, then ask."""
        type(self).total += 1
        return super().ask(n)


class OneByOne(Hill):
    """Takes one result at a time."""

    sequential = True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a study is to be."""
    return tmp_path / "study.jsonl"


def test_loop_spends_the_budget_and_gives_a_run(path: Path) -> None:
    """Points have ids from 1 on; the design is that of `minimize`; the result is a run."""
    study = Study(path, SPACE, optimizer="sobol-search", budget=12, n_init=5, seed=3)
    ids = []
    while points := study.ask(4):
        ids += [point.id for point in points]
        assert len(points) <= 4
        answer(study, points)
    assert ids == list(range(1, 13))
    run = study.run()
    assert study.done
    assert (run.status, len(run.x), run.task.budget) == ("complete", 12, 12)
    best = min(range(12), key=lambda i: (max(0, run.constraints[i, 0]), run.objective[i]))
    assert run.best_index == best
    assert SPACE.validate(run.x).shape == (12, 2)


@pytest.mark.parametrize("optimizer", ["sobol-search", Hill, StatefulHill, "cobyla", "cma-es"])
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_reopening_changes_nothing(
    optimizer: Any, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever is asked and told in whatever order, a process per call asks the same points."""
    folder = tmp_path_factory.mktemp("study")
    begin: dict[str, Any] = {"optimizer": optimizer, "budget": 14, "n_init": 4, "batch_size": 3}
    kept = Study(folder / "kept.jsonl", SPACE, **begin)
    Study(folder / "anew.jsonl", SPACE, **begin)
    pending: list[Point] = []
    while not kept.done:
        number = data.draw(st.integers(1, 4))
        points = kept.ask(number)
        with Study(folder / "anew.jsonl", optimizer=optimizer) as anew:
            same = anew.ask(number)
        assert [p.id for p in same] == [p.id for p in points]
        assert all(np.array_equal(a.x, b.x) for a, b in zip(same, points, strict=True))
        pending = data.draw(st.permutations([*pending, *points]))
        for _ in range(data.draw(st.integers(0 if points else 1, len(pending)))):
            id_, x = pending.pop()
            kept.tell(id_, *values(x))
            Study(folder / "anew.jsonl").tell(id_, *values(x))
    kept.close()
    assert kept.run().digest == Study(folder / "anew.jsonl").run().digest


def test_state_spares_asking_again(path: Path) -> None:
    """An optimizer that offers its state is asked once per ask, however often it is made anew."""
    CountingHill.total = 0
    for _ in range(6):
        study = Study(path, SPACE, optimizer=CountingHill, budget=8, n_init=2)
        answer(study, study.ask(1))
    assert CountingHill.total == 4


def test_scbo_goes_on_from_its_state(tmp_path: Path) -> None:
    """The models' state is in the file: a new process proposes what the old one would."""
    pytest.importorskip("gpytorch")
    kept = Study(tmp_path / "kept.jsonl", SPACE, optimizer="scbo", budget=12, n_init=6)
    while points := kept.ask(2):
        answer(kept, points)
    while True:
        anew = Study(tmp_path / "anew.jsonl", SPACE, optimizer="scbo", budget=12, n_init=6)
        points = anew.ask(2)
        if not points:
            break
        answer(anew, points)
    assert kept.run().digest == anew.run().digest


@pytest.mark.parametrize("optimizer", ["sobol-search", Hill, "cobyla"])
def test_larger_budget_goes_on(path: Path, optimizer: Any) -> None:
    """The old results are known to the optimizer, which then asks within the new budget."""
    study = Study(path, SPACE, optimizer=optimizer, budget=8, n_init=3)
    while points := study.ask():
        answer(study, points)
    study.close()
    longer = Study(path, optimizer=optimizer, budget=11)
    asked = []
    while points := longer.ask():
        asked += [point.id for point in points]
        answer(longer, points)
        longer.close()
    assert asked == [9, 10, 11]
    assert longer.run().task.budget == 11


def test_smaller_budget_changes_nothing(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A script that says what the study was begun with goes on, and the log has a note."""
    Study(path, SPACE, optimizer="sobol-search", budget=3, n_init=3)
    assert len(Study(path, budget=5).ask(5)) == 3
    before = path.read_bytes()
    caplog.set_level(logging.INFO, "cbo_suite")
    again = Study(path, SPACE, optimizer="sobol-search", budget=3, n_init=3)
    assert f"{path}: the budget stays at 5 points" in caplog.text
    assert (path.read_bytes(), again.run().task.budget) == (before, 5)
    assert [point.id for point in again.ask(5)] == [4, 5]
    with pytest.raises(InvalidTask, match="budget"):
        Study(path, budget=0)


def test_sequential_optimizer_waits_for_its_result(path: Path) -> None:
    """Points of the design may be under way together; those of the optimizer are one at a time."""
    study = Study(path, SPACE, optimizer=OneByOne, budget=6, n_init=3)
    design = study.ask(3)
    assert len(design) == 3
    assert study.ask() == []
    answer(study, design)
    (point,) = study.ask(2)
    assert study.ask() == []
    assert not study.done
    study.tell(point.id, *values(point.x))
    assert [p.id for p in study.ask()] == [5]


def test_failures_are_told_and_recorded(path: Path) -> None:
    """What failed and what is not finite has its status; the search goes on."""
    study = Study(path, SPACE, optimizer="cma-es", budget=8, n_init=3)
    first, second, third = study.ask(3)
    study.fail(first.id, "no mesh\nat all")
    study.tell(second.id, math.nan, [-1])
    study.tell(third.id, 1.0, [-1.0])
    assert len(study.ask(2)) == 2
    run = study.run()
    assert run.statuses == ["failed", "nonfinite", "ok"]
    assert run.messages == {0: "no mesh at all"}
    assert (run.best_index, run.status) == (2, "open")
    assert [point.id for point in study.pending] == [4, 5]


def test_known_results_cost_no_budget(path: Path) -> None:
    """They are told to the optimizer, and count for the best; the same again changes nothing."""
    study = Study(path, SPACE, optimizer=Hill, budget=3, n_init=0)
    x = np.array([[0.4, 0.2], [0.9, 0.9]])
    study.know(x, [0.5, 2.0], [[-0.1], [-1.3]])
    study.know(x, [0.5, 2.0], [[-0.1], [-1.3]])
    assert np.array_equal(study.run().x, x)
    assert len(study.ask(5)) == 3
    assert study.run().best_objective == 0.5
    with pytest.raises(InvalidPoint):
        study.know([[2.0, 0.0]], [1.0], [[0.0]])
    with pytest.raises(InvalidResult, match="2 points need as many values, got 1"):
        study.know(x, [0.5], [[-0.1], [-1.3]])
    for wrong in ([-0.1, -1.3, 0.2], [[-0.1, -1.3]], [[1, 1], [1, 1]], [], ["a"], [[1], [1, 2]]):
        with pytest.raises(InvalidResult):
            study.know(x, [0.5, 2.0], wrong)
    with pytest.raises(
        InvalidResult, match=r"constraints of 2 points must have shape \(2, 1\), got"
    ):
        study.know(x, [0.5, 2.0], [[1, 1], [1, 1]])


def test_known_results_may_be_written_plainly(path: Path) -> None:
    """One constraint of several points, or several of one point; nothing where there are none."""
    study = Study(path, SPACE, optimizer=Hill, budget=3)
    study.know([[0.4, 0.2], [0.9, 0.9]], [0.5, 2.0], [-0.1, -1.3])
    study.know([[0.3, 0.2]], 0.25, -0.5)
    assert study.run().constraints.tolist() == [[-0.1], [-1.3], [-0.5]]
    free = Study(path.with_name("free.jsonl"), Space([0.0], [1.0]), optimizer=Hill, budget=3)
    free.know([[0.4], [0.2]], [0.5, 2.0])
    two = Study(path.with_name("two.jsonl"), Space([0.0], [1.0], 2), optimizer=Hill, budget=3)
    two.know([[0.4]], [0.5], [1.0, 2.0])
    assert (free.run().constraints.shape, two.run().constraints.tolist()) == ((2, 0), [[1.0, 2.0]])


@pytest.mark.parametrize(
    ("id", "objective", "constraints", "message"),
    [
        (9, 1.0, [0.0], "point 9 was never asked .* under way: 2, 3"),
        (0, 1.0, [0.0], "never asked"),
        (2, 1.0, [], "point 2 needs 1 constraint values, got 0"),
        (2, 1.0, [0.0, 0.0], "got 2"),
        (2, "much", [0.0], "must be numbers"),
        (2, None, [0.0], "must be numbers"),
        (2, [1.0, 2.0], [0.0], "must be numbers"),
        ("2", 1.0, [0.0], "the id of a point is a whole number, got '2'"),
        (None, 1.0, [0.0], "a result needs the id of a point that was asked"),
        (1, 1.5, [0.0], "told before, with other values: 1.0 -0.5, now 1.5 0.0"),
    ],
)
def test_wrong_results_are_refused(
    path: Path, id: Any, objective: Any, constraints: list[float], message: str
) -> None:
    """Each names what is wrong, and nothing is written."""
    study = Study(path, SPACE, optimizer="sobol-search", budget=5)
    study.ask(3)
    study.ask(1)
    study.tell(1, 1.0, [-0.5])
    study.tell(1, 1.0, [-0.5])
    before = path.read_bytes()
    with pytest.raises(InvalidResult, match=message):
        study.tell(id, objective, constraints)
    assert path.read_bytes() == before


def test_numbers_of_numpy_are_taken(path: Path) -> None:
    """Ids, values and arrays of one value, as they come out of a user's own tables."""
    study = Study(path, SPACE, optimizer="sobol-search", budget=5)
    study.ask(2)
    study.tell(np.int64(1), np.float32(0.5), np.array([[-1]]))  # type: ignore[arg-type]
    study.tell(2, np.array([0.25]), -0.5)  # type: ignore[arg-type]
    run = Study(path).run()
    assert run.objective.tolist() == [0.5, 0.25]
    assert run.constraints.tolist() == [[-1.0], [-0.5]]


def test_what_makes_no_study_leaves_no_file(path: Path) -> None:
    """Every one is a typed error."""
    with pytest.raises(InvalidTask, match="is not there"):
        Study(path)
    for wrong in ({"lower": [0.0], "upper": [1.0]}, [0.0, 1.0]):
        with pytest.raises(
            InvalidTask, match=r"space must be a Space\(lower, upper, num_constraints"
        ):
            Study(path, wrong)  # type: ignore[arg-type]
    with pytest.raises(UnknownId, match="did you mean 'scbo'"):
        Study(path, SPACE, optimizer="scbbo")
    with pytest.raises(InvalidTask, match="sobol-search has no option depth: it has no options"):
        Study(path, SPACE, optimizer="sobol-search", options={"depth": 1})
    with pytest.raises(OptimizerFailed, match="cobyla failed in the constructor"):
        Study(path, SPACE, optimizer="cobyla", options={"final_radius": -1.0})
    with pytest.raises(InvalidTask, match="budget"):
        Study(path, SPACE, optimizer="sobol-search", budget=0)
    narrow = type("Narrow", (Hill,), {"max_dim": 1})
    with pytest.raises(UnsupportedTask, match="at most 1 dimensions"):
        Study(path, SPACE, optimizer=narrow)
    assert not path.exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"space": Space([0.0], [1.0])}, "its space is another"),
        ({"optimizer": "random-search"}, "its optimizer is 'sobol-search', not 'random-search'"),
        ({"seed": 1}, "its seed is 0, not 1"),
        ({"n_init": 3}, "its n_init is 4, not 3"),
        ({"batch_size": 2}, "its batch_size is 1, not 2"),
        ({"options": {"a": 1}}, "its options is {}, not {'a': 1}"),
    ],
)
def test_study_goes_on_as_it_was_begun(path: Path, given: dict[str, Any], message: str) -> None:
    """The same may be said again, something else is refused."""
    begin: dict[str, Any] = {"optimizer": "sobol-search", "budget": 8, "seed": 0}
    Study(path, SPACE, **begin)
    Study(path, SPACE, **begin)
    with pytest.raises(JournalError, match=message.replace("{", r"\{")):
        Study(path, **given)


def test_class_without_id_is_given_again(path: Path) -> None:
    """Results can be told without it."""
    study = Study(path, SPACE, optimizer=Hill, budget=5, n_init=1)
    (point,) = study.ask()
    Study(path).tell(point.id, *values(point.x))
    with pytest.raises(UnknownId, match="give the optimizer again"):
        Study(path).ask()
    assert len(Study(path, optimizer=Hill).ask()) == 1


def test_every_space_comes_back(path: Path) -> None:
    """Whole numbers, scales and linear constraints are in the file."""
    space = Space([0, 1e-3], [10, 1.0], 2, integer=[0], log_scale=[1], linear=([[0.1, 1]], [1.2]))
    Study(path, space, optimizer="random-search", budget=30, n_init=10)
    study = Study(path)
    assert study.space == space
    points = [*study.ask(10), *study.ask(20)]
    assert len(points) == 30
    space.validate(np.array([point.x for point in points]))


def test_optimizer_that_asks_otherwise_is_noticed(path: Path) -> None:
    """A study that does not replay says so, and is not changed."""
    study = Study(path, SPACE, optimizer=Hill, budget=9, n_init=1)
    answer(study, study.ask())
    answer(study, study.ask())

    class Other(Hill):
        def ask(self, n: int = 1) -> np.ndarray:
            return np.full((1, 2), 0.5)

    Other.__qualname__, Other.__module__ = Hill.__qualname__, Hill.__module__
    before = path.read_bytes()
    with pytest.raises(JournalError, match="does not replay: point 2 was"):
        Study(path, optimizer=Other).ask()
    assert path.read_bytes() == before
