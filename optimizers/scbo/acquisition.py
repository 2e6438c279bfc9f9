"""Which candidates to evaluate: Thompson sampling or expected improvement on the models."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.models.joint import JointDraws, certainty
from cbo_suite.optimizers.models.pathwise import PathwiseDraws
from cbo_suite.optimizers.scbo import improvement, thompson
from cbo_suite.optimizers.scbo.surrogate import Model
from cbo_suite.optimizers.scbo.thompson import Constant, Draws

ACQUISITIONS = ("ts", "ei")
SAMPLERS = ("auto", "exact", "pathwise")
# Frequencies of a pathwise draw; tests/optimizers/test_sampling_law.py shows that they suffice.
NUM_FREQUENCIES = 4096


class Acquisition:
    """Chooses candidates by the models."""

    def __init__(self, kind: str, sampler: str) -> None:
        """Check the names.

        Raises:
            InvalidTask: There is no such acquisition or sampler.
        """
        for name, value, known in (
            ("acquisition", kind, ACQUISITIONS),
            ("sampler", sampler, SAMPLERS),
        ):
            if value not in known:
                raise InvalidTask(f"{name} must be one of {', '.join(known)}, got {value!r}")
        self._kind, self._sampler = kind, sampler

    def choose(
        self,
        model: Model,
        candidates: Tensor,
        count: int,
        best_feasible: float | None,
        generator: np.random.Generator,
    ) -> tuple[np.ndarray, list[int]]:
        """Choose `count` of the candidates `(r, d)` of the unit cube.

        Args:
            model: Models of objective and constraints.
            candidates: Points of the unit cube, shape `(r, d)`, at least `count` of them.
            count: Number of points to choose.
            best_feasible: Least transformed objective of a feasible observation, None if none is.
            generator: Source of randomness.

        Returns:
            Indices `(count,)`, and the numbers of candidates sampled feasible in each draw (none
            for expected improvement).
        """
        if self._kind == "ei":
            objective, *constraints = self._draws(model, candidates, 1, None)
            chosen = improvement.select(objective, constraints, best_feasible, count)
            return chosen.cpu().numpy(), []
        objective, *constraints = self._draws(model, candidates, count, generator)
        tests = candidates.shape[0] * count * len(model.scale)
        picked = thompson.select(objective, constraints, certainty(tests))
        return picked.chosen.cpu().numpy(), picked.feasible.tolist()

    def _draws(
        self, model: Model, candidates: Tensor, draws: int, generator: np.random.Generator | None
    ) -> list[Draws]:
        """Joint draws of the objective and of all constraints."""
        constants = [Constant(candidates, draws, value) for value in model.constants]
        modelled: list[Draws] = []
        for index, (offset, scale) in enumerate(zip(model.offset, model.scale, strict=True)):
            if generator is not None and self._is_pathwise(model, candidates):
                modelled.append(
                    PathwiseDraws(
                        model.gp,
                        index,
                        candidates,
                        draws,
                        generator,
                        num_frequencies=NUM_FREQUENCIES,
                        offset=float(offset),
                        scale=float(scale),
                    )
                )
            else:
                modelled.append(
                    JointDraws(
                        model.gp,
                        index,
                        candidates,
                        draws,
                        generator,
                        offset=float(offset),
                        scale=float(scale),
                    )
                )
        return [*modelled, *constants]

    def _is_pathwise(self, model: Model, candidates: Tensor) -> bool:
        """Whether draws are approximated."""
        return self._sampler == "pathwise"
