"""Threads of linear algebra: few while an optimizer thinks, and as before everywhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

# Tells how many threads OpenBLAS and PyTorch have in the function, in ask and tell, and afterwards.
SCRIPT = """
import json, sys
import numpy as np
import torch
from threadpoolctl import threadpool_info
import cbo_suite as cbo
from cbo_suite.optimizers.random_search import RandomSearch

seen = {"fun": set(), "ask": set()}

def threads():
    blas = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    return (max(blas), torch.get_num_threads())

class Watching(RandomSearch):
    def ask(self, n=1):
        seen["ask"].add(threads())
        return super().ask(n)

    def tell(self, x, evaluation):
        seen["ask"].add(threads())
        if len(sys.argv) > 1:
            raise RuntimeError("in the middle")

def fun(x):
    seen["fun"].add(threads())
    return x[:, 0]

before = threads()
try:
    cbo.minimize(fun, [0.0], [1.0], budget=12, optimizer=Watching)
except cbo_error:
    pass
print(json.dumps([before, sorted(seen["ask"]), sorted(seen["fun"]), threads()]))
""".replace("cbo_error", "Exception")


def watch(*words: str, **variables: str) -> list[object]:
    """Run the script in a fresh process without settings of threads, but for these."""
    unset = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "CBO_THREADS")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        env=kept | variables,
        check=True,
        capture_output=True,
        text=True,
    )
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has one thread anyway")
@pytest.mark.parametrize("words", [(), ("fail",)])
def test_ask_and_tell_have_one_thread(words: tuple[str, ...]) -> None:
    """The function and what follows have what they had, also when the run fails."""
    before, ask, fun, after = watch(*words)
    assert ask == [[1, 1]]
    assert fun == [before]
    assert after == before


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has one thread anyway")
def test_the_user_decides() -> None:
    """By CBO_THREADS, or by the variables of the libraries, which are then left alone."""
    assert watch(CBO_THREADS="2")[1] == [[2, 2]]
    before, ask, *_ = watch(OMP_NUM_THREADS="2")
    assert ask == [before]
