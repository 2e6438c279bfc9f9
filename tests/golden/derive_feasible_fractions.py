"""Estimate which share of the box of each analytic problem is feasible, and print it.

Run from the root of the repository, about three minutes:

    python -m tests.golden.derive_feasible_fractions

Ackley and Keane need no sampling. Ackley's feasible set is half a ball. For Keane the chance that
c1 fails is a tail of the gamma distribution, since minus the logarithm of a uniform number is
exponential; the chance that c2 fails is a tail of the Irwin-Hall distribution, computed in rational
numbers. Smaller coordinates favour the first event and larger ones the second, so that the chance
of both is at most the product of the two (inequality of Harris).
"""

from __future__ import annotations

import math
from fractions import Fraction
from importlib import import_module

import numpy as np
from scipy.special import gammaincc

from cbo_suite.problems import PROBLEMS

SAMPLES = 40_000_000
BATCH = 100_000
SAMPLED = (
    "tension-string-3d-v1",
    "pressure-vessel-4d-v1",
    "welded-beam-4d-v1",
    "speed-reducer-7d-v1",
    "toy-2d-v1",
    "rosenbrock-5d-v1",
)


def sample(problem_id: str) -> tuple[float, float]:
    """Return the share of uniform points that is feasible, and its standard error."""
    module, attribute = PROBLEMS[problem_id].target.split(":")
    problem = getattr(import_module(module), attribute)()
    generator = np.random.default_rng(2024)
    feasible = 0
    for _ in range(SAMPLES // BATCH):
        x = problem.space.from_unit(generator.random((BATCH, problem.space.dim)))
        feasible += int(np.sum(problem.evaluate(x).feasible))
    share = feasible / SAMPLES
    return share, math.sqrt(share * (1 - share) / SAMPLES)


def keane_infeasible(dim: int) -> tuple[float, float]:
    """Return the chances that c1 and that c2 fails at a uniform point."""
    small_product = float(gammaincc(dim, dim * math.log(10) - math.log(0.75)))
    # A sum above 3/4 of the most is as likely as one below 1/4 of it.
    limit = Fraction(dim, 4)
    large_sum = sum(
        (-1) ** k * math.comb(dim, k) * (limit - k) ** dim for k in range(math.floor(limit) + 1)
    ) / math.factorial(dim)
    return small_product, float(large_sum)


def main() -> None:
    """Print one line per problem."""
    for problem_id in SAMPLED:
        share, error = sample(problem_id)
        print(f"{problem_id}: {share:.6g} +- {error:.1g}", flush=True)
    half_ball = math.pi**5 / 120 * 5**10 / 2
    print(f"ackley-10d-v1: {half_ball / 15**10:.10g}")
    for dim in (10, 20, 30, 50):
        first, second = keane_infeasible(dim)
        share = 1 - first - second
        print(f"keane-{dim}d-v1: {share:.17g}, at most {first * second:.1g} more", end=" ")
        print(f"(c1 fails {first:.4g}, c2 fails {second:.4g})")


if __name__ == "__main__":
    main()
