"""Every problem against stored values that an independent implementation computed.

tests/golden/problems.json has one entry per problem id, a list of at least five points:

    {id: [{"x": [...], "objective": f, "constraints": [c1, ...]}, ...]}

Tests only read it. `cbo golden ID --by MODULE:FUNCTION --out tests/golden/problems.json` adds a new
problem. `python -m tests.golden.derive_problem_values` wrote the analytic problems, with 40 digits;
others name their own command in their own tests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.errors import MissingExtra
from cbo_suite.problems import PROBLEMS

GOLDEN: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "problems.json").read_text(encoding="utf-8")
)
EXEMPT = {"mopta08-124d-v1": "its executable may not be passed on; its own tests ask for it"}


def test_every_problem_has_golden_values_and_every_entry_a_problem() -> None:
    """A missing entry and an orphaned entry both fail."""
    assert set(GOLDEN) == set(PROBLEMS) - set(EXEMPT)


@pytest.mark.parametrize("problem_id", [id_ for id_ in PROBLEMS if id_ not in EXEMPT])
def test_values_agree_with_the_independent_implementation(problem_id: str) -> None:
    """Objective and constraints agree to nine digits at every stored point."""
    points = GOLDEN[problem_id]
    assert len(points) >= 5
    try:
        problem = cbo.make_problem(problem_id)
    except MissingExtra as error:
        pytest.skip(str(error))
    evaluation = problem.evaluate(np.array([point["x"] for point in points]))
    np.testing.assert_allclose(
        evaluation.objective, [point["objective"] for point in points], rtol=1e-9
    )
    np.testing.assert_allclose(
        evaluation.constraints, [point["constraints"] for point in points], rtol=1e-9
    )
