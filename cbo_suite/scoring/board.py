"""The board: everything that the pages of the leaderboard show, as plain data.

`make_board` is a pure function of records and references; `encode_board` writes it as the text of
`leaderboard/scores.json`. What is missing is None, never NaN. Floats are rounded to ten digits (the
curves to six, that of the paper's score to six of its distance to the best known value), so that
two machines that round differently in the last place write the same file.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

Range = tuple[float, float]


class Curves(msgspec.Struct, frozen=True):
    """What an optimizer had reached on a problem after the evaluations of the problem's grid.

    Attributes:
        paper_mean: Mean value under the paper's rule.
        paper_error: Its standard error.
        regret_mean: Mean regret, 0 to 1.
        regret_error: Its standard error.
        targets: Mean share of the targets reached, 0 to 1.
        feasible: Share of the runs with a feasible point, 0 to 1.
    """

    paper_mean: list[float | None]
    paper_error: list[float | None]
    regret_mean: list[float | None]
    regret_error: list[float | None]
    targets: list[float | None]
    feasible: list[float | None]


class Outcomes(msgspec.Struct, frozen=True):
    """How each run of an optimizer on a problem ended; one entry per seed, seeds ascending.

    Attributes:
        seed: The seed.
        final: Best feasible value, None if there is none.
        violation: Least total violation, 0 if feasible, None if no evaluation was finite.
        first_feasible: Number of the first feasible evaluation, counted from 1.
        gap: Distance of `final` to the best known value in units of best to worst, not clipped.
        anytime: Score of the run, 0 to 100.
        imputed: Whether the run failed and its last state was carried to the end of the budget.
    """

    seed: list[int]
    final: list[float | None]
    violation: list[float | None]
    first_feasible: list[int | None]
    gap: list[float | None]
    anytime: list[float | None]
    imputed: list[bool]


class ProblemRow(msgspec.Struct, frozen=True):
    """One optimizer on one problem.

    Attributes:
        optimizer: Id of the optimizer.
        paper_mean: Final mean under the paper's rule; relative, it changes with the participants.
        paper_error: Its standard error.
        paper_rank: Rank by `paper_mean` on this problem, 1 is best, ties share.
        best: Best final value of the feasible runs.
        worst: Worst final value of the feasible runs.
        median: Median final value of the feasible runs.
        feasible_runs: Number of runs that found a feasible point.
        runs: Number of runs.
        feasible_interval: Wilson's 95 % interval of the share of feasible runs.
        evaluations_to_feasible: Expected evaluations to the first feasible point.
        regret: Mean final regret, 0 to 1.
        regret_interval: Its 95 % interval.
        anytime: Mean score over the whole run, 0 to 100.
        anytime_interval: Its 95 % interval.
        seconds_per_evaluation: Time in ask and tell per evaluation.
        imputed: Share of runs that failed.
        p_value: Of Wilcoxon's test against the control, adjusted by Holm; None for the control.
        superiority: A12: how likely a run of this optimizer beats one of the control.
        verified: Whether the points were replayed and gave the recorded values.
        replayed: Share of the evaluations that were replayed, 0 if it is not verified.
        provisional: Whether there are fewer than 30 runs.
        mixed: Whether its runs were made by several identities of the optimizer or options.
        versions: Package to version; several versions are separated by commas.
        curves: The course of the runs.
        outcomes: The end of each run.
    """

    optimizer: str
    paper_mean: float | None
    paper_error: float | None
    paper_rank: float
    best: float | None
    worst: float | None
    median: float | None
    feasible_runs: int
    runs: int
    feasible_interval: Range
    evaluations_to_feasible: float | None
    regret: float | None
    regret_interval: Range | None
    anytime: float | None
    anytime_interval: Range | None
    seconds_per_evaluation: float
    imputed: float
    p_value: float | None
    superiority: float | None
    verified: bool
    replayed: float
    provisional: bool
    mixed: bool
    versions: dict[str, str]
    curves: Curves
    outcomes: Outcomes


class Found(NamedTuple):
    """The best feasible value of all runs on a problem.

    Attributes:
        value: The value.
        optimizer: Who found it; of several the first in the order of the paper's score.
        seeds: With which seeds.
    """

    value: float
    optimizer: str
    seeds: list[int]


class ProblemBoard(msgspec.Struct, frozen=True):
    """All optimizers on one problem; the rows are in the order of the paper's score.

    Attributes:
        problem: Id of the problem.
        family: Its family: problems that differ in a size only.
        dim: Number of variables.
        num_constraints: Number of constraints.
        budget: Number of evaluations.
        batch_size: Number of points evaluated side by side.
        n_init: Number of points of the initial design.
        best: Best known value.
        worst: Worst value, at which regret is 1.
        level: Where the targets begin.
        default: Value of a run without a feasible point under the paper's rule.
        digest: Fingerprint of the records that `default` and the paper's scores hold for.
        control: The optimizer that the others are tested against: the first row.
        evaluations: The grid of the curves: numbers of evaluations, ascending.
        rows: One per optimizer.
        references_version: Version of the references that best, worst and level came with.
    """

    problem: str
    family: str
    dim: int | None
    num_constraints: int | None
    budget: int
    batch_size: int
    n_init: int
    best: float | None
    worst: float | None
    level: float | None
    default: float | None
    digest: str
    control: str
    evaluations: list[int]
    rows: list[ProblemRow]
    references_version: int | None = 1  # what boards that do not name it were built with

    @property
    def best_found(self) -> Found | None:
        """The best value of all runs, None if no run found a feasible point."""
        values = [row.best for row in self.rows if row.best is not None]
        if not values:
            return None
        best = min(values)
        row = next(row for row in self.rows if row.best == best)
        ends = zip(row.outcomes.seed, row.outcomes.final, strict=True)
        return Found(best, row.optimizer, [seed for seed, final in ends if final == best])


class RankingRow(msgspec.Struct, frozen=True):
    """One optimizer in a track, or in the overall ranking.

    `rank`, `rank_interval` and `mean_rank` compare optimizers, so they change with who takes part;
    nothing else of a row does. They are None for who is not ranked, and for variants.

    Attributes:
        optimizer: Id of the optimizer.
        method: Id of the method that it is a variant of; its own for the method itself.
        rank: Place by `anytime` among the methods that are ranked, 1 is best, ties share.
        rank_interval: Its 95 % interval.
        anytime: Mean over the families, 0 to 100; for a partial row over what it was run on.
        anytime_interval: Its 95 % interval.
        mean_rank: Mean rank under the paper's rule among the methods that are ranked.
        problems: Number of problems it was run on.
        fewest_runs: Number of runs on the problem that has the fewest of them.
        feasible_runs: Number of runs that found a feasible point.
        runs: Number of runs.
        seconds_per_evaluation: Time in ask and tell per evaluation, mean over the problems.
        imputed: Share of runs that failed.
        verified: Whether its runs on all these problems are verified.
        replayed: Share of the evaluations that were replayed on the problem with the least of it.
        provisional: Whether it has fewer than 30 runs on one of these problems.
        mixed: Whether its runs on these problems were made by several identities or options.
    """

    optimizer: str
    method: str
    rank: int | None
    rank_interval: tuple[int, int] | None
    anytime: float
    anytime_interval: Range | None
    mean_rank: float | None
    problems: int
    fewest_runs: int
    feasible_runs: int
    runs: int
    seconds_per_evaluation: float
    imputed: float
    verified: bool
    replayed: float
    provisional: bool
    mixed: bool

    @property
    def variant(self) -> bool:
        """Whether it is a variant of a method, which is grouped under it and has no rank."""
        return self.method != self.optimizer


class TrackBoard(msgspec.Struct, frozen=True):
    """The ranking over the problems of one track.

    Attributes:
        track: Id of the track.
        title: One line that says what its problems have in common.
        families: Ids of its problems by family; each family counts once.
        ranked: Who has at least 10 runs on each of its problems, by `anytime`.
        partial: Who has not, by the number of problems, then by `anytime`.
    """

    track: str
    title: str
    families: list[list[str]]
    ranked: list[RankingRow]
    partial: list[RankingRow]

    @property
    def problems(self) -> list[str]:
        """Ids of its problems."""
        return [problem for members in self.families for problem in members]

    @property
    def rows(self) -> list[RankingRow]:
        """Everybody who was run on one of its problems, the ranked first."""
        return self.ranked + self.partial


class Comparison(msgspec.Struct, frozen=True):
    """Friedman's test over the problems, and what a critical-difference diagram needs.

    Attributes:
        problems: Number of problems, at least 10.
        optimizers: The methods compared, by mean rank.
        mean_ranks: Their mean ranks under the paper's rule.
        p_value: Of the hypothesis that all are alike.
        critical_difference: Mean ranks further apart than this differ at 5 % (Nemenyi).
        p_values: Against the first of them, adjusted by Holm; None for itself.
    """

    problems: int
    optimizers: list[str]
    mean_ranks: list[float]
    p_value: float
    critical_difference: float
    p_values: list[float | None]


class NewBest(msgspec.Struct, frozen=True):
    """A run that went below the best known value: a reason to publish new references.

    Attributes:
        problem: Id of the problem.
        optimizer: Id of the optimizer.
        seed: The seed.
        value: What it found.
        best: The best known value.
    """

    problem: str
    optimizer: str
    seed: int
    value: float
    best: float


class Board(msgspec.Struct, frozen=True):
    """The content of `leaderboard/scores.json`.

    Attributes:
        schema: Version of this format.
        scoring: Version of the rankings.
        problem_scoring: Version of the scores on single problems.
        overall: Who is ranked in every track of `overall_tracks`, by the mean of their scores.
        overall_tracks: Ids of the tracks that the overall ranking is over.
        tracks: The rankings of the tracks.
        problems: The boards of the single problems, by id.
        comparison: The test over the problems of the overall ranking, None for fewer than 10
            problems or 3 methods.
        new_best: Runs that beat the best known value.
    """

    schema: Literal[2]
    scoring: Literal["score-v2"]
    problem_scoring: Literal["score-v1"]
    overall: list[RankingRow]
    overall_tracks: list[str]
    tracks: list[TrackBoard]
    problems: list[ProblemBoard]
    comparison: Comparison | None
    new_best: list[NewBest]


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Board)


def encode_board(board: Board) -> bytes:
    """Write a board as canonical JSON: equal boards are equal bytes."""
    return _encoder.encode(board) + b"\n"


def decode_board(data: bytes) -> Board:
    """Read what `encode_board` wrote."""
    return _decoder.decode(data)
