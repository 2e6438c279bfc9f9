"""A real terminal for commands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


def on_terminal(command: Sequence[str], cwd: Path | None = None, **environment: str) -> str:
    """Run a command on a terminal of its own; it must succeed. Return what it showed."""
    pty = pytest.importorskip("pty", reason="needs a Unix terminal")
    parent, child = pty.openpty()
    process = subprocess.Popen(
        command, cwd=cwd, stdout=child, stderr=child, stdin=child, env=os.environ | environment
    )
    os.close(child)
    output = b""
    while True:
        try:
            data = os.read(parent, 4096)
        except OSError:
            break
        if not data:
            break
        output += data
    os.close(parent)
    assert process.wait() == 0
    return output.decode()
