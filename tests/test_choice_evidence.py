"""The rule of `auto` is what the evidence speaks for, and docs/choose.md shows that evidence.

The evidence is a file that a script makes; rows that are published later change nothing here until
it is run again.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from cbo_suite.choice import RULE, Situation, find_branch
from cbo_suite.records import read_records
from cbo_suite.scoring import TRACKS, load_references, make_board
from tests.golden.choice_evidence import STOPS, Evidence, Problem, Row, gather, load_evidence
from tests.golden.choice_fit import fit_lines
from tests.golden.choice_page import make_tables, write_tables
from tests.golden.derive_choice import (
    BATCHES,
    CANDIDATES,
    LARGE,
    ONE_BY_ONE,
    SMALL,
    Region,
    best_of,
    has_all_rows,
    judge,
    judge_region,
    judge_tracks,
)

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "choose.md").read_text("utf-8")
SOME = ("slack", "cei", "pesc", "scbo", "cobyla", "cma-es")


def invented(
    scores: dict[str, list[float]], error: float = 1.0, dims: Sequence[int] = ()
) -> Evidence:
    """Make evidence of small problems; the optimizers that are not named have score 0."""
    count = len(next(iter(scores.values())))
    rows = [
        {
            name: Row(10, scores.get(name, [0.0] * count)[i], error, 10, 1.0, [0.0] * len(STOPS))
            for name in SOME
        }
        for i in range(count)
    ]
    sizes = dims or [2] * count
    return {f"p{i}-{sizes[i]}d-v1": Problem(sizes[i], 1, 100, 1, rows[i]) for i in range(count)}


def test_the_rule_takes_what_the_records_speak_for() -> None:
    """On every problem of the evidence, by the best fit to all of it."""
    evidence = load_evidence()
    lines = fit_lines(evidence)
    assert lines is not None
    for problem in evidence.values():
        assert find_branch(problem.situation()).optimizers[0] == lines.take(problem)


@pytest.mark.parametrize(("region", "at_once"), [(ONE_BY_ONE, 1), (BATCHES, 50)])
def test_the_rule_without_torch_takes_who_is_best(region: Region, at_once: int) -> None:
    """By the mean score of those that need none."""
    taken = find_branch(Situation(5, 5, 100, at_once, models=False)).optimizers[0]
    assert taken == best_of(load_evidence(), region)


def test_the_rule_loses_little_on_problems_that_were_left_out() -> None:
    """At most one standard error against the best single candidate, on every track with its rows.

    The page shows the best of all methods, some of which have rows on few other problems.
    """
    evidence = load_evidence()
    judged = judge_tracks(evidence, among={*SMALL.candidates, *LARGE.candidates})
    whole = [track.id for track in TRACKS if has_all_rows(evidence, track)]
    assert "small-v1" in whole
    for track in whole:
        assert judged[track].loss <= judged[track].error, (track, judged[track])


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


def test_lines_are_found_where_records_have_them() -> None:
    """Limits halfway between the problems that they part, and an optimizer for each line."""
    dims = [2] * 3 + [3] * 3 + [6] * 3 + [20] * 3
    evidence = invented(
        {
            "cei": [9.0] * 3 + [5.0] * 3 + [9.0] * 3 + [1.0] * 3,
            "slack": [5.0] * 3 + [8.0] * 3 + [5.0] * 3 + [0.0] * 3,
            "scbo": [2.0] * 9 + [4.0] * 3,
        },
        dims=dims,
    )
    lines = fit_lines(evidence)
    assert lines == (2.5, 4.5, 13.0, ("slack", "cei", "scbo"))
    assert [lines.take(problem) for problem in evidence.values()] == (
        ["cei"] * 3 + ["slack"] * 3 + ["cei"] * 3 + ["scbo"] * 3
    )
    several = msgspec.structs.replace(evidence["p3-3d-v1"], batch_size=4)
    assert lines.take(several) == "cei"


def test_who_is_left_out_has_no_part() -> None:
    """SCBO is best with many variables by one problem alone, which the others do not know."""
    dims = [2] * 3 + [3] * 3 + [20] * 4
    evidence = invented(
        {"cei": [9.0] * 3 + [5.0] * 3 + [4.0] * 4, "scbo": [0.0] * 6 + [90.0, 3.0, 3.0, 3.0]},
        dims=dims,
    )
    lines, others = fit_lines(evidence), fit_lines(evidence, without="p6-20d-v1")
    assert lines is not None and others is not None  # noqa: PT018
    assert lines.take(evidence["p6-20d-v1"]) == "scbo"
    assert others.take(evidence["p6-20d-v1"]) == "cei"
    judgement = judge(evidence, ["p6-20d-v1", "p7-20d-v1"])
    assert judgement is not None
    assert judgement.took == {"p6-20d-v1": "cei", "p7-20d-v1": "scbo"}
    assert judgement.score == pytest.approx((4 + 3) / 2)
    assert judgement.best == "scbo"
    assert judgement.best_score == pytest.approx(93 / 2)
    assert judgement.loss == pytest.approx(86 / 2)
    # Two rows with an error of 1 on the one problem of two where the choices differ.
    assert judgement.error == pytest.approx(2**0.5 / 2)


def test_no_line_is_made_for_a_single_problem() -> None:
    """Each needs three families; with fewer there are no lines, and no judgement."""
    scores = {"cei": [9.0] * 9, "scbo": [0.0] * 6 + [90.0] * 3}
    evidence = invented(scores, dims=[2] * 3 + [3] * 3 + [20] * 3)
    assert fit_lines(evidence) is not None
    assert fit_lines(evidence, without="p8-20d-v1") is None
    assert judge(evidence, ["p8-20d-v1", "unknown-v1"]) is None


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
    assert best_of({}, LARGE) is None
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
    found = gather([tmp_path / "own", tmp_path / "other"], CANDIDATES)["toy-2d-v1"]
    assert sorted(found.rows) == ["cobyla", "cobyqa"]
    assert (found.dim, found.num_constraints, found.budget, found.batch_size) == (2, 2, 100, 1)
    records = [record for path in own.iterdir() for record in read_records(path)]
    for row in make_board(records, load_references()).problems[0].rows:
        mine = found.rows[row.optimizer]
        assert mine.seeds == row.runs == len(lines)
        assert mine.score == pytest.approx(row.anytime, abs=1e-3)
        assert mine.feasible == row.feasible_runs
