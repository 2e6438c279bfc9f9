"""What all tests share."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Heed Ctrl-C, which a shell makes those ignore that it starts in the background.

    What the tests start and interrupt would ignore it too.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
