"""Check what an optimizer asks for."""

from __future__ import annotations

import numpy as np

from cbo_suite.errors import CboError
from cbo_suite.protocols import Array, Space


def valid_points(space: Space, x: object, wanted: int) -> Array:
    """Check what an optimizer asked for; clip what rounding put outside the box.

    Raises:
        CboError: These are not 1 to `wanted` points of the space.
    """
    if not isinstance(x, np.ndarray):
        raise CboError(f"it must give a NumPy array, got {type(x).__name__}")
    if x.dtype.kind not in "fiu":
        raise CboError(f"it must give real numbers, got dtype {x.dtype}")
    if x.ndim != 2 or x.shape[1] != space.dim or not 1 <= len(x) <= wanted:
        raise CboError(
            f"it must give 1 to {wanted} points of {space.dim} coordinates each, got an "
            f"array of shape {x.shape}"
        )
    return space.validate(space.snap(x))
