"""A Merkle tree over the evaluations of a run: a root commits to all, a path opens some.

Leaves and inner nodes are hashed behind different first bytes, so that neither passes for the
other. A node without a sibling moves up as it is. One path opens several leaves: it holds, level
by level from the leaves up and from left to right, the siblings that cannot be computed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from cbo_suite.protocols import Array, Evaluation

HASH_BYTES = 32


def hash_leaves(
    numbers: Iterable[int], x: Array, evaluation: Evaluation, statuses: str
) -> list[bytes]:
    """Hash evaluations: number, point, objective, constraints and the letter of the status.

    Args:
        numbers: Numbers of the evaluations, counted from 0 in the order told.
        x: Points, shape `(k, d)`.
        evaluation: Their values.
        statuses: One letter for each.
    """
    table = np.column_stack([x, evaluation.objective, evaluation.constraints])
    # One bit pattern for every NaN.
    rows = np.where(np.isnan(table), np.nan, table).astype("<f8")
    return [
        hashlib.sha256(
            b"\x00" + int(number).to_bytes(8, "little") + row.tobytes() + letter.encode()
        ).digest()
        for number, row, letter in zip(numbers, rows, statuses, strict=True)
    ]


def compute_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root of a tree; that of no leaves is the hash of nothing."""
    return _levels(leaves)[-1][0] if leaves else hashlib.sha256().digest()


def make_path(leaves: Sequence[bytes], numbers: Sequence[int]) -> bytes:
    """Return the siblings that lead from some leaves to the root."""
    path, known = b"", sorted(numbers)
    for level in _levels(leaves)[:-1]:
        path += b"".join(level[place] for place in _missing(known, len(level)))
        known = sorted({place // 2 for place in known})
    return path


def follow_path(size: int, leaves: Mapping[int, bytes], path: bytes) -> bytes | None:
    """Compute the root of a tree from some leaves and their siblings.

    Args:
        size: Number of leaves of the whole tree.
        leaves: Number to hash of the leaves that are opened, at least one.
        path: What `make_path` gave.

    Returns:
        The root, None if the path is too long or too short.
    """
    known, position = dict(leaves), 0
    while size > 1:
        for place in _missing(sorted(known), size):
            known[place] = path[position : position + HASH_BYTES]
            position += HASH_BYTES
        if position > len(path):
            return None
        known = {
            place // 2: _join(known[place], known[place + 1]) if place + 1 < size else known[place]
            for place in sorted(known)
            if place % 2 == 0
        }
        size = -(-size // 2)
    return known[0] if position == len(path) else None


def _levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """Return all levels of a tree, from the leaves to the root."""
    levels = [list(leaves)]
    while len(levels[-1]) > 1:
        level = levels[-1]
        pairs = [_join(*level[place : place + 2]) for place in range(0, len(level) - 1, 2)]
        levels.append(pairs + level[len(level) - len(level) % 2 :])
    return levels


def _missing(known: Sequence[int], size: int) -> list[int]:
    """Number the siblings, on a level of this size, of known nodes that are not known."""
    there = set(known)
    return [place ^ 1 for place in known if place ^ 1 < size and place ^ 1 not in there]


def _join(left: bytes, right: bytes) -> bytes:
    """Hash two nodes into the one above them."""
    return hashlib.sha256(b"\x01" + left + right).digest()
