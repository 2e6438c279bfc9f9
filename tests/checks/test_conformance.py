"""Every registered problem and optimizer keeps its contract."""

from __future__ import annotations

from functools import partial

import pytest

from cbo_suite.checks import check_optimizer, check_problem
from cbo_suite.errors import MissingExecutable, MissingExtra
from cbo_suite.registry import list_optimizers, list_problems, make_problem, optimizer_factory


@pytest.mark.parametrize("id_", [info.id for info in list_problems()])
def test_problem_conforms(id_: str) -> None:
    """The problem keeps every rule, has the id it is registered under and the listed sizes."""
    try:
        problem = make_problem(id_)
        # Where one evaluation takes long, two points show what seven would.
        check_problem(problem, num_points=7 if getattr(problem, "cheap", True) else 2)
    except (MissingExtra, MissingExecutable) as missing:
        pytest.skip(str(missing))
    (info,) = [info for info in list_problems() if info.id == id_]
    assert problem.id == id_
    assert (info.dim, info.num_constraints) == (problem.space.dim, problem.space.num_constraints)


# Options that make a slow library do less of the same.
SHORT = {"botorch-logcei": {"num_restarts": 1, "raw_samples": 16}}


@pytest.mark.slow
@pytest.mark.parametrize("id_", [info.id for info in list_optimizers()])
def test_optimizer_conforms(id_: str) -> None:
    """The optimizer keeps every rule."""
    try:
        factory = optimizer_factory(id_)
        check_optimizer(partial(factory, **SHORT[id_]) if id_ in SHORT else factory)
    except MissingExtra as missing:
        pytest.skip(str(missing))
