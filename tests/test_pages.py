"""README.md opens as promised, and docs/data-format.md says what the code writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cbo_suite.journal import Batch, End, Header, Pending, read_journal
from cbo_suite.records import encode_record, make_record
from cbo_suite.records.lines import RecordLine, SampleLine
from cbo_suite.tasks import Task

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
FORMAT = (ROOT / "docs" / "data-format.md").read_text("utf-8")
EXTRAS = {"torch", "gymnasium", "matplotlib", "botorch", "cma", "pandas"}


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of a page that are in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def test_readme_opens_with_two_commands_and_ten_lines() -> None:
    """The first thing to read is two commands, the next a program of ten lines."""
    assert README.splitlines()[:5] == [
        "# cbo-suite",
        "",
        "```console",
        "$ make leaderboard",
        "$ make test",
    ]
    first, *_ = blocks(README, "[a-z]+")[1:]
    assert first == blocks(README, "python")[0]
    assert len(first.splitlines()) == 10


def test_readme_example_needs_the_core_only(tmp_path: Path) -> None:
    """The ten lines run as printed, find a feasible point and import no optional library."""
    program = blocks(README, "python")[0] + "\nimport sys\nprint(run.feasible, *sys.modules)\n"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    feasible, *modules = done.stdout.splitlines()[-1].split()
    assert feasible == "True"
    assert not EXTRAS & set(modules)


@pytest.mark.parametrize(
    ("struct", "number"),
    [(Task, 0), (Header, 1), (Batch, 2), (Pending, 3), (End, 4), (RecordLine, 5), (SampleLine, 6)],
)
def test_tables_name_every_field_in_order(struct: type[msgspec.Struct], number: int) -> None:
    """Each table of the page has the fields of the code, in the order they are written."""
    table = re.split(r"\| field \| type \| meaning \|\n", FORMAT)[number + 1]
    rows = table.partition("\n\n")[0]
    # The version is what tells lines of records apart, and written first.
    fields = ["schema"] * (struct is RecordLine) + list(struct.__struct_fields__)
    assert re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE) == fields


def test_example_lines_are_what_the_code_reads_and_writes(tmp_path: Path) -> None:
    """The printed journal is a whole journal, and the printed record is its record."""
    journal, printed = blocks(FORMAT, "json")
    path = tmp_path / "example.jsonl"
    path.write_text(journal, "utf-8")
    contents = read_journal(path)
    assert contents is not None
    record = make_record(contents)
    compact = json.dumps(json.loads(printed), separators=(",", ":"))
    assert encode_record(record).decode() == compact + "\n"
