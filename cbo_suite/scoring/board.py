"""The board: everything that the pages of the leaderboard show, as plain data.

`make_board` is a pure function of records and references; `encode_board` writes it as the text of
`leaderboard/scores.json`. What is missing is None, never NaN. Floats are rounded to ten digits (the
curves to six, that of the paper's score to six of its distance to the best known value), so that
two machines that round differently in the last place write the same file.
"""

from __future__ import annotations

from typing import Literal

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
        provisional: Whether there are fewer than 30 runs.
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
    provisional: bool
    versions: dict[str, str]
    curves: Curves
    outcomes: Outcomes


class ProblemBoard(msgspec.Struct, frozen=True):
    """All optimizers on one problem; the rows are in the order of the paper's score.

    Attributes:
        problem: Id of the problem.
        family: Its family, which counts once in the overall score.
        dim: Number of variables.
        num_constraints: Number of constraints.
        budget: Number of evaluations.
        batch_size: Number of points evaluated side by side.
        n_init: Number of points of the initial design.
        optional: Whether the problem has no part in the overall score.
        best: Best known value.
        worst: Worst value, at which regret is 1.
        level: Where the targets begin.
        default: Value of a run without a feasible point under the paper's rule.
        digest: Fingerprint of the records that `default` and the paper's scores hold for.
        control: The optimizer that the others are tested against: the first row.
        evaluations: The grid of the curves: numbers of evaluations, ascending.
        rows: One per optimizer.
    """

    problem: str
    family: str
    dim: int | None
    num_constraints: int | None
    budget: int
    batch_size: int
    n_init: int
    optional: bool
    best: float | None
    worst: float | None
    level: float | None
    default: float | None
    digest: str
    control: str
    evaluations: list[int]
    rows: list[ProblemRow]


class OverallRow(msgspec.Struct, frozen=True):
    """One optimizer over all problems of the board.

    Attributes:
        optimizer: Id of the optimizer.
        anytime: Mean over the families, 0 to 100; a problem that it was not run on counts 0.
        anytime_interval: Its 95 % interval.
        anytime_where_run: The same over the problems that it was run on.
        mean_rank: Mean rank under the paper's rule, 1 is best; not run is last.
        mean_rank_interval: Its 95 % interval.
        problems: Number of problems it was run on, of those that count.
        feasible_runs: Number of runs that found a feasible point.
        runs: Number of runs.
        seconds_per_evaluation: Time in ask and tell per evaluation, mean over the problems.
        imputed: Share of runs that failed.
        verified: Whether all its rows are verified.
        provisional: Whether it has fewer than 30 runs on a problem.
    """

    optimizer: str
    anytime: float | None
    anytime_interval: Range | None
    anytime_where_run: float | None
    mean_rank: float
    mean_rank_interval: Range | None
    problems: int
    feasible_runs: int
    runs: int
    seconds_per_evaluation: float
    imputed: float
    verified: bool
    provisional: bool


class Comparison(msgspec.Struct, frozen=True):
    """Friedman's test over the problems, and what a critical-difference diagram needs.

    Attributes:
        problems: Number of problems, at least 10.
        optimizers: Those compared, by mean rank.
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
        scoring: Version of the scores.
        overall: The ranking over all problems, in the order of `anytime`.
        counted: Ids of the problems that the ranking is over.
        problems: The boards of the single problems, by id.
        comparison: The test over the problems, None for fewer than 10 problems.
        new_best: Runs that beat the best known value.
    """

    schema: Literal[1]
    scoring: Literal["score-v1"]
    overall: list[OverallRow]
    counted: list[str]
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
