"""`cbo leaderboard`: records to tables and the site."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from cbo_suite.cli.references import REFERENCE_FILES, REFERENCES_VERSION, gather_references

if TYPE_CHECKING:
    from cbo_suite.scoring.board import Board
    from cbo_suite.site.catalogue import Listed

# Places of the columns with numbers, in the tables of a track.
RIGHT_RANKED = (0, 2, 3, 4, 5, 6, 7)
RIGHT_PARTIAL = (1, 2, 3, 4, 5)

# Options of both commands.
_DOCS = click.option(
    "--docs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("docs"),
    show_default=True,
    help="Folder with problems/*.md and optimizers/*.md, which the site quotes where they exist.",
)
_VARIANTS = click.option("--variants", is_flag=True, help="Print the variants of the methods too.")


def _check_address(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Take addresses of the web, and none."""
    if value and not value.startswith(("https://", "http://")):
        raise click.BadParameter(f"{value!r} is no address that begins with https://")
    return value


@click.group()
def leaderboard() -> None:
    """Build the leaderboard from records."""


@leaderboard.command()
@click.option(
    "--runs",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=[Path("leaderboard/runs")],
    show_default=True,
    help="Folder with <problem>/<optimizer>.jsonl; may be given several times.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("leaderboard"),
    show_default=True,
    help="Folder for README.md, scores.json and site/.",
)
@_DOCS
@click.option(
    "--paper",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("leaderboard/paper"),
    show_default=True,
    help="Folder of `cbo paper build`; the site has a page on the paper if it is there.",
)
@REFERENCE_FILES
@REFERENCES_VERSION
@click.option(
    "--records-at",
    default="",
    callback=_check_address,
    help="Address under which the content of --runs is published, for the links of the site to the "
    "record files; by default they lead to the files where they are.",
)
@click.option("--check", is_flag=True, help="Write nothing; fail if the tables are out of date.")
@_VARIANTS
def build(
    runs: tuple[Path, ...],
    out: Path,
    docs: Path,
    paper: Path,
    reference_files: tuple[Path, ...],
    references_version: int | None,
    records_at: str,
    check: bool,
    variants: bool,
) -> None:
    """Score all records, write tables and site, and print the ranking of each track."""
    from cbo_suite import site
    from cbo_suite.cli.best_found import find_bests
    from cbo_suite.cli.record_links import record_addresses
    from cbo_suite.files import write_whole
    from cbo_suite.leaderboard import build_board, differences, refuse_foreign, tables
    from cbo_suite.registry import list_optimizers

    problems = {path.parent.name for folder in runs for path in folder.glob("*/*.jsonl")}
    named = ", ".join(map(str, runs))
    references = gather_references(problems, reference_files, references_version)
    methods = {row.id: row.method for row in list_optimizers()}
    board = build_board(*runs, references=references, methods=methods)
    if not board.problems:
        raise click.ClickException(
            f"no records in {named}: make some with `cbo run --suite quick`, or name another "
            "folder with --runs"
        )
    files = tables(board)
    build_site = partial(
        site.build,
        board,
        docs=docs,
        paper=paper,
        bests=find_bests(board, runs),
        records=record_addresses(runs, out / "site", records_at),
        **site_facts(board),
    )
    pages = build_site()
    if check:
        stale = differences(files, out)
        if stale:
            raise click.ClickException(
                "\n".join([*stale, "run `cbo leaderboard build` and commit what it writes"])
            )
        if (
            tables(build_board(*runs, references=references, methods=methods)) != files
            or build_site() != pages
        ):
            raise click.ClickException("two builds of the same records differ: please report it")
        click.echo(f"{', '.join(files)} in {out} are what the records in {named} give")
        return
    refuse_foreign(out)
    for name, data in files.items():
        write_whole(out / name, data)
        click.echo(f"wrote {out / name}")
    index = site.write(pages, out / "site")
    _print_rankings(board, variants)
    click.echo(f"the site: {index}")


@leaderboard.command()
@click.argument("mine", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--runs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("leaderboard/runs"),
    show_default=True,
    help="Folder of the published records, by default that of the checkout.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("comparison"),
    show_default=True,
    help="Folder for the site.",
)
@_DOCS
@REFERENCE_FILES
@REFERENCES_VERSION
@_VARIANTS
def compare(
    mine: Path,
    runs: Path,
    out: Path,
    docs: Path,
    reference_files: tuple[Path, ...],
    references_version: int | None,
    variants: bool,
) -> None:
    """Put your own runs beside the published ones: tables here, and a site.

    MINE is the folder of a campaign, or any with <problem>/<optimizer>.jsonl. Your optimizers are
    called "mine:" and their id. The leaderboard is not changed.
    """
    from cbo_suite import site
    from cbo_suite.cli.best_found import find_bests
    from cbo_suite.cli.record_links import record_addresses
    from cbo_suite.cli.tables import print_table
    from cbo_suite.leaderboard import OWN_MARK, compare_board
    from cbo_suite.leaderboard import markdown_page as page
    from cbo_suite.registry import list_optimizers

    problems = {path.parent.name for folder in (mine, runs) for path in folder.glob("*/*.jsonl")}
    own = {path.parent.name for path in mine.glob("*/*.jsonl")}
    if not own:
        raise click.ClickException(
            f"no records in {mine}: they are made by `cbo run --out {mine}` when runs are finished"
        )
    references = gather_references(problems, reference_files, references_version)
    methods = {row.id: row.method for row in list_optimizers()}
    board = compare_board(mine, runs, references=references, methods=methods)
    bests = find_bests(board, [runs])
    records = record_addresses([runs], out) | record_addresses([mine], out, mark=OWN_MARK)
    pages = site.build(board, docs=docs, bests=bests, records=records, **site_facts(board))
    index = site.write(pages, out)
    for problem in board.problems:
        if problem.problem in own:
            columns = page.PROBLEM_COLUMNS
            rows = [
                row
                for row in page.problem_rows(problem)
                if variants or methods.get(row[0], row[0]) == row[0]
            ]
            print_table(problem.problem, columns, rows, range(1, len(columns) - 1), keep=2)
    _print_rankings(board, variants)
    click.echo(f"the site: {index}")


def _print_rankings(board: Board, variants: bool) -> None:
    """Print the overall ranking and that of every track that somebody was run on."""
    from cbo_suite.cli.tables import print_table
    from cbo_suite.leaderboard import markdown_page as page

    if board.overall:
        title = f"Overall: {' and '.join(board.overall_tracks)}"
        rows = page.ranked_rows(board.overall)
        print_table(title, page.RANKED_COLUMNS, rows, RIGHT_RANKED, names=(1,), keep=3)
    for track in (track for track in board.tracks if track.rows):
        if ranked := page.ranked_rows(track.ranked):
            title = f"Ranking of {track.track}"
            print_table(title, page.RANKED_COLUMNS, ranked, RIGHT_RANKED, names=(1,), keep=3)
        else:
            click.echo(f"{track.track}: {page.nobody_ranked(track)}")
        if partial := page.partial_rows(track):
            title = f"Partial in {track.track}, over the problems that were run"
            print_table(title, page.PARTIAL_COLUMNS, partial, RIGHT_PARTIAL, keep=2)
        found = page.variant_rows(track)
        if found and variants:
            title, right = f"Variants in {track.track}", [1 + place for place in RIGHT_PARTIAL]
            print_table(title, page.VARIANT_COLUMNS, found, right, names=(0, 1), keep=3)
        elif found:
            click.echo(f"variants of these methods: {len(found)}; --variants prints them")
    inside = {problem for track in board.tracks for problem in track.problems}
    outside = [found.problem for found in board.problems if found.problem not in inside]
    if outside:
        click.echo(f"in no track, with tables of their own: {', '.join(outside)}")


class SiteFacts(TypedDict):
    """What the site shows beside a board; as the arguments of `cbo_suite.site.build`."""

    titles: dict[str, str]
    known: list[Listed]
    suites: dict[str, tuple[str, list[str]]]


def site_facts(board: Board) -> SiteFacts:
    """Gather what the suite knows of its problems and optimizers, with and without records.

    What other packages register is left out: the site is the same whatever is installed.
    """
    from cbo_suite import registry
    from cbo_suite.scoring.references import load_references
    from cbo_suite.site.catalogue import Listed
    from cbo_suite.tasks import SUITES

    members = (registry.problem_info(problem.problem) for problem in board.problems)
    problems = [*registry.list_problems(), *filter(None, members)]
    own = {info.id: info for info in problems if info.package == registry.OWN_PACKAGE}
    optimizers = registry.list_optimizers()
    titles = {row.id: row.title for row in optimizers if row.package == registry.OWN_PACKAGE}
    references = load_references()
    listed = []
    for info in own.values():
        protocol = registry.protocol_of(info.id)
        best = references[info.id].best if info.id in references else None
        sizes = info.dim, info.num_constraints, protocol.budget, protocol.batch_size
        listed.append(Listed(info.id, info.title, *sizes, best))
    families = [
        Listed(family.id, family.title, family.dim, family.num_constraints)
        for family in registry.list_families()
    ]
    return SiteFacts(
        titles=titles | {info.id: info.title for info in own.values()},
        known=[*listed, *families],
        suites={
            name: (
                suite.title,
                list(dict.fromkeys(id_ for b in suite.blocks for id_ in b.problems)),
            )
            for name, suite in SUITES.items()
        },
    )
