"""The page of problems: every problem that is known, with and without records, and the suites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cbo_suite.leaderboard.looks import Look, shown_first
from cbo_suite.scoring.aggregate import aggregate, courses_of_board
from cbo_suite.scoring.board import Board, ProblemBoard
from cbo_suite.site.ranking_page import NUM_LEADERS, look_data


class Listed(NamedTuple):
    """A problem, or a family of them, that need not have records.

    Attributes:
        id: Its id, or that of a family with parameters in angle brackets.
        title: One line that says what it is.
        dim: Number of variables, or the numbers of a family in words.
        num_constraints: Number of constraints, or the numbers of a family in words.
        budget: Number of evaluations, None for a family.
        batch_size: Number of points evaluated side by side, None for a family.
        best: Best known value, None if it is not known.
    """

    id: str
    title: str
    dim: int | str | None
    num_constraints: int | str | None
    budget: int | None = None
    batch_size: int | None = None
    best: float | None = None


class Row(NamedTuple):
    """A row of the table of problems.

    Attributes:
        listed: What is known of the problem.
        board: Its board, None without records.
    """

    listed: Listed
    board: ProblemBoard | None


class SuiteChart(NamedTuple):
    """The curves over all problems of a suite.

    Attributes:
        id: Name of the suite.
        title: One line that says what it is.
        problems: Number of problems that count: those with records and reference values.
        size: Number of problems of the suite.
        evaluations: Evaluations per variable, ascending.
        rows: Optimizers that were run on all of these problems, with the share of the targets
            reached, the best at the end first.
        partial: Who was run on some of them only.
    """

    id: str
    title: str
    problems: int
    size: int
    evaluations: list[float]
    rows: list[tuple[str, list[float]]]
    partial: list[str]


def table(board: Board, titles: Mapping[str, str], known: Sequence[Listed]) -> list[Row]:
    """List the problems of a board and the other known ones, by id."""
    own = {
        problem.problem: Listed(
            problem.problem,
            titles.get(problem.problem, ""),
            problem.dim,
            problem.num_constraints,
            problem.budget,
            problem.batch_size,
            problem.best,
        )
        for problem in board.problems
    }
    boards = {problem.problem: problem for problem in board.problems}
    rows = {listed.id: listed for listed in known} | own
    return [Row(rows[id_], boards.get(id_)) for id_ in sorted(rows)]


def suite_charts(board: Board, suites: Mapping[str, tuple[str, Sequence[str]]]) -> list[SuiteChart]:
    """Put together the problems of each suite, by its name, title and ids of problems.

    A suite of which nobody was run on two problems has none, nor has one whose problems with
    records are those of an earlier one.
    """
    charts: list[SuiteChart] = []
    shown: list[list[str]] = []
    for id_, (title, problems) in suites.items():
        together = aggregate(courses_of_board(board.problems, problems))
        if len(together.problems) < 2 or not together.reached or together.problems in shown:
            continue
        shown.append(together.problems)
        charts.append(
            SuiteChart(
                id_,
                title,
                len(together.problems),
                len(set(problems)),
                [_rounded(value) for value in together.evaluations],
                [
                    (name, [_rounded(value) for value in share])
                    for name, share in together.reached.items()
                ],
                together.partial,
            )
        )
    return charts


def drawn_of(chart: SuiteChart, methods: Mapping[str, str]) -> list[str]:
    """Choose whom the chart of a suite shows: methods that lead or that readers look for.

    Args:
        chart: The curves.
        methods: Id of an optimizer to the id of its method.
    """
    names = [name for name, _ in chart.rows]
    return shown_first([name for name in names if methods[name] == name] or names, NUM_LEADERS)


def chart_data(
    charts: Sequence[SuiteChart], looks: Mapping[str, Look], methods: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Gather what the charts of the suites draw, each optimizer in its look."""
    return [
        {
            "evaluations": chart.evaluations,
            "rows": [
                {"optimizer": name, "reached": share, "look": look_data(looks[name])}
                for name, share in chart.rows
                if name in drawn_of(chart, methods)
            ],
        }
        for chart in charts
    ]


def _rounded(value: float) -> float:
    """Round to six digits, as the curves of a board are."""
    return float(f"{value:.6g}")
