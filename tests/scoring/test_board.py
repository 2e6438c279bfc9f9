"""The board: the worked example, what participants cannot do to each other, and its bytes."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbo_suite.errors import RecordError
from cbo_suite.leaderboard import markdown
from cbo_suite.records import Record
from cbo_suite.scoring.board import Board, ProblemRow, decode_board, encode_board
from cbo_suite.scoring.overall import evaluation_grid, make_board
from cbo_suite.scoring.tracks import Track
from tests.make_records import make, make_reference

CASES = settings(deadline=None, max_examples=200)
PROBLEMS = ("some-1d-v1", "other-m10-v1", "other-m30-v1")
REFERENCE = make_reference(budget=3, n_init=0)
REFERENCES = dict.fromkeys(PROBLEMS, REFERENCE)
TRACK = Track("all-v1", "all of them", (PROBLEMS[:1], PROBLEMS[1:]))
Entries = dict[tuple[str, str, int], list[float | None]]


def entry(name: str, value: float, feasible: int, runs: int = 30) -> list[Record]:
    """Make runs of one evaluation, of which some are feasible."""
    return [make([value if i < feasible else None], optimizer=name, seed=i) for i in range(runs)]


def rows_of(board: Board, problem: str = PROBLEMS[0]) -> dict[str, ProblemRow]:
    """Return the rows of a problem by optimizer."""
    (found,) = [entry for entry in board.problems if entry.problem == problem]
    return {row.optimizer: row for row in found.rows}


def test_the_worked_example_of_the_paper_rule() -> None:
    """A feasible in 28/30 with mean 10, B in 20/30 with mean 5, default 20; then one at 100."""
    records = entry("a", 10.0, 28) + entry("b", 5.0, 20) + entry("c", 20.0, 1)
    before = make_board(records, REFERENCES)
    after = make_board(records + entry("d", 100.0, 1), REFERENCES)
    one, two = rows_of(before), rows_of(after)
    assert one["a"].paper_mean == pytest.approx(10.67, abs=0.005)
    assert one["b"].paper_mean == pytest.approx(10.00, abs=0.005)
    assert two["a"].paper_mean == pytest.approx(16.0, abs=0.05)
    assert two["b"].paper_mean == pytest.approx(36.7, abs=0.05)
    assert [row.optimizer for row in before.problems[0].rows][:2] == ["b", "a"]
    assert [row.optimizer for row in after.problems[0].rows][:2] == ["a", "b"]
    assert (before.problems[0].default, after.problems[0].default) == (20.0, 100.0)
    assert before.problems[0].digest != after.problems[0].digest
    for name in "ab":
        assert stable(one[name]) == stable(two[name])
    # By hand: the regret of a feasible run is value / 20, that of an infeasible one 1.
    assert one["a"].regret == pytest.approx((28 * 0.5 + 2) / 30)
    assert one["b"].regret == pytest.approx((20 * 0.25 + 10) / 30)
    # 10 reaches two targets of 51; 5 also all of 10 ** (1 - 3 i / 49) >= 5, which are i = 0 to 4.
    assert one["a"].anytime == pytest.approx(100 * 28 / 30 * 2 / 51)
    assert one["b"].anytime == pytest.approx(100 * 20 / 30 * 6 / 51)


def stable(row: ProblemRow) -> dict[str, Any]:
    """Keep what nobody else may change."""
    fields: dict[str, Any] = msgspec.to_builtins(row)
    for name in ("paper_mean", "paper_error", "paper_rank", "p_value", "superiority"):
        del fields[name]
    for name in ("paper_mean", "paper_error"):
        del fields["curves"][name]
    return fields


runs = st.dictionaries(
    st.tuples(st.sampled_from(PROBLEMS), st.sampled_from("abcd"), st.integers(0, 3)),
    st.lists(st.none() | st.floats(-10, 40), min_size=3, max_size=3),
    min_size=1,
    max_size=8,
)


def known(score: float | None) -> float:
    """Return a score that is there."""
    assert score is not None
    return score


def records_of(entries: Entries) -> list[Record]:
    """Make a record of every entry."""
    return [
        make(values, problem=problem, optimizer=optimizer, seed=seed)
        for (problem, optimizer, seed), values in entries.items()
    ]


@pytest.mark.slow
@given(runs)
@CASES
def test_participants_do_not_move_each_other(entries: Entries) -> None:
    """Without one of them no byte of anybody's regret and anytime differs."""
    records = records_of(entries)
    whole = make_board(records, REFERENCES)
    for name in {record.task.optimizer for record in records}:
        rest = [record for record in records if record.task.optimizer != name]
        board = make_board(rest, REFERENCES)
        for problem in board.problems:
            for optimizer, row in rows_of(board, problem.problem).items():
                before = rows_of(whole, problem.problem)[optimizer]
                assert msgspec.json.encode(stable(row)) == msgspec.json.encode(stable(before))


@given(runs, st.randoms(use_true_random=False))
@CASES
def test_the_order_of_records_changes_nothing(entries: Entries, random: Random) -> None:
    """Board and page are functions of the set of records, and read back as they were written."""
    records = records_of(entries)
    shuffled = list(records)
    random.shuffle(shuffled)
    board = make_board(records, REFERENCES, tracks=[TRACK])
    data = encode_board(board)
    assert encode_board(make_board(shuffled, REFERENCES, tracks=[TRACK])) == data
    assert decode_board(data) == board
    assert encode_board(decode_board(data)) == data
    assert b"NaN" not in data
    assert markdown(board).startswith("# Leaderboard\n")


@given(runs, st.integers(0, 7), st.floats(0, 20))
@CASES
def test_an_improvement_never_lowers_the_own_scores(
    entries: Entries, place: int, gain: float
) -> None:
    """Neither on the problem nor in a track."""
    keys = list(entries)
    key = keys[place % len(keys)]
    better = dict(entries)
    better[key] = [40.0 if value is None else value - gain for value in entries[key]]
    before = make_board(records_of(entries), REFERENCES, tracks=[TRACK])
    after = make_board(records_of(better), REFERENCES, tracks=[TRACK])
    one, two = rows_of(before, key[0])[key[1]], rows_of(after, key[0])[key[1]]
    assert known(two.regret) <= known(one.regret)
    assert known(two.anytime) >= known(one.anytime)
    scores = [
        {row.optimizer: row.anytime for row in board.tracks[0].rows} for board in (before, after)
    ]
    assert scores[1][key[1]] >= scores[0][key[1]]


def test_a_problem_without_references_has_the_paper_score_only() -> None:
    """The rest is missing, not zero."""
    board = make_board([make([2.0, 1.0], seed=i) for i in range(3)], {})
    (row,) = board.problems[0].rows
    assert (row.paper_mean, row.regret, row.anytime, row.anytime_interval) == (
        1.0,
        None,
        None,
        None,
    )


def test_a_problem_nobody_solved() -> None:
    """Without a feasible point there is no value, and everybody shares the rank."""
    board = make_board([make([None], optimizer=name) for name in "ab"], REFERENCES)
    assert board.problems[0].default is None
    for row in board.problems[0].rows:
        assert (row.paper_mean, row.best, row.evaluations_to_feasible) == (None, None, None)
        assert (row.regret, row.anytime, row.paper_rank) == (1.0, 0.0, 1.5)
        assert row.outcomes.final == [None]


def test_a_row_by_hand() -> None:
    """Four runs of three evaluations, one of them failed."""
    records = [
        make([None, 4.0, 5.0], seed=0),
        make([6.0, 2.0, None], seed=1),
        make([None, None, None], seed=2),
        make([1.0], seed=3, budget=3, status="failed"),
        make([9.0, 9.0, 9.0], seed=0, optimizer="other"),
    ]
    board = make_board(records, REFERENCES, {"some-1d-v1/some": 0.25})
    row = rows_of(board)["some"]
    assert (row.best, row.median, row.worst) == (1.0, 2.0, 4.0)
    assert (row.feasible_runs, row.runs, row.imputed) == (3, 4, 0.25)
    assert row.evaluations_to_feasible == pytest.approx((2 + 1 + 3 + 1) / 3)
    assert row.paper_mean == pytest.approx((4 + 2 + 9 + 1) / 4)
    assert row.outcomes.first_feasible == [2, 1, None, 1]
    assert row.outcomes.final == [4.0, 2.0, None, 1.0]
    assert row.outcomes.violation == [0.0, 0.0, 1.0, 0.0]
    assert row.outcomes.gap == [0.2, 0.1, None, 0.05]
    assert row.outcomes.imputed == [False, False, False, True]
    assert row.curves.feasible == [0.5, 0.75, 0.75]
    assert row.curves.paper_mean == pytest.approx([(9 + 6 + 9 + 1) / 4, 4.0, 4.0])
    assert row.seconds_per_evaluation == pytest.approx(0.1)
    assert (row.verified, row.replayed) == (True, 0.25)
    assert row.provisional
    other = rows_of(board)["other"]
    assert (other.verified, other.replayed) == (False, 0.0)
    problem = board.problems[0]
    assert (problem.budget, problem.batch_size, problem.n_init) == (3, 1, 0)
    assert (problem.dim, problem.num_constraints, problem.family) == (1, 1, "some")


@given(st.floats(1e-9, 1e4))
@CASES
def test_curves_keep_the_distance_to_the_best_known_value(distance: float) -> None:
    """A log axis shows it: six digits of the value alone would be those of 2996.35."""
    best = 2996.34816496855
    reference = msgspec.structs.replace(REFERENCE, best=best, worst=1e5, level=5e3)
    board = make_board(
        [make([best + distance]), make([best], optimizer="b")], {PROBLEMS[0]: reference}
    )
    for name, value in (("some", best + distance), ("b", best)):
        (shown,) = rows_of(board)[name].curves.paper_mean
        assert shown is not None
        assert shown - best == pytest.approx(value - best, rel=6e-6, abs=1e-12)


def test_optimizers_are_tested_against_the_best() -> None:
    """Twelve paired runs that one always wins; the control is tested against nobody."""
    records = [
        make([value + i / 100], optimizer=name, seed=i)
        for name, value in (("a", 1.0), ("b", 2.0))
        for i in range(12)
    ]
    board = make_board(records, REFERENCES)
    rows = rows_of(board)
    assert board.problems[0].control == "a"
    assert (rows["a"].p_value, rows["a"].superiority) == (None, None)
    assert rows["b"].p_value == pytest.approx(2 * 0.5**12)
    assert rows["b"].superiority == 0.0


def test_new_best_values_are_reported() -> None:
    """With problem, optimizer, seed and value, in the board and on the page."""
    board = make_board([make([-0.5], seed=3), make([1.0], seed=4)], REFERENCES)
    (event,) = board.new_best
    assert (event.problem, event.optimizer, event.seed) == ("some-1d-v1", "some", 3)
    assert (event.value, event.best) == (-0.5, 0.0)
    assert "- some-1d-v1: -0.5 by some, seed 3" in markdown(board)


def test_what_cannot_be_compared_is_refused() -> None:
    """Another protocol, or a seed twice."""
    with pytest.raises(RecordError, match=r"some-1d-v1/b/0: .* got \(1, 1, 0\) and \(2, 1, 0\)"):
        make_board([make([1.0], optimizer="a"), make([1.0, 1.0], optimizer="b")], REFERENCES)
    with pytest.raises(RecordError, match="some-1d-v1/some: a seed is there twice"):
        make_board([make([1.0]), make([2.0])], REFERENCES)


@given(st.integers(1, 10_000), st.integers(0, 10_000))
@CASES
def test_the_grid_shows_the_whole_run(budget: int, n_init: int) -> None:
    """Ascending from the first to the last evaluation, short, with the end of the design."""
    grid = evaluation_grid(budget, n_init)
    assert grid[0] == 1
    assert grid[-1] == budget
    assert (np.diff(grid) > 0).all()
    assert len(grid) <= 112
    assert n_init in grid or n_init == 0 or n_init > budget
