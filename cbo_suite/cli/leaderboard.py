"""`cbo leaderboard`: records to tables."""

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
    help="Folder for README.md.",
)
def build(runs: Path, out: Path) -> None:
    """Score all records, write the page and print the ranking."""
    from cbo_suite.cli.tables import print_table
    from cbo_suite.files import write_whole
    from cbo_suite.leaderboard import RANKING_COLUMNS, markdown, ranking_rows, read_folder
    from cbo_suite.scoring import paper_scores, standings

    records = read_folder(runs)
    if not records:
        raise click.ClickException(
            f"no records in {runs}: make some with `cbo run --suite quick`, or name another folder "
            "with --runs"
        )
    page = out / "README.md"
    write_whole(page, markdown(records).encode())
    rows = ranking_rows(standings(paper_scores(records)))
    print_table("Ranking (paper's rule)", RANKING_COLUMNS, rows, right=(0, 2, 3, 4, 5))
    click.echo(f"wrote {page}")
