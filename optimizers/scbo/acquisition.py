"""Which candidates to evaluate: Thompson sampling or expected improvement on the models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.models.joint import JointDraws, certainty
from cbo_suite.optimizers.models.pathwise import PathwiseDraws
from cbo_suite.optimizers.scbo import improvement, thompson
from cbo_suite.optimizers.scbo.surrogate import Model
from cbo_suite.optimizers.scbo.thompson import Constant, Draws

ACQUISITIONS = ("ts", "ei")
SAMPLERS = ("auto", "exact", "pathwise")
# Number of models times square of the number of candidates up to which "auto" draws exactly.
EXACT_LIMIT = 5e7


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
    ) -> tuple[NDArray[np.int64], list[int]]:
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
            # Draws without randomness are posterior means, which a batch takes as observed.
            objective, *constraints = _draws(model, candidates, 1, None)
            chosen = improvement.select(objective, constraints, best_feasible, count)
            return chosen.cpu().numpy(), []
        pathwise = self._is_pathwise(model, candidates)
        objective, *constraints = _draws(model, candidates, count, generator, pathwise)
        tests = candidates.shape[0] * count * (1 + len(constraints))
        picked = thompson.select(objective, constraints, certainty(tests))
        return picked.chosen.cpu().numpy(), picked.feasible.tolist()

    def _is_pathwise(self, model: Model, candidates: Tensor) -> bool:
        """Whether draws are approximated by random functions."""
        large = len(model.scale) * candidates.shape[0] ** 2 > EXACT_LIMIT
        return self._sampler == "pathwise" or (self._sampler == "auto" and large)


def _draws(
    model: Model,
    candidates: Tensor,
    count: int,
    generator: np.random.Generator | None,
    pathwise: bool = False,
) -> list[Draws]:
    """Draws of the objective and of all constraints, in units of the transformed observations."""
    draws: list[Draws] = []
    for index in range(len(model.scale)):
        place = float(model.offset[index]), float(model.scale[index])
        if pathwise and generator is not None:
            draws.append(PathwiseDraws(model.gp, index, candidates, count, generator, *place))
        else:
            draws.append(JointDraws(model.gp, index, candidates, count, generator, *place))
    return [*draws, *(Constant(candidates, count, value) for value in model.constants)]
