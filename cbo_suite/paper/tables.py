"""The tables of the reproduction, as Markdown and as LaTeX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cbo_suite.leaderboard.number_format import apart, measured, number, true_error
from cbo_suite.paper.claims.method import restart_runs
from cbo_suite.paper.comparisons import name
from cbo_suite.paper.evidence import Evidence, PairRuns
from cbo_suite.paper.experiments import ARTEFACTS, ROVER, Artefact
from cbo_suite.paper.measurements import BatchSide
from cbo_suite.paper.published import PublishedCell, published_numbers
from cbo_suite.scoring.runs import feasible_table, mean_and_error
from cbo_suite.scoring.statistics import wilson_interval
from cbo_suite.tasks import LUNAR, SCALABLE

_LATEX = {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "±": r"$\pm$", "∞": r"$\infty$"}


class Table(NamedTuple):
    """A table of texts.

    Attributes:
        title: What it shows.
        columns: Heads of the columns.
        rows: Cells of each row; the first `left` columns are aligned to the left.
        left: Number of columns of names.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1

    def markdown(self) -> str:
        """Write it as Markdown."""
        rule = ["---" if i < self.left else "---:" for i in range(len(self.columns))]
        lines = [self.columns, rule, *self.rows]
        return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)

    def latex(self) -> str:
        """Write it as LaTeX, for the package booktabs."""
        places = "l" * self.left + "r" * (len(self.columns) - self.left)
        heads, *rows = (
            " & ".join(map(_escape, row)) + r" \\" for row in (self.columns, *self.rows)
        )
        body = "\n".join(rows)
        return (
            f"% {_escape(self.title)}\n\\begin{{tabular}}{{{places}}}\n\\toprule\n{heads}\n"
            f"\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
        )


def _escape(text: str) -> str:
    """Write text so that LaTeX prints it."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def make_tables(evidence: Evidence) -> dict[str, Table]:
    """Make the table of every artefact, by its id; those without any runs are left out."""
    tables = {
        artefact.id: _finals(evidence, artefact)
        for artefact in ARTEFACTS
        if artefact.id not in ("lunar", "restarts") and evidence.have(artefact.pairs)
    }
    if evidence.have(
        pair for artefact in ARTEFACTS if artefact.id == "lunar" for pair in artefact.pairs
    ):
        tables["lunar"] = _lunar(evidence)
    tables["restarts"] = _restarts(evidence)
    tables["batch-gp"] = _batch_gp(evidence)
    if evidence.measurements.feasibility:
        tables["feasibility"] = _feasibility(evidence)
    return tables


def _finals(evidence: Evidence, artefact: Artefact) -> Table:
    """Show how the runs of a figure end."""
    rows = []
    problems = list(dict.fromkeys(problem for problem, _ in artefact.pairs))
    for problem in problems:
        methods = [id_ for own, id_ in artefact.pairs if own == problem]
        sign = -1 if problem == ROVER else 1
        found = {id_: evidence.runs.get((problem, id_)) for id_ in methods}
        known = {id_: runs for id_, runs in found.items() if runs is not None}
        values = {id_: _ends(runs, sign) for id_, runs in known.items()}
        # Different values of a column look different.
        texts = apart(*zip(*values.values(), strict=True))
        for id_, runs in known.items():
            ends = feasible_table(runs.finals)
            imputed = evidence.imputed(problem, id_)[:, -1:]
            mean, error = (float(part[0]) for part in mean_and_error(imputed))
            rows.append(
                (
                    problem,
                    name(id_),
                    f"{ends.feasible_runs}/{ends.runs}",
                    *(texts[value] for value in values[id_]),
                    _mean_text(sign * mean, error),
                    _per_evaluation(evidence, problem, id_),
                )
            )
    columns = (
        "problem",
        "method",
        "feasible",
        "best",
        "median",
        "worst",
        "mean ± error",
        "s / eval",
    )
    what = "rewards at the end of the runs" if ROVER in problems else "how the runs end"
    return Table(f"{artefact.title}: {what}", columns, rows, left=2)


def _ends(runs: PairRuns, sign: int) -> tuple[float | None, float | None, float | None]:
    """Return the best, median and worst value of the feasible runs, None where there is none."""
    found = feasible_table(runs.finals)
    best, middle, worst = (
        None if math.isnan(value) else sign * value
        for value in (found.best, found.median, found.worst)
    )
    return best, middle, worst


def _mean_text(mean: float, error: float) -> str:
    """Write a mean with its standard error, which a single run does not have."""
    if math.isnan(error):
        return number(mean, 6)
    true = true_error(mean, error)
    return f"{measured(mean, true)} ± {number(true, 2)}"


def _per_evaluation(evidence: Evidence, problem: str, id_: str) -> str:
    """Write the processor seconds of a method per evaluation."""
    seconds = evidence.seconds_per_evaluation(problem, id_)
    return "NA" if seconds is None else number(seconds, 2)


def _lunar(evidence: Evidence) -> Table:
    """Show the lunar table: ours, and in brackets the paper's."""
    rows = []
    for problem in LUNAR:
        terrains = problem.removeprefix("lunar-lander-m").removesuffix("-v1")
        printed = published_numbers().problems[problem]
        cells: dict[str, list[str]] = {what: [] for what in ("Best", "Worst", "Median", "Feasible")}
        for id_ in SCALABLE:
            row, runs = printed.row(id_), evidence.runs.get((problem, id_))
            ends = feasible_table(np.empty(0) if runs is None else runs.finals)
            for what, value, theirs in (
                ("Best", ends.best, row.best),
                ("Worst", ends.worst, row.worst),
                ("Median", ends.median, row.median),
            ):
                ours = "NA" if math.isnan(value) else f"{-value:.1f}"
                cells[what].append(f"{ours} ({'NA' if theirs is None else f'{theirs:.1f}'})")
            counts = f"{ends.feasible_runs}/{ends.runs}" if ends.runs else "no runs"
            cells["Feasible"].append(f"{counts} ({row.feasible}/{row.runs})")
        rows += [(terrains, what, *texts) for what, texts in cells.items()]
    return Table(
        "Lunar lander: rewards of the feasible runs, the paper's in brackets",
        ("m", "runs", *map(name, SCALABLE)),
        rows,
        left=2,
    )


def _restarts(evidence: Evidence) -> Table:
    """Show how often SCBO restarts."""
    rows = []
    for problem, printed in published_numbers().restarts.values.items():
        runs = restart_runs(evidence, problem)
        ours = ("not measured", "", "", "")
        if runs is not None:
            count = sum(map(len, runs.restarts))
            interval = number(runs.interval, 3)
            ours = (interval, str(count), str(len(runs.restarts)), str(runs.evaluations))
        rows.append((problem, f"{printed:g}", *ours))
    columns = ("problem", "the paper", "ours", "restarts", "runs", "evaluations of a run")
    return Table("Evaluations per restart of SCBO", columns, rows)


def _batch_gp(evidence: Evidence) -> Table:
    """Show what many models at once take: seconds of training / prediction / sampling."""
    table = evidence.measurements.batch_gp
    ours = {(cell.models, cell.points): cell for cell in table.cells} if table else {}

    def seconds(side: BatchSide) -> str:
        return " / ".join(number(v, 2) for v in (side.training, side.prediction, side.sampling))

    def theirs(cell: PublishedCell) -> list[str]:
        return [" / ".join(f"{v:g}" for v in side) for side in (cell.cholesky, cell.batched)]

    rows = []
    sizes = {(cell.models, cell.points): cell for cell in published_numbers().batch_gp.cells}
    for size, printed in sizes.items():
        found = ours.get(size)
        cells: Sequence[str] = ("cannot be told", "", "", "", "")
        if found is not None:
            sides = map(seconds, (found.cholesky, found.batched, found.ours))
            errors = found.batched.mean_mae, found.batched.variance_mae
            cells = (*sides, *(f"{value:.1e}" for value in errors))
        rows.append((*map(str, size), *cells, *theirs(printed)))
    columns = (
        "models",
        "points",
        "Cholesky",
        "batched",
        "SCBO of this suite",
        "mean MAE",
        "variance MAE",
        "paper: Cholesky",
        "paper: batched",
    )
    # As `tests/benchmarks/batch_gp_table.py` measures them.
    title = (
        "Many models at once: processor seconds of training / prediction / sampling. Cholesky: of "
        "one model, times their number. Batched: conjugate gradients without KeOps, of as many "
        "models at a time as have 40 million elements in their kernel matrices, times what is "
        "left. Both of GPyTorch's: of 3 steps, times 50 / 3. Errors are those of the batched ones "
        "against exact models in double precision. A draw whose single precision fails takes "
        "GPyTorch many times as long. Sizes that cannot be told were not measured"
    )
    return Table(title, columns, rows, left=0)


def _feasibility(evidence: Evidence) -> Table:
    """Show how likely a random point of Ackley is feasible."""
    found = evidence.measurements.feasibility
    printed = published_numbers().feasibility
    rows = []
    if found is not None:
        low, high = wilson_interval(found.feasible, found.points)
        share = found.feasible / found.points
        texts = (f"{found.points}", f"{found.feasible}", f"{share:.3e}")
        rows.append((found.problem, *texts, f"{low:.3e} to {high:.3e}", f"{printed.share:.1e}"))
    columns = ("problem", "points", "feasible", "share", "95 % interval", "the paper")
    return Table("Random feasibility", columns, rows)
