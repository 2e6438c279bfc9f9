"""The data of the site: schema, fields, curves as CSV, and one's own runs beside the board."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

import cbo_suite as cbo
from cbo_suite.cli import main
from cbo_suite.cli.best_found import find_bests
from cbo_suite.journal import read_journal
from cbo_suite.leaderboard import build_board
from cbo_suite.problems.rover import Rover
from cbo_suite.protocols import Array
from cbo_suite.records import make_record, write_records
from cbo_suite.scoring.board import Board
from cbo_suite.scoring.board_schema import board_schema
from cbo_suite.site import build, write
from tests.make_records import make
from tests.site.browsing import ROOT, Visit

TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def faults(value: Any, schema: dict[str, Any], defs: dict[str, Any], at: str = "") -> list[str]:
    """Say where a value is not what a schema asks for; of the rules only those that ours uses."""
    if "$ref" in schema:
        return faults(value, defs[schema["$ref"].rpartition("/")[2]], defs, at)
    if "anyOf" in schema:
        found = [faults(value, one, defs, at) for one in schema["anyOf"]]
        return [] if [] in found else found[0]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{at}: {value}"]
    if schema["type"] == "array":
        if not isinstance(value, list):
            return [f"{at}: no list"]
        kinds = schema.get("prefixItems") or [schema["items"]] * len(value)
        parts = zip(value, kinds, strict=True)
        return [
            f for i, (one, kind) in enumerate(parts) for f in faults(one, kind, defs, f"{at}/{i}")
        ]
    if schema["type"] == "object" and not isinstance(value, dict):
        return [f"{at}: no object"]
    if schema["type"] == "object" and "properties" in schema:
        missing = [f"{at}: no {name}" for name in schema["required"] if name not in value]
        extra = [f"{at}: {name} unknown" for name in value if name not in schema["properties"]]
        return (
            missing
            + extra
            + [
                fault
                for name, one in value.items()
                if name in schema["properties"]
                for fault in faults(one, schema["properties"][name], defs, f"{at}/{name}")
            ]
        )
    if schema["type"] == "object":
        return []
    right = isinstance(value, TYPES[schema["type"]]) and (
        schema["type"] == "boolean" or not isinstance(value, bool)
    )
    return [] if right else [f"{at}: {value!r} is no {schema['type']}"]


def test_scores_are_what_the_schema_says(site: Path) -> None:
    """The file of the site, field by field; every field has a meaning."""
    schema = msgspec.json.decode((site / "scores.schema.json").read_bytes())
    assert schema == msgspec.json.decode(msgspec.json.encode(board_schema()))
    scores = msgspec.json.decode((site / "scores.json").read_bytes())
    assert faults(scores, schema, schema["$defs"]) == []
    scores["problems"][0]["rows"][0]["runs"] = "ten"
    del scores["tracks"][0]["title"]
    assert len(faults(scores, schema, schema["$defs"])) == 2
    page = (site / "data.html").read_text(encoding="utf-8")
    for name, definition in schema["$defs"].items():
        assert f'<h3 id="{name}">' in page
        assert all(about["description"] for about in definition["properties"].values())


def test_curves_are_the_boards(site: Path, board: Board) -> None:
    """All of them, as CSV beside the page of the problem."""
    for problem in board.problems:
        text = (site / "problem" / f"{problem.problem}.csv").read_text(encoding="utf-8")
        lines = list(csv.DictReader(text.splitlines()))
        assert len(lines) == len(problem.rows) * len(problem.evaluations)
        last = lines[-1]
        assert last["optimizer"] == problem.rows[-1].optimizer
        assert int(last["evaluations"]) == problem.budget
        assert float(last["regret_mean"]) == problem.rows[-1].curves.regret_mean[-1]


def test_own_runs_stand_beside_the_published_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In tables and in a site; the leaderboard stays as it is."""
    published = tmp_path / "leaderboard" / "runs" / "toy-2d-v1"
    for name, last in (("cobyla", 0.7), ("scbo", 0.65)):
        runs = [make([2.0, last], optimizer=name, problem="toy-2d-v1", seed=s) for s in range(3)]
        write_records(published / f"{name}.jsonl", runs)
    mine = [make([2.0, 0.61], optimizer="cobyla", problem="toy-2d-v1", seed=s) for s in range(2)]
    write_records(tmp_path / "mine" / "toy-2d-v1" / "cobyla.jsonl", mine)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["leaderboard", "compare", "mine"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    order = [line for line in done.output.splitlines() if "cobyla" in line or "scbo" in line]
    assert "mine:cobyla" in order[0]
    assert "scbo" in order[1]
    assert "0.61" in order[0]
    page = (tmp_path / "comparison" / "index.html").read_text(encoding="utf-8")
    assert 'value="mine:cobyla" checked' in page
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == before
    assert not (tmp_path / "leaderboard" / "scores.json").exists()
    (tmp_path / "empty").mkdir()
    refused = CliRunner().invoke(main, ["leaderboard", "compare", "empty"])
    assert refused.exit_code == 1
    assert "no records in empty" in refused.output


def test_published_records_are_those_of_the_checkout() -> None:
    """The default folder is where the repository has them."""
    help_ = CliRunner().invoke(main, ["leaderboard", "compare", "--help"]).output
    assert "leaderboard/runs" in help_
    assert (ROOT / "leaderboard" / "runs").is_dir()


@pytest.mark.slow
def test_best_paths_stand_on_the_map(tmp_path: Path, visit_to: Callable[..., Visit]) -> None:
    """That of each optimizer that is chosen, as its best point gives it."""
    rover = "rover-60d-v1"
    points: dict[str, tuple[tuple[float, float], Array]] = {}
    for name in ("random-search", "sobol-search"):
        runs = []
        for seed in range(2):
            journal = tmp_path / f"{name}-{seed}"
            run = cbo.run(rover, name, budget=6, batch_size=1, n_init=2, seed=seed, journal=journal)
            contents = read_journal(journal)
            assert contents is not None
            runs.append(make_record(contents))
            violation = np.maximum(run.constraints, 0).sum(axis=1)
            best = min(range(6), key=lambda i: (violation[i], run.objective[i]))
            outcome = violation[best], run.objective[best]
            points[name] = min(points.get(name, (outcome, run.x[best])), (outcome, run.x[best]),
                               key=lambda found: found[0])  # fmt: skip
        write_records(tmp_path / "runs" / rover / f"{name}.jsonl", runs)
    board = build_board(tmp_path / "runs")
    bests = find_bests(board, [tmp_path / "runs"])
    problem = cast(Rover, cbo.make_problem(rover))
    for name, (_, x) in points.items():
        expected = problem.trajectory(x[None])[0][::9]
        assert np.allclose(bests.trails[rover][name], expected, atol=1e-4)
    write(build(board, bests=bests), tmp_path / "site")
    visit = visit_to(tmp_path / "site")
    page = visit.open(f"problem/{rover}.html")
    assert page.locator(".sketch .trail").count() == 2
    page.locator("input[name='series'][value='random-search']").uncheck()
    assert page.locator(".sketch .trail").count() == 1


def test_best_points_have_the_values_that_are_named(board: Board) -> None:
    """Of every problem with a feasible run: feasible, and of the best value on the page."""
    folder = ROOT / "leaderboard" / "runs"
    points = find_bests(board, [folder]).points
    solved = [problem for problem in board.problems if problem.best_found is not None]
    assert set(points) == {problem.problem for problem in solved}
    assert len(solved) >= 10
    for problem in solved:
        evaluation = cbo.make_problem(problem.problem).evaluate(np.array([points[problem.problem]]))
        assert problem.best_found is not None
        assert evaluation.objective[0] == pytest.approx(problem.best_found.value, rel=1e-9)
        assert evaluation.constraints.max() <= 0
    pages = build(board, bests=find_bests(board, [folder]))
    page = pages["problem/toy-2d-v1.html"].decode()
    assert ", ".join(map(str, points["toy-2d-v1"])) in page


def test_front_page_tells_how_to_submit(site: Path) -> None:
    """In three lines, of commands and options that there are."""
    page = (site / "index.html").read_text(encoding="utf-8")
    lines = page.partition('id="submit"')[2].partition("<code>")[2].partition("</code>")[0]
    assert len(lines.splitlines()) == 3
    for line in lines.splitlines():
        program, command, *rest = line.split()
        assert program == "cbo"
        known = CliRunner().invoke(main, [command, "--help"]).output
        assert all(option in known for option in rest if option.startswith("--"))
