"""Makes processes believe that they are on another machine, on a disk whose locks are of no use.

Python imports this at its start when the folder is on its path: in the campaign, in the fork server
and in every run. CBO_TEST_MACHINE names the machine; CBO_TEST_LOCKS says how locks fail: "local"
grants every lock, as a network disk does whose locks hold on one machine only, "none" knows none.
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform

MACHINE = os.environ["CBO_TEST_MACHINE"]


def flock(handle: int, operation: int) -> None:
    """Lock nothing."""
    if os.environ["CBO_TEST_LOCKS"] == "none":
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


fcntl.flock = flock  # type: ignore[assignment]
platform.node = lambda: MACHINE
