"""`cbo references`: what the scores of a problem are measured by."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cbo_suite.scoring import Reference

# An option of the commands that score.
REFERENCE_FILES = click.option(
    "--references",
    "reference_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of `cbo references` for problems that are neither the suite's nor installed.",
)
REFERENCES_VERSION = click.option(
    "--references-version",
    type=click.IntRange(1),
    help="Score as with this version of the suite's reference values [the newest].",
)


@click.command()
@click.argument("problem")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File that they are added to; by default references.json of the problem's package.",
)
@click.option("--samples", type=click.IntRange(1), metavar="N", help="Points all over the box.")
@click.option("--starts", type=click.IntRange(0), metavar="N", help="Starts of SLSQP.")
@click.option("--hops", type=click.IntRange(0), metavar="N", help="Starts near the best point.")
@click.option("--generations", type=click.IntRange(0), metavar="N", help="Steps of evolution.")
def references(problem: str, out: Path | None, **numbers: int | None) -> None:
    """Make the reference values of PROBLEM, by its id: best, worst and level.

    The best is that of the problem's `best_known`, or searched; the worst feasible value is
    searched; the level is where random search ends at the problem's protocol. This takes seconds
    for a formula. The numbers below say how long to search; a problem that declares
    `cheap = False` is searched with some thousand evaluations.
    """
    from cbo_suite.authoring.reference_values import default_effort, derive_and_write
    from cbo_suite.registry import make_problem, resolve_problem_id

    id_ = resolve_problem_id(problem)
    chosen = {name: number for name, number in numbers.items() if number is not None}
    effort = default_effort(make_problem(id_))._replace(**chosen)
    made, path = derive_and_write(id_, out, effort, note=click.echo)
    click.echo(f"{id_}: best {made.best:.10g}, level {made.level:.10g}, worst {made.worst:.10g}")
    click.echo(f"wrote them to {path}: once the id is published they never change")


def gather_references(
    problems: Iterable[str], files: Iterable[Path], version: int | None = None
) -> dict[str, Reference]:
    """Gather the references of the suite, of named files, and of the packages of some problems.

    Args:
        problems: Ids of the problems that a board is of; they need not be installed.
        files: Files of references, which come before those of the packages.
        version: Version of the suite's references, None for the newest.

    Raises:
        InvalidTask: There is no such version.
        RecordError: A file is none, or names a problem of the suite.
    """
    from cbo_suite.authoring.reference_values import references_file
    from cbo_suite.errors import RecordError
    from cbo_suite.registry import list_problems
    from cbo_suite.scoring.references import load_references, read_references

    suite = load_references(version)
    known: dict[str, Reference] = {}
    installed = {info.id for info in list_problems()} - suite.keys()
    for id_ in sorted(installed.intersection(problems)):
        path = references_file(id_)
        if path is not None and path.exists():
            known |= {key: value for key, value in read_references(path).items() if key == id_}
    for path in files:
        found = read_references(path)
        if taken := sorted(found.keys() & suite.keys()):
            raise RecordError(f"{path} has references of {taken[0]}, which are those of the suite")
        known |= found
    return suite | known
