"""The identities under which the suite's own optimizers have made results.

They stand in `released.jsonl`, one a line, which is only ever appended to: a published row stays
the row of its optimizer when the code goes on. `tests/release_identities.py` writes it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("released.jsonl")


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An identity of an optimizer that has made results.

    Attributes:
        id: Id of the optimizer.
        version: Version of cbo-suite that had it.
        identity: The identity, 64 hexadecimal digits.
    """

    id: str
    version: str
    identity: str


def read_releases(text: bytes) -> list[Release]:
    """Read what `released.jsonl` holds."""
    decoder = msgspec.json.Decoder(Release)
    return [decoder.decode(line) for line in text.splitlines()]


@cache
def released_identities() -> frozenset[tuple[str, str]]:
    """Return all pairs of an optimizer's id and an identity that were released."""
    return frozenset((release.id, release.identity) for release in read_releases(FILE.read_bytes()))
