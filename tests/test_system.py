"""What the operating system knows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from cbo_suite.system import cores, signal_name


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_cores_are_those_that_this_process_may_use() -> None:
    """A process that is bound to one core has one, whatever the machine has."""
    code = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    code += "from cbo_suite.system import cores; print(cores())"
    bound = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(bound.stdout) == 1
    assert cores() == len(os.sched_getaffinity(0))


def test_signals_have_names_where_the_system_gives_them_one() -> None:
    """Others have a number."""
    assert signal_name(signal.SIGSEGV) == "SIGSEGV"
    assert signal_name(1000) == "signal 1000"
