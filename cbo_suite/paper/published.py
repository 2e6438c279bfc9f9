"""The numbers that the paper prints, with their place in it: `published.json`, nothing computed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec


class PublishedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the paper says of a method on a problem; None where it gives no number.

    Attributes:
        method: Id of the method.
        best: Best final value of its feasible runs.
        worst: Worst final value of its feasible runs.
        median: Median final value of its feasible runs.
        feasible: Number of its runs that found a feasible point.
        runs: Number of its runs.
        note: What is said in words.
    """

    method: str
    best: float | None
    worst: float | None
    median: float | None
    feasible: int | None
    runs: int
    note: str


class PublishedProblem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the paper says of a problem.

    Attributes:
        place: Where in the paper.
        value: "objective", or "reward" where larger is better: minus our objective.
        rows: The methods.
    """

    place: str
    value: str
    rows: list[PublishedRow]

    def row(self, method: str) -> PublishedRow:
        """Return what is said of one method."""
        return next(row for row in self.rows if row.method == method)


class PublishedRestarts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Mean evaluations between restarts, by problem."""

    place: str
    values: dict[str, float]


class PublishedFeasibility(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Share of a problem's box that is feasible, and half of its last printed digit."""

    place: str
    problem: str
    share: float
    rounding: float


class PublishedCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One size of the table of many models: seconds of training, prediction and sampling."""

    models: int
    points: int
    cholesky: list[float]
    batched: list[float]
    mean_mae: float
    variance_mae: float


class PublishedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table of many models."""

    place: str
    processor: str
    cells: list[PublishedCell]


class PublishedNumbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All numbers of the paper that ours are compared with."""

    source: str
    problems: dict[str, PublishedProblem]
    restarts: PublishedRestarts
    feasibility: PublishedFeasibility
    batch_gp: PublishedTable


@cache
def published_numbers() -> PublishedNumbers:
    """Read the numbers of the paper."""
    path = Path(__file__).with_name("published.json")
    return msgspec.json.decode(path.read_bytes(), type=PublishedNumbers)
