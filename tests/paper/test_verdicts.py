"""Verdicts follow the evidence: invented runs turn every one of them round."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.journal import read_journal
from cbo_suite.paper.claims import CLAIMS, Judgement, decide, judge
from cbo_suite.paper.comparisons import (
    Part,
    a12_text,
    alike,
    better,
    duel,
    excellent,
    place_p_value,
)
from cbo_suite.paper.consistency import Consistency, check_consistency
from cbo_suite.paper.evidence import Evidence, read_runs
from cbo_suite.paper.experiments import ACKLEY, KEANE, MOPTA08, PERTURBATIONS, ROVER
from cbo_suite.paper.measurements import (
    BatchCell,
    BatchSide,
    Measurements,
    RestartRuns,
    Seconds,
)
from cbo_suite.paper.reasons import stronger
from cbo_suite.records import SOURCE, make_record, write_records
from cbo_suite.scoring.references import load_references
from tests.paper.invented import invent, invent_evidence

# Sentences that nothing here can decide: they need what no machine of ours has, or make no sense.
UNDECIDABLE = {13: 1, 15: 1}


@pytest.fixture(scope="module")
def right() -> list[Judgement]:
    """Judge evidence by which the paper is right."""
    return judge(invent_evidence(right=True))


@pytest.fixture(scope="module")
def wrong() -> list[Judgement]:
    """Judge evidence by which the paper is wrong."""
    return judge(invent_evidence(right=False))


def test_seventeen_claims() -> None:
    """They are numbered as in the list of claims."""
    assert [claim.number for claim in CLAIMS] == list(range(1, 18))


@pytest.mark.parametrize("place", range(17))
def test_every_verdict_turns_round(
    place: int, right: list[Judgement], wrong: list[Judgement]
) -> None:
    """All decidable sentences hold by one evidence and fail by the other, and so do verdicts."""
    yes, no = right[place], wrong[place]
    number = yes.claim.number
    untold = UNDECIDABLE.get(number, 0)
    assert [part.holds for part in yes.parts].count(True) == len(yes.parts) - untold, yes
    assert yes.verdict == ("reproduced in part" if untold else "reproduced")
    assert [part.holds for part in no.parts].count(False) == len(no.parts) - untold, no
    assert no.verdict == "not reproduced"
    assert [part.text for part in yes.parts] == [part.text for part in no.parts]
    assert all(part.reason for part in no.parts if part.holds is False), no


def test_without_evidence_nothing_can_be_told() -> None:
    """Missing runs are counted, missing measurements named."""
    found = {judgement.claim.number: judgement for judgement in judge(Evidence({}))}
    assert {judgement.verdict for judgement in found.values()} == {"cannot be told"}
    assert found[1].why == "0 of 210 runs"
    assert found[7].why == "0 of 390 runs"
    assert found[9].why.startswith("0 of 90 runs; its executable is third-party")
    assert found[15].why == "0 of 6 sizes were measured"
    assert found[16].why == "not measured"
    assert found[17].why.startswith("not checked")


def test_one_missing_run_is_enough() -> None:
    """A claim is not judged before all its runs are there; the others are."""
    evidence = invent_evidence(right=True)
    spring = evidence.runs["tension-string-3d-v1", "slack"]
    short = spring._replace(
        seeds=spring.seeds[1:], best=spring.best[1:], violation=spring.violation[1:]
    )
    runs = {**evidence.runs, ("tension-string-3d-v1", "slack"): short}
    found = judge(evidence._replace(runs=runs))
    assert (found[0].verdict, found[0].why) == ("cannot be told", "209 of 210 runs")
    assert found[1].verdict == "reproduced"


def test_restarts_need_all_their_measurements() -> None:
    """One problem that was not measured leaves the claim open."""
    evidence = invent_evidence(right=True)
    assert evidence.measurements.restarts is not None
    del evidence.measurements.restarts.problems[KEANE]
    found = judge(evidence)[13]
    assert (found.verdict, found.why) == ("cannot be told", "not measured: keane-30d-v1")
    assert judge(evidence._replace(measurements=Measurements()))[13].verdict == "cannot be told"


def test_times_are_those_measured_apart() -> None:
    """A file of them counts, not the runs, which had company; without one method it stays open."""
    evidence = invent_evidence(right=True)
    assert judge(evidence)[4].parts[-1].holds
    others = dict.fromkeys(("scbo", "cei", "cobyla", "cma-es", "random-search", "slack"), 1.0)

    def holds(**pesc: float) -> bool | None:
        seconds = Seconds("a processor", 0.1, {ACKLEY: others | pesc})
        measured = msgspec.structs.replace(evidence.measurements, seconds=seconds)
        return judge(evidence._replace(measurements=measured))[4].parts[-1].holds

    assert holds(pesc=9.0) is False
    assert holds(pesc=10.0) is True
    assert holds() is None


def test_mopta08_is_judged_as_soon_as_there_are_runs() -> None:
    """Without its runs the claim is open, with them it is judged like the others."""
    evidence = invent_evidence(right=True)
    without = {pair: runs for pair, runs in evidence.runs.items() if pair[0] != MOPTA08}
    assert judge(evidence._replace(runs=without))[8].verdict == "cannot be told"
    assert judge(evidence)[8].verdict == "reproduced"


def test_a_method_that_is_never_feasible_has_no_best_value() -> None:
    """The sentences on it say so in words, and those that ask for a value fail."""
    evidence = invent_evidence(right=True)
    never = {
        (MOPTA08, id_): invent(0.0, budget=2000, n_init=130, feasible=0)
        for id_ in ("cobyla", "cei")
    }
    parts = judge(evidence._replace(runs={**evidence.runs, **never}))[8].parts
    assert [part.holds for part in parts] == [True, True, False, False, True, True]
    assert parts[3].evidence.startswith("ours: no run is feasible (")
    assert parts[4].evidence.endswith("COBYLA, ours: no run is feasible")
    assert parts[5].evidence == "ours: no run is feasible"
    nobody = {(MOPTA08, "scbo"): invent(0.0, budget=2000, n_init=130, feasible=0)}
    parts = judge(evidence._replace(runs={**evidence.runs, **never, **nobody}))[8].parts
    assert [part.holds for part in parts] == [False, False, False, False, False, True]
    assert not any("nan" in part.evidence for part in parts)


def test_few_runs_do_not_tell_what_is_by_far() -> None:
    """The interval of ten pairs reaches over the limit; thirty runs that all win decide."""
    evidence = invent_evidence(right=True)
    assert judge(evidence)[7].parts[1].holds is True
    scbo, cei = evidence.runs[ROVER, "scbo"], evidence.runs[ROVER, "cei"]
    half = cei._replace(best=np.where(np.arange(10)[:, None] < 7, cei.best, scbo.best[:10] - 1.0))
    part = judge(evidence._replace(runs={**evidence.runs, (ROVER, "cei"): half}))[7].parts[1]
    assert part.holds is None, part
    worse = cei._replace(best=scbo.best[:10] - 1.0)
    part = judge(evidence._replace(runs={**evidence.runs, (ROVER, "cei"): worse}))[7].parts[1]
    assert part.holds is False, part


def test_the_lunar_table_of_the_paper_passes_its_own_tests() -> None:
    """Runs that end as printed hold in all sentences on the table."""
    held = {part.text: part.holds for part in judge(invent_evidence(right=True))[6].parts}
    assert held["the median rewards of the feasible runs are those of the table"] is True
    assert held["the best reward of each method is lower for m = 50 than for m = 10"] is True


def test_a_printed_median_is_as_uncertain_as_its_runs() -> None:
    """Of runs with the same law as those of the table, few are told apart."""
    random = np.random.default_rng(0)
    p_values = []
    for _ in range(2000):
        ours, theirs = random.standard_normal(25), random.standard_normal(9)
        below = int(np.count_nonzero(ours < np.median(theirs)))
        p_values.append(place_p_value(below, 25, 5.0, 9))
    assert 0.01 < np.mean(np.array(p_values) < 0.05) <= 0.06
    assert place_p_value(25, 25, 14.5, 28) < 1e-4
    assert place_p_value(0, 25, 14.5, 28) < 1e-4


def test_restarts_of_another_version_do_not_count() -> None:
    """As runs of another version are left out; the claim is open until they are measured anew."""
    evidence = invent_evidence(right=True)
    assert evidence.measurements.restarts is not None
    toy = evidence.measurements.restarts.problems["toy-2d-v1"]
    old = msgspec.structs.replace(toy, identity="0" * 64)
    evidence.measurements.restarts.problems["toy-2d-v1"] = old
    assert judge(evidence)[13].why == "not measured: toy-2d-v1"


def test_a_reason_looks_at_earlier_evaluations() -> None:
    """Where a sentence fails at the end but held before, the reason says when."""
    evidence = invent_evidence(right=True)
    assert judge(evidence)[11].parts[0].holds is True
    few, all_ = (evidence.runs[KEANE, id_] for id_ in PERTURBATIONS)
    best = few.best.copy()
    best[:, 700:] = all_.best[:, 700:] + 1.0
    runs = {**evidence.runs, (KEANE, "scbo"): few._replace(best=best)}
    part = judge(evidence._replace(runs=runs))[11].parts[0]
    assert part.holds is False
    assert part.reason.endswith("it holds after 200, 400 and 600 of our 1000")
    best[:] = all_.best + 1.0
    part = judge(evidence._replace(runs=runs))[11].parts[0]
    assert "it does not hold after 200, 400, 600 and 800 of our 1000 evaluations" in part.reason


@pytest.mark.parametrize(("reward", "holds"), [(4.93, True), (4.921, True), (4.918, False)])
def test_the_rover_is_asked_for_no_more_than_its_map_allows(reward: float, holds: bool) -> None:
    """The best that is known on ours, 4.9248, would be printed as 4.92."""
    evidence = invent_evidence(right=True)
    runs = evidence.runs[ROVER, "scbo"]
    best = runs.best - runs.best.min() - reward
    part = judge(
        evidence._replace(runs={**evidence.runs, (ROVER, "scbo"): runs._replace(best=best)})
    )[7].parts[-1]
    assert part.holds is holds
    assert "from 4.9198 on; the best that is known on our obstacles is 4.9248" in part.evidence


@pytest.mark.parametrize(("batched", "holds"), [(100.0, True), (900.0, False)])
def test_the_largest_size_is_judged_where_it_was_measured(batched: float, holds: bool) -> None:
    """The paper's gain is sixteenfold."""
    evidence = invent_evidence(right=True)
    table = evidence.measurements.batch_gp
    assert table is not None
    slow, fast = (BatchSide(seconds, 1.0, 1.0, 0.0, 0.0) for seconds in (2000.0, batched))
    larger = msgspec.structs.replace(
        table, cells=[*table.cells, BatchCell(100, 8000, slow, fast, fast)]
    )
    measured = msgspec.structs.replace(evidence.measurements, batch_gp=larger)
    part = judge(evidence._replace(measurements=measured))[14].parts[-1]
    assert part.text == "training 100 models of 8000 points takes 144.12 s instead of 2303.86 s"
    assert part.holds is holds


def test_runs_of_another_version_do_not_count(tmp_path: Path) -> None:
    """Nor do those that name none: they are missing, as `cbo paper status` says."""
    journal = tmp_path / "run.jsonl"
    cbo.run("toy-2d-v1", "random-search", budget=100, n_init=10, seed=0, journal=journal)
    contents = read_journal(journal)
    assert contents is not None
    record = make_record(contents)
    path = tmp_path / "runs" / "toy-2d-v1" / "random-search.jsonl"
    path.parent.mkdir(parents=True)

    def read(versions: dict[str, str]) -> int:
        write_records(path, [msgspec.structs.replace(record, versions=versions)])
        found = read_runs(tmp_path / "runs").get(("toy-2d-v1", "random-search"))
        return len(found.seeds) if found else 0

    assert read(record.versions) == 1
    assert read(record.versions | {SOURCE: "0" * 64}) == 0


@pytest.mark.parametrize(
    ("held", "verdict"),
    [
        ([True, True], "reproduced"),
        ([True, None], "reproduced in part"),
        ([True, False], "reproduced in part"),
        ([False, None], "not reproduced"),
        ([None, None], "cannot be told"),
    ],
)
def test_the_rule(held: list[bool | None], verdict: str) -> None:
    """What sentences come to."""
    assert decide([Part("", "", holds) for holds in held]) == verdict


def test_comparisons_put_feasible_runs_first() -> None:
    """A feasible run of any value beats an infeasible one; the test is paired and one-sided."""
    pairs = {("p", "a"): invent(100.0, salt=1), ("p", "b"): invent(0.0, feasible=0, salt=2)}
    found = duel(Evidence(pairs), "p", "a", "b")
    assert (found.superiority, found.pairs) == (1.0, 30)
    assert found.p_value == pytest.approx(0.5**30)
    assert duel(Evidence(pairs), "p", "b", "a").p_value == 1.0
    assert better("a is better", [found]).holds is True


def test_common_seeds_are_paired() -> None:
    """Only seeds that both have count, each against its own."""
    first, second = invent(1.0, salt=1), invent(1.0, seeds=10, salt=2)
    second = second._replace(best=first.best[20:] + 1.0, seeds=list(range(20, 30)))
    found = duel(Evidence({("p", "a"): first, ("p", "b"): second}), "p", "a", "b")
    assert found.pairs == 10
    assert found.p_value == pytest.approx(0.5**10)


def test_no_difference_is_not_claimed_of_few_runs() -> None:
    """A large effect that no test can see cannot be told."""
    few = {("p", "a"): invent(0.0, seeds=3, salt=1), ("p", "b"): invent(5.0, seeds=3, salt=2)}
    found = duel(Evidence(few), "p", "a", "b", two_sided=True)
    assert alike("alike", [found]).holds is None
    same = {("p", "a"): invent(0.0, salt=1), ("p", "b"): invent(0.0, salt=1)}
    assert alike("alike", [duel(Evidence(same), "p", "a", "b", two_sided=True)]).holds is True


def test_better_holds_fails_or_cannot_be_told() -> None:
    """By the test, by an interval that leaves no room for a large effect, or not by few runs."""

    def judged(gap: float, seeds: int) -> Part:
        pairs = {("p", "a"): invent(0.0, seeds=seeds, salt=1), ("p", "b"): invent(gap, seeds=seeds)}
        return better("a is better", [duel(Evidence(pairs), "p", "a", "b")], "a reason")

    assert judged(1.0, 30).holds is True
    assert judged(0.0, 30).holds is False
    assert judged(0.0, 4).holds is None
    assert judged(1.0, 4).holds is None
    worse = judged(-1.0, 30)
    assert worse.holds is False
    assert worse.evidence.endswith("; the other way round (Holm): b over a")
    assert "other way" not in judged(0.0, 30).evidence


def test_one_lost_comparison_of_several_decides() -> None:
    """All must hold; Holm's rule would ask more of each."""
    pairs = {("p", id_): invent(end, salt=ord(id_)) for id_, end in (("a", 0), ("b", 1), ("c", -1))}
    evidence = Evidence(pairs)
    won, lost = duel(evidence, "p", "a", "b"), duel(evidence, "p", "a", "c")
    part = better("a is better", [won, lost], lambda found: f"because of {found[0].second}")
    assert (part.holds, part.reason) == (False, "because of c")


def test_an_almost_sure_win_is_not_written_as_sure() -> None:
    """Rounded to two digits only where that is exact at the ends."""
    texts = [a12_text(value) for value in (1.0, 0.998, 0.5, 0.002, 0.0)]
    assert texts == ["A12 = 1.00", "A12 > 0.99", "A12 = 0.50", "A12 < 0.01", "A12 = 0.00"]


def test_intervals_between_restarts_count_what_is_cut_off() -> None:
    """By hand: ends after 10, 30 and 30, cut off at 20 and 10, of two runs of 50 evaluations.

    All five live to 10, where one ends; three of them to 30 but for the one cut off at 20.
    """
    runs = RestartRuns(50, [[10, 40], [30]])
    # Kaplan and Meier: 1 until 10, 4/5 until 30 (of two there both end), 0 then.
    assert runs.interval == pytest.approx(10 + 20 * 4 / 5)
    assert math.isinf(RestartRuns(50, [[], []]).interval)


def test_excellent_results_are_close_to_the_best_known_value() -> None:
    """On the scale of what random search leaves; one run in ten may be worse."""
    best = load_references()[ACKLEY].best
    random = invent(best + 10.0, salt=1)
    for close, holds in ((30, True), (27, True), (26, False)):
        ends = np.where(np.arange(30) < close, best + 0.5, best + 2.0)
        pairs = {
            (ACKLEY, "random-search"): random,
            (ACKLEY, "scbo"): invent(0.0, ends=ends.tolist()),
        }
        part = excellent(Evidence(pairs), ACKLEY, "scbo", "excellent", "a reason")
        assert part.holds is holds, part
        assert part.evidence.startswith(f"{close} of 30 runs end at most 1 above")


def test_the_reason_names_restarts_only_where_there_were_any() -> None:
    """COBYLA is not said to start again where no run of it did before the comparison."""
    evidence = Evidence(
        {
            (KEANE, "scbo"): invent(5.0, budget=1000),
            (KEANE, "cobyla"): invent(0.0, budget=1000, restarts=1),
        }
    )
    early, late = (duel(evidence, KEANE, "scbo", "cobyla", after=after) for after in (400, 600))
    assert "started again" not in stronger(evidence, [early])
    assert "and started again in 30 of 30 runs" in stronger(evidence, [late])


def test_scbo_restarts_as_the_proof_asks() -> None:
    """The check that the build makes, on the real optimizer."""
    found = check_consistency()
    assert found is not None
    assert isinstance(found, Consistency)
    assert found.ended == found.cases == 6
    assert found.fresh == found.spread == found.restarts == 12
    # Ten points, then seven halvings of a length of 0.8, with at most 12 gains in between.
    assert found.longest < 200
    assert np.isfinite(found.longest)
