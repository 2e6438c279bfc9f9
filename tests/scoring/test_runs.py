"""Scores of runs: hand-computed numbers, and what must always hold."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbo_suite.errors import RecordError
from cbo_suite.scoring.runs import (
    anytime,
    beats_reference,
    best_so_far,
    default_value,
    evaluations_to_feasible,
    family,
    feasible_table,
    gap,
    outcome_ranks,
    paper_curve,
    regret,
    summarize,
    targets,
    targets_reached,
)
from tests.make_records import make, make_reference

CASES = settings(deadline=None, max_examples=500)
NAN = float("nan")
REFERENCE = make_reference(budget=4, n_init=1)


def test_the_trace_is_the_least_feasible_value_so_far() -> None:
    """Infeasible points never count, and a failed run keeps its last value."""
    record = make([None, 5.0, None, 7.0, 3.0], budget=7, status="failed")
    assert np.array_equal(best_so_far(record), [NAN, 5, 5, 5, 3, 3, 3], equal_nan=True)


def test_values_that_are_not_finite_never_count() -> None:
    """Neither as a trace nor as the default value."""
    record = msgspec.structs.replace(
        make([None, None, 4.0]),
        objectives=np.array([-np.inf, np.nan, 4.0]),
        violations=np.array([np.inf, np.inf, 0.0]),
    )
    assert np.array_equal(best_so_far(record), [NAN, NAN, 4.0], equal_nan=True)
    assert default_value([record], "all_evals") == 4.0


def test_the_tolerance_of_the_reference_is_kept() -> None:
    """A violation up to the tolerance is feasible, in the trace and in every score."""
    record = msgspec.structs.replace(
        make([3.0, 2.0, 1.0, 4.0]), violations=np.array([0.0, 1e-8, 1e-7, 0.0])
    )
    assert best_so_far(record).tolist() == [3.0, 3.0, 3.0, 3.0]
    assert best_so_far(record, tolerance=1e-8).tolist() == [3.0, 2.0, 2.0, 2.0]
    tolerant = msgspec.structs.replace(REFERENCE, feasibility_tolerance=1e-8)
    assert summarize(record, REFERENCE, [1, 4]).final == 3.0
    assert summarize(record, tolerant, [1, 4]).final == 2.0
    assert default_value([record], "final_best", tolerance=1e-8) == 2.0


def test_mean_and_standard_error_at_every_evaluation() -> None:
    """Three runs of two evaluations by hand."""
    runs = [make([None, 4.0], seed=0), make([6.0, 2.0], seed=1), make([None, None], seed=2)]
    default = default_value(runs)
    assert default == 6.0
    mean, error = paper_curve(runs, default)
    assert mean.tolist() == [6.0, 4.0]
    assert error == pytest.approx([0.0, 2.0 / math.sqrt(3)])
    assert np.isnan(paper_curve(runs[:1], default)[1]).all()


def test_the_scopes_of_the_default_value() -> None:
    """The largest of feasible evaluations, of all evaluations, or of the ends of the runs."""
    runs = [make([8.0, None, 3.0]), make([None, 5.0, 4.0]), make([None, None, None])]
    runs[2] = msgspec.structs.replace(runs[2], objectives=np.array([11.0, -2.0, np.nan]))
    assert default_value(runs) == default_value(runs, "feasible") == 8.0
    assert default_value(runs, "all_evals") == 11.0
    assert default_value(runs, "final_best") == 4.0
    for scope in ("feasible", "final_best"):
        assert math.isnan(default_value(runs[2:], scope))
    assert math.isnan(default_value([]))
    with pytest.raises(ValueError, match="'final_best', got 'feasable'"):
        default_value(runs, "feasable")  # type: ignore[arg-type]


def test_runs_of_different_budgets_are_not_averaged() -> None:
    """The message names the budgets."""
    with pytest.raises(RecordError, match=r"one budget, got \[1, 2\]"):
        paper_curve([make([1.0]), make([1.0, 2.0])], 1.0)


def test_the_form_of_the_lunar_table() -> None:
    """Best, worst and median of the feasible runs, and how many these are; else nothing."""
    assert feasible_table(np.array([3.0, NAN, 1.0, 8.0])) == (1.0, 8.0, 3.0, 3, 4)
    none = feasible_table(np.array([NAN, NAN]))
    assert np.isnan(none[:3]).all()
    assert none[3:] == (0, 2)


def test_regret_lies_between_best_and_worst() -> None:
    """Linear in between, clipped outside, 1 while nothing is feasible."""
    trace = np.array([NAN, 30.0, 10.0, -1.0])
    assert regret(trace, REFERENCE).tolist() == [1.0, 1.0, 0.5, 0.0]
    assert np.array_equal(gap(trace, REFERENCE), [NAN, 1.5, 0.5, -0.05], equal_nan=True)


def test_a_value_below_the_best_known_one_is_news() -> None:
    """By more than rounding."""
    assert beats_reference(-1e-6, REFERENCE)
    assert not beats_reference(-1e-9, REFERENCE)
    assert not beats_reference(NAN, REFERENCE)


def test_targets_fall_from_the_level_to_a_thousandth() -> None:
    """Fifty of them, evenly spaced in the logarithm of the distance."""
    values = targets(REFERENCE)
    assert len(values) == 50
    assert values[[0, -1]] == pytest.approx([10.0, 0.01])
    assert np.diff(np.log(values)) == pytest.approx(np.log(1e-3) / 49)


# Value, share of targets: 0.01 * 10 = 10 ** (1 - 3 * 49 / 49) is the last of 50, and a value of
# 10 ** (1 - 3 * i / 49) reaches targets 0 to i, which are i + 1, besides that of feasibility.
@pytest.mark.parametrize(
    ("values", "shares"),
    [
        ([None, 11.0, 10.0, 0.0], [0, 1 / 51, 2 / 51, 1]),
        ([10.5, 9.0, None, 0.0099], [1 / 51, 2 / 51, 2 / 51, 1]),
        ([None, 10 ** (1 - 3 * 24.5 / 49), 0.011, None], [0, 26 / 51, 50 / 51, 50 / 51]),
    ],
)
def test_targets_reached_and_anytime_by_hand(
    values: list[float | None], shares: list[float]
) -> None:
    """A feasible point is one target of 51; every value that is reached is one more."""
    trace = best_so_far(make(values))
    assert targets_reached(trace, REFERENCE) == pytest.approx(shares, abs=1e-12)
    assert anytime(trace, REFERENCE, n_init=1) == pytest.approx(100 * sum(shares[1:]) / 3)
    assert anytime(trace, REFERENCE, n_init=4) == pytest.approx(100 * shares[-1])


# Runs of 10 evaluations; expected running time = evaluations spent / successes.
@pytest.mark.parametrize(
    ("firsts", "expected"),
    [([3, 0, 1], (3 + 10 + 1) / 2), ([10, 10, 10], 10.0), ([0, 0, 7, 0], 37.0), ([0, 0], math.inf)],
)
def test_evaluations_to_the_first_feasible_point(firsts: list[int], expected: float) -> None:
    """All evaluations until success or the end of the budget, per success."""
    assert evaluations_to_feasible(firsts, budget=10) == expected


def test_outcomes_are_ranked_against_each_other() -> None:
    """Feasible by value, then infeasible by violation; ties share."""
    finals = np.array([[3.0, NAN, 1.0], [2.0, NAN, 1.0]])
    violations = np.array([[0.0, 0.5, 0.0], [0.0, 0.1, 0.0]])
    assert outcome_ranks(finals, violations).tolist() == [[4.0, 6.0, 1.5], [3.0, 5.0, 1.5]]
    # A violation that is equal to a feasible value is still worse, and infinite ones tie.
    assert outcome_ranks(np.array([2.0, NAN]), np.array([0.0, 2.0])).tolist() == [1.0, 2.0]
    assert outcome_ranks(np.array([NAN, NAN]), np.array([np.inf] * 2)).tolist() == [1.5, 1.5]


def test_families() -> None:
    """Dimensions, terrains, layouts and versions are of one family."""
    assert family("lunar-lander-m10-v1") == family("lunar-lander-m50-v2") == "lunar-lander"
    assert family("rover-60d-alt-v1") == family("rover-60d-v1") == "rover"
    assert family("mopta08-124d-v1") == "mopta08"
    assert family("a-name-of-its-own") == "a-name-of-its-own"


traces = st.lists(st.none() | st.floats(-5, 30), min_size=4, max_size=4)


@given(traces, st.integers(0, 3), st.floats(0, 10))
@CASES
def test_an_improvement_never_lowers_a_score(
    values: list[float | None], place: int, gain: float
) -> None:
    """Neither a lower value nor a feasible point in place of an infeasible one does harm."""
    better = list(values)
    value = values[place]
    better[place] = 30.0 if value is None else value - gain
    before, after = best_so_far(make(values)), best_so_far(make(better))
    assert (regret(after, REFERENCE) <= regret(before, REFERENCE)).all()
    assert anytime(after, REFERENCE, 1) >= anytime(before, REFERENCE, 1)


@given(traces, st.lists(st.none(), min_size=4, max_size=4), st.floats(20, 1e6))
@CASES
def test_feasible_never_scores_below_infeasible(
    values: list[float | None], nothing: list[float | None], worst: float
) -> None:
    """However bad the value, and even if it lies beyond the worst value of the reference."""
    values[0] = worst
    feasible, infeasible = best_so_far(make(values)), best_so_far(make(nothing))
    assert (regret(feasible, REFERENCE) <= regret(infeasible, REFERENCE)).all()
    assert anytime(feasible, REFERENCE, 1) > anytime(infeasible, REFERENCE, 1) == 0.0
    finals = np.array([feasible[-1], infeasible[-1]])
    assert outcome_ranks(finals, np.array([0.0, 0.0])).tolist() == [1.0, 2.0]
    default = default_value([make(values), make(nothing)])
    assert feasible[-1] <= default


@given(traces, st.integers(1, 100), st.integers(-100, 100))
@CASES
def test_scores_do_not_depend_on_the_scale_of_the_objective(
    values: list[float | None], scale: int, shift: int
) -> None:
    """Objective and references may be stretched and shifted together."""

    def change(value: float | None) -> float | None:
        return None if value is None else scale / 8 * value + shift

    # Values near a target may fall on its other side by rounding: keep to quarters between them.
    values = [None if value is None else 0.27 + round(value * 4) / 4 for value in values]
    changes = {name: change(getattr(REFERENCE, name)) for name in ("best", "worst", "level")}
    moved = msgspec.structs.replace(REFERENCE, **changes)
    before, after = best_so_far(make(values)), best_so_far(make([change(v) for v in values]))
    assert regret(after, moved) == pytest.approx(regret(before, REFERENCE), abs=1e-9)
    assert anytime(after, moved, 1) == pytest.approx(anytime(before, REFERENCE, 1), abs=1e-9)


@given(traces, st.integers(0, 4))
@CASES
def test_a_failed_run_is_scored_as_if_it_had_stood_still(
    values: list[float | None], length: int
) -> None:
    """Its last state is carried to the end of the budget."""
    cut = make(values[:length], budget=4, status="failed")
    still = make(values[:length] + [None] * (4 - length))
    grid = [1, 2, 3, 4]
    one, other = summarize(cut, REFERENCE, grid), summarize(still, REFERENCE, grid)
    assert one.imputed
    assert not other.imputed
    assert np.array_equal(one.trace, other.trace, equal_nan=True)
    assert (one.anytime, one.first_feasible) == (other.anytime, other.first_feasible)


def test_a_summary_agrees_with_the_single_scores() -> None:
    """What the board is made of, from one run by hand."""
    record = make([None, 12.0, 5.0, 6.0], seed=7)
    summary = summarize(record, REFERENCE, [2, 4])
    assert summary.trace.tolist() == [12.0, 5.0]
    assert (summary.seed, summary.final, summary.violation) == (7, 5.0, 0.0)
    assert (summary.first_feasible, summary.largest_feasible) == (2, 12.0)
    assert summary.anytime == anytime(best_so_far(record), REFERENCE, 0)
    assert summary.reached.tolist() == targets_reached(np.array([12.0, 5.0]), REFERENCE).tolist()
    assert summary.evaluations == 4
    assert summary.seconds == pytest.approx(0.4)
    alone = summarize(record, None, [2, 4])
    assert math.isnan(alone.anytime)
    assert np.isnan(alone.reached).all()
