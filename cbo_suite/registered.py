"""What the registry tells of problems, families and optimizers without importing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class ProblemInfo(NamedTuple):
    """What is known of a registered problem without importing it.

    Attributes:
        id: Its versioned id.
        dim: Number of variables, None where another package does not say.
        num_constraints: Number of constraints, None where another package does not say.
        title: One line that says what it is.
        extra: The optional extra it needs, "" for none.
        package: The distribution that registers it.
        seconds: What one evaluation takes, roughly, None where another package does not say.
    """

    id: str
    dim: int | None
    num_constraints: int | None
    title: str
    extra: str
    package: str
    seconds: float | None = None


class FamilyInfo(NamedTuple):
    """What is known of a family, whose problems are made on demand.

    Attributes:
        id: The ids of its problems, the names of the parameters in angle brackets.
        dim: Numbers of variables, in words.
        num_constraints: Numbers of constraints, in words.
        title: What they are, and which values the parameters have.
        extra: The optional extra it needs, "" for none.
        package: The distribution that registers it.
    """

    id: str
    dim: str
    num_constraints: str
    title: str
    extra: str
    package: str


class OptimizerInfo(NamedTuple):
    """What is known of a registered optimizer without importing it.

    Attributes:
        id: Its id.
        title: One line that says what it is.
        extra: The optional extra it needs, "" for none.
        package: The distribution that registers it.
        target: "module:attribute" of its class or factory; variants of a method share it.
        options: What is bound to it, before the user's own options.
        method: Id of the method that it is a variant of; its own for the method itself.
    """

    id: str
    title: str
    extra: str
    package: str
    target: str
    options: Mapping[str, Any]
    method: str
