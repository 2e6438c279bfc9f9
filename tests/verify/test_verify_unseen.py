"""Values whose points are not replayed: they may be untrue, but never move the scores of others."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.harness.design import initial_design
from cbo_suite.protocols import Evaluation
from cbo_suite.records import Record
from cbo_suite.records.blocks import draw_block
from cbo_suite.registry import protocol_of
from cbo_suite.scoring.references import load_references
from cbo_suite.tasks import Task
from cbo_suite.verify import verify_file
from tests.submissions.honest import condensed, put, run_records, sealed


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Ten honest runs on the toy problem."""
    folder = tmp_path_factory.mktemp("journals")
    return run_records(folder, "toy-2d-v1", "random-search", range(10))


LIE = 4321


def rover_runs(value: float, like: Record) -> list[Record]:
    """Make large runs that are true but for a feasible value of which no sample knows."""
    name = "rover-60d-v1"
    problem, protocol, reference = (
        cbo.make_problem(name),
        protocol_of(name),
        load_references()[name],
    )
    assert reference.worst_x is not None
    rest = protocol.budget - protocol.n_init
    worst = problem.evaluate(np.array([reference.worst_x]))
    runs, known = [], {}
    for seed in range(10):
        design = initial_design(name, problem.space, protocol.n_init, seed)
        true = problem.evaluate(design)
        values = Evaluation(
            np.concatenate([true.objective, np.repeat(worst.objective, rest)]),
            np.concatenate([true.constraints, np.repeat(worst.constraints, rest, axis=0)]),
        )
        values.objective[LIE] = value
        known[seed] = np.concatenate([design, np.tile(reference.worst_x, (rest, 1))]), values
        task = Task(name, "my-search", *protocol, seed)
        runs.append(condensed(task, *known[seed], f"{seed:064x}", like))
    while any(LIE in drawn for drawn in draw_block(runs)):
        # What is drawn depends on all that the runs say, their times among it.
        runs = [msgspec.structs.replace(r, seconds_optimizer=r.seconds_optimizer + 1) for r in runs]
    return sealed(runs, known)


def test_no_value_beyond_the_worst_is_believed(records: list[Record], tmp_path: Path) -> None:
    """The paper's rule would give it to everybody; what rounds to the worst value is."""
    worst = load_references()["rover-60d-v1"].worst
    honest = verify_file(put(tmp_path, rover_runs(worst * (1 + 1e-12), records[0])))
    assert (honest.status, honest.complaints) == ("verified", [])
    for value in (1e6, worst * (1 + 1e-8)):
        verdict = verify_file(put(tmp_path, rover_runs(value, records[0])))
        assert verdict.status == "refused"
        (complaint,) = verdict.complaints
        place = f"my-search.jsonl, line 1, field objective: evaluation {LIE}"
        assert f"{place} is feasible with {value}" in complaint
        assert f"no feasible value above {worst} is known" in complaint


def test_a_sample_leaves_no_room_for_one_either(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points of an expensive problem that are stored and not drawn."""
    toy = type(cbo.make_problem("toy-2d-v1"))
    monkeypatch.setattr(toy, "cheap", False)
    monkeypatch.setattr("cbo_suite.verify.replay.SAMPLE", 0.0)
    x = records[4].x
    assert x is not None
    objective, constraints = cbo.make_problem("toy-2d-v1").evaluate(x)
    known = {step.index for step in records[4].improvements}
    number = next(i for i in range(60, 100) if i not in known)
    objective[number], constraints[number] = 2.0, -1.0
    values = Evaluation(objective, constraints)
    forged = condensed(records[4].task, x, values, records[4].digest, records[4])
    assert verify_file(put(tmp_path, records)).complaints == []
    (complaint,) = verify_file(put(tmp_path, [*records[:4], forged, *records[5:]])).complaints
    assert f"line 5, field objective: evaluation {number} is feasible with 2.0" in complaint
