"""Run a command of `cbo` whose processes fly the lunar lander by a library.

    python -m tests.flights.campaign FOLDER paper run --stage control --out runs/paper

Python imports `sitecustomize` when it starts, in every process of a campaign; that of the folder
`hook` puts the library's flights in the place of the simulator's as soon as the problem is there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = "CBO_FLIGHTS"  # variable of the environment with the folder of the library


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of processes that fly by the library in a folder."""
    path = [str(Path(__file__).with_name("hook")), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        FOLDER: str(folder.resolve()),
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }


def main(folder: Path, command: list[str]) -> None:
    """Become the command."""
    arguments = [sys.executable, "-m", "cbo_suite", *command]
    os.execve(sys.executable, arguments, environment(folder))  # noqa: S606


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
