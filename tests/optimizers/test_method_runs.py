"""The methods of the paper give the results that they gave: a change in the core is not unseen.

The identity of an optimizer covers its own code. What it is run by, the protocol, the harness and
the problem, is watched here.
"""

from __future__ import annotations

import json
import platform
import sys

import numpy as np
import pytest

import cbo_suite as cbo
from tests.golden.derive_method_runs import METHODS, PROBLEM, TARGET, run_method

# Of the size of the box: fifty times what was measured between processors, see the script.
TOLERANCE = 1e-5
POINTS = json.loads(TARGET.read_text("utf-8"))


def test_every_method_has_its_points() -> None:
    """Neither one without points nor points without a method."""
    assert POINTS.keys() == METHODS.keys()


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="points are recorded on linux-x86_64",
)
@pytest.mark.parametrize("optimizer", METHODS)
def test_a_short_run_proposes_the_points_it_did(optimizer: str) -> None:
    """If this is meant, write them anew: `python -m tests.golden.derive_method_runs`."""
    space = cbo.make_problem(PROBLEM).space
    found, expected = np.array(run_method(optimizer)), np.array(POINTS[optimizer])
    off = np.abs(found - expected) / (space.upper - space.lower)
    assert off.max() < TOLERANCE, f"evaluation {int(off.max(axis=1).argmax())} moved"


def test_the_recorded_runs_differ_where_methods_do() -> None:
    """They start from one design and part after it, by more than rounding."""
    ends = np.array([rows[8:12] for rows in POINTS.values()])
    for number, end in enumerate(ends):
        for other in ends[:number]:
            assert np.abs(end - other).max() > 1000 * TOLERANCE
