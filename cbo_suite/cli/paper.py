"""`cbo paper`: the experiments of the SCBO paper, and what came of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from cbo_suite.cli.parameters import NAMES, SEEDS, SHARD, SIZE, TIME

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_RUNS = click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("leaderboard/runs"),
    show_default=True,
    help="Folder of records with <problem>/<optimizer>.jsonl.",
)


def _campaign(name: str) -> Callable[[Decorated], Decorated]:
    """Make the option of the folder of a campaign, by default `runs/<name>`."""
    return click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("runs") / name,
        show_default=True,
        help="Folder of the campaign; the same again goes on where it stopped.",
    )


_MEASUREMENTS = click.option(
    "--measurements",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("leaderboard/measurements"),
    show_default=True,
    help="Folder of the files of measurements.",
)
# Processes that wait for a core, mean of a minute, above which seconds are not to be trusted.
BUSY = 0.5
# What a campaign of `cbo run` can be told besides; these stay as they are there.
_PLAIN: dict[str, Any] = {
    "engine": "local",
    "scheduler": "",
    "engine_settings": (),
    "shard": None,
    "retry_failed": False,
    "retry_damaged": False,
    "processes": None,
    "evaluation_timeout": None,
    "real_time": False,
    "device": None,
}


@click.group()
def paper() -> None:
    """Reproduce the SCBO paper: run what is missing, build its figures, judge its claims."""


@paper.command()
@_RUNS
@_campaign("paper")
@_MEASUREMENTS
def status(runs: Path, out: Path, measurements: Path) -> None:
    """Show which figure or table has how many of its runs, on the board and in the campaign."""
    from cbo_suite.campaign.store import Store
    from cbo_suite.cli.tables import print_table
    from cbo_suite.paper import ARTEFACTS, STAGES, pair_tasks, stage_tasks
    from cbo_suite.paper.measurements import SECONDS
    from cbo_suite.paper.progress import Counts, count_runs, done_tasks, published_tasks

    published = published_tasks(runs)
    planned = stage_tasks([stage.id for stage in STAGES])
    done = done_tasks(planned, Store(out))

    def cells(counts: Counts) -> tuple[str, ...]:
        missing = str(counts.missing) if counts.missing else ""
        return str(counts.runs), str(counts.published), str(counts.done or ""), missing

    columns = ("runs", "board", "campaign", "missing")
    rows = []
    for artefact in ARTEFACTS:
        tasks = pair_tasks(artefact.pairs)
        counted = cells(count_runs(tasks, published, done)) if tasks else ("", "", "", "")
        rows.append((str(artefact.number), artefact.id, *counted, artefact.title))
    print_table(
        "Figures and tables",
        ("", "artefact", *columns, "what it shows"),
        rows,
        right=(0, 2, 3, 4, 5),
        names=(1,),
        keep=6,
    )
    print_table(
        "Stages, in the order of work",
        ("stage", *columns, "what it runs"),
        [
            (
                stage.id,
                *cells(count_runs(stage_tasks([stage.id]), published, done)),
                stage.title,
            )
            for stage in STAGES
        ],
        right=range(1, 5),
        keep=5,
    )
    total = count_runs(planned, published, done)
    click.echo(
        f"{total.runs} runs: {total.published} in {runs}, {total.done} more in {out}, "
        f"{total.missing} missing"
    )
    for measured in [a.measurement for a in ARTEFACTS if a.measurement] + [SECONDS]:
        path = measurements / f"{measured}.json"
        click.echo(f"{measured}: {path} {'is there' if path.is_file() else 'is missing'}")
    if total.others:
        click.echo(f"{total.others} records in {runs} are of other versions and do not count here")


@paper.command()
@_RUNS
@_campaign("paper")
@click.option("--stage", "stages", type=NAMES, help="Run these stages [all but mopta08].")
@click.option("--problems", type=NAMES, help="Run these problems of the stages.")
@click.option("--optimizers", type=NAMES, help="Run these optimizers of the stages.")
@click.option("--seeds", type=SEEDS, help="Run these seeds of the stages.")
@click.option("--jobs", type=click.IntRange(1), help="Runs side by side [number of cores].")
@click.option("--memory", type=SIZE, help="What a run may allocate [an equal share].")
@click.option("--time-limit", type=TIME, default="1d", show_default=True, help="Of one run.")
@click.option("--retry-failed", is_flag=True, help="Try again what failed or was skipped.")
@click.option("--retry-damaged", is_flag=True, help="Set damaged journals aside and run them anew.")
@click.option("--dry-run", is_flag=True, help="Print the plan and its time, run nothing.")
@click.option("--shard", type=SHARD, help="Run this part of the plan only, such as 2/8.")
def run(
    runs: Path,
    stages: list[str] | None,
    problems: list[str] | None,
    optimizers: list[str] | None,
    seeds: list[int] | None,
    **options: Any,
) -> None:
    """Run what is missing, as a campaign in the order of the stages.

    What the folder of records has from the present version of an optimizer is not run again.
    Ctrl-C stops the campaign, twice at once; the same command goes on.
    """
    from cbo_suite.cli.campaign import run_plan
    from cbo_suite.errors import UnknownId
    from cbo_suite.paper import stage_tasks
    from cbo_suite.paper.progress import missing_tasks
    from cbo_suite.registry import resolve_problem_id

    wanted = [resolve_problem_id(id_) for id_ in problems or ()]
    planned = [
        task
        for task in stage_tasks(stages or ())
        if (not wanted or task.problem in wanted)
        and (not optimizers or task.optimizer in optimizers)
        and (seeds is None or task.seed in seeds)
    ]
    if not planned:
        raise UnknownId("the stages have no run of these problems, optimizers and seeds")
    tasks = missing_tasks(planned, runs)
    if len(tasks) < len(planned):
        click.echo(f"{len(planned) - len(tasks)} of {len(planned)} runs are in {runs} already")
    if not tasks:
        return
    run_plan(tasks, "paper", {**_PLAIN, **options})


@paper.command()
@_RUNS
@_MEASUREMENTS
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("leaderboard/paper"),
    show_default=True,
    help="Folder for report.md, claims.json, figures/ and tables/.",
)
@click.option("--check", is_flag=True, help="Write nothing; fail if report or tables are stale.")
def build(runs: Path, measurements: Path, out: Path, check: bool) -> None:
    """Draw all figures, make all tables and judge every claim; the same runs, the same bytes."""
    from cbo_suite.cli.tables import print_table
    from cbo_suite.paper.build import build, gather_evidence, stale_texts
    from cbo_suite.paper.report import summary, verdict_text

    evidence = gather_evidence(runs, measurements)
    if check:
        if stale := stale_texts(evidence, out):
            raise click.ClickException("\n".join([*stale, "run `cbo paper build`"]))
        click.echo(f"report and tables in {out} are what the records in {runs} give")
        return
    judgements = build(evidence, out)
    rows = [(str(j.claim.number), j.claim.title, verdict_text(j)) for j in judgements]
    print_table("Claims", ("", "claim", "verdict"), rows, right=(0,), names=(1,))
    click.echo(f"{len(judgements)} claims: {summary(judgements)}")
    click.echo(f"wrote {out / 'report.md'}, figures and tables beside it")


@paper.group()
def measure() -> None:
    """Measure what the runs do not tell; `cbo paper build` reads the files."""


@measure.command()
@_MEASUREMENTS
@click.option(
    "--points", type=click.IntRange(1), default=10**8, show_default=True, help="Random points."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def feasibility(measurements: Path, points: int, seed: int) -> None:
    """Count feasible points among uniform random ones of Ackley: minutes."""
    from cbo_suite.cli.tables import make_progress
    from cbo_suite.paper.measurements import FEASIBILITY, measure_feasibility, write_measurement

    with make_progress() as bar:
        line = bar.add_task("random points", total=points, note="")
        found = measure_feasibility(points, seed, lambda done: bar.update(line, completed=done))
    click.echo(f"{found.feasible} of {found.points} random points are feasible")
    click.echo(f"wrote {write_measurement(measurements, FEASIBILITY, found)}")


@measure.command()
@_MEASUREMENTS
@_campaign("restarts")
@click.option("--problems", type=NAMES, help="Of these problems only [toy, Rosenbrock, Keane].")
@click.option("--jobs", type=click.IntRange(1), help="Runs side by side [number of cores].")
@click.option("--dry-run", is_flag=True, help="Print the plan and its time, run nothing.")
def restarts(
    measurements: Path, out: Path, problems: list[str] | None, jobs: int | None, dry_run: bool
) -> None:
    """Make longer runs of SCBO and write down when they restart: hours, most of them on Keane."""
    from cbo_suite.campaign.store import Store
    from cbo_suite.cli.campaign import run_plan
    from cbo_suite.errors import UnknownId
    from cbo_suite.paper.measurements import (
        RESTART_RUNS,
        RESTARTS,
        gather_restarts,
        read_measurements,
        restart_tasks,
        write_measurement,
    )
    from cbo_suite.registry import resolve_problem_id

    wanted = [resolve_problem_id(id_) for id_ in problems or RESTART_RUNS]
    for id_ in wanted:
        if id_ not in RESTART_RUNS:
            raise UnknownId(f"restarts are counted on {', '.join(RESTART_RUNS)}, not on {id_}")
    options = {"out": out, "jobs": jobs, "dry_run": dry_run, "memory": None, "time_limit": None}
    run_plan(restart_tasks(wanted), "restarts", {**_PLAIN, **options})
    if not dry_run:
        known = read_measurements(measurements).restarts
        found = gather_restarts(wanted, Store(out), known)
        click.echo(f"wrote {write_measurement(measurements, RESTARTS, found)}")


@measure.command()
@_MEASUREMENTS
@_campaign("seconds")
@click.option("--problems", type=NAMES, help="Problems of --optimizers [the small track].")
@click.option("--optimizers", type=NAMES, help="Time these instead of those of the paper.")
@click.option("--dry-run", is_flag=True, help="Print the plan and its time, run nothing.")
def seconds(
    measurements: Path,
    out: Path,
    problems: list[str] | None,
    optimizers: list[str] | None,
    dry_run: bool,
) -> None:
    """Time one run of every optimizer and problem, one after the other: half an hour.

    Let nothing else run meanwhile: processors that are shared count more seconds. The file says how
    busy the machine was, and keeps what it has of other optimizers. To time something again, remove
    its runs.
    """
    from cbo_suite.campaign.store import Store
    from cbo_suite.cli.campaign import run_plan
    from cbo_suite.paper.measurements import (
        SECONDS,
        gather_seconds,
        read_measurements,
        seconds_tasks,
        write_measurement,
    )
    from cbo_suite.registry import resolve_problem_id
    from cbo_suite.scoring.tracks import TRACKS
    from cbo_suite.system import load
    from cbo_suite.tasks import make_tasks

    if problems and not optimizers:
        raise click.UsageError("--problems needs --optimizers: which of them?")
    wanted = [resolve_problem_id(id_) for id_ in problems or TRACKS[0].problems]
    tasks = make_tasks(wanted, optimizers, [0]) if optimizers else seconds_tasks()
    busy = load()
    if busy > BUSY:
        click.echo(f"this machine is busy (load {busy:.2f}): seconds will be too many", err=True)
    options = {"out": out, "jobs": 1, "dry_run": dry_run, "memory": None, "time_limit": None}
    run_plan(tasks, "seconds", {**_PLAIN, **options})
    if not dry_run:
        known = read_measurements(measurements).seconds
        found = gather_seconds(tasks, Store(out), busy, known)
        click.echo(f"wrote {write_measurement(measurements, SECONDS, found)}")
