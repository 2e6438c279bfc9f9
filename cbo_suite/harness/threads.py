"""How many threads linear algebra has while an optimizer thinks.

Libraries start a thread per core. For models of some hundred results that is slower than one, and
on a busy machine many times slower, because every product waits for the last of its threads. So ask
and tell have one thread, unless somebody says otherwise; the user's own function, and what happens
after the run, have as many as before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

from cbo_suite.errors import InvalidTask
from cbo_suite.system import LINEAR_ALGEBRA

VARIABLE = "CBO_THREADS"


def chosen_threads() -> int | None:
    """Return the number of threads of ask and tell, None to leave everything as it is.

    It is one; the variable CBO_THREADS names another. Who has set OMP_NUM_THREADS or its like has
    decided already.

    Raises:
        InvalidTask: CBO_THREADS is not a number of threads.
    """
    text = os.environ.get(VARIABLE)
    if text is None:
        return None if any(name in os.environ for name in LINEAR_ALGEBRA) else 1
    if not text.isdecimal() or not 1 <= int(text) <= 4096:
        raise InvalidTask(f"{VARIABLE} must be a number of threads from 1 on, got {text!r}")
    return int(text)


class Threads:
    """Gives ask and tell their threads and takes them back."""

    def __init__(self) -> None:
        self._count = chosen_threads()
        self._controller: ThreadpoolController | None = None
        self._with_torch = False

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Limit the threads of NumPy, SciPy and PyTorch, and restore them however it ends."""
        if self._count is None:
            yield
            return
        torch = sys.modules.get("torch")
        # An optimizer may import PyTorch late, with libraries of its own.
        if self._controller is None or self._with_torch != (torch is not None):
            self._controller, self._with_torch = ThreadpoolController(), torch is not None
        before = torch.get_num_threads() if torch is not None else 0
        with self._controller.limit(limits=self._count):
            if torch is not None:
                torch.set_num_threads(self._count)
            try:
                yield
            finally:
                if torch is not None:
                    torch.set_num_threads(before)
