"""The campaign of `cbo run`: its plan, its progress on the screen, its end."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from cbo_suite import engines
from cbo_suite.campaign import Campaign
from cbo_suite.campaign.condense import write_campaign_records
from cbo_suite.campaign.store import Store
from cbo_suite.cli.parameters import Shard
from cbo_suite.cli.plan import planned_tasks
from cbo_suite.cli.run import best_note, optimizer_options
from cbo_suite.cli.tables import make_console, print_table
from cbo_suite.engines import EngineOptions, Limits, Outcome, make_engine
from cbo_suite.system import cores
from cbo_suite.tasks import Task, shard

STOPPED = 130  # the exit status of what Ctrl-C ended
SHOWN_FAILURES = 20
SHOWN_RUNS = 16
REFRESH_SECONDS = 0.2
PLAIN_SECONDS = 10.0  # between two lines on how far the runs are


def run_campaign(suite: str | None, options: Mapping[str, Any]) -> None:
    """Plan, run and sum up a campaign, or print its plan."""
    run_plan(planned_tasks(suite, options), suite or "campaign", options)


def run_plan(whole: list[Task], title: str, options: Mapping[str, Any]) -> None:
    """Run and sum up a campaign of these tasks, in this order, or print the plan."""
    part: Shard | None = options["shard"]
    tasks = whole if part is None else shard(whole, *part)
    local = options["engine"] == "local"
    jobs: int | None = options["jobs"] or (cores() if local else None)
    # The driver of a graphics card reserves far more addresses than there is memory.
    shared = local and options["device"] in (None, "cpu")
    memory = options["memory"] or (_physical_memory() // (jobs or 1) if shared else None)
    chosen = optimizer_options(
        options["device"], options.get("options", ()), (task.optimizer for task in tasks)
    )
    store = Store(options["out"])
    campaign = Campaign(
        tasks,
        store,
        limits=Limits(options["time_limit"], None if memory is None else int(memory)),
        settings={
            name: options[name]
            for name in ("processes", "evaluation_timeout", "real_time")
            if options[name]
        }
        | ({"options": chosen} if chosen else {}),
        retry_failed=options["retry_failed"],
        retry_damaged=options["retry_damaged"],
    )
    if options["dry_run"]:
        print_plan(campaign, jobs or 1)
        return
    store.write_plan(whole)
    if part is not None:
        title += f", shard {part.part}/{part.parts}"
    engine_options = EngineOptions(
        jobs, options["scheduler"], str(options["out"]), dict(options["engine_settings"])
    )
    stopped = False
    if not campaign.waiting:
        campaign.tidy()
        store.leases.close()
    else:
        engine = make_engine(options["engine"], engine_options)
        screen = _Screen(campaign, title, jobs or max(1, engine.room()))
        stopped = _carry_out(campaign, engine, screen)
    sum_up(campaign, stopped)


def _physical_memory() -> int:
    """Return the number of bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def print_plan(campaign: Campaign, jobs: int) -> None:
    """Print what a campaign would do and how long that would take."""
    pairs: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in campaign.tasks:
        pairs[task.problem, task.optimizer].append(task)
    rows = []
    for (problem, optimizer), group in pairs.items():
        todo = [task for task in group if task in campaign.waiting]
        estimate = campaign.estimator.estimate(todo)
        rows.append(
            (
                problem,
                optimizer,
                "/".join(map(str, sorted({task.budget for task in group}))),
                str(len(group)),
                str(len(todo)),
                duration(estimate.seconds) if todo else "",
                ("measured" if estimate.measured else "rough") if todo else "",
            )
        )
    columns = ("problem", "optimizer", "budget", "runs", "to run", "time", "estimate")
    print_table("Plan", columns, rows, right=(2, 3, 4, 5), names=(0, 1), keep=2)
    total = campaign.estimator.estimate(campaign.waiting)
    click.echo(
        f"{len(campaign.tasks)} runs: {len(campaign.done)} done, {len(campaign.failed)} failed, "
        f"{len(campaign.skipped)} skipped, {_damaged(campaign)}{len(campaign.waiting)} to run"
    )
    click.echo(
        f"about {duration(total.seconds / jobs)} with {jobs} side by side; {total.measured} runs "
        f"estimated from finished ones in {campaign.store.folder}, {total.guessed} from a rough "
        "table that comes with cbo-suite"
    )


def _carry_out(campaign: Campaign, engine: engines.Engine, screen: _Screen) -> bool:
    """Run a campaign and show it; tell whether it was stopped."""
    try:
        with _signals(campaign, screen) as asked, screen:
            for event in campaign.run(engine, on_tick=screen.refresh):
                screen.show(event)
    except KeyboardInterrupt:
        return True
    return bool(asked)


@contextmanager
def _signals(campaign: Campaign, screen: _Screen) -> Iterator[list[int]]:
    """Stop the campaign on the first Ctrl-C, or when it is told to end; at once on the second."""
    asked: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt
        screen.note = "stopping; press Ctrl-C again to stop at once"
        campaign.stop()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in previous.items():
            # Once it stops, a late Ctrl-C changes nothing any more, neither words nor status.
            signal.signal(number, signal.SIG_IGN if asked else handler)


def sum_up(campaign: Campaign, stopped: bool) -> None:
    """Write the records, say how it went, and end with the status that tells it."""
    written = write_campaign_records(campaign.tasks, campaign.store)
    folder = campaign.store.folder
    for reason, count in Counter(campaign.skipped.values()).items():
        click.echo(f"skipped, {count} runs: {reason}")
    failures = sorted(campaign.failed.items(), key=lambda item: item[0].name)
    for task, reason in failures[:SHOWN_FAILURES]:
        click.echo(f"failed: {task.name}: {reason}", err=True)
    if len(failures) > SHOWN_FAILURES:
        more = len(failures) - SHOWN_FAILURES
        click.echo(f"and {more} more: see `cbo status {folder}`", err=True)
    for task, reason in campaign.damaged.items():
        click.echo(f"damaged: {task.name}: {reason}", err=True)
    click.echo(
        f"{len(campaign.done)} of {len(campaign.tasks)} runs done, {len(campaign.skipped)} "
        f"skipped, {len(failures)} failed, {_damaged(campaign)}{len(written)} record files "
        f"written in {folder}"
    )
    if stopped:
        click.echo(
            f"stopped with {len(campaign.waiting) + len(campaign.running)} runs to go; the same "
            "command goes on"
        )
        raise click.exceptions.Exit(STOPPED)
    if failures:
        click.echo("to try failed runs again, add --retry-failed", err=True)
    if campaign.damaged:
        click.echo("to run damaged ones anew, add --retry-damaged; their files are kept", err=True)
    if failures or campaign.damaged:
        raise click.exceptions.Exit(1)


def _damaged(campaign: Campaign) -> str:
    """Say how many journals are damaged; nothing, as usual, of none."""
    return f"{len(campaign.damaged)} damaged, " if campaign.damaged else ""


class _Screen:
    """Shows a campaign: live on a terminal, else in plain lines."""

    def __init__(self, campaign: Campaign, title: str, jobs: int) -> None:
        self.note = ""
        self._campaign, self._jobs = campaign, jobs
        self._console: Console = make_console()
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left: {task.fields[left]}", markup=False),
            console=self._console,
        )
        self._line = self._bar.add_task(title, total=len(campaign.tasks), left="")
        self._live = Live(self, console=self._console, auto_refresh=False, transient=True)
        self._next_refresh = 0.0
        self._last: dict[Task, engines.Progress] = {}
        self._next_line = time.monotonic() + PLAIN_SECONDS

    def __enter__(self) -> _Screen:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def refresh(self) -> None:
        """Draw anew if it is time; in the thread of the campaign, whose tables it reads."""
        now = time.monotonic()
        if self._console.is_terminal and now >= self._next_refresh:
            self._next_refresh = now + REFRESH_SECONDS
            self._live.refresh()

    @property
    def _ended(self) -> int:
        """Number of tasks that are not to be run any more."""
        campaign = self._campaign
        ended = (campaign.done, campaign.failed, campaign.damaged, campaign.skipped)
        return sum(map(len, ended))

    def _counts(self) -> str:
        """Say how many runs are in which state."""
        campaign = self._campaign
        counts = {
            "done": len(campaign.done),
            "running": len(campaign.running),
            "failed": len(campaign.failed),
            "damaged": len(campaign.damaged),
            "skipped": len(campaign.skipped),
            "elsewhere": campaign.elsewhere,
        }
        always = ("done", "running", "failed")
        return ", ".join(f"{n} {word}" for word, n in counts.items() if n or word in always)

    def show(self, event: engines.Event) -> None:
        """Show what happened."""
        task, before = event.task, self._last.get(event.task)
        if isinstance(event, Outcome):
            self._last.pop(task, None)
        else:
            self._last[task] = event
        if self._console.is_terminal:
            quiet = ("complete", "skipped", "stopped") if self.note else ("complete", "skipped")
            if isinstance(event, Outcome) and event.status not in quiet:
                self._live.console.print(Text(f"{task.name}: {event.status}: {event.error}"))
            return
        left = duration(self._campaign.seconds_left(self._jobs))
        if isinstance(event, Outcome):
            found = _found(event) if event.status == "complete" else event.status
            count = f"{self._ended}/{len(self._campaign.tasks)}"
            click.echo(f"{count} {task.name}: {found}; {self._counts()}, {left} left")
        elif event.note and (before is None or before.note != event.note):
            click.echo(f"{task.name}: {event.note}")
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + PLAIN_SECONDS
            for progress in self._last.values():
                done = f"{progress.evaluations}/{progress.task.budget}"
                click.echo(f"running {progress.task.name}: {done} {_found(progress)}")

    def __rich__(self) -> Group:
        """Draw the bar, the counts and the runs under way."""
        left = duration(self._campaign.seconds_left(self._jobs))
        self._bar.update(self._line, completed=self._ended, left=left)
        runs = Table(box=None, padding=(0, 2), header_style="bold")
        for name in ("run", "evaluations", "best", "time"):
            runs.add_column(name, no_wrap=True)
        now = time.monotonic()
        under_way = list(self._campaign.running.items())
        for task, begin in under_way[:SHOWN_RUNS]:
            progress = self._last.get(task)
            evaluations = 0 if progress is None else progress.evaluations
            found = "" if progress is None else _found(progress)
            done = f"{evaluations}/{task.budget}"
            runs.add_row(Text(task.name), done, found, duration(now - begin))
        hidden = len(under_way) - SHOWN_RUNS
        lines = [self._counts(), *([f"and {hidden} more"] if hidden > 0 else []), self.note]
        return Group(self._bar, runs, *(Text(line) for line in lines if line))


def _found(event: engines.Event) -> str:
    """Write the best value of a run, as far as known, or what it waits for."""
    if isinstance(event, engines.Progress) and event.note:
        return event.note
    if event.best_objective is None or event.best_violation is None:
        return ""
    return best_note(event.best_objective, event.best_violation)


def duration(seconds: float) -> str:
    """Write a time in two units at most."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes / 1440:.1f} days"
