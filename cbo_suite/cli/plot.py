"""`cbo plot`: figures for papers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cbo_suite.cli.parameters import NAMES
from cbo_suite.cli.references import REFERENCE_FILES, REFERENCES_VERSION, gather_references

if TYPE_CHECKING:
    from cbo_suite.plots import Score
    from cbo_suite.records import Record
    from cbo_suite.scoring.aggregate import Aggregate


@click.command("plot")
@click.argument(
    "sources",
    nargs=-1,
    required=True,
    metavar="RECORDS...",
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--out",
    multiple=True,
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Figure to write, .pdf or .png; may be given several times.",
)
@click.option(
    "--score",
    type=click.Choice(["paper", "regret"]),
    default="paper",
    show_default=True,
    help="Best feasible value by the paper's rule, or scaled to best known and worst.",
)
@click.option("--problems", type=NAMES, help="Draw these problems.")
@click.option("--optimizers", type=NAMES, help="Draw these optimizers.")
@click.option("--highlight", type=NAMES, help="Draw these in colour, all others thin and grey.")
@click.option("--suite", metavar="NAME", help="Draw the problems of this suite.")
@click.option(
    "--ecdf",
    is_flag=True,
    help="One panel over all problems, as COCO draws it: the share of all targets reached.",
)
@click.option("--log", is_flag=True, help="Logarithmic: the distance to the best known value.")
@REFERENCE_FILES
@REFERENCES_VERSION
def plot(
    sources: tuple[Path, ...],
    out: tuple[Path, ...],
    score: Score,
    problems: list[str] | None,
    optimizers: list[str] | None,
    highlight: list[str] | None,
    suite: str | None,
    ecdf: bool,
    log: bool,
    reference_files: tuple[Path, ...],
    references_version: int | None,
) -> None:
    """Draw how runs converge: mean and one standard error, a panel per problem.

    RECORDS are files of records, or folders with <problem>/<optimizer>.jsonl, such as
    leaderboard/runs, the folder of a campaign, or that of a problem in either.
    """
    from cbo_suite.plots import draw, draw_aggregate, make_panels, save
    from cbo_suite.scoring.aggregate import aggregate, courses_of_records
    from cbo_suite.tasks import get_suite

    records = _read(sources, problems, optimizers)
    if suite is not None:
        members = get_suite(suite).problems
        records = [record for record in records if record.task.problem in members]
        if not records:
            raise click.ClickException(f"there are no records on problems of {suite} among these")
    known = {record.task.optimizer for record in records}
    for name in highlight or []:
        if name not in known:
            raise click.ClickException(f"there are no records of {name} among these")
    named = {record.task.problem for record in records}
    references = gather_references(named, reference_files, references_version)
    if ecdf:
        together = aggregate(courses_of_records(records, references))
        _report(together, named)
        figure = draw_aggregate(together, highlight)
    else:
        figure = draw(make_panels(records, score, log, references), score, log, highlight)
    for path in out:
        save(figure, path)
        click.echo(f"wrote {path}")


def _report(together: Aggregate, problems: set[str]) -> None:
    """Say what is drawn and what is not.

    Raises:
        ClickException: There is nothing to draw.
    """
    unscored = sorted(problems.difference(together.problems))
    if unscored:
        click.echo(
            f"without reference values, so left out: {', '.join(unscored)}; `cbo references` makes "
            "a file of them for --references"
        )
    if together.partial:
        click.echo(f"not run on all problems, so left out: {', '.join(together.partial)}")
    if not together.reached:
        raise click.ClickException(
            "there is nothing to put together: no optimizer has records on all problems that have "
            "reference values; name fewer with --problems"
        )
    for name, share in together.reached.items():
        click.echo(f"{name}: {100 * share[-1]:.1f} % of the targets")


def _read(
    sources: tuple[Path, ...], problems: list[str] | None, optimizers: list[str] | None
) -> list[Record]:
    """Read the records of files and folders and keep those that are wanted."""
    from cbo_suite.records import read_records

    files: list[Path] = []
    for source in sources:
        # What lies deeper are the journals of a campaign.
        found = sorted(source.glob("*.jsonl")) or sorted(source.glob("*/*.jsonl"))
        files += found if source.is_dir() else [source]
    records = [
        record
        for path in files
        for record in read_records(path)
        if (problems is None or _wanted(record.task.problem, problems))
        and (optimizers is None or record.task.optimizer in optimizers)
    ]
    drawn = {record.task.optimizer for record in records}
    for name in optimizers or []:
        if name not in drawn:
            raise click.ClickException(f"there are no records of {name} among these")
    for name in problems or []:
        if not any(_wanted(record.task.problem, [name]) for record in records):
            raise click.ClickException(f"there are no records on {name} among these")
    if not records:
        raise click.ClickException("there are no records: make some with `cbo run`")
    return records


def _wanted(problem: str, names: list[str]) -> bool:
    """Tell whether a problem is among names, which may leave out the version."""
    return problem in names or problem.rpartition("-v")[0] in names
