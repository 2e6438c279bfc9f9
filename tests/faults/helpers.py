"""What the fault tests share: how long, who is left, what a campaign left on the disk."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

from cbo_suite.campaign.leases import started

ROOT = Path(__file__).parents[2]
# `make faults` asks for the long form, `make test` runs a short one.
FULL = os.environ.get("CBO_FAULTS") == "full"


def survivors(processes: Iterable[int], seconds: float = 5.0) -> list[int]:
    """Return which processes still live after `seconds`; as soon as none does, none."""
    deadline = time.monotonic() + seconds
    left = [process for process in processes if started(process)]
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [process for process in left if started(process)]
    return left


def parent_of(process: int) -> int:
    """Return the parent of a process."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def children(process: int) -> list[int]:
    """Return the processes that descend from one, nearest first."""
    found = []
    todo = [process]
    while todo:
        parent = todo.pop(0)
        for path in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                new = [int(word) for word in path.read_text().split()]
            except OSError:
                continue
            found += new
            todo += new
    return found


def records_without_times(folder: Path) -> dict[str, list[dict[str, object]]]:
    """Return every record file below a folder, line by line, with the times taken out."""
    files = {}
    for path in sorted(folder.glob("*/*.jsonl")):
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        files[path.relative_to(folder).as_posix()] = [
            {key: value for key, value in line.items() if not key.startswith("seconds_")}
            for line in lines
        ]
    return files
