"""The page that compares SCBO with its rivals says what the records say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbo_suite.paper.measurements import Seconds
from cbo_suite.records import Record
from cbo_suite.registry import list_optimizers, optimizer_factory
from cbo_suite.scoring.tracks import TRACKS
from tests.leaderboard import rivals_page
from tests.leaderboard.rivals_compare import Row, collect, corrected, duel, stamp
from tests.leaderboard.rivals_facts import NOT_RUN, PUBLISHED, RIVALS
from tests.leaderboard.rivals_page import PAGE, ROOT, board, render, seconds
from tests.make_records import make

IDS = ("scbo", "scbo-untransformed", "cei", "random-search", *RIVALS)
SMALL: dict[str, Any] = {"problem": "little-2d-v1", "dim": 2, "num_constraints": 2}
LARGE: dict[str, Any] = {
    "problem": "big-30d-v1",
    "dim": 30,
    "num_constraints": 9,
    "batch_size": 50,
    "budget": 1000,
}


def runs(optimizer: str, shift: float, seeds: int = 12, **facts: Any) -> list[Record]:
    """Runs of an optimizer that end so much above the seed."""
    return [
        make([99.0, 50.0, 20.0, 5.0 + seed + shift], optimizer=optimizer, seed=seed, **facts)
        for seed in range(seeds)
    ]


def page(*records: Sequence[Record]) -> str:
    """The page of some records."""
    return render(collect([record for group in records for record in group], IDS))


def section(text: str, title: str) -> str:
    """What stands under a heading."""
    return text.split(f"## {title}\n")[1].split("\n## ")[0]


def test_runs_are_compared_seed_by_seed() -> None:
    """Feasible beats infeasible, then values decide; seeds that one lacks do not count."""
    records = [
        *runs("scbo", 0.0, seeds=7),
        *runs("furbo", -1.0, seeds=6),
        *(make([None] * 4, optimizer="isres", seed=seed) for seed in range(6)),
        make([1.0, 1.0], optimizer="unheard-of"),
    ]
    (row,) = collect(records, IDS)
    furbo, isres = corrected(duel(row, id_, "scbo") for id_ in RIVALS)
    assert furbo.optimizer == "furbo"
    assert (furbo.seeds, furbo.feasible, furbo.better) == (6, (6, 6), (6, 0))
    assert furbo.medians == (6.5, 7.5)
    # Six of six: 2 / 2**6, and twice that for the smaller of two p-values.
    assert furbo.p_value == pytest.approx(2 * 2 / 64)
    assert (isres.better, isres.feasible) == ((0, 6), (0, 6))
    assert np.isnan(isres.medians[0])


def test_a_share_of_the_budget_is_compared_by_what_was_found_by_then() -> None:
    """Who is ahead at a quarter may be behind at the end."""
    records = [
        *(make([9.0, 9.0, 9.0, 1.0], optimizer="scbo", seed=seed) for seed in range(10)),
        *(make([2.0, 2.0, 2.0, 2.0], optimizer="furbo", seed=seed) for seed in range(10)),
        *(make([None, 3.0, 3.0, 3.0], optimizer="nomad", seed=seed) for seed in range(10)),
    ]
    (row,) = collect(records, IDS)
    verdicts = [
        comparison.verdict
        for id_ in ("furbo", "nomad")
        for share in (0.25, 0.5, 1.0)
        if (comparison := duel(row, id_, "scbo", share)) is not None
    ]
    assert verdicts == ["ahead", "ahead", "behind", "behind", "ahead", "behind"]


def test_too_few_seeds_decide_nothing() -> None:
    """Nine of nine have p = 0.004, and are not enough for a word."""
    (row,) = collect([*runs("scbo", 0.0), *runs("furbo", -1.0, seeds=9)], IDS)
    comparison = duel(row, "furbo", "scbo")
    assert comparison is not None
    assert comparison.p_value < 0.01
    assert comparison.verdict == "undecided"


def test_seconds_are_those_measured_apart() -> None:
    """Where there is a file of them; what it lacks is left open."""
    rows = collect([*runs("scbo", 0.0, **SMALL), *runs("furbo", 0.5, **SMALL)], IDS)
    assert "per evaluation, median of its runs." in render(rows)
    text = render(rows, Seconds("a processor", 0.1, {rows[0].problem: {"furbo": 0.0625}}))
    assert "per evaluation, one run with nothing else running." in text
    assert "| 0.062 | " in text
    assert "| - | " in render(rows, Seconds("a processor", 0.1, {}))


def test_the_words_follow_the_records() -> None:
    """Who is ahead, where, and of whom turns round with the values."""
    text = page(
        runs("scbo", 0.0, **SMALL),
        runs("furbo", 0.5, **SMALL),
        runs("nomad", -0.5, **SMALL),
        runs("scbo", 0.0, **LARGE),
        runs("furbo", -0.5, **LARGE),
        runs("isres", 0.0, **LARGE),
    )
    where = section(text, "Who is ahead where")
    assert (
        "- **Up to 10 variables**: ahead of `scbo` on more problems than behind: `nomad` (by 1 of "
        "1); behind on more: `furbo` (by 1 of 1)." in where
    )
    assert (
        "- **Batches**: ahead of `scbo` on more problems than behind: `furbo` (by 1 of 1); behind "
        "on more: nobody; neither: `isres`." in where
    )
    assert "| `furbo` | 0 : 0 : 1 | 1 : 0 : 0 |" in where
    assert "| 1 : 0 : 1 |" in where
    furbo = section(text, "FuRBO against SCBO")
    assert "Neither of `furbo` and `scbo` is ahead on more problems than the other." in furbo
    assert "ahead on 1 (`big-30d-v1`), behind on 1 (`little-2d-v1`), and undecided on 0." in furbo

    turned = page(runs("scbo", 0.0, **SMALL), runs("furbo", -0.5, **SMALL))
    assert "`furbo` is ahead of `scbo` on more problems than behind." in turned
    turned = page(runs("scbo", 0.0, **SMALL), runs("furbo", 0.5, **SMALL))
    assert "`furbo` is behind `scbo` on more problems than ahead." in turned


def test_the_numbers_of_a_problem_are_told() -> None:
    """Medians, feasible runs, seeds, the test, seconds, and how large the problem is."""
    text = section(
        page(runs("scbo", 0.0, **SMALL), runs("furbo", -0.5, **SMALL), runs("cei", 0.0, **SMALL)),
        "Problem by problem",
    )
    assert "**`little-2d-v1`**: d = 2, m = 2, 4 evaluations in batches of 1" in text
    assert "| `furbo` | 10 | 10.5 | 12 | 12 | 12 | 12 : 0 | p = 0.00098 | 0.1 | ahead |" in text
    assert "| `cei` | 10.5 | 10.5 | 12 | 12 | 12 | 0 : 0 | p = 1 | 0.1 | undecided |" in text


def test_rivals_behind_chance_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what the library's own loop did, where it was run."""
    scbo, chance = runs("scbo", 0.0, **SMALL), runs("random-search", 1.0, **SMALL)
    text = page(scbo, chance, runs("isres", 2.0, **SMALL))
    found = "- `isres` is behind `random-search` on `little-2d-v1`, 0 : 12, p = 0.00049."
    assert found in text
    text = page(scbo, chance, runs("isres", 0.5, **SMALL))
    assert "No rival is behind `random-search` on any problem." in text
    finals = {"isres": {"little-2d-v1": {"its own way": [3.0, None, 5.0]}}}
    monkeypatch.setattr(rivals_page, "load_finals", lambda: finals)
    line = "| `isres` | `little-2d-v1` | its own way | 4, 2/3 |"
    assert f"{line} 6.5, 3/3 |" in page(scbo, chance, runs("isres", 0.5, **SMALL))
    assert f"{line} - |" in page(scbo, chance)


def test_what_the_region_alone_is_worth_is_told() -> None:
    """By the SCBO that has no transforms either, where it has rows."""
    against = "`furbo` against `scbo-untransformed`"
    with_plain = (runs("scbo", 0.0, **SMALL), runs("scbo-untransformed", 1.0, **SMALL))
    text = section(page(*with_plain, runs("furbo", 0.5, **SMALL)), "FuRBO against SCBO")
    first, second = text.split(against)
    assert "0 : 12, p = 0.00049, behind" in first
    assert "12 : 0, p = 0.00049, ahead" in second
    assert against not in page(runs("scbo", 0.0, **SMALL), runs("furbo", 0.5, **SMALL))


def test_published_numbers_stand_beside_ours() -> None:
    """The median of all runs, and a stroke where there are none."""
    problem, _, medians = PUBLISHED[0]
    text = section(page(runs("scbo", 0.0, seeds=3, problem=problem)), "Published numbers")
    assert f"| `scbo` | {medians['scbo']} | 6, 3/3 |" in text
    assert f"| `bayesqp` | {medians['bayesqp']} | - |" in text


def test_what_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are not there, with the reason, and libraries that are no rivals."""
    monkeypatch.setitem(NOT_RUN, ("isres", "large-v1"), "it takes a year")
    problems = TRACKS[0].problems
    few = [make([1.0], optimizer="nomad", problem=problems[-1])]
    text = section(
        page(few, *(runs("nomad", 0.0, problem=problem) for problem in problems[:-1])),
        "What was not run",
    )
    others = ", ".join(f"`{id_}`" for id_ in RIVALS if id_ != "nomad")
    assert f"- {others} on all of small-v1: not run yet." in text
    assert f"- `nomad` on `{problems[-1]}`: not run yet." in text
    assert "- `isres` on all of large-v1: it takes a year." in text
    assert "- HEBO" in text


def test_versions_on_record_stand_beside_the_tested_ones() -> None:
    """Both, and a stroke where there are no runs."""
    text = page(runs("nomad", 0.0, versions={"PyNomadBBO": "4.5.9"}))
    assert "| [nomad](optimizers/nomad.md) | PyNomadBBO 4.6.0 | 4.5.9 | one at a time |" in text
    assert "| [egobox](optimizers/egobox.md) | egobox 1.0.0 | - | batches |" in text


def test_without_rows_the_page_says_so() -> None:
    """Plainly, and nothing is claimed."""
    text = page([])
    assert "No rival has a row on the board yet, so nothing is compared." in text
    assert "`furbo` shares no seed with `scbo` on the board yet" in text
    assert "**" not in section(text, "Problem by problem")


def test_every_rival_is_registered_and_declares_what_the_page_says() -> None:
    """Ids, cards, and who asks one point at a time."""
    assert set(RIVALS) <= {info.id for info in list_optimizers()}
    for id_, rival in RIVALS.items():
        assert (ROOT / "docs" / "optimizers" / f"{rival.card}.md").is_file()
        assert bool(getattr(optimizer_factory(id_), "sequential", False)) == rival.sequential


def test_the_committed_page_is_what_the_generator_writes() -> None:
    """To the letter while the board is what it was made from.

    Rows that came since make other tables and sentences; the headings and what does not depend on
    rows are held all the same.
    """
    committed, rows = PAGE.read_text("utf-8"), board()
    fresh = render(rows, seconds())
    if stamp(rows) in committed:
        assert committed == fresh
    assert fixed_parts(committed) == fixed_parts(fresh)


def fixed_parts(text: str) -> list[str]:
    """The headings, what comes first, and the libraries that are no rivals."""
    headings = [line for line in text.splitlines() if line.startswith("#")]
    return [*headings, text.split("## Who")[0], text.split("Libraries that are not")[1]]


def test_the_stamp_changes_with_any_outcome() -> None:
    """Of any run, and with the seeds that there are."""

    def rows(*shifts: float) -> list[Row]:
        return collect([runs("scbo", shift)[seed] for seed, shift in enumerate(shifts)], IDS)

    stamps = {stamp(rows(*shifts)) for shifts in ((0.0, 0.0), (0.0, 0.1), (0.0,), ())}
    assert len(stamps) == 4
    assert stamp(rows(0.0, 0.1)) in stamps


def test_main_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of the old one."""
    monkeypatch.setattr(rivals_page, "PAGE", tmp_path / "rivals.md")
    monkeypatch.setattr(rivals_page, "board", list)
    monkeypatch.setattr(rivals_page, "seconds", lambda: None)
    rivals_page.main()
    assert (tmp_path / "rivals.md").read_text("utf-8") == render([])
