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
@click.option("--check", is_flag=True, help="Write nothing; fail if the tables are out of date.")
def build(runs: Path, out: Path, check: bool) -> None:
    """Score all records, write tables and site, and print the ranking."""
    from cbo_suite.cli.tables import print_table
    from cbo_suite.files import write_whole
    from cbo_suite.leaderboard import (
        RANKING_COLUMNS,
        build_board,
        differences,
        ranking_rows,
        tables,
    )

    board = build_board(runs)
    if not board.problems:
        raise click.ClickException(
            f"no records in {runs}: make some with `cbo run --suite quick`, or name another folder "
            "with --runs"
        )
    files = tables(board)
    if check:
        stale = differences(files, out)
        if stale:
            raise click.ClickException(
                "\n".join([*stale, "run `cbo leaderboard build` and commit what it writes"])
            )
        click.echo(f"{', '.join(files)} in {out} are what the records in {runs} give")
        return
    for name, data in files.items():
        write_whole(out / name, data)
        click.echo(f"wrote {out / name}")
    rows = ranking_rows(board)
    print_table("Ranking by anytime", RANKING_COLUMNS, rows, right=(0, 2, 3, 4, 5, 6, 7))
