"""The optimizers of the suite.

This table is all that listing needs: it imports none of the optimizers.
"""

from __future__ import annotations

from cbo_suite.protocols import OptimizerEntry

OPTIMIZERS: dict[str, OptimizerEntry] = {
    "random-search": OptimizerEntry(
        "cbo_suite.optimizers.random_search:RandomSearch", "Uniform random points"
    ),
    "sobol-search": OptimizerEntry(
        "cbo_suite.optimizers.random_search:SobolSearch", "Scrambled Sobol points"
    ),
}
