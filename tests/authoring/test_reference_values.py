"""Reference and golden values of any problem: found, checked, written once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.authoring import Effort, derive_reference, golden_values
from cbo_suite.authoring.extremes import search_extreme
from cbo_suite.authoring.golden_values import write_golden
from cbo_suite.authoring.reference_values import derive_and_write, references_file, write_reference
from cbo_suite.errors import EvaluationFailed, InvalidTask, RecordError
from cbo_suite.protocols import Array, BestKnown, Evaluation, RunProtocol, Space
from cbo_suite.scoring.references import (
    encode_references,
    load_references,
    read_references,
    suite_file,
)

QUICK = Effort(samples=2**8, starts=4, hops=4, generations=60, children=20)


class Ring:
    """x1 + x2 between two circles of radius 1 and 1.5."""

    id = "ring-2d-v1"
    space = Space([-2.0, -2.0], [2.0, 2.0], 2)
    protocol = RunProtocol(budget=30, batch_size=1, n_init=5)
    best_known: BestKnown | None = None

    def evaluate(self, x: Array) -> Evaluation:
        """Evaluate points of shape `(n, 2)`."""
        squared = (self.space.validate(x) ** 2).sum(axis=1)
        return Evaluation(x.sum(axis=1), np.column_stack([squared - 2.25, 1.0 - squared]))


class Whole:
    """Whole numbers under a known linear constraint: 0 <= x1, x2 <= 9 and x1 + x2 <= 11."""

    id = "whole-2d-v1"
    space = Space([0.0, 0.0], [9.0, 9.0], 1, integer=[True, True], linear=([[1.0, 1.0]], [11.0]))

    def evaluate(self, x: Array) -> Evaluation:
        """Evaluate points; where x1 is 5 the simulator fails."""
        x = self.space.validate(x)
        if (x[:, 0] == 5.0).any():
            raise EvaluationFailed("the mesh of 5 cells has a hole")
        return Evaluation(2 * x[:, 0] + x[:, 1], (3.0 - x[:, 1])[:, None])


def test_extremes_are_found_without_knowing_any() -> None:
    """Best and worst of a problem that declares none, and a level between them."""
    problem = Ring()
    reference = derive_reference(problem, effort=QUICK)
    # On the outer circle, where x1 = x2.
    assert [reference.best, reference.worst] == pytest.approx([-1.5 * 2**0.5, 1.5 * 2**0.5])
    assert reference.best < reference.level <= reference.worst
    assert (reference.budget, reference.n_init) == (30, 5)
    assert reference.worst_x is not None
    values = problem.evaluate(np.array([reference.best_x, reference.worst_x]))
    assert values.feasible.all()
    assert values.objective.tolist() == [reference.best, reference.worst]


def test_whole_numbers_linear_constraints_and_failures_are_searched() -> None:
    """By hand: (0, 3) is best, (8, 3) worst, as (9, 2) has too small an x2."""
    nothing = np.empty((0, 2))
    assert search_extreme(Whole(), 1, QUICK, nothing).tolist() == [0.0, 3.0]
    assert search_extreme(Whole(), -1, QUICK, nothing).tolist() == [8.0, 3.0]


def test_the_best_known_point_must_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken over; one that is wrong or that random search beats is refused."""
    known = BestKnown(-2.12, np.array([-1.06, -1.06]), "by hand")
    monkeypatch.setattr(Ring, "best_known", known)
    reference = derive_reference(Ring(), effort=QUICK)
    assert (reference.best, reference.best_x) == (-2.12, [-1.06, -1.06])
    assert reference.source == "best: by hand; others: cbo references"
    monkeypatch.setattr(Ring, "best_known", BestKnown(-3.0, known.x, ""))
    with pytest.raises(InvalidTask, match=r"no feasible point of value -3.0: it gives -2.12"):
        derive_reference(Ring(), effort=QUICK)
    monkeypatch.setattr(Ring, "best_known", BestKnown(1.2, np.array([0.0, 1.2]), ""))
    with pytest.raises(InvalidTask, match=r"better than its best known value 1.2"):
        derive_reference(Ring(), effort=QUICK)


def test_a_problem_without_scale_or_feasible_point_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message says what is missing."""

    def constant(self: Ring, x: Array) -> Evaluation:
        return Evaluation(np.ones(len(x)), np.zeros((len(x), 2)))

    def infeasible(self: Ring, x: Array) -> Evaluation:
        return Evaluation(x[:, 0], np.ones((len(x), 2)))

    monkeypatch.setattr(Ring, "evaluate", constant)
    with pytest.raises(InvalidTask, match="must differ in their objective values"):
        derive_reference(Ring(), effort=QUICK)
    monkeypatch.setattr(Ring, "evaluate", infeasible)
    with pytest.raises(EvaluationFailed, match="give the problem a `best_known`"):
        derive_reference(Ring(), effort=QUICK)


def test_references_are_frozen(tmp_path: Path) -> None:
    """What is there is refused, whatever is added leaves the bytes of the others alone."""
    assert encode_references(load_references(1)) == suite_file().read_bytes()
    assert references_file("toy-2d-v1") == suite_file()
    with pytest.raises(InvalidTask, match=r"references\.json has the references of toy-2d-v1"):
        derive_and_write("toy-2d-v1", None)
    path = tmp_path / "references.json"
    known = load_references()
    for id_ in ("toy-2d-v1", "mine-1d-v1", "ackley-10d-v1"):
        write_reference(id_, path, known.get(id_, known["toy-2d-v1"]))
    # In the order of the registry, what is not registered last.
    assert list(read_references(path)) == ["ackley-10d-v1", "toy-2d-v1", "mine-1d-v1"]
    path.write_text("{}[")
    with pytest.raises(RecordError, match="no file of reference values"):
        read_references(path)
    with pytest.raises(RecordError, match="no file of reference values"):
        read_references(tmp_path)


def test_the_search_finds_the_frozen_worst_value_again() -> None:
    """Of the toy problem, within the budget of a test: sqrt(3), by the circle of c2."""
    problem = cbo.make_problem("toy-2d-v1")
    frozen = load_references()["toy-2d-v1"]
    found = derive_reference(problem, effort=QUICK)
    assert found.worst == pytest.approx(frozen.worst, rel=1e-6)
    same = msgspec.structs.replace(
        frozen, worst=found.worst, worst_x=found.worst_x, source=found.source
    )
    assert found == same


def test_golden_values_are_those_of_the_formula(tmp_path: Path) -> None:
    """An independent formula must agree; the points are copied without loss; nothing is lost."""

    def formula(x: Sequence[float]) -> tuple[float, list[float]]:
        squared = x[0] * x[0] + x[1] * x[1]
        return x[0] + x[1], [squared - 2.25, 1.0 - squared]

    def mistaken(x: Sequence[float]) -> tuple[float, list[float]]:
        objective, constraints = formula(x)
        return objective, [constraints[0], 1.001 * constraints[1]]

    points = golden_values(Ring(), formula)
    assert len(points) == 8
    assert all(round(value, 8) == value for point in points for value in point["x"])
    assert points[0]["constraints"] == formula(points[0]["x"])[1]
    with pytest.raises(InvalidTask, match="ring-2d-v1 and the formula differ in constraints"):
        golden_values(Ring(), mistaken)
    with pytest.raises(InvalidTask, match="differ in constraints"):
        golden_values(Ring(), lambda x: (x[0] + x[1], []))
    path = tmp_path / "golden.json"
    path.write_text('{"other-1d-v1": []}')
    write_golden("ring-2d-v1", path, points)
    write_golden("ring-2d-v1", path, points)
    with pytest.raises(InvalidTask, match="has other golden values of ring-2d-v1"):
        write_golden("ring-2d-v1", path, points[:1])
    path.write_text("[]")
    with pytest.raises(InvalidTask, match="no file of golden values: it holds a list"):
        write_golden("ring-2d-v1", path, points)
    (whole, *_) = golden_values(Whole())
    assert all(value == int(value) for value in whole["x"])
