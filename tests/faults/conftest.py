"""Misbehaving optimizers in child processes, and `cbo` as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.helpers import ROOT
from tests.faults.misbehaviour import PIDS, register


@pytest.fixture
def misbehaviour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Register the misbehaving optimizers for child processes; return the file of their words."""
    plugin = tmp_path / "plugin"
    register(plugin)
    monkeypatch.syspath_prepend(str(plugin))
    path = os.pathsep.join([str(plugin), str(ROOT), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    words = tmp_path / "words.txt"
    words.touch()
    monkeypatch.setenv(PIDS, str(words))
    return words


@pytest.fixture
def start_cbo(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `cbo` as a process of its own; what is left of it is killed after the test."""
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "cbo_suite", *arguments],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()
