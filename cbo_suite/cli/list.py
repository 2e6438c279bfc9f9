"""`cbo list`: what there is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cbo_suite.registry import FamilyInfo, ProblemInfo


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def list_command(as_json: bool) -> None:
    """List problems, optimizers and suites."""
    from cbo_suite.registry import find_faults, list_families, list_optimizers, list_problems
    from cbo_suite.tasks import SUITES

    faults = find_faults()
    problems = [p._replace(title=_title(p.id, p.title, faults)) for p in list_problems()]
    optimizers = [o._replace(title=_title(o.id, o.title, faults)) for o in list_optimizers()]
    if as_json:
        listing = {
            "problems": [problem._asdict() for problem in problems],
            "families": [family._asdict() for family in list_families()],
            "optimizers": [optimizer._asdict() for optimizer in optimizers],
            "suites": [{"id": name, "title": suite.title} for name, suite in SUITES.items()],
        }
        click.echo(json.dumps(listing, indent=2))
        return
    from cbo_suite.cli.tables import print_table

    listed: list[ProblemInfo | FamilyInfo] = [*problems, *list_families()]
    print_table(
        "Problems",
        ("id", "d", "m", "what it is", "needs", "package"),
        [
            (p.id, _number(p.dim), _number(p.num_constraints), p.title, _extra(p.extra), p.package)
            for p in listed
        ],
        right=(1, 2),
    )
    print_table(
        "Optimizers",
        ("id", "what it is", "needs", "package"),
        [(o.id, o.title, _extra(o.extra), o.package) for o in optimizers],
    )
    print_table(
        "Suites", ("id", "what it is"), [(name, suite.title) for name, suite in SUITES.items()]
    )


def _title(id_: str, title: str, faults: dict[str, str]) -> str:
    """Say what a thing is, or why it cannot be made."""
    return f"broken: {faults[id_]}" if id_ in faults else title


def _number(value: int | str | None) -> str:
    """Write a number, or numbers, that another package may not have told."""
    return "?" if value is None else str(value)


def _extra(name: str) -> str:
    """Write an extra as pip takes it."""
    return f"[{name}]" if name else ""
