"""The page on the paper: what `cbo paper build` has written, read for the templates."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from cbo_suite.errors import RecordError
from cbo_suite.leaderboard.number_format import number
from cbo_suite.scoring.board import ProblemRow

CLAIMS = "claims.json"
_BADGES = {
    "reproduced": "verified",
    "reproduced in part": "provisional",
    "not reproduced": "imputed",
    "cannot be told": "relative",
    "holds": "verified",
    "does not hold": "imputed",
}
# Pixels of a picture for each of the page, so that panels are as large in all figures.
_DENSITY = 2


class Sentence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sentence of a claim: what it says, what came of it, by what, and why it may fail."""

    text: str
    outcome: str
    evidence: str
    reason: str

    @property
    def badge(self) -> str:
        """Name the look of its outcome."""
        return _BADGES.get(self.outcome, "relative")


class ClaimEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One claim of the paper and its verdict."""

    number: int
    title: str
    says: str
    place: str
    verdict: str
    why: str
    parts: list[Sentence]

    @property
    def badge(self) -> str:
        """Name the look of its verdict."""
        return _BADGES.get(self.verdict, "relative")


class FigureEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure: its file, without a suffix, and its title."""

    id: str
    title: str


class TableEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table of texts: its artefact, a short name, what it shows, and its cells.

    The first `left` columns are names.
    """

    id: str
    name: str
    title: str
    columns: list[str]
    rows: list[list[str]]
    left: int


class PublishedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the paper says of a method on a problem; None where it gives no number."""

    method: str
    best: float | None
    worst: float | None
    median: float | None
    feasible: int | None
    runs: int
    note: str


class PublishedProblem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the paper says of a problem, where, and whether its values are rewards."""

    place: str
    value: str
    rows: list[PublishedRow]


class PaperReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was reproduced of the paper.

    Attributes:
        source: The paper.
        summary: How many claims have which verdict.
        claims: The claims.
        figures: The figures.
        tables: Tables of what has no figure.
        problems: The paper's own numbers, by problem.
    """

    source: str
    summary: str
    claims: list[ClaimEntry]
    figures: list[FigureEntry]
    problems: dict[str, PublishedProblem]
    tables: list[TableEntry] = []  # older reports name none


class Beside(NamedTuple):
    """The paper's numbers of a method on a problem, and ours beside them, as text.

    Attributes:
        method: Id of the method.
        note: What the paper says in words.
        cells: Paper and ours of best, worst, median and feasible runs.
    """

    method: str
    note: str
    cells: list[tuple[str, str]]


class Paper(NamedTuple):
    """The report, and its figures as PNG by their ids."""

    report: PaperReport
    pictures: dict[str, bytes]

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """Width and height of the figures on the page, by their ids."""
        # Both stand at the same place of every PNG file.
        found = {id_: struct.unpack(">II", data[16:24]) for id_, data in self.pictures.items()}
        return {id_: (size[0] // _DENSITY, size[1] // _DENSITY) for id_, size in found.items()}


def read_paper(folder: Path) -> Paper | None:
    """Read what `cbo paper build` has written into a folder; None if it has written nothing.

    Raises:
        RecordError: It is something else.
    """
    path = folder / CLAIMS
    if not path.is_file():
        return None
    try:
        report = msgspec.json.decode(path.read_bytes(), type=PaperReport)
        pictures = {
            figure.id: (folder / "figures" / f"{figure.id}.png").read_bytes()
            for figure in report.figures
        }
    except (OSError, msgspec.DecodeError) as error:
        raise RecordError(f"{folder} is no report of `cbo paper build`: {error}") from error
    return Paper(report, pictures)


def put_beside(rows: Iterable[ProblemRow], published: PublishedProblem) -> list[Beside]:
    """Put our rows on a problem, of which there may be none, beside the paper's."""
    sign = -1.0 if published.value == "reward" else 1.0
    own = {row.optimizer: row for row in rows}
    found = []
    for row in published.rows:
        mine = own.get(row.method)
        cells = []
        for name in ("best", "worst", "median"):
            value = None if mine is None else getattr(mine, name)
            ours = "NA" if value is None else number(sign * value, 5)
            printed = getattr(row, name)
            cells.append(("NA" if printed is None else str(printed), ours))
        theirs = "NA" if row.feasible is None else f"{row.feasible}/{row.runs}"
        cells.append((theirs, "no runs" if mine is None else f"{mine.feasible_runs}/{mine.runs}"))
        found.append(Beside(row.method, row.note, cells))
    return found
