"""`cbo leaderboard`: records to tables and the site."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def leaderboard() -> None:
    """Build the leaderboard from records."""


@leaderboard.command()
@click.option(
    "--runs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("leaderboard/runs"),
    show_default=True,
    help="Folder with <problem>/<optimizer>.jsonl.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("leaderboard"),
    show_default=True,
    help="Folder for README.md, scores.json and site/.",
)
@click.option(
    "--docs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("docs"),
    show_default=True,
    help="Folder with problems/*.md and optimizers/*.md, which the site quotes where they exist.",
)
@click.option(
    "--references",
    "reference_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of `cbo references` for problems that are neither the suite's nor installed.",
)
@click.option("--check", is_flag=True, help="Write nothing; fail if the tables are out of date.")
def build(
    runs: Path, out: Path, docs: Path, reference_files: tuple[Path, ...], check: bool
) -> None:
    """Score all records, write tables and site, and print the ranking."""
    from cbo_suite import site
    from cbo_suite.cli.references import gather_references
    from cbo_suite.cli.tables import print_table
    from cbo_suite.files import write_whole
    from cbo_suite.leaderboard import build_board, differences, tables
    from cbo_suite.leaderboard.markdown_page import RANKING_COLUMNS, ranking_rows

    problems = {path.parent.name for path in runs.glob("*/*.jsonl")}
    references = gather_references(problems, reference_files)
    board = build_board(runs, references=references)
    if not board.problems:
        raise click.ClickException(
            f"no records in {runs}: make some with `cbo run --suite quick`, or name another folder "
            "with --runs"
        )
    files, titles = tables(board), _titles()
    pages = site.build(board, titles=titles, docs=docs)
    if check:
        stale = differences(files, out)
        if stale:
            raise click.ClickException(
                "\n".join([*stale, "run `cbo leaderboard build` and commit what it writes"])
            )
        if (
            tables(build_board(runs, references=references)) != files
            or site.build(board, titles=titles, docs=docs) != pages
        ):
            raise click.ClickException("two builds of the same records differ: please report it")
        click.echo(f"{', '.join(files)} in {out} are what the records in {runs} give")
        return
    for name, data in files.items():
        write_whole(out / name, data)
        click.echo(f"wrote {out / name}")
    index = site.write(pages, out / "site")
    rows = ranking_rows(board)
    print_table("Ranking by anytime", RANKING_COLUMNS, rows, right=(0, 2, 3, 4, 5, 6, 7))
    click.echo(f"the site: {index}")


def _titles() -> dict[str, str]:
    """Return one line for each id of a problem and an optimizer of the suite.

    What other packages register is left out: the site is the same whatever is installed.
    """
    from cbo_suite.registry import (
        OWN_PACKAGE,
        OptimizerInfo,
        ProblemInfo,
        list_optimizers,
        list_problems,
    )

    known: list[ProblemInfo | OptimizerInfo] = [*list_problems(), *list_optimizers()]
    return {entry.id: entry.title for entry in known if entry.package == OWN_PACKAGE}
