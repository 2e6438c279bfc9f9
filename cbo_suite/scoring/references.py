"""Frozen reference values of each problem version: what makes scores comparable for good.

`cbo references` derives those of a new problem; those of the paper's problems were derived by
`tests/golden/derive_references.py`. A test evaluates every witness again. A change of a value is a
new version of the scores, never an edit.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from cbo_suite.errors import RecordError

REFERENCES = "references.json"


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
        optional: Whether not everybody can run the problem, as it needs what cannot be shipped.
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


def suite_file() -> Path:
    """Return the file with the references of the suite's own problems."""
    return Path(__file__).with_name(REFERENCES)


@cache
def load_references() -> dict[str, Reference]:
    """Read the reference values that ship with the package, by problem id."""
    return read_references(suite_file())


def read_references(path: Path) -> dict[str, Reference]:
    """Read a file of reference values, by problem id.

    Raises:
        RecordError: It cannot be read, or holds something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Reference])
    except (OSError, msgspec.DecodeError) as error:
        raise RecordError(f"{path} is no file of reference values: {error}") from error


def encode_references(references: dict[str, Reference]) -> bytes:
    """Write reference values as `read_references` reads them; equal ones are equal bytes."""
    return msgspec.json.format(msgspec.json.encode(references), indent=1) + b"\n"
