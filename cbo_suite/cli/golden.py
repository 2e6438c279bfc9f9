"""`cbo golden`: the values that a problem must give for ever."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("problem")
@click.option(
    "--by",
    metavar="MODULE:FUNCTION",
    help="The formula a second time: one point to its objective value and its constraint values.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("golden.json"),
    show_default=True,
    help="File that they are added to.",
)
def golden(problem: str, by: str | None, out: Path) -> None:
    """Write down points of PROBLEM, by its id, with the values that it must give for ever.

    With --by the values are those of an independent implementation, which the problem must agree
    with to nine digits; without it they are those of the problem as it is now.
    """
    from cbo_suite.authoring.golden_values import golden_values, write_golden
    from cbo_suite.cli.targets import load_target
    from cbo_suite.registry import make_problem, resolve_problem_id

    id_ = resolve_problem_id(problem)
    points = golden_values(make_problem(id_), None if by is None else load_target(by))
    write_golden(id_, out, points)
    origin = "of the problem itself, no proof of its formula" if by is None else f"by {by}"
    click.echo(f"wrote {len(points)} points of {id_} to {out}, with values {origin}")
