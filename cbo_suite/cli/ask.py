"""`cbo ask`: the next points of a study, for a simulator that is started by hand or by a script."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbo_suite.cli.parameters import INDICES, NUMBERS, OPTION
from cbo_suite.cli.run import find_own, optimizer_options

if TYPE_CHECKING:
    from cbo_suite.protocols import Space
    from cbo_suite.study import Point

SPENT = 3  # the exit status when the budget is spent
WAITING = 4  # the exit status when a result must be told first

_DEFINITION = ("lower", "upper", "constraints", "integer", "log_scale")


@click.command()
@click.argument("study", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-n", "count", type=click.IntRange(1), default=1, help="At most so many points [1].")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "csv", "text"]),
    default="json",
    show_default=True,
    help="JSON lines; CSV with a head; or id and coordinates with spaces between them.",
)
@click.option("--pending", is_flag=True, help="Print the points under way again, ask nothing.")
@click.option("--lower", type=NUMBERS, help="Lower bounds.")
@click.option("--upper", type=NUMBERS, help="Upper bounds.")
@click.option("--constraints", type=click.IntRange(0), help="Number of constraints [0].")
@click.option("--integer", type=INDICES, help="Variables that are whole numbers, counted from 0.")
@click.option("--log-scale", type=INDICES, help="Variables on a logarithmic scale, from 0.")
@click.option(
    "--space",
    "space_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON file with lower, upper, num_constraints, integer, log_scale, linear.",
)
@click.option("--optimizer", help="Id of the optimizer, or my_file.py:MyOptimizer [auto].")
@click.option("--option", "options", type=OPTION, multiple=True, help="Option of the optimizer.")
@click.option("--budget", type=click.IntRange(1), help="Number of points in all [100].")
@click.option("--batch-size", type=click.IntRange(1), help="Points usually under way [-n].")
@click.option("--n-init", type=click.IntRange(0), help="Points of the initial design.")
@click.option("--seed", type=click.IntRange(0), help="Seed [0].")
def ask(
    study: Path,
    count: int,
    form: str,
    pending: bool,
    space_file: Path | None,
    optimizer: str | None,
    options: Sequence[tuple[str, Any]],
    **numbers: Any,
) -> None:
    """Print the next points to evaluate of the study in the file STUDY, each with its id.

    The first call says what is searched: bounds, constraints and, if you like, the optimizer.
    Later calls need the file only; they may say the same again. A larger --budget goes on.

    \b
    cbo ask beam.jsonl --lower 0,0 --upper 1,2 --constraints 1 --budget 60
    cbo ask beam.jsonl -n 4
    cbo tell beam.jsonl 1 3.25 -0.5

    Exit status 3: the budget is spent. 4: a result must be told first.
    """  # noqa: D301 (click wants the sign itself)
    from cbo_suite.cli.study_status import id_ranges
    from cbo_suite.study import DEFAULT_OPTIMIZER, Study

    own = DEFAULT_OPTIMIZER if optimizer is None else find_own(optimizer)
    # Of a study that is there, the options are compared to those on record; the choice by itself
    # looks at them when it is made.
    takers = [] if study.exists() or own == DEFAULT_OPTIMIZER else [own]
    definition = {name: numbers.pop(name) for name in _DEFINITION}
    space = _make_space(definition, space_file)
    if space is not None and numbers["batch_size"] is None and not study.exists():
        numbers["batch_size"] = count
    with Study(
        study,
        space,
        optimizer=own,
        options=optimizer_options(None, options, takers) or None,
        **numbers,
    ) as served:
        points = served.pending if pending else served.ask(count)
        _print(points, form, served.space.dim)
        if points or pending:
            return
        contents = served.contents()
    ids = list(contents.pending)
    waiting = f"{'points' if len(ids) > 1 else 'point'} {id_ranges(ids)}"
    if contents.last_id < contents.budget:
        name = contents.beginning.optimizer
        click.echo(
            f"{name} takes one result at a time: tell {waiting} first (--pending prints what is "
            "under way again)",
            err=True,
        )
        raise click.exceptions.Exit(WAITING)
    more = f", {waiting} still under way" if ids else ""
    click.echo(
        f"the budget of {contents.budget} points is spent{more}: see `cbo status {study}`, or go "
        f"on with --budget {contents.budget + 50}",
        err=True,
    )
    raise click.exceptions.Exit(SPENT)


def _make_space(definition: dict[str, Any], file: Path | None) -> Space | None:
    """Make the space that the options or a file describe, None if they describe none."""
    import msgspec

    from cbo_suite.errors import InvalidSpace
    from cbo_suite.protocols import Space
    from cbo_suite.study.lines import SpaceLine

    given = {name: value for name, value in definition.items() if value is not None}
    if file is not None:
        if given:
            raise click.UsageError("give the bounds by --space or by options, not both")
        try:
            return msgspec.json.decode(file.read_bytes(), type=SpaceLine).space()
        except msgspec.DecodeError as error:
            raise InvalidSpace(f"{file} describes no space: {error}") from error
    if not given:
        return None
    if "lower" not in given or "upper" not in given:
        raise click.UsageError("give both --lower and --upper")
    return Space(
        given["lower"],
        given["upper"],
        given.get("constraints", 0),
        integer=given.get("integer", []),
        log_scale=given.get("log_scale", []),
    )


def _print(points: Sequence[Point], form: str, dim: int) -> None:
    """Print points in the form that was asked for."""
    if form == "csv" and points:
        click.echo(",".join(["id", *(f"x{i}" for i in range(dim))]))
    for id_, x in points:
        values = x.tolist()
        if form == "json":
            click.echo(json.dumps({"id": id_, "x": values}))
        else:
            click.echo((" " if form == "text" else ",").join(map(str, (id_, *values))))
