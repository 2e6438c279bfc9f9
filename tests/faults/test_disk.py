"""A full or read-only disk: a clear error, and what was there is intact."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.helpers import records_without_times

pytestmark = pytest.mark.skipif(os.name != "posix", reason="campaigns run on Linux and macOS")
PATIENCE = 120.0
PLAN = ("run", "--problems", "toy-2d", "--seeds", "0-3", "--jobs", "1", "--batch-size", "10")
Cbo = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cbo(tmp_path: Path) -> Cbo:
    """Call `cbo` in a process of its own, in which files may be limited in size."""

    def call(*arguments: str, largest: int | None = None) -> subprocess.CompletedProcess[str]:
        program = "import resource, sys; from cbo_suite.cli import main; main()"
        if largest is not None:
            limit = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({largest}, {largest}))"
            program = program.replace("from", f"{limit}; from", 1)
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE
        )

    return call


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of half a megabyte, where that is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount(folder, "size=512k", "-t", "tmpfs", "tmpfs")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S607


def mount(folder: Path, options: str, *arguments: str) -> None:
    """Mount or remount a folder; where that is not allowed, the test is skipped."""
    try:
        subprocess.run(
            ["mount", "-o", options, *arguments, str(folder)],  # noqa: S607
            check=True,
            capture_output=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small disk needs to be root on Linux")


def all_files(folder: Path) -> dict[Path, bytes]:
    """Return every file of finished runs below a folder."""
    return {path: path.read_bytes() for path in folder.glob("*/*/*.jsonl")}


def test_a_full_disk(cbo: Cbo, small_disk: Path, tmp_path: Path) -> None:
    """The message names the cause; finished runs are as they were; with room it goes on."""
    first = cbo(*PLAN, "--optimizers", "random-search", "--budget", "100", "--out", "disk/runs")
    assert first.returncode == 0, first.stdout + first.stderr
    before = all_files(small_disk / "runs")
    large = (*PLAN, "--optimizers", "sobol-search", "--budget", "4000", "--out", "disk/runs")
    full = cbo(*large)
    output = full.stdout + full.stderr
    assert full.returncode == 1, output
    assert "No space left on device" in output
    assert "intact" in output
    assert "Traceback" not in output
    assert {path: path.read_bytes() for path in before} == before
    assert not list(small_disk.rglob("*.claim"))
    mount(small_disk, "remount,size=16m")
    again = cbo(*large)
    assert again.returncode == 0, again.stdout + again.stderr
    elsewhere = cbo(*large[:-1], "elsewhere")
    assert elsewhere.returncode == 0
    found = records_without_times(small_disk / "runs")
    whole = records_without_times(tmp_path / "elsewhere")
    assert found["toy-2d-v1/sobol-search.jsonl"] == whole["toy-2d-v1/sobol-search.jsonl"]


def test_files_that_cannot_grow(cbo: Cbo, tmp_path: Path) -> None:
    """What a quota does: each run says why it cannot go on, and goes on when it may."""
    plan = (*PLAN, "--optimizers", "random-search", "--budget", "400")
    stuck = cbo(*plan, largest=20_000)
    output = stuck.stdout + stuck.stderr
    assert stuck.returncode == 1, output
    assert "File too large" in output
    assert "intact" in output
    assert "Traceback" not in output
    assert all(data.endswith(b"\n") for data in all_files(tmp_path / "runs").values())
    assert cbo(*plan).returncode == 0
    assert cbo(*plan, "--out", "elsewhere").returncode == 0
    found, whole = (records_without_times(tmp_path / name) for name in ("runs", "elsewhere"))
    assert found == whole
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_read_only_disk(cbo: Cbo, small_disk: Path) -> None:
    """Nothing can be run there, what is there can be looked at."""
    plan = (*PLAN, "--optimizers", "random-search", "--budget", "50", "--out", "disk/runs")
    assert cbo(*plan).returncode == 0
    before = all_files(small_disk / "runs")
    mount(small_disk, "remount,ro")
    refused = cbo(*plan, "--seeds", "0-9")
    assert refused.returncode == 1
    assert "Read-only file system" in refused.stderr
    assert "choose another folder" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert all_files(small_disk / "runs") == before
    assert "4 runs: 4 done" in cbo("status", "disk/runs").stdout
    # What is done needs no writing.
    assert "4 of 4 runs done" in cbo(*plan).stdout


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(cbo: Cbo, tmp_path: Path) -> None:
    """The same for a folder that the user may not write."""
    (tmp_path / "runs").mkdir(mode=0o555)
    refused = cbo(*PLAN, "--optimizers", "random-search", "--budget", "50")
    assert refused.returncode == 1
    assert "Permission denied" in refused.stderr
    assert "Traceback" not in refused.stderr
