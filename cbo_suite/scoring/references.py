"""Frozen reference values of each problem version: what makes scores comparable for good.

`references.json` is written by `tests/golden/derive_references.py`; a test evaluates every witness
again. A change of a value is a new version of the scores, never an edit.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What scoring knows of a problem version.

    Attributes:
        best: Best known feasible objective value.
        best_x: A feasible point with that value.
        worst: Largest feasible objective value found by global maximisation, or a bound of it.
        worst_x: A feasible point with that value; None if the value is not that of such a point.
        level: Where the targets begin: the median final value of the runs of random search at the
            problem's protocol that end feasible, or `worst` where none does.
        budget: Number of evaluations of the problem's protocol.
        n_init: Number of initial points of the problem's protocol.
        feasibility_tolerance: Largest total violation that counts as feasible.
        optional: Whether not everybody can run the problem, as it needs what cannot be shipped. It
            has its own page, and no part in the overall score.
        source: Where the values come from.
    """

    best: float
    best_x: list[float]
    worst: float
    worst_x: list[float] | None
    level: float
    budget: int
    n_init: int
    feasibility_tolerance: float
    optional: bool
    source: str


@cache
def load_references() -> dict[str, Reference]:
    """Read the reference values that ship with the package, by problem id."""
    data = files("cbo_suite.scoring").joinpath("references.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Reference])
