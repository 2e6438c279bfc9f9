"""Estimate which share of the box of each analytic problem is feasible, and print it.

Run from the root of the repository, about ten minutes, or name some:

    python -m tests.golden.derive_feasible_fractions [ID...]

Where the feasible set is tiny, points are drawn in a smaller box that is shown to hold it, and the
share is multiplied by that of the smaller box.

Ackley and Keane need no sampling. Ackley's feasible set is half a ball. For Keane the chance that
c1 fails is a tail of the gamma distribution, since minus the logarithm of a uniform number is
exponential; the chance that c2 fails is a tail of the Irwin-Hall distribution, computed in rational
numbers. Smaller coordinates favour the first event and larger ones the second, so that the chance
of both is at most the product of the two (inequality of Harris).
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from importlib import import_module

import numpy as np
from scipy.special import gammaincc

from cbo_suite.errors import PartialEvaluation
from cbo_suite.problems import PROBLEMS
from cbo_suite.tasks import PHYSICS, get_suite

SAMPLES = 40_000_000
BATCH = 100_000
SAMPLED = (
    *PHYSICS,
    "toy-2d-v1",
    "rosenbrock-5d-v1",
    *(id_ for id_ in get_suite("g-problems").problems if id_ != "g02-20d-v1"),
    "failing-g19-15d-v1",
)
# Boxes that hold the feasible set: variable, counted from 1, to its bounds.
BOXES: dict[str, dict[int, tuple[float, float]]] = {
    # c7 to c9 and the bounds: x10, x11 and x12 are at most 3.
    "g01-13d-v1": {10: (0.0, 3.0), 11: (0.0, 3.0), 12: (0.0, 3.0)},
    # c2 is a circle of radius 9.1 around (6, 5); c1 leaves out a circle around (5, 5).
    "g06-2d-v1": {1: (13.0, 15.1), 2: (0.0, 14.1)},
    # c5 bounds x1 and x3, since x2 >= -4 and x4 <= 10; c4 bounds x2; c7 x5; c8 x9.
    "g07-10d-v1": {1: (-4.3, 4.3), 2: (-4.0, 10.0), 3: (-3.6, 9.8), 5: (-3.66, 3.66), 9: (4.7, 10)},
    # c1 keeps (x2, x1) above a parabola, c2 beside another.
    "g08-2d-v1": {1: (1.0, 3.0), 2: (2.0, 6.0)},
    # c1, since x4, x6 >= 10, and c3, c4.
    "g10-8d-v1": {4: (10.0, 390.0), 6: (10.0, 390.0)},
    # Corners lie within 1 of the origin or of (0, x9), and x9 is at most 1.
    "g18-9d-v1": {
        **dict.fromkeys((1, 3, 4, 5, 6, 7), (-1.0, 1.0)),
        **dict.fromkeys((2, 8), (-1.0, 2.0)),
        9: (0.0, 1.0),
    },
}


def sample(problem_id: str) -> tuple[float, float]:
    """Return the share of uniform points that is feasible, and its standard error."""
    module, attribute = PROBLEMS[problem_id].target.split(":")
    problem = getattr(import_module(module), attribute)()
    generator = np.random.default_rng(2024)
    lower, upper = problem.space.lower.copy(), problem.space.upper.copy()
    for variable, bounds in BOXES.get(problem_id, {}).items():
        lower[variable - 1], upper[variable - 1] = bounds
    volume = float(np.prod((upper - lower) / (problem.space.upper - problem.space.lower)))
    feasible = 0
    for _ in range(SAMPLES // BATCH):
        x = np.clip(lower + (upper - lower) * generator.random((BATCH, lower.size)), lower, upper)
        try:
            evaluation = problem.evaluate(x)
        except PartialEvaluation as partial:
            evaluation = partial.evaluation
        feasible += int(np.sum(evaluation.feasible))
    share = feasible / SAMPLES
    return volume * share, volume * math.sqrt(share * (1 - share) / SAMPLES)


def keane_infeasible(dim: int) -> tuple[float, float]:
    """Return the chances that c1 and that c2 fails at a uniform point."""
    small_product = float(gammaincc(dim, dim * math.log(10) - math.log(0.75)))
    # A sum above 3/4 of the most is as likely as one below 1/4 of it.
    limit = Fraction(dim, 4)
    large_sum = sum(
        (-1) ** k * math.comb(dim, k) * (limit - k) ** dim for k in range(math.floor(limit) + 1)
    ) / math.factorial(dim)
    return small_product, float(large_sum)


def main(ids: list[str]) -> None:
    """Print one line per problem; the named ones, or all."""
    for problem_id in ids or SAMPLED:
        share, error = sample(problem_id)
        print(f"{problem_id}: {share:.6g} +- {error:.1g}", flush=True)
    if ids:
        return
    half_ball = math.pi**5 / 120 * 5**10 / 2
    print(f"ackley-10d-v1: {half_ball / 15**10:.10g}")
    for dim in (10, 20, 30, 50):
        first, second = keane_infeasible(dim)
        share = 1 - first - second
        print(f"keane-{dim}d-v1: {share:.17g}, at most {first * second:.1g} more", end=" ")
        print(f"(c1 fails {first:.4g}, c2 fails {second:.4g})")


if __name__ == "__main__":
    main(sys.argv[1:])
