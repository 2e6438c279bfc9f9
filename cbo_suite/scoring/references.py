"""Frozen reference values of each problem version: what makes scores comparable for good.

`cbo references` derives those of a new problem; those of the paper's problems were derived by
`tests/golden/derive_references.py`. A test evaluates every witness again. A value is never edited:
where runs found better points, `references-2.json` and its successors hold the new values of these
problems, and all others keep those they have. A board can be built with any version.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from cbo_suite.errors import InvalidTask, RecordError

REFERENCES = "references.json"


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
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
        version: Version of the references that the values came with.
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
    version: int = 1


def found_by(optimizer: str, seed: int) -> str:
    """Name the run that found a best point, as the source of its reference does."""
    return f"best: found by {optimizer} with seed {seed},"


def suite_file(version: int = 1) -> Path:
    """Return the file with the references of the suite's own problems that a version brought."""
    name = REFERENCES if version == 1 else f"references-{version}.json"
    return Path(__file__).with_name(name)


def latest_version() -> int:
    """Return the newest version of the references that ship with the package."""
    version = 1
    while suite_file(version + 1).exists():
        version += 1
    return version


@cache
def load_references(version: int | None = None) -> dict[str, Reference]:
    """Read the reference values that ship with the package, by problem id.

    Args:
        version: As they were in this version; None for the newest.

    Raises:
        InvalidTask: There is no such version.
    """
    newest = latest_version()
    if version is not None and not 1 <= version <= newest:
        raise InvalidTask(f"there is no version {version} of the references: take 1 to {newest}")
    known: dict[str, Reference] = {}
    for brought in range(1, (version or newest) + 1):
        known |= read_references(suite_file(brought))
    return known


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
