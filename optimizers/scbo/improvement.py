"""Constrained expected improvement over a candidate set, in batches.

The score of a candidate is the logarithm of its expected improvement on the best feasible value,
plus the logarithms of the probabilities that each constraint holds; without a feasible value it is
the probabilities alone. A batch is built greedily: each choice is taken to be observed at its
posterior mean (the "kriging believer"), which leaves all means and shrinks the deviations, and the
best feasible value stays the observed one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cbo_suite.optimizers.models.improvement import SMALLEST_DEVIATION, log_improvement
from cbo_suite.optimizers.scbo.thompson import Draws


def select(
    objective: Draws, constraints: Sequence[Draws], best_feasible: float | None, count: int
) -> Tensor:
    """Choose `count` candidates one after another.

    Args:
        objective: Posterior of the objective over r candidates (draws of the believer, q = 1).
        constraints: Posteriors of the constraints, feasible where at most zero.
        best_feasible: Least objective of a feasible observation, None if there is none.
        count: Number of candidates to choose.

    Returns:
        Indices of the chosen candidates, shape `(count,)`.
    """
    everything = torch.arange(objective.value.shape[0], device=objective.value.device)
    free = torch.ones_like(everything, dtype=torch.bool)
    chosen: list[Tensor] = []
    for number in range(count):
        score = log_score(objective, constraints, best_feasible)
        index = score.masked_fill(~free, -torch.inf).argmax()
        if not free[index]:  # every score is minus infinity: the first candidate that is left
            index = free.int().argmax()
        free[index] = False
        chosen.append(index)
        if number + 1 < count:
            for draw in (objective, *constraints):
                draw.draw(index[None])
                draw.refresh(everything)
    return torch.stack(chosen)


def log_score(
    objective: Draws, constraints: Sequence[Draws], best_feasible: float | None
) -> Tensor:
    """Log of constrained expected improvement, or of feasibility alone, shape `(r,)`."""
    score = torch.zeros_like(objective.deviation)
    for draw in constraints:
        deviation = draw.deviation.clamp_min(SMALLEST_DEVIATION)
        score += torch.special.log_ndtr(-draw.value[:, 0] / deviation)
    if best_feasible is not None:
        deviation = objective.deviation.clamp_min(SMALLEST_DEVIATION)
        gap = (best_feasible - objective.value[:, 0]) / deviation
        score += log_improvement(gap) + deviation.log()
    return score
