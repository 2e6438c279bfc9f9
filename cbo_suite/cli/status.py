"""`cbo status`: what a campaign has done, or a study of `cbo ask`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cbo_suite.campaign.store import Store
    from cbo_suite.tasks import Task

_WORDS = ("done", "running", "failed", "skipped", "interrupted", "missing", "damaged")


@click.command()
@click.argument("place", type=click.Path(exists=True, path_type=Path), default=Path("runs"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per run.")
def status(place: Path, as_json: bool) -> None:
    """Show what is done, running, failed and missing in a campaign or a study.

    PLACE is the folder of a campaign [runs], or the file of a study of `cbo ask`.
    """
    if not place.is_dir():
        from cbo_suite.cli.study_status import show_study

        show_study(place, as_json)
        return
    _show_campaign(place, as_json)


def _show_campaign(folder: Path, as_json: bool) -> None:
    """Print how it is with the runs of a campaign."""
    from cbo_suite.campaign.store import Store

    store = Store(folder)
    rows = [(task, *_look(store, task)) for task in store.tasks()]
    if not rows:
        raise click.ClickException(
            f"no campaign in {folder}: start one with `cbo run --suite quick --out {folder}`"
        )
    if as_json:
        for task, word, reason in rows:
            click.echo(json.dumps({"run": task.name, "status": word, "reason": reason}))
        return
    from cbo_suite.cli.tables import print_table

    total = Counter(word for _, word, _ in rows)
    # What occurs nowhere takes no room from the names.
    words = [word for word in _WORDS if total[word] or word == "done"]
    pairs: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for task, word, _ in rows:
        pairs[task.problem, task.optimizer][word] += 1
    print_table(
        str(folder),
        ("problem", "optimizer", *words),
        [(*pair, *(str(counts[word] or "") for word in words)) for pair, counts in pairs.items()],
        right=range(2, 2 + len(words)),
        names=(0, 1),
        keep=3,
    )
    for task, word, reason in rows:
        if reason and word != "skipped":
            click.echo(f"{word}: {task.name}: {reason}")
    counted = [word for word in _WORDS if total[word] or word != "damaged"]
    click.echo(f"{len(rows)} runs: " + ", ".join(f"{total[word]} {word}" for word in counted))


def _look(store: Store, task: Task) -> tuple[str, str]:
    """Say in a word how it is with a task, and why."""
    from cbo_suite.errors import InvalidTask

    try:
        state = store.state(task)
    except InvalidTask as error:
        return "missing", str(error)
    if state.word not in ("done", "damaged") and store.is_running(task):
        silent = store.leases.silent_seconds(store.lease_path(task))
        late = silent > store.leases.patience
        return "running", f"no sign of life for {silent:.0f} s" if late else ""
    return state.word, state.error
