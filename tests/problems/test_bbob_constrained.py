"""The family bbob-constrained: COCO's values to the last bit, its optimum, and the registry."""

from __future__ import annotations

import copy
import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import cbo_suite as cbo
from cbo_suite.checks import check_problem
from cbo_suite.cli import main
from cbo_suite.errors import MissingExtra, UnknownId
from cbo_suite.problems import FAMILIES, bbob_constrained
from cbo_suite.problems.bbob_constrained import BbobConstrained, load_optima
from cbo_suite.registry import list_families, problem_info, protocol_of, resolve_problem_id
from cbo_suite.scoring.references import read_references
from cbo_suite.tasks import get_suite

cocoex: Any = pytest.importorskip("cocoex")

# Every function once, in all dimensions and some instances, and the largest ones.
SAMPLE = [
    *((k, (2, 3, 5, 10, 20, 40)[k % 6], 1 + k % 15) for k in range(1, 55)),
    *((k, 40, 1) for k in range(1, 13, 2)),
]


def id_of(k: int, d: int, j: int) -> str:
    """Write the id of a function, a dimension and an instance."""
    return f"bbob-constrained-f{k}-{d}d-i{j}-v1"


@cache
def coco(d: int) -> Any:
    """Make the whole suite of COCO in d variables."""
    return cocoex.Suite("bbob-constrained", "instances: 1-15", f"dimensions: {d}")


@pytest.fixture(scope="module", autouse=True)
def optima() -> None:
    """Ask for all optima at once, because a process is started for it."""
    load_optima(SAMPLE)


@pytest.mark.parametrize("key", SAMPLE, ids=lambda key: id_of(*key))
def test_values_are_those_of_coco_to_the_last_bit(key: tuple[int, int, int]) -> None:
    """Objective, constraints and box, by a suite that is not ours; and every rule of a problem."""
    k, d, j = key
    problem = cbo.make_problem(id_of(k, d, j))
    check_problem(problem, num_points=2)
    other = coco(d).get_problem_by_function_dimension_instance(k, d, j)
    x = problem.space.from_unit(np.random.default_rng(k).random((3, d)))
    x[0] = other.initial_solution
    values = problem.evaluate(x)
    assert np.array_equal(values.objective, [other(row) for row in x])
    assert np.array_equal(values.constraints, [other.constraint(row) for row in x])
    assert np.array_equal(problem.space.lower, other.lower_bounds)
    assert np.array_equal(problem.space.upper, other.upper_bounds)
    # COCO starts at a feasible point.
    assert values.feasible[0]
    info = problem_info(problem.id)
    assert info is not None
    assert (info.dim, info.num_constraints) == (d, other.number_of_constraints)


@pytest.mark.parametrize("key", SAMPLE[::6], ids=lambda key: id_of(*key))
def test_no_feasible_point_is_better_than_the_optimum(key: tuple[int, int, int]) -> None:
    """Neither near it nor on the way to COCO's start."""
    problem = BbobConstrained(**dict(zip(("function", "dim", "instance"), key, strict=True)))
    best, random = problem.best_known, np.random.default_rng(0)
    assert best is not None
    start = np.array(problem._coco[1].initial_solution)
    way = best.x + np.linspace(0.0, 1.0, 100)[:, None] * (start - best.x)
    steps = 10.0 ** random.uniform(-8, 0, (200, 1)) * random.standard_normal((200, best.x.size))
    x = np.clip(np.concatenate([way, best.x + steps]), -5.0, 5.0)
    values = problem.evaluate(x)
    assert values.feasible.any()
    margin = 1e-11 * max(1.0, abs(best.objective))
    assert values.objective[values.feasible].min() >= best.objective - margin


def test_a_copy_is_the_same_problem() -> None:
    """It makes a problem of COCO of its own, as it would in another process."""
    problem = cbo.make_problem(id_of(6, 5, 2))
    x = np.full((1, 5), 0.5)
    before = problem.evaluate(x)
    twin = copy.deepcopy(problem)
    assert "_coco" not in vars(twin)
    assert np.array_equal(twin.evaluate(x).constraints, before.constraints)


def test_ids_are_found_and_refused() -> None:
    """Without a version the first; what is out of range is answered with what there is."""
    assert resolve_problem_id("bbob-constrained-f1-2d-i1") == id_of(1, 2, 1)
    for bad in (id_of(55, 2, 1), id_of(1, 4, 1), id_of(1, 2, 0), "bbob-constrained-f01-2d-i1-v1"):
        with pytest.raises(UnknownId, match=r"ids are bbob-constrained-f<k>-<d>d-i<j>-v1 with k 1"):
            cbo.make_problem(bad)
        assert problem_info(bad) is None
    with pytest.raises(UnknownId):
        protocol_of(id_of(55, 2, 1))


def test_the_protocol_follows_the_dimension() -> None:
    """100 evaluations up to 10 variables, 200 above, one by one, a design of max(10, 2 d)."""
    found = {d: protocol_of(id_of(1, d, 1)) for d in (2, 5, 10, 20, 40)}
    assert found == {
        2: (100, 1, 10),
        5: (100, 1, 10),
        10: (100, 1, 20),
        20: (200, 1, 40),
        40: (200, 1, 80),
    }


def test_the_family_is_one_row_of_the_list() -> None:
    """With its parameters; none of its problems is listed."""
    (family,) = list_families()
    assert family.id == "bbob-constrained-f<k>-<d>d-i<j>-v1"
    assert family.title.endswith("k 1 to 54; d 2, 3, 5, 10, 20, 40; j 1 to 15")
    listed = CliRunner().invoke(main, ["list"]).output
    assert sum("bbob-constrained-f" in line for line in listed.splitlines()) == 1
    assert json.loads(CliRunner().invoke(main, ["list", "--json"]).output)["families"] == [
        family._asdict()
    ]
    assert [len(values) for values in FAMILIES[0].parameters.values()] == [54, 6, 15]


def test_reference_values_of_a_member_go_into_a_file_of_its_user(tmp_path: Path) -> None:
    """The suite has none; best is the optimum that COCO tells."""
    name, path = id_of(1, 2, 7), tmp_path / "references.json"
    few = [
        f"--{what}={n}"
        for what, n in (("samples", 64), ("starts", 1), ("hops", 0), ("generations", 1))
    ]
    refused = CliRunner().invoke(main, ["references", name])
    assert "is of a family" in refused.output
    done = CliRunner().invoke(main, ["references", name, "--out", str(path), *few])
    assert done.exit_code == 0, done.output
    best = cbo.make_problem(name).best_known  # type: ignore[attr-defined]
    assert read_references(path)[name].best == best.objective


def test_the_suite_has_every_function_once_in_three_dimensions() -> None:
    """The first instance in 10, 20 and 40 dimensions."""
    tasks = get_suite("bbob-constrained").tasks()
    expected = {id_of(k, d, 1) for k, d in product(range(1, 55), (10, 20, 40))}
    assert {task.problem for task in tasks} == expected
    assert {task.seed for task in tasks} == set(range(10))


def test_without_coco_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line can be copied as it is."""
    monkeypatch.setattr(bbob_constrained, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "cbo-suite\[coco\]"'):
        cbo.make_problem(id_of(1, 2, 1))
