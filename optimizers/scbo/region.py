"""The life of one trust region: which results are its own, and how they move it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cbo_suite.optimizers.scbo.archive import from_ranges, to_ranges
from cbo_suite.optimizers.scbo.trust_region import TrustRegion, best_index, improves
from cbo_suite.protocols import Array


@dataclass
class Region:
    """A trust region with its data.

    Attributes:
        number: How many restarts came before.
        trust: Side length and counters.
        design_asked: Points of its own initial design that were asked.
        members: Results that belong to it, as indices into the archive.
        waiting: Those of them that the models chose and that no batch has counted yet.
    """

    number: int
    trust: TrustRegion
    design_asked: int = 0
    members: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    def add(self, index: int, from_model: bool) -> None:
        """Take in a result."""
        self.members.append(index)
        if from_model:
            self.waiting.append(index)

    def centre(self, objective: Array, violation: Array) -> int:
        """Index of the best member, by values over the whole archive, both `(n,)`."""
        return self.members[best_index(objective[self.members], violation[self.members])]

    def judge(self, objective: Array, violation: Array, absolute_gain: float | None = None) -> None:
        """Count every complete batch as success or failure.

        Results that come one at a time form a batch in the order of their arrival, so that
        asynchronous runs count as batches do. A batch succeeds if one of its points improves on
        the best member told before it.

        Args:
            objective: Values to compare, over the whole archive, shape `(n,)`.
            violation: Total violations, shape `(n,)`.
            absolute_gain: The least gain of the objective; relative to its value if None.
        """
        size = self.trust.batch_size
        while len(self.waiting) >= size and not self.trust.finished:
            batch, self.waiting = self.waiting[:size], self.waiting[size:]
            before = [index for index in self.members if index < batch[0]]
            rival = best_index(objective[before], violation[before])
            best = batch[best_index(objective[batch], violation[batch])]
            self.trust.update(
                improves(
                    float(objective[best]),
                    float(violation[best]),
                    float(objective[before[rival]]),
                    float(violation[before[rival]]),
                    absolute_gain,
                )
            )

    def get_state(self) -> dict[str, Any]:
        """Everything but the data, as plain JSON."""
        return {
            "number": self.number,
            "length": self.trust.length,
            "successes": self.trust.successes,
            "failures": self.trust.failures,
            "design_asked": self.design_asked,
            "members": to_ranges(self.members),
            "waiting": to_ranges(self.waiting),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], dim: int, batch_size: int) -> Region:
        """Make the region that `get_state` described."""
        trust = TrustRegion(dim, batch_size, state["length"], state["successes"], state["failures"])
        return cls(
            state["number"],
            trust,
            state["design_asked"],
            from_ranges(state["members"]),
            from_ranges(state["waiting"]),
        )
