"""Records to the board: who stands where, on every problem and overall."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from scipy.stats import rankdata

from cbo_suite.errors import RecordError
from cbo_suite.protocols import Array
from cbo_suite.records import Record
from cbo_suite.scoring.board import Board, Comparison, NewBest, OverallRow
from cbo_suite.scoring.problem import (
    Gathered,
    Scored,
    rounded,
    score_problem,
    tidy,
    tidy_list,
    tidy_range,
)
from cbo_suite.scoring.references import Reference
from cbo_suite.scoring.runs import beats_reference, family, summarize
from cbo_suite.scoring.statistics import RESAMPLES, friedman, percentile_interval

LEAST_PROBLEMS_TO_COMPARE = 10
_NOTHING_VERIFIED: Mapping[str, bool] = MappingProxyType({})


def make_board(
    records: Iterable[Record],
    references: Mapping[str, Reference],
    verified: Mapping[str, bool] = _NOTHING_VERIFIED,
    *,
    problems: Collection[str] | None = None,
) -> Board:
    """Score records and rank the optimizers.

    Args:
        records: Runs in any order; they are read once, so that they may come from a generator.
        references: Problem id to reference values; a problem without them has no `regret` and no
            `anytime`.
        verified: "<problem>/<optimizer>" to whether these runs were replayed.
        problems: Ids of the problems that the overall ranking is over, by default all that have
            records and are not optional.

    Raises:
        RecordError: The runs on a problem differ in protocol, or an optimizer has a seed twice.
    """
    scored = [score_problem(gathered, verified) for gathered in _gather(records, references)]
    counted = sorted(
        {row.board.problem for row in scored if not row.board.optional}
        if problems is None
        else problems
    )
    within = [row for row in scored if row.board.problem in counted]
    return Board(
        schema=1,
        scoring="score-v1",
        overall=_overall(within, [id_ for id_ in counted if id_ in references]),
        counted=counted,
        problems=[row.board for row in scored],
        comparison=_compare(within),
        new_best=[
            event for row in scored for event in _new_best(row, references.get(row.board.problem))
        ],
    )


def evaluation_grid(budget: int, n_init: int) -> list[int]:
    """Choose at most about 100 numbers of evaluations that show a curve on any axis."""
    if budget <= 100:
        return list(range(1, budget + 1))
    even, rising = np.linspace(1, budget, 70), np.geomspace(1, budget, 40)
    ends = {max(1, min(n_init, budget)), budget}
    return sorted(ends.union(np.rint(np.concatenate([even, rising])).astype(int).tolist()))


def _gather(records: Iterable[Record], references: Mapping[str, Reference]) -> list[Gathered]:
    """Condense the records, by problem and optimizer; runs are in the order of their seeds."""
    problems: dict[str, Gathered] = {}
    for record in records:
        task = record.task
        protocol = (task.budget, task.batch_size, task.n_init)
        if task.problem not in problems:
            grid = evaluation_grid(task.budget, task.n_init)
            reference = references.get(task.problem)
            problems[task.problem] = Gathered(task.problem, reference, protocol, grid)
        gathered = problems[task.problem]
        if protocol != gathered.protocol:
            raise RecordError(
                f"{task.name}: runs that are compared need one budget, batch size and initial "
                f"design, got {min(protocol, gathered.protocol)} and "
                f"{max(protocol, gathered.protocol)}: keep them in folders of their own"
            )
        entry = gathered.entries[task.optimizer]
        entry.runs.append(summarize(record, gathered.reference, gathered.grid))
        for package, version in record.versions.items():
            entry.versions[package].add(version)
        gathered.digests.append(f"{task.optimizer} {task.seed} {record.digest}\n")
        for step in record.improvements[:1]:
            gathered.sizes = max(gathered.sizes, (len(step.x), len(step.constraints)))
    for gathered in problems.values():
        gathered.entries = dict(sorted(gathered.entries.items()))
        for optimizer, entry in gathered.entries.items():
            entry.runs.sort(key=lambda run: run.seed)
            seeds = [run.seed for run in entry.runs]
            if len(set(seeds)) < len(seeds):
                raise RecordError(f"{gathered.problem}/{optimizer}: a seed is there twice")
    return [gathered for _, gathered in sorted(problems.items())]


def _overall(scored: Sequence[Scored], with_targets: Sequence[str]) -> list[OverallRow]:
    """Rank all optimizers over these problems, of which some have targets."""
    rows = []
    for name, (mean_rank, rank_draws) in _mean_ranks(scored).items():
        own = {problem.board.problem: problem for problem in scored if name in problem.rows}
        own_rows = [problem.rows[name] for problem in own.values()]
        sizes = [row.runs for row in own_rows]
        score, draws = _suite_score(name, own, with_targets)
        where_run, _ = _suite_score(name, own, [id_ for id_ in with_targets if id_ in own])
        interval = percentile_interval(draws, sizes) if with_targets else None
        rows.append(
            OverallRow(
                optimizer=name,
                anytime=tidy(score),
                anytime_interval=tidy_range(interval),
                anytime_where_run=tidy(where_run),
                mean_rank=rounded(mean_rank),
                mean_rank_interval=tidy_range(percentile_interval(rank_draws, sizes)),
                problems=len(own),
                feasible_runs=sum(row.feasible_runs for row in own_rows),
                runs=sum(sizes),
                seconds_per_evaluation=rounded(
                    float(np.mean([row.seconds_per_evaluation for row in own_rows]))
                ),
                imputed=rounded(sum(row.imputed * row.runs for row in own_rows) / sum(sizes)),
                verified=all(row.verified for row in own_rows),
                provisional=any(row.provisional for row in own_rows),
            )
        )
    # The best first; who has no score, because no problem has targets, by mean rank.
    return sorted(rows, key=lambda row: (-(row.anytime or 0.0), row.mean_rank, row.optimizer))


def _mean_ranks(scored: Sequence[Scored]) -> dict[str, tuple[float, Array]]:
    """Average the ranks under the paper's rule; not run shares the last places with no value.

    Returns:
        By optimizer the mean rank and its bootstrap draws of shape `(resamples,)`.
    """
    optimizers = sorted({name for problem in scored for name in problem.rows})
    ranks, drawn_ranks = np.zeros(len(optimizers)), np.zeros((len(optimizers), RESAMPLES))
    for problem in scored:
        draws = np.full(drawn_ranks.shape, np.inf)
        for place, name in enumerate(optimizers):
            if not math.isnan(problem.means.get(name, math.nan)):
                draws[place] = problem.entries[name].paper_draws
        ranks += rankdata(_paper_means(problem, optimizers)) / len(scored)
        drawn_ranks += rankdata(draws, axis=0) / len(scored)
    return {
        name: (float(rank), drawn)
        for name, rank, drawn in zip(optimizers, ranks, drawn_ranks, strict=True)
    }


def _suite_score(
    optimizer: str, own: Mapping[str, Scored], problems: Sequence[str]
) -> tuple[float, Array]:
    """Average `anytime` over families; a problem that the optimizer was not run on counts 0.

    Returns:
        The score, and its bootstrap draws of shape `(resamples,)`; NaN if there is no problem.
    """
    families: dict[str, list[str]] = defaultdict(list)
    for problem in problems:
        families[family(problem)].append(problem)
    score, draws = 0.0, np.zeros(RESAMPLES)
    for members in families.values():
        for problem in [member for member in members if member in own]:
            weight = 1 / (len(families) * len(members))
            entry = own[problem].entries[optimizer]
            score += weight * float(np.mean([run.anytime for run in entry.runs]))
            draws += weight * entry.anytime_draws
    return (score, draws) if families else (math.nan, draws * math.nan)


def _paper_means(problem: Scored, optimizers: Sequence[str]) -> Array:
    """Return the final mean of each optimizer, infinite where there is none, shape `(k,)`."""
    means = np.array([problem.means.get(name, math.nan) for name in optimizers])
    return np.where(np.isnan(means), np.inf, means)


def _compare(scored: Sequence[Scored]) -> Comparison | None:
    """Compare the optimizers over enough problems by Friedman's test."""
    optimizers = sorted({name for problem in scored for name in problem.rows})
    if len(scored) < LEAST_PROBLEMS_TO_COMPARE or len(optimizers) < 3:
        return None
    test = friedman(np.stack([_paper_means(problem, optimizers) for problem in scored]))
    order = np.argsort(test.mean_ranks, kind="stable")
    return Comparison(
        problems=len(scored),
        optimizers=[optimizers[i] for i in order],
        mean_ranks=[rounded(rank) for rank in test.mean_ranks[order]],
        p_value=rounded(test.p_value),
        critical_difference=rounded(test.critical_difference),
        p_values=tidy_list(test.p_values[order]),
    )


def _new_best(scored: Scored, reference: Reference | None) -> list[NewBest]:
    """List the runs on a problem that went below the best known value."""
    if reference is None:
        return []
    return [
        NewBest(scored.board.problem, name, run.seed, run.final, reference.best)
        for name, entry in scored.entries.items()
        for run in entry.runs
        if beats_reference(run.final, reference)
    ]
