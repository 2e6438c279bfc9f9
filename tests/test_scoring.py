"""The paper's rule, by hand-computed numbers and by properties."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbo_suite.errors import RecordError
from cbo_suite.leaderboard import markdown, number, ranking_rows
from cbo_suite.references import Reference
from cbo_suite.scoring import (
    anytime,
    best_so_far,
    default_value,
    evaluations_to_feasible,
    family,
    outcome_ranks,
    paper_curve,
    paper_scores,
    regret,
    standings,
    targets,
    targets_reached,
)
from cbo_suite.tasks import Task
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


REFERENCE = Reference(
    best=0.0,
    best_x=[0.0],
    worst=20.0,
    worst_x=[1.0],
    level=10.0,
    budget=4,
    n_init=1,
    feasibility_tolerance=0.0,
    source="made up",
)


def test_regret_lies_between_best_and_worst():
    """Linear in between, clipped outside, 1 while nothing is feasible."""
    record = make([None, 30.0, 10.0, -1.0])
    assert regret(record, REFERENCE).tolist() == [1.0, 1.0, 0.5, 0.0]


def test_targets_fall_from_the_level_to_a_thousandth():
    """Fifty of them, evenly spaced in the logarithm of the distance."""
    values = targets(REFERENCE)
    assert len(values) == 50
    assert values[[0, -1]] == pytest.approx([10.0, 0.01])
    assert np.diff(np.log(values)) == pytest.approx(np.log(1e-3) / 49)


def test_anytime_counts_targets_by_hand():
    """A feasible point is one target of 51; every value that is reached is one more."""
    reached = targets_reached(make([None, 11.0, 10.0, 0.0]), REFERENCE)
    assert reached == pytest.approx([0, 1 / 51, 2 / 51, 1])
    record = msgspec.structs.replace(
        make([None, 11.0, 10.0, 0.0]), task=Task("some-1d-v1", "some", 4, 1, 1, 0)
    )
    assert anytime(record, REFERENCE) == pytest.approx(100 * (1 / 51 + 2 / 51 + 1) / 3)


traces = st.lists(st.none() | st.floats(-5, 30), min_size=4, max_size=4)


@given(traces, st.integers(0, 3), st.floats(0, 10))
@settings(deadline=None, max_examples=500)
def test_an_improvement_never_lowers_a_score(values, place, gain):
    """Neither a lower value nor a feasible point in place of an infeasible one does harm."""
    better = list(values)
    better[place] = 30.0 if better[place] is None else better[place] - gain
    before, after = make(values), make(better)
    assert (regret(after, REFERENCE) <= regret(before, REFERENCE)).all()
    assert anytime(after, REFERENCE) >= anytime(before, REFERENCE)


@given(traces, st.floats(0.1, 10), st.floats(-10, 10))
@settings(deadline=None, max_examples=500)
def test_scores_do_not_depend_on_the_scale_of_the_objective(values, scale, shift):
    """Objective and references may be stretched and shifted together."""

    def change(value):
        return None if value is None else round(scale, 3) * value + round(shift, 3)

    moved = msgspec.structs.replace(
        REFERENCE,
        **{name: change(getattr(REFERENCE, name)) for name in ("best", "worst", "level")},
    )
    record, changed = make(values), make([change(value) for value in values])
    assert regret(changed, moved) == pytest.approx(regret(record, REFERENCE), abs=1e-9)


def test_evaluations_to_the_first_feasible_point():
    """All evaluations until success or the end of the budget, per success."""
    runs_ = [make([None, None, 1.0, 0.5]), make([None] * 4), make([2.0, None, None, None])]
    assert evaluations_to_feasible(runs_) == (3 + 4 + 1) / 2
    assert evaluations_to_feasible(runs_[1:2]) == float("inf")


def test_outcomes_are_ranked_seed_by_seed():
    """Feasible by value, then infeasible by violation; ties share."""
    one = [make([3.0]), make([None]), make([1.0])]
    two = [make([2.0]), make([5.0]), make([1.0])]
    assert outcome_ranks([one, two]).tolist() == [[2.0, 2.0, 1.5], [1.0, 1.0, 1.5]]


def test_families():
    """Dimensions, terrains, layouts and versions are of one family."""
    assert family("lunar-lander-m10-v1") == family("lunar-lander-m50-v2") == "lunar-lander"
    assert family("rover-60d-alt-v1") == family("rover-60d-v1") == "rover"
    assert family("mopta08-124d-v1") == "mopta08"
