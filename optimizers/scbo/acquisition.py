"""Which candidates to evaluate: Thompson sampling or expected improvement on the models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.models.batch_gp import BatchGP
from cbo_suite.optimizers.models.joint import JointDraws, certainty
from cbo_suite.optimizers.models.pathwise import NUM_FREQUENCIES, PathwiseDraws, frequencies
from cbo_suite.optimizers.models.surrogate import Model
from cbo_suite.optimizers.scbo import objective_first, thompson
from cbo_suite.optimizers.scbo.thompson import Constant, Draws
from cbo_suite.optimizers.shared.believer import choose_batch

ACQUISITIONS = ("ts", "ei")
SAMPLERS = ("auto", "exact", "pathwise")
MODELS = ("auto", "dense", "keops")
# Number of models times square of the number of candidates up to which "auto" draws exactly.
EXACT_LIMIT = 5e7


class Acquisition:
    """Chooses candidates by the models.

    Attributes:
        models: Kind of the models it needs: "dense", "keops", or "auto" for either.
    """

    def __init__(self, kind: str, sampler: str, models: str) -> None:
        """Check the names and whether they go together.

        Raises:
            InvalidTask: There is no such acquisition, sampler or kind of models, or the models
                cannot do what is asked of them.
        """
        for name, value, known in (
            ("acquisition", kind, ACQUISITIONS),
            ("sampler", sampler, SAMPLERS),
            ("models", models, MODELS),
        ):
            if value not in known:
                raise InvalidTask(f"{name} must be one of {', '.join(known)}, got {value!r}")
        dense = kind == "ei" or sampler == "exact"
        if dense and models == "keops":
            raise InvalidTask(
                'acquisition "ei" and sampler "exact" need Cholesky factors, which models "keops" '
                'do not have: leave models at "auto"'
            )
        self._kind, self._sampler = kind, sampler
        self.models = "dense" if dense else models

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
            best = best_feasible
            if best is not None:
                best = (best - float(model.offset[0])) / float(model.scale[0])
            # The best feasible value stays the observed one.
            chosen = choose_batch(model, candidates, candidates[:0], best, count, trust_means=False)
            return chosen.cpu().numpy(), []
        pathwise = self._is_pathwise(model, candidates)
        objective, *constraints = _draws(model, candidates, count, generator, pathwise)
        constraints += [Constant(candidates, count, value) for value in model.constants]
        tests = candidates.shape[0] * count * (1 + len(constraints))
        rule = objective_first.select if pathwise else thompson.select
        picked = rule(objective, constraints, certainty(tests))
        return picked.chosen.cpu().numpy(), picked.feasible.tolist()

    def _is_pathwise(self, model: Model, candidates: Tensor) -> bool:
        """Whether draws are approximated by random functions."""
        large = len(model.scale) * candidates.shape[0] ** 2 > EXACT_LIMIT
        return self._sampler == "pathwise" or (self._sampler == "auto" and large)


def _draws(
    model: Model,
    candidates: Tensor,
    count: int,
    generator: np.random.Generator,
    pathwise: bool,
) -> list[Draws]:
    """Draws of the objective and the constraints that vary, in transformed units."""
    draws: list[Draws] = []
    spectrum = None
    if pathwise and isinstance(model.gp, BatchGP):
        # One for all models: to draw it takes a third of what a model's draw takes otherwise.
        spectrum = frequencies(NUM_FREQUENCIES, candidates.shape[1], generator)
    for index in range(len(model.scale)):
        place = float(model.offset[index]), float(model.scale[index])
        if not isinstance(model.gp, BatchGP):
            # Not at the top: KeOps takes seconds to import, and few runs need it.
            from cbo_suite.optimizers.models.keops.gp import KeopsDraws

            draws.append(KeopsDraws(model.gp, index, candidates, count, generator, *place))
        elif pathwise:
            own = model.dense, index, candidates, count, generator, *place
            draws.append(PathwiseDraws(*own, spectrum=spectrum))
        else:
            draws.append(JointDraws(model.dense, index, candidates, count, generator, *place))
    return draws
