"""The tree over the evaluations of a run: what it commits to, and what opens it."""

from __future__ import annotations

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cbo_suite.protocols import Evaluation
from cbo_suite.records.tree import compute_root, follow_path, hash_leaves, make_path


def leaves_of(size: int) -> list[bytes]:
    """Make leaves that differ."""
    return [hashlib.sha256(b"%d" % number).digest() for number in range(size)]


def test_a_tree_of_three_is_hashed_by_hand() -> None:
    """Leaves behind a zero byte, nodes behind a one, a node without a sibling as it is."""
    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    values = Evaluation(np.array([7.0, np.nan, -0.0]), np.array([[0.5], [np.nan], [2.0]]))
    leaves = hash_leaves(range(3), x, values, "ofn")
    first = np.array([1.0, 2.0, 7.0, 0.5], dtype="<f8").tobytes()
    assert leaves[0] == hashlib.sha256(b"\0" + bytes(8) + first + b"o").digest()
    pair = hashlib.sha256(b"\1" + leaves[0] + leaves[1]).digest()
    assert compute_root(leaves) == hashlib.sha256(b"\1" + pair + leaves[2]).digest()
    assert compute_root([]) == hashlib.sha256().digest()
    # Nothing of an evaluation can change without its leaf.
    changed = [
        hash_leaves(range(1, 4), x, values, "ofn"),
        hash_leaves(range(3), x + 1e-15, values, "ofn"),
        hash_leaves(range(3), x, Evaluation(values.objective + 1, values.constraints), "ofn"),
        hash_leaves(range(3), x, Evaluation(values.objective, values.constraints + 1), "ofn"),
        hash_leaves(range(3), x, values, "noo"),
    ]
    assert all(other[0] != leaves[0] for other in changed)


@given(st.integers(1, 70), st.data())
def test_a_path_opens_some_leaves_and_no_others(size: int, data: st.DataObject) -> None:
    """It leads to the root; no bit of it, of a leaf or of the size can be another."""
    leaves = leaves_of(size)
    numbers = data.draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=32))
    root, path = compute_root(leaves), make_path(leaves, sorted(numbers))
    opened = {number: leaves[number] for number in numbers}
    assert follow_path(size, opened, path) == root
    assert follow_path(size, opened, path + bytes(32)) is None
    assert follow_path(size, opened, path[:-1]) is None or not path
    forged = dict(opened)
    forged[min(numbers)] = hashlib.sha256(b"forged").digest()
    assert follow_path(size, forged, path) != root
    if path:
        place = data.draw(st.integers(0, len(path) - 1))
        flipped = path[:place] + bytes([path[place] ^ 1]) + path[place + 1 :]
        assert follow_path(size, opened, flipped) != root
