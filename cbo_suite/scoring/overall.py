"""Records to the board: who stands where, on every problem, in every track and overall."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.stats import rankdata

from cbo_suite.errors import RecordError
from cbo_suite.protocols import Array
from cbo_suite.records import Record
from cbo_suite.scoring.board import Board, Comparison, NewBest, RankingRow, TrackBoard
from cbo_suite.scoring.problem import (
    Gathered,
    Scored,
    rounded,
    score_problem,
    tidy_list,
    tidy_range,
)
from cbo_suite.scoring.references import Reference
from cbo_suite.scoring.runs import beats_reference, summarize
from cbo_suite.scoring.statistics import friedman, percentile_interval
from cbo_suite.scoring.tracks import LEAST_RUNS, TRACKS, Track, problem_weights

LEAST_PROBLEMS_TO_COMPARE = 10
_NOTHING_REPLAYED: Mapping[str, float] = MappingProxyType({})
_NO_VARIANTS: Mapping[str, str] = MappingProxyType({})


class Standing(NamedTuple):
    """How an optimizer did over some problems, before it is compared with others.

    Attributes:
        row: Its row, without a rank.
        draws: Bootstrap draws of its score, shape `(resamples,)`.
        sizes: Number of runs on each of the problems.
    """

    row: RankingRow
    draws: Array
    sizes: list[int]


def make_board(
    records: Iterable[Record],
    references: Mapping[str, Reference],
    replayed: Mapping[str, float] = _NOTHING_REPLAYED,
    *,
    methods: Mapping[str, str] = _NO_VARIANTS,
    tracks: Sequence[Track] = TRACKS,
) -> Board:
    """Score records and rank the optimizers.

    Args:
        records: Runs in any order; they are read once, so that they may come from a generator.
        references: Problem id to reference values; a problem without them has no `regret` and no
            `anytime`, and counts in no track.
        replayed: "<problem>/<optimizer>" to the share of these runs that was replayed; only those
            that are verified are in it.
        methods: Id of an optimizer to the id of the method that it is a variant of; who is not in
            it is a method of its own.
        tracks: The lists of problems to rank over.

    Raises:
        RecordError: The runs on a problem differ in protocol, or an optimizer has a seed twice.
    """
    scored = {
        gathered.problem: score_problem(gathered, replayed)
        for gathered in _gather(records, references)
    }
    within = {id_: problem for id_, problem in scored.items() if id_ in references}
    chosen = [track for track in tracks if track.in_overall]
    overall = _rank_overall(chosen, within, methods)
    return Board(
        schema=2,
        scoring="score-v2",
        problem_scoring="score-v1",
        overall=overall,
        overall_tracks=[track.id for track in chosen],
        tracks=[_rank_track(track, within, methods) for track in tracks],
        problems=[problem.board for problem in scored.values()],
        comparison=_compare(
            [within[id_] for track in chosen for id_ in track.problems if id_ in within],
            sorted(row.optimizer for row in overall if not row.variant),
        ),
        new_best=[
            event
            for id_, problem in scored.items()
            for event in _new_best(problem, references.get(id_))
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
        entry.settings.add(json.dumps([record.identity, record.options], sort_keys=True))
        gathered.digests.append(f"{task.optimizer} {task.seed} {record.digest}\n")
        gathered.sizes = max(gathered.sizes, (record.dim, record.num_constraints))
    for gathered in problems.values():
        gathered.entries = dict(sorted(gathered.entries.items()))
        for optimizer, entry in gathered.entries.items():
            entry.runs.sort(key=lambda run: run.seed)
            seeds = [run.seed for run in entry.runs]
            if len(set(seeds)) < len(seeds):
                raise RecordError(f"{gathered.problem}/{optimizer}: a seed is there twice")
    return [gathered for _, gathered in sorted(problems.items())]


def _rank_track(
    track: Track, scored: Mapping[str, Scored], methods: Mapping[str, str]
) -> TrackBoard:
    """Rank everybody who has all problems of a track, and list who has some of them."""
    ranked: list[Standing] = []
    partial: list[Standing] = []
    for name in sorted({name for id_ in track.problems for name in _entries(scored, id_)}):
        run = [
            [id_ for id_ in members if name in _entries(scored, id_)] for members in track.families
        ]
        standing = _standing(name, problem_weights(run), scored, methods)
        (ranked if _is_ranked(name, track, scored) else partial).append(standing)
    return TrackBoard(
        track=track.id,
        title=track.title,
        families=[list(members) for members in track.families],
        ranked=_with_ranks(ranked, [scored[id_] for id_ in track.problems if id_ in scored]),
        partial=sorted(
            (standing.row for standing in partial),
            key=lambda row: (-row.problems, -row.anytime, row.optimizer),
        ),
    )


def _rank_overall(
    tracks: Sequence[Track], scored: Mapping[str, Scored], methods: Mapping[str, str]
) -> list[RankingRow]:
    """Rank everybody who is ranked in all of these tracks, each of which counts alike."""
    if not tracks:
        return []
    weights = {
        id_: weight / len(tracks)
        for track in tracks
        for id_, weight in problem_weights(track.families).items()
    }
    names = sorted({name for id_ in weights for name in _entries(scored, id_)})
    standings = [
        _standing(name, weights, scored, methods)
        for name in names
        if all(_is_ranked(name, track, scored) for track in tracks)
    ]
    return _with_ranks(standings, [scored[id_] for id_ in weights if id_ in scored])


def _entries(scored: Mapping[str, Scored], problem: str) -> Collection[str]:
    """Name who was run on a problem."""
    return scored[problem].entries if problem in scored else ()


def _is_ranked(name: str, track: Track, scored: Mapping[str, Scored]) -> bool:
    """Tell whether an optimizer has every problem of a track with enough seeds."""
    return all(
        name in _entries(scored, id_) and scored[id_].rows[name].runs >= LEAST_RUNS
        for id_ in track.problems
    )


def _standing(
    name: str,
    weights: Mapping[str, float],
    scored: Mapping[str, Scored],
    methods: Mapping[str, str],
) -> Standing:
    """Score an optimizer over problems that it was run on; nobody else has a part in it.

    Args:
        name: Id of the optimizer.
        weights: Weight of each problem; they add up to one.
        scored: The problems by id.
        methods: Id of an optimizer to that of its method.
    """
    rows = [scored[id_].rows[name] for id_ in weights]
    entries = [scored[id_].entries[name] for id_ in weights]
    sizes = [row.runs for row in rows]
    parts = [
        (weight, float(np.mean([run.anytime for run in entry.runs])), entry.anytime_draws)
        for weight, entry in zip(weights.values(), entries, strict=True)
    ]
    draws: Array = np.sum([weight * drawn for weight, _, drawn in parts], axis=0)
    row = RankingRow(
        optimizer=name,
        method=methods.get(name, name),
        rank=None,
        rank_interval=None,
        anytime=rounded(sum(weight * mean for weight, mean, _ in parts)),
        anytime_interval=tidy_range(percentile_interval(draws, sizes)),
        mean_rank=None,
        problems=len(rows),
        fewest_runs=min(sizes),
        feasible_runs=sum(row.feasible_runs for row in rows),
        runs=sum(sizes),
        seconds_per_evaluation=rounded(
            float(np.mean([row.seconds_per_evaluation for row in rows]))
        ),
        imputed=rounded(sum(row.imputed * row.runs for row in rows) / sum(sizes)),
        verified=all(row.verified for row in rows),
        replayed=min(row.replayed for row in rows),
        provisional=any(row.provisional for row in rows),
        mixed=len({setting for entry in entries for setting in entry.settings}) > 1,
    )
    return Standing(row, draws, sizes)


def _with_ranks(standings: Sequence[Standing], problems: Sequence[Scored]) -> list[RankingRow]:
    """Compare optimizers that have all of these problems; variants keep their score alone.

    Returns:
        All rows, the best first.
    """
    methods = [standing for standing in standings if not standing.row.variant]
    rows = [standing.row for standing in standings if standing.row.variant]
    if methods:
        names = [row.optimizer for row, _, _ in methods]
        ranks = rankdata([-row.anytime for row, _, _ in methods], method="min")
        # Rounded, so that on every machine the same draws are ties.
        drawn = np.round([-draws for _, draws, _ in methods], 9)
        drawn_ranks = rankdata(drawn, method="min", axis=0)
        paper_ranks = [rankdata(_paper_means(problem, names)) for problem in problems]
        mean_ranks = np.mean(paper_ranks, axis=0)
        for i, (row, _, sizes) in enumerate(methods):
            interval = percentile_interval(drawn_ranks[i], sizes)
            rows.append(
                msgspec.structs.replace(
                    row,
                    rank=int(ranks[i]),
                    # Percentiles of ranks may lie between two of them: outwards is to be safe.
                    rank_interval=interval and (math.floor(interval.low), math.ceil(interval.high)),
                    mean_rank=rounded(float(mean_ranks[i])),
                )
            )
    return sorted(rows, key=lambda row: (-row.anytime, row.optimizer))


def _paper_means(problem: Scored, optimizers: Sequence[str]) -> Array:
    """Return the final mean of each optimizer, infinite where there is none, shape `(k,)`."""
    means = np.array([problem.means.get(name, math.nan) for name in optimizers])
    return np.where(np.isnan(means), np.inf, means)


def _compare(scored: Sequence[Scored], optimizers: Sequence[str]) -> Comparison | None:
    """Compare optimizers over enough problems, all of which they have, by Friedman's test."""
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
