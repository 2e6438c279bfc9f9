"""SCBO at the end of the vehicle's run, 69 models of 2000 points, takes less than 4 GB."""

from __future__ import annotations

import subprocess
import sys

# One step of the fit shows what all of them take. A process of its own has its own peak.
SCRIPT = """
import resource, sys
import cbo_suite
from cbo_suite.harness.design import initial_design
from cbo_suite.optimizers.models import surrogate
surrogate.ROUGH_STEPS = surrogate.FINAL_STEPS = 1
problem = cbo_suite.make_problem("vehicle-124d-v1")
optimizer = cbo_suite.make_optimizer("scbo", problem.space, budget=2010, batch_size=10, seed=0)
x = initial_design(problem.id, problem.space, 2000, 0)
optimizer.tell(x, problem.evaluate(x))
assert optimizer.ask(10).shape == (10, 124)
unit = 1 if sys.platform == "darwin" else 1024
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
"""


def test_memory_at_the_scale_of_the_vehicle() -> None:
    """Peak of the whole process, all of PyTorch included."""
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True
    )
    assert 1e9 < int(finished.stdout) < 4e9
