"""`cbo run`: one run, or all runs of a suite."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cbo_suite.campaign import Outcome
    from cbo_suite.loop import Progress
    from cbo_suite.results import Run


@click.command("run")
@click.argument("problem", required=False)
@click.argument("optimizer", required=False)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--budget", type=click.IntRange(1), help="Number of evaluations [the paper's].")
@click.option("--batch-size", type=click.IntRange(1), help="Points per batch [the paper's].")
@click.option("--n-init", type=click.IntRange(0), help="Initial design points [the paper's].")
@click.option("--workers", type=click.IntRange(1), help="Asynchronous workers, one point each.")
@click.option("--journal", type=click.Path(dir_okay=False, path_type=Path), help="Write here.")
@click.option("--suite", help="Run all tasks of a suite instead of one.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder for the runs of a suite.",
)
@click.option("--jobs", type=click.IntRange(1), help="Runs side by side [number of cores].")
def run_command(
    problem: str | None,
    optimizer: str | None,
    suite: str | None,
    out: Path,
    jobs: int | None,
    **settings: Any,
) -> None:
    """Run OPTIMIZER on PROBLEM, or every task of a suite.

    The same --journal, or the same --out, again goes on where it stopped.
    """
    if suite is not None:
        if problem is not None:
            raise click.UsageError("give either PROBLEM OPTIMIZER or --suite, not both")
        _run_suite(suite, out, jobs or os.cpu_count() or 1)
        return
    if problem is None or optimizer is None:
        raise click.UsageError("give PROBLEM and OPTIMIZER (see `cbo list`), or --suite")
    _run_one(problem, optimizer, settings)


def _run_one(problem: str, optimizer: str, settings: dict[str, Any]) -> None:
    """Run one task with a progress bar, or plain lines where there is no terminal."""
    from cbo_suite.harness import run

    title = f"{problem} {optimizer} seed {settings['seed']}"
    if not sys.stdout.isatty():
        _report(run(problem, optimizer, callback=_PlainLines(title), **settings))
        return
    from cbo_suite.cli.tables import make_progress

    with make_progress() as bar:
        line = bar.add_task(title, total=None, note="")

        def show(progress: Progress) -> None:
            bar.update(line, total=progress.budget, completed=progress.done, note=_note(progress))

        done = run(problem, optimizer, callback=show, **settings)
    _report(done)


class _PlainLines:
    """Progress as plain lines: at most one every two seconds, and the last."""

    def __init__(self, title: str) -> None:
        """Remember what runs and since when."""
        self._title = title
        self._start = self._last = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Print a line if it is time."""
        now = time.monotonic()
        if now - self._last < 2.0 and progress.done < progress.budget:
            return
        self._last = now
        left = (now - self._start) / progress.done * (progress.budget - progress.done)
        click.echo(
            f"{self._title}: {progress.done}/{progress.budget} {_note(progress)}, {left:.0f} s left"
        )


def _note(progress: Progress) -> str:
    """Write the best value so far and whether it is feasible."""
    if progress.best_violation == 0:
        return f"best {progress.best_objective:.6g} feasible"
    return f"infeasible, violation {progress.best_violation:.3g}"


def _report(done: Run) -> None:
    """Print what a run found."""
    values = " ".join(f"{value:.10g}" for value in done.best_x)
    kind = "feasible" if done.feasible else "no feasible point; least violation at"
    click.echo(f"{kind} objective {done.best_objective:.10g}")
    click.echo(f"x = {values}")
    click.echo(
        f"{len(done.x)} evaluations, optimizer {done.seconds_optimizer:.2f} s, "
        f"problem {done.seconds_evaluation:.2f} s"
    )
    failed = sum(status != "ok" for status in done.statuses)
    if failed:
        click.echo(f"{failed} evaluations failed or were not finite")


def _run_suite(name: str, out: Path, jobs: int) -> None:
    """Run a suite, show how far it is, and write the records."""
    from cbo_suite.campaign import run_tasks, write_campaign_records
    from cbo_suite.cli.tables import make_progress
    from cbo_suite.tasks import get_suite

    tasks = get_suite(name).tasks()
    folder = out / name
    outcomes = []
    start = time.monotonic()
    with make_progress() as bar:
        line = bar.add_task(f"suite {name}", total=len(tasks), note="")
        for number, outcome in enumerate(run_tasks(tasks, folder, jobs), start=1):
            bar.update(line, completed=number, note=_outcome(outcome))
            if not bar.console.is_terminal:
                left = (time.monotonic() - start) / number * (len(tasks) - number)
                click.echo(f"{number}/{len(tasks)} {_outcome(outcome)}, {left:.0f} s left")
            outcomes.append(outcome)
    paths = write_campaign_records(tasks, folder)
    for reason in sorted({outcome.skipped for outcome in outcomes if outcome.skipped}):
        click.echo(f"skipped: {reason}")
    failures = [outcome for outcome in outcomes if outcome.error]
    for failure in failures:
        click.echo(f"failed: {failure.task.name}: {failure.error}", err=True)
    skipped = sum(bool(outcome.skipped) for outcome in outcomes)
    click.echo(
        f"{len(tasks) - len(failures) - skipped} of {len(tasks)} runs done, {skipped} skipped, "
        f"{len(failures)} failed, {len(paths)} record files"
    )
    click.echo(f"records: {folder}")
    if failures:
        raise click.exceptions.Exit(1)


def _outcome(outcome: Outcome) -> str:
    """Write how a task ended."""
    if outcome.error or outcome.skipped:
        return f"{outcome.task.name}: {'failed' if outcome.error else 'skipped'}"
    found = f"{outcome.best_objective:.6g}" if outcome.feasible else "infeasible"
    return f"{outcome.task.name}: {found}"
