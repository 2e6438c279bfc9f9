"""Rows that lie, each in its own way: none of them is verified, and none takes long."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cbo_suite.verify import verify_file
from tests.submissions.claims import CLAIMS
from tests.submissions.forged import FORGERIES as EDITS
from tests.submissions.honest import run_records
from tests.submissions.material import OPTIMIZER, Material, file_of, make_material

FORGERIES = EDITS | CLAIMS
MEASURE = Path(__file__).parents[1] / "submissions" / "measure.py"


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    """True runs to lie about."""
    (like,) = run_records(tmp_path_factory.mktemp("run"), "toy-2d-v1", "random-search", [0])
    return make_material(like)


@pytest.fixture(scope="module")
def found(
    material: Material, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What verifying each forgery gave, in one process for all."""
    root = tmp_path_factory.mktemp("forged")
    paths = []
    for number, forgery in enumerate(FORGERIES.values()):
        path = root / str(number) / forgery.problem / f"{OPTIMIZER}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(forgery.make(material))
        paths.append(path)
    listing = root / "list"
    listing.write_text("".join(json.dumps(str(path)) + "\n" for path in paths), "utf-8")
    done = subprocess.run(
        [sys.executable, MEASURE, listing], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(FORGERIES, lines, strict=True))


def test_true_runs_are_verified(material: Material, tmp_path: Path) -> None:
    """What forgeries are made of is fine, so each is refused for its own idea."""
    for row in (material.small, material.large):
        path = tmp_path / row.records[0].task.problem / f"{OPTIMIZER}.jsonl"
        path.parent.mkdir()
        path.write_bytes(file_of(row.records))
        verdict = verify_file(path)
        assert (verdict.status, verdict.complaints) == ("verified", [])


def test_there_are_many_ideas() -> None:
    """At least forty, each said in a line of its own."""
    ideas = [forgery.idea for forgery in FORGERIES.values()]
    assert len(set(ideas)) == len(ideas) >= 40


@pytest.mark.parametrize("name", FORGERIES)
def test_no_forgery_is_verified(name: str, found: dict[str, dict[str, Any]]) -> None:
    """What is said against it is what it tries."""
    row = found[name]
    assert row["status"] in ("refused", "unverified")
    said = " ".join([*row["complaints"], *row["skipped"]])
    assert re.search(FORGERIES[name].message, said), said


def test_no_forgery_takes_long(found: dict[str, dict[str, Any]]) -> None:
    """Not two seconds, not 200 MB."""
    assert {name: row["seconds"] for name, row in found.items() if row["seconds"] >= 2.0} == {}
    assert max(row["megabytes"] for row in found.values()) < 200.0
