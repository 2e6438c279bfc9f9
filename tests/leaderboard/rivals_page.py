"""Write the tables of docs/rivals.md from the records of the leaderboard.

    python -m tests.leaderboard.rivals_page

SCBO and another optimizer are compared on the seeds that both have, seed by seed, because they
began with the same design: feasible runs by their final value, others by their least violation. The
test is Wilcoxon's on the ranks of these outcomes, two-sided, with Holm's correction for the
optimizers of a problem. What stands between the two marks of the page is replaced; the words
around them are written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cbo_suite.leaderboard import iterate_folder
from cbo_suite.records import Record
from cbo_suite.scoring.runs import best_so_far, outcome_ranks
from cbo_suite.scoring.statistics import holm, paired_wilcoxon

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "rivals.md"
CONTROL = "scbo"
RIVALS = (
    "furbo",
    "botorch-logcei",
    "optuna-gp",
    "optuna-tpe",
    "egobox",
    "bayesqp",
    "nomad",
    "isres",
    "cei",
)
LEVEL = 0.05
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


class Outcome(NamedTuple):
    """The end of a run: its final feasible value, NaN if none, and its least violation."""

    final: float
    violation: float


class Row(NamedTuple):
    """A problem at a protocol: d, m, budget and batch size, and the outcomes by optimizer, seed."""

    problem: str
    dim: int
    num_constraints: int
    budget: int
    batch_size: int
    outcomes: dict[str, dict[int, Outcome]]


class Comparison(NamedTuple):
    """An optimizer against SCBO on a problem.

    Attributes:
        optimizer: Its id.
        seeds: Number of seeds that both have.
        feasible: Runs that end feasible, of it and of SCBO.
        medians: Medians of their feasible final values, NaN if there are none.
        better: Seeds on which it ends better, and worse.
        p_value: Of the paired test, after Holm's correction.
    """

    optimizer: str
    seeds: int
    feasible: tuple[int, int]
    medians: tuple[float, float]
    better: tuple[int, int]
    p_value: float

    @property
    def verdict(self) -> str:
        """Who is ahead, if the test says so."""
        if self.p_value > LEVEL:
            return ""
        return "ahead" if self.better[0] > self.better[1] else "behind"


def collect(records: Iterable[Record]) -> list[Row]:
    """Gather the runs of SCBO and its rivals by problem, in the order of dimension and id."""
    rows: dict[str, Row] = {}
    for record in records:
        task = record.task
        if task.optimizer not in (CONTROL, *RIVALS):
            continue
        row = rows.setdefault(
            task.problem,
            Row(
                task.problem,
                record.dim,
                record.num_constraints,
                task.budget,
                task.batch_size,
                {},
            ),
        )
        final = float(best_so_far(record)[-1])
        violation = float(np.min(record.violations, initial=np.inf))
        row.outcomes.setdefault(task.optimizer, {})[task.seed] = Outcome(final, violation)
    return sorted(rows.values(), key=lambda row: (row.dim, row.problem))


def compare(row: Row) -> list[Comparison]:
    """Compare every rival that shares seeds with SCBO on a problem."""
    control = row.outcomes.get(CONTROL, {})
    found = []
    for rival in RIVALS:
        own = row.outcomes.get(rival, {})
        seeds = sorted(own.keys() & control.keys())
        if not seeds:
            continue
        ends = np.array([[own[seed], control[seed]] for seed in seeds])
        finals = ends[:, :, 0]
        ranks = outcome_ranks(finals, ends[:, :, 1])
        found.append(
            Comparison(
                rival,
                len(seeds),
                (_feasible(finals[:, 0]), _feasible(finals[:, 1])),
                (_median(finals[:, 0]), _median(finals[:, 1])),
                (
                    int((ranks[:, 0] < ranks[:, 1]).sum()),
                    int((ranks[:, 0] > ranks[:, 1]).sum()),
                ),
                paired_wilcoxon(ranks[:, 0], ranks[:, 1]),
            )
        )
    adjusted = holm([comparison.p_value for comparison in found])
    return [c._replace(p_value=float(p)) for c, p in zip(found, adjusted, strict=True)]


def tables(rows: Sequence[Row]) -> str:
    """Write the summary and one table a problem, as Markdown."""
    compared = {row.problem: compare(row) for row in rows}
    lines = ["| optimizer | ahead of `scbo` | behind | undecided |", "|---|---|---|---|"]
    for rival in RIVALS:
        own = {p: c for p, found in compared.items() for c in found if c.optimizer == rival}
        if own:
            where = {
                verdict: ", ".join(f"`{p}`" for p, c in own.items() if c.verdict == verdict)
                for verdict in ("ahead", "behind", "")
            }
            lines.append(f"| `{rival}` | {where['ahead']} | {where['behind']} | {where['']} |")
    for row in rows:
        if not compared[row.problem]:
            continue
        lines += [
            "",
            f"**`{row.problem}`**: d = {row.dim}, m = {row.num_constraints}, "
            f"{row.budget} evaluations in batches of {row.batch_size}",
            "",
            "| optimizer | median | of `scbo` | feasible | of `scbo` | seeds | better : worse "
            "| p | |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for c in compared[row.problem]:
            lines.append(
                f"| `{c.optimizer}` | {c.medians[0]:.6g} | {c.medians[1]:.6g} | {c.feasible[0]} "
                f"| {c.feasible[1]} | {c.seeds} | {c.better[0]} : {c.better[1]} "
                f"| {c.p_value:.2g} | {c.verdict} |"
            )
    return "\n".join(lines)


def with_tables(page: str, new: str) -> str:
    """Put tables between the marks of a page."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{new}\n\n{END}{after}"


def main() -> None:
    """Bring the page up to date with the board."""
    page = PAGE.read_text("utf-8") if PAGE.exists() else f"# SCBO and its rivals\n\n{BEGIN}{END}\n"
    records = iterate_folder(ROOT / "leaderboard" / "runs")
    PAGE.write_text(with_tables(page, tables(collect(records))), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")


def _median(finals: np.ndarray) -> float:
    """The median of what is feasible, NaN if nothing is."""
    feasible = finals[np.isfinite(finals)]
    return float(np.median(feasible)) if feasible.size else float("nan")


def _feasible(finals: np.ndarray) -> int:
    """How many runs end feasible."""
    return int(np.isfinite(finals).sum())


if __name__ == "__main__":
    main()
