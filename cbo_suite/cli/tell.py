"""`cbo tell`: results of points that `cbo ask` gave."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
import msgspec

if TYPE_CHECKING:
    from cbo_suite.study import Result, Study


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """A result as a JSON object.

    Attributes:
        id: Number of the point that was asked; without it `x` is a known point.
        x: Coordinates.
        objective: Value to minimise.
        constraints: Constraint values.
        failed: Why there are no values.
    """

    id: int | None = None
    x: list[float] | None = None
    objective: float | str | None = None
    constraints: list[float | str | None] = []
    failed: str | None = None


_decoder = msgspec.json.Decoder(_Row)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("study", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("values", nargs=-1, metavar="[ID OBJECTIVE CONSTRAINTS...]")
@click.option("--failed", metavar="REASON", help="The point ID could not be evaluated.")
def tell(study: Path, values: tuple[str, ...], failed: str | None) -> None:
    """Tell the study in the file STUDY a result, or results from standard input.

    In any order, also long after; the same result twice changes nothing. Constraint values are
    feasible when they are at most zero; nan and inf are values too.

    \b
    cbo tell beam.jsonl 7 3.25 -0.5            # id, objective, constraints
    cbo tell beam.jsonl 8 --failed "no mesh"
    cbo tell beam.jsonl < results.jsonl

    A line of standard input is the same words, with spaces or commas between them, or JSON:

    \b
    {"id": 7, "objective": 3.25, "constraints": [-0.5]}
    {"id": 8, "failed": "no mesh"}
    {"x": [0.2, 1.5], "objective": 4.1, "constraints": [0.3]}

    The last one is a point that you know without having been asked; it costs no budget.
    """  # noqa: D301 (click wants the sign itself)
    from cbo_suite.cli.study_status import progress_line
    from cbo_suite.study import Study

    stream = sys.stdin
    if not values and failed is None and stream.isatty():
        raise click.UsageError("give ID OBJECTIVE CONSTRAINTS..., or results on standard input")
    served = Study(study)
    places: list[str] = []
    if failed is not None:
        if len(values) != 1:
            raise click.UsageError("--failed goes with the id of one point and no values")
        results = [_failure(served, _whole(values[0]), failed)]
    elif values:
        results = [_from_words(values)]
    else:
        results, places = _from_stream(stream, served)
    new = served.take(results, places)
    known = len(results) - new
    note = f", {known} known before" if known else ""
    click.echo(f"{new} {'result' if new == 1 else 'results'} taken{note}")
    click.echo(progress_line(served.contents()))


def _failure(served: Study, id: int, reason: str) -> Result:
    """Make the result of a point that failed."""
    from cbo_suite.study import Result

    return Result.failure(id, reason, served.space.num_constraints)


def _from_stream(stream: TextIO, served: Study) -> tuple[list[Result], list[str]]:
    """Read a result from every line, and say which line; whatever is wrong names its line."""
    from cbo_suite.errors import CboError, InvalidResult

    results, places = [], []
    for number, text in enumerate(stream, start=1):
        line = text.strip()
        # The head that `cbo ask --format csv` prints may come back.
        if not line or line.startswith("id,"):
            continue
        try:
            if line.startswith("{"):
                results.append(_from_row(_decoder.decode(line), served))
            else:
                results.append(_from_words(line.replace(",", " ").split()))
        except (CboError, click.UsageError, msgspec.DecodeError) as error:
            reason = error.message if isinstance(error, click.UsageError) else str(error)
            raise InvalidResult(f"line {number}: {reason}; no result was taken") from error
        places.append(f"line {number}")
    if not results:
        raise InvalidResult("there is no result on standard input")
    return results, places


def _from_row(row: _Row, served: Study) -> Result:
    """Make a result of a JSON object."""
    from cbo_suite.errors import InvalidResult
    from cbo_suite.study import Result

    if (row.id is None) == (row.x is None):
        raise InvalidResult('give either "id" or, for a point that you know, "x"')
    if row.failed is not None:
        if row.id is None or row.objective is not None or row.constraints:
            raise InvalidResult('"failed" goes with "id" and no values')
        return _failure(served, row.id, row.failed)
    if row.objective is None:
        raise InvalidResult('"objective" is missing; a point without values is {"failed": "why"}')
    constraints = [math.nan if value is None else value for value in row.constraints]
    return Result.of(row.objective, constraints, id=row.id, x=row.x)


def _from_words(words: Any) -> Result:
    """Make a result of an id, an objective and constraints."""
    from cbo_suite.study import Result

    id_, *values = words
    if not values:
        raise click.UsageError(f"point {id_} needs an objective, or --failed REASON")
    return Result.of(values[0], values[1:], id=_whole(id_))


def _whole(text: str) -> int:
    """Read the number of a point."""
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise click.UsageError(f"{text!r} is no id: it is a number that `cbo ask` printed")
    return int(text)
