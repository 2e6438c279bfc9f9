"""`cbo verify`: can these results be believed?"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from cbo_suite.cli.parameters import HEX

if TYPE_CHECKING:
    from cbo_suite.verify import Verdict


@click.command("verify")
@click.argument("files", nargs=-1, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--against",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of published runs, which must not be overwritten.",
)
@click.option(
    "--since",
    metavar="COMMIT",
    help="Verify what the commit at hand changes since this one, as a pull request is judged.",
)
@click.option(
    "--repository",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="With --since: the repository [the one here].",
)
@click.option(
    "--rerun", type=click.IntRange(0), default=0, metavar="K", help="Run K of the seeds again."
)
@click.option(
    "--twins",
    type=click.IntRange(0),
    default=0,
    metavar="K",
    help="Run the optimizer on K reflected and permuted twins of the problem.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Replay one run of each file where the problem is expensive, and verify nothing by it.",
)
@click.option(
    "--salt",
    type=HEX,
    help="Draw seeds and samples as an earlier verification that printed this salt.",
)
@click.option(
    "--mark",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the verified rows into this file, such as leaderboard/verified.json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def verify(
    files: tuple[Path, ...],
    against: Path | None,
    since: str | None,
    repository: Path,
    rerun: int,
    twins: int,
    quick: bool,
    salt: str | None,
    mark: Path | None,
    as_json: bool,
) -> None:
    """Verify result files <problem>/<optimizer>.jsonl, or all files of folders.

    A file is read strictly and its points are put into the problem again; every value must come
    out as recorded. Exits with 1 if a file is refused, or if --rerun or --twins were asked for and
    could not be done or speak against it.
    """
    checks = {"rerun": rerun, "twins": twins, "quick": quick, "salt": salt}
    if since is not None:
        if files or against is not None:
            raise click.UsageError("--since takes all files from git: leave FILE and --against out")
        with TemporaryDirectory(prefix="cbo-verify-") as folder:
            paths, against = _changed(repository, since, Path(folder))
            _verify(paths, checks | {"against": against}, mark, as_json)
        return
    paths = _expand(files)
    if not paths:
        raise click.ClickException(
            "there is nothing to verify: name files <problem>/<optimizer>.jsonl, or folders of them"
        )
    _verify(paths, checks | {"against": against}, mark, as_json)


def _verify(paths: list[Path], checks: dict[str, Any], mark: Path | None, as_json: bool) -> None:
    """Verify files, print what was found, and end with 1 where a file is not to be believed."""
    from cbo_suite.verify import Designs, Neighbours, mark_verified, new_salt, verify_file

    salt = checks["salt"] = checks["salt"] or new_salt()
    verdicts, designs, neighbours = [], Designs(), Neighbours(checks["against"], paths)
    for path in paths:
        verdict = verify_file(path, **checks, designs=designs, neighbours=neighbours)
        verdicts.append(verdict)
        if not as_json:
            _show(verdict)
    if mark is not None:
        mark_verified(mark, verdicts)
    counts = {
        status: sum(verdict.status == status for verdict in verdicts)
        for status in ("verified", "unverified", "refused")
    }
    if as_json:
        click.echo(json.dumps([_plain(verdict) for verdict in verdicts], indent=2))
    else:
        click.echo(", ".join(f"{count} {status}" for status, count in counts.items()))
        click.echo(f"To draw the same seeds and samples again: --salt {salt}")
    if counts["refused"] or ((checks["rerun"] or checks["twins"]) and counts["unverified"]):
        raise click.exceptions.Exit(1)


def _changed(repository: Path, since: str, folder: Path) -> tuple[list[Path], Path]:
    """Write the records that a commit changes, and those published before it, into a folder."""
    from cbo_suite.errors import printable
    from cbo_suite.verify.change import find_change, write_records_of

    change = find_change(repository, since, "HEAD")
    for path in change.notices:
        click.echo(f"for a maintainer: {printable(path)} is changed")
    if change.complaints:
        for complaint in change.complaints:
            click.echo(f"refused: {printable(complaint)}", err=True)
        raise click.exceptions.Exit(1)
    published = folder / "published"
    published.mkdir()
    write_records_of(repository, since, published)
    paths = write_records_of(repository, "HEAD", folder / "submitted", change.records)
    click.echo(f"{len(paths)} record files are new or changed")
    return paths, published


def _expand(paths: tuple[Path, ...]) -> list[Path]:
    """Replace folders by the files in them; that of a campaign holds other files too."""
    from cbo_suite.campaign.store import PLANS

    files: list[Path] = []
    for path in paths:
        if (path / PLANS).is_dir():
            raise click.ClickException(
                f"{path} is a campaign folder: `cbo export` it first, such as with "
                f"`cbo export {path} --to records`, and verify what that writes"
            )
        files += (
            sorted(p for p in path.rglob("*") if not _is_folder(p)) if _is_folder(path) else [path]
        )
    return files


def _is_folder(path: Path) -> bool:
    """Tell whether a path is a folder of its own, not a link to one."""
    return path.is_dir() and not path.is_symlink()


def _show(verdict: Verdict) -> None:
    """Print what was found of a file."""
    from cbo_suite.cli.tables import print_table

    rows = [(finding.rule, finding.outcome, finding.detail) for finding in verdict.findings]
    print_table(f"{verdict.file}: {verdict.status}", ("check", "outcome", "detail"), rows)
    for flag in verdict.flags:
        click.echo(f"look: {flag}")
    for complaint in verdict.complaints:
        click.echo(f"refused: {complaint}", err=True)


def _plain(verdict: Verdict) -> dict[str, object]:
    """Turn a verdict into plain JSON."""
    findings = [
        {"check": finding.rule, "outcome": finding.outcome, "detail": finding.detail}
        for finding in verdict.findings
    ]
    return verdict._asdict() | {"findings": findings}
