"""The rule of `auto` is what the evidence speaks for, and docs/choose.md shows that evidence.

The evidence is a file that a script makes; rows that are published later change nothing here until
it is run again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cbo_suite.choice import RULE, find_branch
from cbo_suite.records import read_records
from cbo_suite.scoring import TRACKS, Track, load_references, make_board
from tests.golden.choice_page import make_tables, write_tables
from tests.golden.derive_choice import (
    LARGE,
    REGIONS,
    SMALL,
    STOPS,
    Evidence,
    Problem,
    Region,
    Row,
    best_of,
    gather,
    judge,
    judge_region,
    judge_tracks,
    load_evidence,
)

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "choose.md").read_text("utf-8")
SOME = ("slack", "cei", "pesc", "scbo", "cobyla", "cma-es")


def invented(scores: dict[str, list[float]], error: float = 1.0) -> Evidence:
    """Make evidence of small problems; the optimizers that are not named have score 0."""
    count = len(next(iter(scores.values())))
    rows = [
        {
            name: Row(10, scores.get(name, [0.0] * count)[i], error, 10, 1.0, [0.0] * len(STOPS))
            for name in SOME
        }
        for i in range(count)
    ]
    return {f"p{i}-2d-v1": Problem(2, 1, 100, 1, rows[i]) for i in range(count)}


def track_of(evidence: Evidence) -> Track:
    """A track of all these problems."""
    return Track("some-v1", "Some", tuple((id_,) for id_ in evidence))


def is_whole(track_id: str, evidence: Evidence) -> bool:
    """Tell whether all candidates have rows on all problems of a track."""
    problems = next(track.problems for track in TRACKS if track.id == track_id)
    region = LARGE if track_id == "large-v1" else SMALL
    return set(problems) <= set(region.problems(evidence))


@pytest.mark.parametrize("name", REGIONS)
def test_the_rule_takes_who_is_best(name: str) -> None:
    """In every region with rows, by the mean score there; half a track decides nothing."""
    region, evidence = REGIONS[name], load_evidence()
    if region.problems(evidence) and not (region is LARGE and not is_whole("large-v1", evidence)):
        assert region.taken == best_of(evidence, region)


def test_the_rule_loses_little_on_problems_that_were_left_out() -> None:
    """Over a whole region at most one standard error; on the part of it that a track is, two."""
    evidence = load_evidence()
    small = judge_region(evidence, SMALL)
    assert small is not None
    assert small.loss <= small.error, small
    judged = judge_tracks(evidence)
    assert "small-v1" in judged
    for track, judgement in judged.items():
        if not is_whole(track, evidence):
            continue
        assert judgement.loss <= 2 * judgement.error, (track, judgement)


def test_the_evidence_has_the_small_track() -> None:
    """With at least ten seeds of each candidate on every problem."""
    evidence = load_evidence()
    small = next(track for track in TRACKS if track.id == "small-v1")
    assert set(small.problems) <= set(SMALL.problems(evidence))
    assert all(row.seeds >= 10 for problem in evidence.values() for row in problem.rows.values())


def test_the_page_shows_the_evidence_and_the_rule() -> None:
    """All tables are there, as the script writes them."""
    evidence = load_evidence()
    assert write_tables(PAGE, evidence) == PAGE, "python -m tests.golden.derive_choice"
    for name, table in make_tables(evidence).items():
        assert f"<!-- table: {name} -->\n\n{table}\n\n<!-- end of table -->" in PAGE
    for branch in RULE:
        assert branch.when in PAGE


def test_problems_fall_into_their_regions() -> None:
    """Those of the tracks into the two that are judged, by their own numbers."""
    evidence = load_evidence()
    for track, region in (("small-v1", SMALL), ("large-v1", LARGE)):
        ids = next(one for one in TRACKS if one.id == track).problems
        for id_ in set(ids) & set(evidence):
            assert find_branch(evidence[id_].situation()) is find_branch(region.example)


def test_who_is_left_out_has_no_part() -> None:
    """SLACK is best by one problem alone, which the others do not know."""
    evidence = invented({"slack": [90.0, 10.0, 10.0], "cei": [20.0, 20.0, 20.0]})
    assert best_of(evidence, SMALL) == "slack"
    assert best_of(evidence, SMALL, without="p0-2d-v1") == "cei"
    judgement = judge(evidence, track_of(evidence))
    assert judgement is not None
    assert judgement.took == {"p0-2d-v1": "cei", "p1-2d-v1": "slack", "p2-2d-v1": "slack"}
    assert judgement.score == pytest.approx((20 + 10 + 10) / 3)
    assert judgement.best == "slack"
    assert judgement.best_score == pytest.approx(110 / 3)
    assert judgement.loss == pytest.approx(70 / 3)
    # Two rows with an error of 1 on the one problem of three where the choices differ.
    assert judgement.error == pytest.approx(2**0.5 / 3)


def test_a_region_is_judged_among_its_candidates() -> None:
    """Whoever else was run there is no matter."""
    evidence = invented({"slack": [50.0, 50.0], "cei": [40.0, 40.0], "cma-es": [99.0, 99.0]})
    judgement = judge_region(evidence, SMALL)
    assert judgement is not None
    assert (judgement.best, judgement.loss, judgement.error) == ("slack", 0.0, 0.0)
    assert judge_region({}, SMALL) is None


def test_a_family_is_left_out_together_and_counts_once() -> None:
    """Its other members would tell too much."""
    evidence = invented({"slack": [90.0, 90.0, 0.0], "cei": [40.0, 40.0, 60.0]})
    first, second, third = evidence.values()
    evidence = {"a-m1-v1": first, "a-m2-v1": second, "b-v1": third}
    assert best_of(evidence, SMALL, without="a-m1-v1") == "cei"
    # 40 and 60 against 90 and 0, whatever the number of members.
    assert best_of(evidence, SMALL) == "cei"


def test_problems_without_all_candidates_do_not_count() -> None:
    """A mean over other problems would compare nothing; a lone problem has nothing to go by."""
    evidence = invented({"slack": [90.0, 0.0], "cei": [0.0, 10.0]})
    del evidence["p0-2d-v1"].rows["scbo"]
    assert SMALL.problems(evidence) == ["p1-2d-v1"]
    assert best_of(evidence, SMALL) == "cei"
    assert best_of(evidence, SMALL, without="p1-2d-v1") is None
    assert judge(evidence, track_of(evidence)) is None
    empty = Region("none", ("scbo",), LARGE.example)
    assert best_of({}, empty) is None
    assert "*No problem has rows" in make_tables(evidence)["large"]


def test_scores_are_those_of_the_board(tmp_path: Path) -> None:
    """Rows of two folders come together, the one with more seeds counts, small ones do not."""
    board = ROOT / "leaderboard" / "runs" / "toy-2d-v1"
    own, other = tmp_path / "own" / "toy-2d-v1", tmp_path / "other" / "toy-2d-v1"
    for folder in (own, other):
        folder.mkdir(parents=True)
    for name in ("cobyla", "cobyqa"):
        shutil.copy(board / f"{name}.jsonl", own)
    lines = (board / "cobyla.jsonl").read_bytes().splitlines(keepends=True)
    (other / "cobyla.jsonl").write_bytes(b"".join(lines[:12]))
    (other / "random-search.jsonl").write_bytes(
        b"".join((board / "random-search.jsonl").read_bytes().splitlines(keepends=True)[:9])
    )
    found = gather([tmp_path / "own", tmp_path / "other"])["toy-2d-v1"]
    assert sorted(found.rows) == ["cobyla", "cobyqa"]
    assert (found.dim, found.num_constraints, found.budget, found.batch_size) == (2, 2, 100, 1)
    records = [record for path in own.iterdir() for record in read_records(path)]
    for row in make_board(records, load_references()).problems[0].rows:
        mine = found.rows[row.optimizer]
        assert mine.seeds == row.runs == len(lines)
        assert mine.score == pytest.approx(row.anytime, abs=1e-3)
        assert mine.feasible == row.feasible_runs
