"""One problem of the board: its optimizers, their scores, intervals and tests."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from cbo_suite.protocols import Array
from cbo_suite.scoring.board import Curves, Outcomes, ProblemBoard, ProblemRow, Range
from cbo_suite.scoring.references import Reference
from cbo_suite.scoring.runs import (
    RunSummary,
    evaluations_to_feasible,
    family,
    feasible_table,
    gap,
    mean_and_error,
    outcome_ranks,
    regret,
)
from cbo_suite.scoring.statistics import (
    Interval,
    bootstrap_means,
    holm,
    paired_wilcoxon,
    percentile_interval,
    probability_of_superiority,
    wilson_interval,
)

FULL_RUNS = 30
DIGITS, CURVE_DIGITS = 10, 6


@dataclass
class Entry:
    """The runs of one optimizer on one problem, and what resampling their seeds gives.

    Attributes:
        runs: The runs, in the order of their seeds once all are gathered.
        versions: Package to the versions that were used.
        settings: What made the runs: identities of the optimizer and options, as text.
        paper_draws: Bootstrap draws of the final mean under the paper's rule.
        anytime_draws: Bootstrap draws of the mean of `anytime`.
    """

    runs: list[RunSummary] = field(default_factory=list)
    versions: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    settings: set[str] = field(default_factory=set)
    paper_draws: Array = field(default_factory=lambda: np.empty(0))
    anytime_draws: Array = field(default_factory=lambda: np.empty(0))

    @property
    def finals(self) -> Array:
        """Final values, NaN where there is none, shape `(n,)`."""
        return np.array([run.final for run in self.runs])

    @property
    def violations(self) -> Array:
        """Least violations, shape `(n,)`."""
        return np.array([run.violation for run in self.runs])


@dataclass
class Gathered:
    """All runs on one problem.

    Attributes:
        problem: Id of the problem.
        reference: Its reference values.
        protocol: Budget, batch size and size of the initial design.
        grid: Numbers of evaluations at which the curves are kept.
        sizes: Number of variables and of constraints.
        entries: The runs by optimizer.
        digests: A line for each record.
    """

    problem: str
    reference: Reference | None
    protocol: tuple[int, int, int]
    grid: list[int]
    sizes: tuple[int, int] = (0, 0)
    entries: dict[str, Entry] = field(default_factory=lambda: defaultdict(Entry))
    digests: list[str] = field(default_factory=list)


class Scored(NamedTuple):
    """A problem's board, and what the overall ranking needs beyond it.

    Attributes:
        board: The board.
        entries: The runs by optimizer, with their bootstrap draws.
        means: Final mean under the paper's rule by optimizer, NaN where there is none.
        rows: The rows of the board by optimizer.
    """

    board: ProblemBoard
    entries: Mapping[str, Entry]
    means: Mapping[str, float]
    rows: Mapping[str, ProblemRow]


def score_problem(gathered: Gathered, replayed: Mapping[str, float]) -> Scored:
    """Score all optimizers on one problem."""
    entries, reference = gathered.entries, gathered.reference
    found = [run.largest_feasible for entry in entries.values() for run in entry.runs]
    default = float(np.fmax.reduce(found))
    means = {}
    for optimizer, entry in entries.items():
        finals = np.where(np.isnan(entry.finals), default, entry.finals)
        means[optimizer] = float(finals.mean())
        entry.paper_draws = bootstrap_means(finals, gathered.problem)
        if reference:
            scores = np.array([run.anytime for run in entry.runs])
            entry.anytime_draws = bootstrap_means(scores, gathered.problem)
    places = [math.inf if math.isnan(mean) else mean for mean in means.values()]
    ranks = dict(zip(means, rankdata(places).tolist(), strict=True))
    order = sorted(means, key=lambda name: (ranks[name], name))
    control = order[0]
    tests = _tests(entries, control)
    rows = {
        name: _row(
            gathered,
            name,
            default,
            ranks[name],
            tests[name],
            replayed.get(f"{gathered.problem}/{name}"),
        )
        for name in order
    }
    dim, num_constraints = gathered.sizes
    budget, batch_size, n_init = gathered.protocol
    board = ProblemBoard(
        problem=gathered.problem,
        family=family(gathered.problem),
        dim=dim or None,
        num_constraints=num_constraints if dim else None,
        budget=budget,
        batch_size=batch_size,
        n_init=n_init,
        best=reference.best if reference else None,
        worst=reference.worst if reference else None,
        level=reference.level if reference else None,
        default=tidy(default),
        digest=hashlib.sha256("".join(sorted(gathered.digests)).encode()).hexdigest(),
        control=control,
        evaluations=gathered.grid,
        rows=list(rows.values()),
        references_version=reference.version if reference else None,
    )
    return Scored(board, entries, means, rows)


def _tests(entries: Mapping[str, Entry], control: str) -> dict[str, tuple[float, float]]:
    """Test every optimizer against the control: adjusted p-value and A12, NaN for itself."""
    results = {}
    other = {run.seed: run for run in entries[control].runs}
    for name, entry in entries.items():
        runs = [run for run in entry.runs if run.seed in other and name != control]
        if not runs:
            results[name] = (math.nan, math.nan)
            continue
        pairs = [runs, [other[run.seed] for run in runs]]
        # Ranks among the two alone: a third participant does not move them.
        mine, theirs = outcome_ranks(
            np.array([[run.final for run in side] for side in pairs]),
            np.array([[run.violation for run in side] for side in pairs]),
        )
        results[name] = paired_wilcoxon(mine, theirs), probability_of_superiority(mine, theirs)
    adjusted = holm([p_value for p_value, _ in results.values()])
    return {
        name: (float(p_value), superiority)
        for p_value, (name, (_, superiority)) in zip(adjusted, results.items(), strict=True)
    }


def _row(
    gathered: Gathered,
    optimizer: str,
    default: float,
    rank: float,
    test: tuple[float, float],
    replayed: float | None,
) -> ProblemRow:
    """Describe one optimizer on one problem."""
    entry, reference = gathered.entries[optimizer], gathered.reference
    runs, finals, best = entry.runs, entry.finals, reference.best if reference else None
    traces = np.stack([run.trace for run in runs])
    paper_mean, paper_error = mean_and_error(np.where(np.isnan(traces), default, traces))
    regret_mean = regret_error = np.full(traces.shape[1], np.nan)
    gaps, regret_interval, anytime_interval = np.full(len(runs), np.nan), None, None
    if reference:
        regret_mean, regret_error = mean_and_error(regret(traces, reference))
        gaps = gap(finals, reference)
        draws = bootstrap_means(regret(finals, reference), gathered.problem)
        regret_interval = percentile_interval(draws, [len(runs)])
        anytime_interval = percentile_interval(entry.anytime_draws, [len(runs)])
    table = feasible_table(finals)
    share = wilson_interval(table.feasible_runs, table.runs)
    firsts = [run.first_feasible for run in runs]
    scores = [run.anytime for run in runs]
    return ProblemRow(
        optimizer=optimizer,
        paper_mean=tidy(paper_mean[-1]),
        paper_error=tidy(paper_error[-1]),
        paper_rank=rank,
        best=tidy(table.best),
        worst=tidy(table.worst),
        median=tidy(table.median),
        feasible_runs=table.feasible_runs,
        runs=table.runs,
        feasible_interval=(rounded(share.low), rounded(share.high)),
        evaluations_to_feasible=tidy(evaluations_to_feasible(firsts, gathered.protocol[0])),
        regret=tidy(regret_mean[-1]),
        regret_interval=tidy_range(regret_interval),
        anytime=tidy(float(np.mean(scores))),
        anytime_interval=tidy_range(anytime_interval),
        seconds_per_evaluation=rounded(
            sum(run.seconds for run in runs) / max(1, sum(run.evaluations for run in runs))
        ),
        imputed=rounded(float(np.mean([run.imputed for run in runs]))),
        p_value=tidy(test[0]),
        superiority=tidy(test[1]),
        verified=replayed is not None,
        replayed=replayed or 0.0,
        provisional=len(runs) < FULL_RUNS,
        mixed=len(entry.settings) > 1,
        versions={name: ", ".join(sorted(found)) for name, found in entry.versions.items()},
        curves=Curves(
            paper_mean=[tidy_near(mean, best) for mean in paper_mean],
            paper_error=tidy_list(paper_error, CURVE_DIGITS),
            regret_mean=tidy_list(regret_mean, CURVE_DIGITS),
            regret_error=tidy_list(regret_error, CURVE_DIGITS),
            targets=tidy_list(np.mean([run.reached for run in runs], axis=0), CURVE_DIGITS),
            feasible=tidy_list(np.mean(~np.isnan(traces), axis=0), CURVE_DIGITS),
        ),
        outcomes=Outcomes(
            seed=[run.seed for run in runs],
            final=tidy_list(finals),
            violation=tidy_list(entry.violations),
            first_feasible=[first or None for first in firsts],
            gap=tidy_list(gaps),
            anytime=tidy_list(scores),
            imputed=[run.imputed for run in runs],
        ),
    )


def rounded(value: float, digits: int = DIGITS) -> float:
    """Round a finite number to `digits` digits, -0 to 0."""
    return float(f"{value:.{digits}g}") + 0.0


def tidy(value: float, digits: int = DIGITS) -> float | None:
    """Round a number; None for what is not finite."""
    return rounded(value, digits) if math.isfinite(value) else None


def tidy_near(value: float, best: float | None) -> float | None:
    """Round a number of a curve so that its distance to the best known value keeps the digits too.

    A log axis shows the distance, and of 2996.35 - 2996.348165 no digit is right.
    """
    if value == best:
        return best
    lost = 0
    if best is not None and 0 < abs(value - best) < abs(value):
        lost = math.ceil(math.log10(abs(value / (value - best))))
    return tidy(value, CURVE_DIGITS + lost)


def tidy_list(values: Iterable[float], digits: int = DIGITS) -> list[float | None]:
    """Round numbers; None for what is not finite."""
    return [tidy(value, digits) for value in values]


def tidy_range(interval: Interval | None) -> Range | None:
    """Round both ends of an interval; None stays None."""
    return None if interval is None else (rounded(interval.low), rounded(interval.high))
