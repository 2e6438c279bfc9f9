"""`cbo run`: one run, or a campaign of many."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbo_suite.cli.parameters import NAMES, OPTION, SEEDS, SETTING, SHARD, SIZE, TIME

if TYPE_CHECKING:
    from cbo_suite.harness import Progress
    from cbo_suite.harness.results import Run

# Options that only a campaign has, and those that only a single run has.
_CAMPAIGN = (
    "problems",
    "optimizers",
    "seeds",
    "out",
    "jobs",
    "memory",
    "time_limit",
    "retry_failed",
    "retry_damaged",
    "dry_run",
    "shard",
    "engine",
    "scheduler",
    "engine_settings",
)
_SINGLE = ("seed", "journal")


@click.command("run")
@click.argument("problem", required=False)
@click.argument("optimizer", required=False)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of a single run [0].")
@click.option("--budget", type=click.IntRange(1), help="Number of evaluations [the problem's].")
@click.option("--batch-size", type=click.IntRange(1), help="Points per batch [the problem's].")
@click.option("--n-init", type=click.IntRange(0), help="Initial design points [the problem's].")
@click.option("--workers", type=click.IntRange(1), help="Asynchronous workers, a process each.")
@click.option(
    "--processes", type=click.IntRange(1), help="Processes that evaluate side by side [workers]."
)
@click.option(
    "--option",
    "options",
    type=OPTION,
    multiple=True,
    help="Option of the optimizer, such as acquisition=ei; the value is JSON or text.",
)
@click.option("--device", help="Where models are computed, such as cuda [cpu].")
@click.option("--evaluation-timeout", type=TIME, help="Kill an evaluation that takes longer.")
@click.option("--real-time", is_flag=True, help="Tell workers' results in the order they come.")
@click.option(
    "--journal", type=click.Path(dir_okay=False, path_type=Path), help="Write a single run here."
)
@click.option("--suite", help="Run the tasks of a suite (see `cbo list`).")
@click.option(
    "--problems",
    type=NAMES,
    help="Run these problems, or these of the suite: ids, tracks such as small-v1, or all.",
)
@click.option(
    "--optimizers",
    type=NAMES,
    help="Run these optimizers: those of the suite, or others on its problems.",
)
@click.option("--seeds", type=SEEDS, help="Run these seeds, or these of the suite [0-29].")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder of the campaign; the same again goes on where it stopped.",
)
@click.option("--jobs", type=click.IntRange(1), help="Runs side by side [number of cores].")
@click.option("--memory", type=SIZE, help="What a run may allocate [an equal share, local only].")
@click.option("--time-limit", type=TIME, default="1d", show_default=True, help="Of one run.")
@click.option("--retry-failed", is_flag=True, help="Try again what failed or was skipped.")
@click.option("--retry-damaged", is_flag=True, help="Set damaged journals aside and run them anew.")
@click.option("--dry-run", is_flag=True, help="Print the plan and its time, run nothing.")
@click.option("--shard", type=SHARD, help="Run this part of the plan only, such as 2/8.")
@click.option("--engine", default="local", show_default=True, help="local, dask or slurm.")
@click.option("--scheduler", default="", help="Address of the dask scheduler.")
@click.option(
    "--engine-setting",
    "engine_settings",
    type=SETTING,
    multiple=True,
    help="Setting of the engine, such as partition=short for slurm.",
)
@click.pass_context
def run_command(
    ctx: click.Context,
    /,
    problem: str | None,
    optimizer: str | None,
    suite: str | None,
    **options: Any,
) -> None:
    """Run OPTIMIZER on PROBLEM, or a campaign: a suite, or --problems with --optimizers.

    A campaign skips what is done, resumes what was interrupted and runs the rest, one process per
    core. Ctrl-C stops it, twice at once; the same command goes on.

    OPTIMIZER is an id, or a class of your own as my_file.py:MyOptimizer; PROBLEM likewise.
    """
    # Who names workers on the command line has several processors for them.
    options["processes"] = options["processes"] or options["workers"]
    if suite is not None or options["problems"] or options["optimizers"]:
        if problem is not None:
            raise click.UsageError("give either PROBLEM OPTIMIZER or a campaign, not both")
        _refuse(ctx, _SINGLE, "is of a single run; a campaign takes --seeds and --out")
        from cbo_suite.cli.campaign import run_campaign

        run_campaign(suite, options)
        return
    if problem is None or optimizer is None:
        raise click.UsageError(
            "give PROBLEM and OPTIMIZER (see `cbo list`), or --suite, or --problems, --optimizers"
        )
    _refuse(ctx, _CAMPAIGN, "is of a campaign: use it with --suite or --problems and --optimizers")
    settings = {name: value for name, value in options.items() if name not in _CAMPAIGN}
    own_optimizer = find_own(optimizer)
    settings["options"] = optimizer_options(
        settings.pop("device"), settings["options"], [own_optimizer]
    )
    _run_one(f"{problem} {optimizer}", _own_problem(problem), own_optimizer, settings)


def _refuse(ctx: click.Context, names: tuple[str, ...], reason: str) -> None:
    """Refuse options that have no meaning here instead of ignoring them."""
    for name in names:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} {reason}")


def find_own(name: str) -> Any:
    """Return an id as it is; of MODULE:CLASS or FILE.py:CLASS the class."""
    if ":" not in name:
        return name
    from cbo_suite.cli.targets import load_target

    return load_target(name)


def _own_problem(name: str) -> Any:
    """Return an id as it is; of a class of the user's own the problem that it makes."""
    from cbo_suite.errors import InvalidTask

    found = find_own(name)
    if isinstance(found, str):
        return found
    if not hasattr(found, "evaluate"):
        raise InvalidTask(f"{name} is no problem: it has no method evaluate")
    return found() if isinstance(found, type) else found


def optimizer_options(
    device: str | None, options: Iterable[tuple[str, Any]], optimizers: Iterable[Any]
) -> dict[str, Any]:
    """Gather the options of the optimizers, the device of their models among them.

    Args:
        device: Where models are computed, None for nothing said.
        options: Names and values.
        optimizers: Ids or classes of the optimizers that the options are for.

    Raises:
        click.UsageError: An option is given twice, or some of these optimizers do not have it.
    """
    chosen: dict[str, Any] = {} if device is None else {"device": device}
    for name, value in options:
        if name in chosen:
            raise click.UsageError(f"the option {name} is given twice")
        chosen[name] = value
    if not chosen:
        return {}
    from cbo_suite.registry import has_option

    ids = list(dict.fromkeys(optimizers))
    for name in chosen:
        without = [getattr(id_, "__name__", id_) for id_ in ids if not has_option(id_, name)]
        if without:
            verb = "has" if len(without) == 1 else "have"
            raise click.UsageError(
                f"{', '.join(without)} {verb} no option {name}: leave it out, or run others"
            )
    return chosen


def _run_one(name: str, problem: Any, optimizer: Any, settings: dict[str, Any]) -> None:
    """Run one task with a progress bar, or plain lines where there is no terminal."""
    from cbo_suite.harness import run

    title = f"{name} seed {settings['seed']}"
    if not sys.stdout.isatty():
        _report(run(problem, optimizer, callback=_PlainLines(title), **settings))
        return
    from cbo_suite.cli.tables import make_progress

    with make_progress() as bar:
        line = bar.add_task(title, total=None, note="")

        def show(progress: Progress) -> None:
            note = best_note(progress.best_objective, progress.best_violation)
            bar.update(line, total=progress.budget, completed=progress.done, note=note)

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
        note = best_note(progress.best_objective, progress.best_violation)
        click.echo(f"{self._title}: {progress.done}/{progress.budget} {note}, {left:.0f} s left")


def best_note(objective: float, violation: float) -> str:
    """Write the best value so far and whether it is feasible."""
    if violation == 0:
        return f"best {objective:.6g} feasible"
    return f"infeasible, violation {violation:.3g}"


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
        click.echo(f"{failed} evaluations failed, were late or were not finite")
