"""The paper's rule, by hand-computed numbers and by properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbo_suite.errors import RecordError
from cbo_suite.leaderboard import markdown, number, ranking_rows
from cbo_suite.scoring import best_so_far, default_value, paper_curve, paper_scores, standings
from tests.make_records import make


def test_the_trace_is_the_least_feasible_value_so_far():
    """Infeasible points never count, and a failed run keeps its last value."""
    record = make([None, 5.0, None, 7.0, 3.0], budget=7, status="failed")
    assert np.array_equal(best_so_far(record), [np.nan, 5, 5, 5, 3, 3, 3], equal_nan=True)


def test_the_worked_example_of_the_paper_rule():
    """A feasible in 28/30 with mean 10, B in 20/30 with mean 5, default 20; then one at 100."""

    def entry(name, value, feasible):
        return [make([value if i < feasible else None], optimizer=name, seed=i) for i in range(30)]

    records = entry("a", 10.0, 28) + entry("b", 5.0, 20) + entry("c", 20.0, 1)
    means = {score.optimizer: score.mean for score in paper_scores(records)}
    assert means["a"] == pytest.approx(10.67, abs=0.005)
    assert means["b"] == pytest.approx(10.00, abs=0.005)
    means = {score.optimizer: score.mean for score in paper_scores(records + entry("d", 100.0, 1))}
    assert means["a"] == pytest.approx(16.0, abs=0.05)
    assert means["b"] == pytest.approx(36.7, abs=0.05)


def test_mean_and_standard_error_at_every_evaluation():
    """Three runs by hand."""
    runs = [make([None, 4.0], seed=0), make([6.0, 2.0], seed=1), make([None, None], seed=2)]
    default = default_value(runs)
    assert default == 6.0
    mean, error = paper_curve(runs, default)
    assert mean.tolist() == [6.0, 4.0]
    assert error == pytest.approx([0.0, 2.0 / math.sqrt(3)])
    assert np.isnan(paper_curve(runs[:1], default)[1]).all()


def test_runs_of_different_budgets_are_not_averaged():
    """The message names the budgets."""
    with pytest.raises(RecordError, match=r"one budget, got \[1, 2\]"):
        paper_curve([make([1.0]), make([1.0, 2.0])], 1.0)


def test_a_problem_nobody_solved():
    """Without a feasible point there is no value, and everybody shares the rank."""
    scores = paper_scores([make([None], optimizer="a"), make([None], optimizer="b")])
    assert all(math.isnan(score.mean) for score in scores)
    assert [row.mean_rank for row in standings(scores)] == [1.5, 1.5]
    assert number(scores[0].mean) == "NA"


def test_ranks_are_averaged_over_problems():
    """Ties share their ranks."""
    records = [
        make([1.0], problem="p-1d-v1", optimizer="a"),
        make([2.0], problem="p-1d-v1", optimizer="b"),
        make([3.0], problem="q-1d-v1", optimizer="a"),
        make([3.0], problem="q-1d-v1", optimizer="b"),
    ]
    table = standings(paper_scores(records))
    assert [(row.optimizer, row.mean_rank) for row in table] == [("a", 1.25), ("b", 1.75)]
    assert ranking_rows(table)[0][:3] == ("1", "a", "1.25")


runs = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.lists(st.none() | st.floats(-10, 10), min_size=3, max_size=3),
    ),
    min_size=1,
    max_size=12,
)


@given(runs, st.randoms())
@settings(deadline=None)
def test_the_order_of_records_changes_nothing(entries, random):
    """Scores and page are functions of the set of records."""
    records = [make(v, optimizer=name, seed=i) for i, (name, v) in enumerate(entries)]
    shuffled = list(records)
    random.shuffle(shuffled)
    assert markdown(shuffled) == markdown(records)


@given(runs)
@settings(deadline=None)
def test_feasible_is_never_worse_than_infeasible(entries):
    """Under the default no run is better for having found nothing."""
    records = [make(v, optimizer=name, seed=i) for i, (name, v) in enumerate(entries)]
    default = default_value(records)
    finals = np.array([best_so_far(record)[-1] for record in records])
    assert not (finals > default).any()


def test_names_cannot_break_the_page():
    """Markup in a name is text on the page."""
    page = markdown([make([1.0], optimizer="a|b<script>`x`\n# no")])
    assert "a\\|b\\<script\\>\\`x\\` # no" in page
