"""Tracks: frozen lists, who is ranked in them, and that nobody moves anybody else's numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbo_suite.leaderboard.markdown_page import markdown
from cbo_suite.records import Record
from cbo_suite.registry import list_problems
from cbo_suite.scoring import TRACKS, Track, load_references, make_board
from cbo_suite.scoring.board import Board, RankingRow, TrackBoard
from cbo_suite.scoring.runs import family
from cbo_suite.scoring.tracks import LEAST_RUNS, problem_weights
from tests.make_records import make, make_reference

ONE, TWO, TEN, OUTSIDE = "one-1d-v1", ("two-m1-v1", "two-m2-v1"), "ten-1d-v1", "outside-1d-v1"
FIRST = Track("first-v1", "a family of one and one of two", ((ONE,), TWO))
SECOND = Track("second-v1", "one problem", ((TEN,),))
ALONE = Track("alone-v1", "overlaps, and is not in the overall ranking", (TWO,), in_overall=False)
SOME = (FIRST, SECOND, ALONE)
REFERENCES = dict.fromkeys([ONE, *TWO, TEN, OUTSIDE], make_reference(budget=1, n_init=0))
# The fields that compare optimizers; all others are an optimizer's own numbers.
RELATIVE = ("rank", "rank_interval", "mean_rank")


def runs(problem: str, optimizer: str, *values: float | None, n: int = LEAST_RUNS) -> list[Record]:
    """Make n runs of one evaluation that see these values in turn; None is infeasible."""
    return [
        make([values[seed % len(values)]], problem=problem, optimizer=optimizer, seed=seed)
        for seed in range(n)
    ]


def test_a_row_says_if_it_is_not_one_method() -> None:
    """Of one identity and one set of options on all problems of its track, not of others."""
    one, two = ({"optimizer-source": sign * 64} for sign in "12")
    settings = {
        "same": ((one, {}), (one, {})),
        "code": ((one, {}), (two, {})),
        "options": ((one, {"a": 1, "b": 2}), (one, {"a": 1})),
        "unknown": ((one, {}), ({}, {})),
    }
    records = [
        msgspec.structs.replace(record, versions=versions, options=options)
        for optimizer, made in settings.items()
        for problem, (versions, options) in zip((TWO[0], TWO[1]), made, strict=True)
        for record in runs(problem, optimizer, 1.0)
    ]
    board = make_board(records, REFERENCES, tracks=[ALONE, Track("half-v1", "", ((TWO[0],),))])
    pair, half = ({row.optimizer: row.mixed for row in track.ranked} for track in board.tracks)
    assert pair == {"same": False, "code": True, "options": True, "unknown": True}
    assert set(half.values()) == {False}
    assert not any(row.mixed for problem in board.problems for row in problem.rows)
    assert sum("provisional, mixed |" in line for line in markdown(board).splitlines()) == 3


def test_lists_are_frozen() -> None:
    """A changed list is a new version: add a track, do not edit one, and pin the new one here."""
    assert [(track.id, track.families, track.in_overall) for track in TRACKS] == [
        (
            "small-v1",
            (
                ("toy-2d-v1",),
                ("rosenbrock-5d-v1",),
                ("tension-string-3d-v1",),
                ("pressure-vessel-4d-v1",),
                ("welded-beam-4d-v1",),
                ("speed-reducer-7d-v1",),
                ("ackley-10d-v1",),
            ),
            True,
        ),
        (
            "large-v1",
            (
                ("keane-30d-v1",),
                ("lunar-lander-m10-v1", "lunar-lander-m30-v1", "lunar-lander-m50-v1"),
                ("rover-60d-v1",),
                ("vehicle-124d-v1",),
            ),
            True,
        ),
        ("mopta08-v1", (("mopta08-124d-v1",),), False),
    ]
    assert LEAST_RUNS == 10


def test_every_problem_of_a_track_exists_and_has_references() -> None:
    """Nobody could be ranked otherwise; and families are those of the problems' pages."""
    known = {problem.id for problem in list_problems()} & load_references().keys()
    for track in TRACKS:
        assert set(track.problems) <= known
        assert len(set(track.problems)) == len(track.problems)
        names = [{family(problem) for problem in members} for members in track.families]
        assert all(len(own) == 1 for own in names)
        assert len(set().union(*names)) == len(names)


def find(rows: list[RankingRow], optimizer: str) -> RankingRow:
    """Return the row of an optimizer."""
    (row,) = [row for row in rows if row.optimizer == optimizer]
    return row


def test_a_score_is_the_mean_over_families_and_the_overall_one_over_tracks() -> None:
    """By hand: 0 reaches all targets, None nothing, 10 two of 51."""
    records = [
        *runs(ONE, "a", 0.0),
        *runs(TWO[0], "a", 0.0),
        *runs(TWO[1], "a", None),
        *runs(TEN, "a", 10.0),
    ]
    board = make_board(records, REFERENCES, tracks=SOME)
    first, second, alone = board.tracks
    assert find(first.ranked, "a").anytime == 75.0
    assert find(second.ranked, "a").anytime == pytest.approx(200 / 51)
    assert find(alone.ranked, "a").anytime == 50.0
    assert board.overall_tracks == ["first-v1", "second-v1"]
    (overall,) = board.overall
    assert overall.anytime == pytest.approx((75 + 200 / 51) / 2)
    assert (overall.problems, overall.runs, overall.feasible_runs) == (4, 40, 30)
    assert (overall.fewest_runs, overall.provisional, overall.verified) == (10, True, False)


def test_who_lacks_a_problem_or_a_seed_is_partial() -> None:
    """With the mean over what was run, not in the overall ranking; more problems stand first."""
    records = [
        *(record for id_ in (ONE, *TWO, TEN) for record in runs(id_, "whole", 10.0)),
        *(record for id_ in (ONE, *TWO) for record in runs(id_, "ninth", 0.0, n=9)),
        *runs(TEN, "ninth", 0.0),
        *runs(TWO[1], "third", 0.0, None),
        *runs(ONE, "third", None),
        *runs(ONE, "lone", 0.0, n=1),
    ]
    board = make_board(records, REFERENCES, tracks=SOME)
    first, second, _ = board.tracks
    assert [row.optimizer for row in first.ranked] == ["whole"]
    assert [(row.optimizer, row.problems, row.fewest_runs) for row in first.partial] == [
        ("ninth", 3, 9),
        ("third", 2, 10),
        ("lone", 1, 1),
    ]
    # The family of two counts whole, although one of them is missing.
    assert find(first.partial, "third").anytime == 25.0
    assert find(first.partial, "lone").anytime_interval is None
    for row in first.partial:
        assert (row.rank, row.rank_interval, row.mean_rank) == (None, None, None)
    assert [(row.optimizer, row.rank) for row in second.ranked] == [("ninth", 1), ("whole", 2)]
    assert [row.optimizer for row in board.overall] == ["whole"]


def test_problems_outside_every_track_move_nothing() -> None:
    """They have their own table; without references a problem of a track is outside too."""
    records = runs(ONE, "a", 0.0) + runs(OUTSIDE, "a", None) + runs(OUTSIDE, "b", 0.0)
    board = make_board(records, REFERENCES, tracks=SOME)
    assert [problem.problem for problem in board.problems] == [ONE, OUTSIDE]
    assert [row.optimizer for row in board.tracks[0].rows] == ["a"]
    assert board.tracks[0].rows[0].anytime == 100.0
    board = make_board(records, {}, tracks=SOME)
    assert [track.rows for track in board.tracks] == [[], [], []]
    assert len(board.problems) == 2


def test_a_row_on_a_problem_that_nobody_had_run_moves_nobody() -> None:
    """It once took a share from everybody's mean: what an optimizer was not run on counted 0."""
    records = runs(ONE, "a", 0.0, 10.0)
    before = make_board(records, REFERENCES, tracks=SOME).tracks[0].partial
    after = make_board(records + runs(TWO[0], "b", 0.0), REFERENCES, tracks=SOME).tracks[0].partial
    assert find(after, "a") == find(before, "a")
    assert before[0].anytime == pytest.approx(50 * (1 + 2 / 51))


def test_ranks_are_by_score_and_ties_share() -> None:
    """By hand: b and c tie; the interval of a clear rank is the rank alone."""
    values = {"a": (0.0,), "b": (10.0, None), "c": (10.0, None), "d": (None,)}
    records = [record for name, own in values.items() for record in runs(TEN, name, *own)]
    board = make_board(records, REFERENCES, tracks=[SECOND])
    assert [(row.optimizer, row.rank, row.rank_interval) for row in board.overall] == [
        ("a", 1, (1, 1)),
        ("b", 2, (2, 2)),
        ("c", 2, (2, 2)),
        ("d", 4, (4, 4)),
    ]
    # Under the paper's rule a run without a feasible point counts 10, as b and c have it: all tie.
    assert [row.mean_rank for row in board.overall] == [1.0, 3.0, 3.0, 3.0]
    # Half the seeds of each favour it: either may be first.
    close = runs(TEN, "a", 0.0, None) + runs(TEN, "b", None, 0.02)
    rows = make_board(close, REFERENCES, tracks=[SECOND]).overall
    assert [(row.rank, row.rank_interval) for row in rows] == [(1, (1, 2)), (2, (1, 2))]


def test_variants_have_a_score_and_no_rank() -> None:
    """They do not push anybody down, and nobody loses sight of them; strangers are methods."""
    values = {"main-best": (0.0,), "main": (1.0,), "other": (5.0,)}
    records = [record for name, own in values.items() for record in runs(TEN, name, *own)]
    records += runs(ONE, "main-best", 0.0)
    methods = {"main": "main", "main-best": "main"}
    board = make_board(records, REFERENCES, methods=methods, tracks=SOME)
    ranked = board.tracks[1].ranked
    assert [(row.optimizer, row.method, row.rank) for row in ranked] == [
        ("main-best", "main", None),
        ("main", "main", 1),
        ("other", "other", 2),
    ]
    assert [row.variant for row in ranked] == [True, False, False]
    assert [row.mean_rank for row in ranked] == [None, 1.0, 2.0]
    assert [row.optimizer for row in board.tracks[0].partial] == ["main-best"]


def test_ten_problems_of_the_overall_ranking_are_compared() -> None:
    """Friedman's test and the critical difference need ten problems and three methods."""

    def board(n: int, names: str, methods: Mapping[str, str] | None = None) -> Board:
        problems = [f"p{k}-1d-v1" for k in range(n)]
        return make_board(
            [
                record
                for problem in problems
                for i, name in enumerate(names)
                for record in runs(problem, name, float(i))
            ],
            dict.fromkeys(problems, REFERENCES[ONE]),
            methods=methods or {},
            tracks=[Track("many-v1", "many", tuple((problem,) for problem in problems))],
        )

    assert board(9, "abc").comparison is None
    assert board(10, "ab").comparison is None
    assert board(10, "abc", {"c": "a"}).comparison is None
    comparison = board(10, "cab").comparison
    assert comparison is not None
    assert comparison.optimizers == ["c", "a", "b"]
    assert comparison.mean_ranks == [1.0, 2.0, 3.0]
    assert comparison.p_value == pytest.approx(math.exp(-10))
    assert comparison.critical_difference == pytest.approx(2.343 * math.sqrt(0.2), abs=1e-3)
    assert comparison.p_values[0] is None


@given(st.lists(st.integers(0, 3), max_size=4))
def test_weights_add_up_to_one(sizes: list[int]) -> None:
    """Whatever is missing; an empty list of families has no weights."""
    named = [[f"{i}-{k}" for k in range(size)] for i, size in enumerate(sizes)]
    weights = problem_weights(named)
    assert list(weights) == [name for members in named for name in members]
    assert sum(weights.values()) == pytest.approx(1.0 if weights else 0.0)


class Plan(NamedTuple):
    """Runs of an optimizer on a problem.

    Attributes:
        seeds: How many.
        values: What they see in turn.
    """

    seeds: int
    values: list[float | None]


values = st.lists(st.none() | st.floats(0, 10), min_size=2, max_size=3)
# Whole rows are drawn on purpose: all problems with ten seeds would hardly come by chance.
whole = st.fixed_dictionaries(
    {id_: st.builds(Plan, st.integers(10, 12), values) for id_ in (ONE, *TWO, TEN)}
)
part = st.dictionaries(
    st.sampled_from([*REFERENCES]),
    st.builds(Plan, st.integers(1, 11), values),
    min_size=1,
    max_size=3,
)
# One of the first is among those whose records are added: more seeds, or more problems, for it.
participants = st.dictionaries(st.sampled_from("abc"), part | part | whole, min_size=1, max_size=2)
newcomers = st.dictionaries(st.sampled_from("cde"), part | part | whole, min_size=1, max_size=2)
Plans = dict[str, dict[str, Plan]]


def records_of(plans: Plans, first_seed: int) -> list[Record]:
    """Make the records of plans, with seeds from this one on."""
    return [
        make(
            [plan.values[i % len(plan.values)]],
            problem=problem,
            optimizer=optimizer,
            seed=first_seed + i,
        )
        for optimizer, own in plans.items()
        for problem, plan in own.items()
        for i in range(plan.seeds)
    ]


def numbers(board: Board, left_out: set[str]) -> dict[str, list[bytes]]:
    """Write out everybody's own numbers in each ranking, but for those who are left out."""

    def own(row: RankingRow) -> bytes:
        fields: dict[str, Any] = msgspec.to_builtins(row)
        return msgspec.json.encode({k: v for k, v in fields.items() if k not in RELATIVE})

    def chosen(rows: list[RankingRow]) -> list[bytes]:
        return [own(row) for row in rows if row.optimizer not in left_out]

    def lists(track: TrackBoard) -> dict[str, list[bytes]]:
        return {
            f"{track.track} ranked": chosen(track.ranked),
            f"{track.track} partial": chosen(track.partial),
        }

    found = {"overall": chosen(board.overall)}
    for track in board.tracks:
        found |= lists(track)
    return found


@given(participants, newcomers, st.booleans())
@settings(deadline=None, max_examples=200)
def test_no_record_changes_the_numbers_of_anybody_else(
    before: Plans, added: Plans, grouped: bool
) -> None:
    """Of any optimizer, new or known, on any problem, in a track or not, with any seeds.

    Scores, intervals, counts, who is ranked and who is partial, and the order among the others
    stay, byte by byte. Only ranks, their intervals and mean ranks may differ.
    """
    methods = {"b": "a", "c": "a"} if grouped else {}
    old = records_of(before, 0)
    new = records_of(added, 100)
    boards = [
        make_board(records, REFERENCES, methods=methods, tracks=SOME)
        for records in (old, old + new)
    ]
    touched = {record.task.optimizer for record in new}
    assert numbers(boards[0], touched) == numbers(boards[1], touched)
