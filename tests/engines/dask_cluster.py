"""A dask cluster of real processes on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0


class Cluster:
    """A scheduler and any number of workers, each with one thread."""

    def __init__(self, folder: Path, **settings: str) -> None:
        """Start the scheduler with settings of dask as in the environment; its port is free."""
        self.folder, self._settings = folder, settings
        self.processes: list[subprocess.Popen[bytes]] = []
        self._file = folder / "scheduler.json"
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        limit = time.monotonic() + START_SECONDS
        while not self._file.exists() and time.monotonic() < limit:
            time.sleep(0.05)
        self.address: str = json.loads(self._file.read_text())["address"]

    def add_worker(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a worker with its nanny."""
        folder = self.folder / f"worker-{len(self.processes)}"
        folder.mkdir()
        local = ["--nthreads", "1", "--host", "127.0.0.1", "--local-directory", str(folder)]
        return self._start("worker", *local, *options)

    def wait_for_workers(self, count: int) -> None:
        """Wait until `count` workers are there."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=START_SECONDS)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a worker and its nanny, as a machine does that loses its power."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """Kill everything."""
        for process in self.processes:
            if process.poll() is None:
                self.kill(process)

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        """Start a part of the cluster in a session of its own."""
        command = [sys.executable, "-m", "dask", kind, "--scheduler-file", str(self._file)]
        log = (self.folder / f"{kind}-{len(self.processes)}.log").open("wb")
        process = subprocess.Popen(
            [*command, "--no-dashboard", *options],
            stdout=log,
            stderr=log,
            cwd=self.folder,
            env={**os.environ, **self._settings, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
        log.close()
        self.processes.append(process)
        return process
