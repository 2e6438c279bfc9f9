"""What the two sides say to each other."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from cbo_suite.protocols import Array


class Load(msgspec.Struct, tag="load"):
    """Find an optimizer: a registered id, or "module:attribute"."""

    optimizer: str


class Make(msgspec.Struct, tag="make"):
    """Make the optimizer."""

    options: dict[str, Any]
    lower: list[float]
    upper: list[float]
    num_constraints: int
    integer: list[int]
    log_scale: list[int]
    linear_matrix: list[list[float]]
    linear_limit: list[float]
    budget: int
    batch_size: int
    seed: int


class ExpectDesign(msgspec.Struct, tag="expect-design"):
    """Say that a design of n points will be told."""

    n: int


class Ask(msgspec.Struct, tag="ask"):
    """Ask for up to n points."""

    n: int


class Tell(msgspec.Struct, tag="tell"):
    """Tell k points `(k, d)` and their values."""

    x: bytes
    objective: bytes
    constraints: bytes


class Answer(msgspec.Struct):
    """What comes back: points where they were asked for, or what went wrong."""

    x: bytes = b""
    sequential: bool = False
    error: str = ""
    missing: bool = False


Request = Load | Make | ExpectDesign | Ask | Tell


def pack(values: Array) -> bytes:
    """Write numbers as little-endian doubles."""
    return np.ascontiguousarray(values, dtype="<f8").tobytes()
