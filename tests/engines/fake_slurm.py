"""The commands of Slurm, as far as submitit calls them, on this machine.

A script of this module is put into a folder under the names sbatch, srun, scancel and sacct.
`sbatch` starts every job of an array as a process of its own and writes down what it was given.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

FIRST_ID = 4000


def install(folder: Path) -> None:
    """Write the commands into a folder."""
    folder.mkdir()
    for name in ("sbatch", "srun", "scancel", "sacct"):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {name} "$@"\n')
        script.chmod(0o755)


def sbatch(path: str) -> None:
    """Start the jobs of a script."""
    home = Path(os.environ["FAKE_SLURM"])
    text = Path(path).read_text()
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=?(.*)$", text, re.MULTILINE))
    number = FIRST_ID + len(list(home.glob("*.json")))
    (home / f"{number}.json").write_text(json.dumps(options))
    array = re.match(r"'?0-(\d+)%", options.get("array", ""))
    for index in range(int(array[1]) + 1) if array else [None]:
        job = f"{number}" if index is None else f"{number}_{index}"
        environment = {**os.environ, "SLURM_JOB_ID": job, "SLURM_PROCID": "0"}
        if index is not None:
            environment |= {"SLURM_ARRAY_JOB_ID": str(number), "SLURM_ARRAY_TASK_ID": str(index)}
        process = subprocess.Popen(
            ["/bin/bash", path],
            env=environment,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        (home / f"{job}.pid").write_text(str(process.pid))
    print(f"Submitted batch job {number}")


def srun(*words: str) -> None:
    """Run the command, its output where it belongs."""
    job = os.environ["SLURM_JOB_ID"]
    files = {}
    while words[0].startswith("--"):
        if words[0] in ("--output", "--error"):
            path = Path(words[1].replace("%A_%a", job).replace("%j", job).replace("%t", "0"))
            _wait_for_submission(path.parent)
            files[words[0]] = path.open("ab")
            words = words[1:]
        words = words[1:]
    command = [shlex.split(word)[0] for word in words]
    os.dup2(files["--output"].fileno(), 1)
    os.dup2(files["--error"].fileno(), 2)
    os.execv(command[0], command)  # noqa: S606 - no shell on purpose


def _wait_for_submission(folder: Path) -> None:
    """Wait until submitit has put the job into its folder, which is after `sbatch` returns."""
    deadline = time.monotonic() + 60.0
    while not any(folder.glob("*_submitted.pkl")) and time.monotonic() < deadline:
        time.sleep(0.02)


def scancel(*jobs: str) -> None:
    """Tell jobs to end."""
    home = Path(os.environ["FAKE_SLURM"])
    with (home / "cancelled.log").open("a") as log:
        log.write(" ".join(jobs) + "\n")
    for job in jobs:
        try:
            os.killpg(int((home / f"{job}.pid").read_text()), signal.SIGTERM)
        except (ProcessLookupError, FileNotFoundError):
            continue


def sacct(*_: str) -> None:
    """Know nothing of any job."""
    print("JobID|State|NodeList")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
