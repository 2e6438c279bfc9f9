"""Starts a fork server: `python -P start.py`.

The first line on standard input is `{"path": [...], "preload": [...]}`: where to look for modules,
as the owner does, and which to import. Before it is read, only the standard library is in reach.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module


def main() -> None:
    """Read where to look for modules, then serve."""
    # The channel is kept from whatever else writes to standard output.
    commands, events = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    pending = b""
    while b"\n" not in pending:
        part = os.read(commands, 2**16)
        if not part:
            return
        pending += part
    line, _, pending = pending.partition(b"\n")
    setup = json.loads(line)
    sys.path[:] = setup["path"]
    server = import_module("cbo_suite.engines.supervise.server")
    server.serve(commands, events, pending, setup["preload"])
    # At once: taking down the libraries would take longer than all else.
    os._exit(0)


if __name__ == "__main__":
    main()
