"""Estimates of how long runs take, against what published runs took."""

from __future__ import annotations

import pytest

from cbo_suite.campaign.durations import Estimator, published_seconds
from cbo_suite.protocols import Task
from cbo_suite.registry import problem_info, protocol_of
from tests.test_docs import ROOT
from tests.write_durations import RUNS, measured_seconds

MEASURED = measured_seconds([ROOT / RUNS])


@pytest.mark.parametrize("problem", sorted(MEASURED))
def test_estimates_are_within_a_factor_of_two(problem: str) -> None:
    """Of every published pair, what the optimizer took and what evaluations take by the table."""
    info, protocol = problem_info(problem), protocol_of(problem)
    assert info is not None
    for optimizer, seconds in MEASURED[problem].items():
        expected = seconds + protocol.budget * (info.seconds or 0.0)
        estimated = Estimator().seconds(Task(problem, optimizer, *protocol, seed=0))
        # A journal's lines and the start of a process take some tenths of a second.
        assert expected / 2 <= estimated <= 2 * expected + 1.0, optimizer


def test_published_times_are_positive() -> None:
    """The table has seconds of problems that there are."""
    for problem, seconds in published_seconds().items():
        assert problem_info(problem) is not None
        assert all(value > 0.0 for value in seconds.values())
