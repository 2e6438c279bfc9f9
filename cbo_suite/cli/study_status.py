"""What `cbo status` and `cbo tell` say of a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbo_suite.cli.run import best_note

if TYPE_CHECKING:
    from cbo_suite.study import StudyContents


def progress_line(contents: StudyContents) -> str:
    """Say in a line how far a study is."""
    from cbo_suite.study import as_run

    told, failed = len(contents.told), sum(r.status == "failed" for r in contents.results)
    known = len(contents.results) - told
    parts = [f"{told} of {contents.budget} told"]
    parts += [f"{len(contents.pending)} under way"] if contents.pending else []
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{known} known from elsewhere"] if known else []
    run = as_run(contents)
    if len(run.x):
        violation = float(run.evaluation.violation[run.best_index])
        parts.append(best_note(run.best_objective, violation))
    return ", ".join(parts)


def show_study(path: Path, as_json: bool) -> None:
    """Print what a study has found, and what it waits for."""
    from cbo_suite.study import as_run, read_study

    contents = read_study(path)
    run, begin = as_run(contents), contents.beginning
    best = run.best_index if len(run.x) else None
    if as_json:
        found: dict[str, Any] = {
            "optimizer": begin.optimizer,
            "budget": contents.budget,
            "asked": contents.last_id,
            "told": len(contents.told),
            "pending": list(contents.pending),
            "failed": [r.id for r in contents.results if r.status == "failed"],
            "best": None,
        }
        if best is not None:
            result = contents.results[best]
            found["best"] = {
                "id": result.id,
                "x": contents.point(result),
                "objective": result.objective,
                "constraints": result.constraints,
                "feasible": run.feasible,
            }
        click.echo(json.dumps(found))
        return
    count = begin.space.num_constraints
    click.echo(
        f"{path}: {begin.optimizer}, {len(begin.space.lower)} variables, {count} "
        f"{'constraint' if count == 1 else 'constraints'}, seed {begin.seed}"
    )
    click.echo(progress_line(contents))
    if best is not None:
        result = contents.results[best]
        where = "known from elsewhere" if result.id is None else f"point {result.id}"
        click.echo(f"x = {' '.join(f'{value:.10g}' for value in contents.point(result))} ({where})")
        if count:
            values = " ".join(f"{float(value):.6g}" for value in result.constraints)
            click.echo(f"constraints = {values}")
    if contents.pending:
        click.echo(f"under way: {id_ranges(list(contents.pending))}")
    for result in contents.results:
        if result.status == "failed":
            click.echo(f"failed: point {result.id}: {result.message}")


def id_ranges(ids: list[int]) -> str:
    """Write rising numbers as ranges, such as 3, 5-8."""
    parts: list[list[int]] = []
    for id_ in ids:
        if parts and parts[-1][1] == id_ - 1:
            parts[-1][1] = id_
        else:
            parts.append([id_, id_])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
