"""Write down how long published runs took, for the estimates of `cbo run --dry-run`.

Run from the root of the repository when rows were made:

    python -m tests.write_durations [FOLDER ...]

It reads the records under leaderboard/runs and in the folders that are named besides, such as a
campaign's, and writes `cbo_suite/campaign/durations.json`: for each problem and optimizer the
median seconds of the processor in ask and tell of a run at the problem's protocol.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec

from cbo_suite.campaign.durations import FILE
from cbo_suite.records import read_records
from cbo_suite.registry import protocol_of

RUNS = Path("leaderboard/runs")


def measured_seconds(folders: Iterable[Path]) -> dict[str, dict[str, float]]:
    """Return the median seconds of complete runs, by problem and optimizer."""
    seen: dict[tuple[str, str], list[float]] = defaultdict(list)
    for path in sorted(file for folder in folders for file in folder.glob("*/*.jsonl")):
        for record in read_records(path):
            task = record.task
            known = record.seconds_processor is not None and record.status == "complete"
            if known and task.budget == protocol_of(task.problem).budget:
                seen[task.problem, task.optimizer].append(record.seconds_processor or 0.0)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for (problem, optimizer), seconds in sorted(seen.items()):
        found[problem][optimizer] = float(f"{statistics.median(seconds):.3g}")
    return dict(found)


def main() -> None:
    """Write the table."""
    found = measured_seconds([RUNS, *map(Path, sys.argv[1:])])
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    sys.stdout.write(f"{sum(map(len, found.values()))} pairs in {FILE.name}\n")


if __name__ == "__main__":
    main()
