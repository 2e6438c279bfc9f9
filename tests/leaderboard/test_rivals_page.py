"""The tables of the page that compares SCBO with its rivals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.leaderboard.rivals_page import BEGIN, END, collect, compare, tables, with_tables
from tests.make_records import make


def test_runs_are_compared_seed_by_seed() -> None:
    """Feasible beats infeasible, then values decide; seeds that one lacks do not count."""
    records = [
        *(make([99.0, 5.0 + seed], optimizer="scbo", seed=seed) for seed in range(7)),
        *(make([99.0, 4.0 + seed], optimizer="furbo", seed=seed) for seed in range(6)),
        *(make([None, None], optimizer="isres", seed=seed) for seed in range(6)),
        make([1.0, 1.0], optimizer="random-search"),
    ]
    (row,) = collect(records)
    furbo, isres = compare(row)
    assert furbo.optimizer == "furbo"
    assert (furbo.seeds, furbo.feasible, furbo.better) == (6, (6, 6), (6, 0))
    assert furbo.medians == (6.5, 7.5)
    # Six of six: 2 / 2**6, and twice that for the smaller of two p-values.
    assert furbo.p_value == pytest.approx(2 * 2 / 64)
    assert (isres.better, isres.feasible) == ((0, 6), (0, 6))
    assert np.isnan(isres.medians[0])


def test_the_summary_says_who_is_ahead_where() -> None:
    """With enough seeds the test decides, and the table of the problem has the numbers."""
    records = [
        *(make([5.0 + seed], optimizer="scbo", seed=seed) for seed in range(10)),
        *(make([4.5 + seed], optimizer="furbo", seed=seed) for seed in range(10)),
        *(make([5.0 + seed], optimizer="nomad", seed=seed) for seed in range(10)),
    ]
    text = tables(collect(records))
    assert "| `furbo` | `some-1d-v1` |  |  |" in text
    assert "| `nomad` |  |  | `some-1d-v1` |" in text
    assert "| `furbo` | 9 | 9.5 | 10 | 10 | 10 | 10 : 0 | 0.0039 | ahead |" in text
    assert "d = 1, m = 1, 1 evaluations in batches of 1" in text


def test_what_stands_around_the_tables_stays() -> None:
    """New tables take the place of old ones, and nothing else changes."""
    page = f"# Title\n\n{BEGIN}old{END}\n\nAfter.\n"
    once = with_tables(page, "new")
    assert once == f"# Title\n\n{BEGIN}\n\nnew\n\n{END}\n\nAfter.\n"
    assert with_tables(once, "new") == once
