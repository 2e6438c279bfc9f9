"""`cbo export`: the records of finished runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--to",
    "target",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("leaderboard/runs"),
    show_default=True,
    help="Folder with <problem>/<optimizer>.jsonl.",
)
@click.option("--partial", is_flag=True, help="Export although planned runs are not finished.")
@click.option("--replace", is_flag=True, help="Replace records that differ.")
def export(folder: Path, target: Path, partial: bool, replace: bool) -> None:
    """Add the records of finished runs of the campaign in FOLDER to a folder of records.

    Records that are there already stay as they are. When refused, nothing is written.
    """
    from cbo_suite.campaign.export import export_records
    from cbo_suite.campaign.store import Store

    done = export_records(Store(folder), target, partial=partial, replace=replace)
    click.echo(
        f"{done.added} records added, {done.replaced} replaced, {done.kept} there already; "
        f"{len(done.files)} files written in {target}"
    )
