"""Malformed and hostile result files are refused: file and field named, fast, in little memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from cbo_suite.cli import main
from cbo_suite.records import encode_record
from cbo_suite.verify import verify_file
from tests.submissions.corpus import CORPUS, OPTIMIZER, PROBLEM, place
from tests.submissions.honest import run_records

MEASURE = Path(__file__).parents[1] / "submissions" / "measure.py"
# `make test` mutates a few hundred files; set this to 10000 for the whole fuzz.
MUTATIONS = int(os.environ.get("CBO_FUZZ", "300"))


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of an honest file: ten runs of random search."""
    folder = tmp_path_factory.mktemp("journals")
    return [encode_record(record) for record in run_records(folder, PROBLEM, OPTIMIZER, range(10))]


@pytest.fixture(scope="module")
def measured(
    honest: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What verifying each file of the corpus gave, in one process for all."""
    root = tmp_path_factory.mktemp("corpus")
    paths = []
    for number, case in enumerate(CORPUS.values()):
        folder = root / str(number)
        folder.mkdir()
        paths.append(case.make(folder, honest))
    listing = root / "list"
    listing.write_text("".join(json.dumps(str(path)) + "\n" for path in paths), "utf-8")
    done = subprocess.run(
        [sys.executable, MEASURE, listing], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(CORPUS, found, strict=True))


def test_the_honest_file_passes(honest: list[bytes], tmp_path: Path) -> None:
    """What the corpus is made from is fine, so each refusal is due to its one change."""
    path = place(tmp_path)
    path.write_bytes(b"".join(honest))
    verdict = verify_file(path)
    assert verdict.complaints == []
    assert verdict.status == "verified"
    assert verdict.provisional


def test_there_are_many_of_them() -> None:
    """The corpus has what the list of known attacks asks for, and more."""
    assert len(CORPUS) >= 90


@pytest.mark.parametrize("name", CORPUS)
def test_refused_with_file_and_field(name: str, measured: dict[str, dict[str, Any]]) -> None:
    """The complaint names file and field, and what is wrong; it is printable."""
    found = measured[name]
    assert found["status"] == "refused"
    complaints = found["complaints"]
    assert complaints
    for complaint in complaints:
        assert complaint.startswith(f"{found['file']}, ")
        assert re.search(r", field [^:]+: .", complaint), complaint
        assert complaint.isprintable()
        assert len(complaint) < 1000
    assert re.search(CORPUS[name].message, complaints[0]), complaints


def test_refused_quickly_in_little_memory(measured: dict[str, dict[str, Any]]) -> None:
    """No file takes two seconds or 200 MB, Python and its libraries included."""
    assert {name: row["seconds"] for name, row in measured.items() if row["seconds"] >= 2.0} == {}
    assert max(row["megabytes"] for row in measured.values()) < 200.0


def test_command_refuses_without_a_traceback(honest: list[bytes], tmp_path: Path) -> None:
    """The command exits with 1 and a line for each complaint; good files are told apart."""
    for folder in ("bad", "good"):
        (tmp_path / folder).mkdir()
    bad = CORPUS["wrong budget"].make(tmp_path / "bad", honest)
    good = place(tmp_path / "good")
    good.write_bytes(b"".join(honest))
    done = CliRunner().invoke(main, ["verify", str(bad), str(good)])
    assert done.exit_code == 1
    assert "refused: " in done.stderr
    assert "line 5, field objective" in done.stderr
    assert "1 verified, 0 unverified, 1 refused" in done.stdout
    assert "Traceback" not in done.output


def mutate(data: bytes, random: np.random.Generator) -> bytes:
    """Change, remove, repeat or insert some bytes."""
    raw = bytearray(data)
    for _ in range(random.integers(1, 4)):
        start = int(random.integers(0, len(raw)))
        end = start + int(random.integers(1, 40))
        kind = random.integers(0, 5)
        if kind == 0:
            raw[start] = int(random.integers(0, 256))
        elif kind == 1:
            del raw[start:end]
        elif kind == 2:
            raw[start:start] = raw[start:end]
        elif kind == 3:
            raw[start:end] = random.bytes(end - start)
        else:
            signs = b'{}[]",:0-9.eE+nulltruefals\\u"'
            raw[start] = signs[int(random.integers(0, len(signs)))]
    return bytes(raw)


ODD_VALUES: list[Any] = [
    *(None, True, -1, 0, 2**63, 1e308, -0.0, "", "nan", "inf", "\u202e", "\0", "A" * 1000),
    *([], {}, [[]], [None], [1e308] * 100, [0] * 100, {"a": {}}, {"": ""}),
]


def restructure(data: bytes, random: np.random.Generator) -> bytes:
    """Replace, remove or repeat a value somewhere in the structure of a record."""
    lines = data.splitlines(keepends=True)
    place = int(random.integers(len(lines)))
    record = json.loads(lines[place])
    node: Any = record
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            break
        key = keys[int(random.integers(len(keys)))]
        if isinstance(node[key], dict | list) and node[key] and random.random() < 0.7:
            node = node[key]
            continue
        kind = random.integers(3)
        if kind == 0:
            del node[key]
        elif kind == 1 and isinstance(node, list):
            node.insert(key, node[key])
        else:
            node[key] = ODD_VALUES[int(random.integers(len(ODD_VALUES)))]
        break
    lines[place] = json.dumps(record).encode() + b"\n"
    return b"".join(lines)


def test_mutated_files_never_crash_the_reader(honest: list[bytes], tmp_path: Path) -> None:
    """Whatever bytes are changed: refused with file and field, or nothing of weight changed."""
    random = np.random.default_rng(6)
    path = place(tmp_path)
    data = b"".join(honest)
    refused = 0
    slowest = 0.0
    for trial in range(MUTATIONS):
        path.write_bytes((mutate if trial % 2 else restructure)(data, random))
        start = time.process_time()
        verdict = verify_file(path)
        slowest = max(slowest, time.process_time() - start)
        assert all(", field " in complaint for complaint in verdict.complaints)
        refused += verdict.status == "refused"
    # Times, options and facts of the machine are all that may change unseen.
    assert refused > 0.8 * MUTATIONS
    assert slowest < 1.0
