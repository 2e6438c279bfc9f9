"""Constrained Thompson sampling: which candidates a joint draw selects.

In every draw the best candidate is the one of least sampled total violation (zero if it is sampled
feasible), ties broken by the sampled objective. A batch never takes a candidate twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from cbo_suite.optimizers.models.pathwise import unknown


class Draws(Protocol):
    """Joint draws of one function over r candidates, made where they are asked for.

    Attributes:
        value: Drawn values, and conditional means where not drawn, shape `(r, q)`.
        deviation: Conditional standard deviation, zero where the value is known, shape `(r,)`.
        first_block: How many candidates are best drawn at first; later blocks double.
    """

    value: Tensor
    deviation: Tensor
    first_block: int

    def draw(self, ids: Tensor) -> None:
        """Draw candidates `ids`."""

    def refresh(self, ids: Tensor) -> None:
        """Bring value and deviation of candidates `ids` up to date."""


class Constant:
    """A constraint that had one value wherever it was seen: known everywhere.

    Attributes:
        value: The value, shape `(r, q)`.
        deviation: Zero, shape `(r,)`.
        first_block: Nothing is ever drawn.
    """

    first_block = 0

    def __init__(self, candidates: Tensor, draws: int, value: float) -> None:
        """Repeat the value for all candidates `(r, d)` and draws."""
        self.value = torch.full_like(candidates[:, :1], value).expand(-1, draws)
        self.deviation = torch.zeros_like(candidates[:, 0])

    def draw(self, ids: Tensor) -> None:
        """Do nothing: it is known."""

    def refresh(self, ids: Tensor) -> None:
        """Do nothing: it is known."""


class Selection(NamedTuple):
    """What Thompson sampling chose.

    Attributes:
        chosen: Indices of the chosen candidates, shape `(q,)`.
        feasible: Number of candidates sampled feasible in each draw, shape `(q,)`.
    """

    chosen: Tensor
    feasible: Tensor


def select(objective: Draws, constraints: Sequence[Draws], certainty: float) -> Selection:
    """Choose one candidate per draw; there must be at least as many candidates as draws.

    Args:
        objective: Draws of the objective.
        constraints: Draws of the m constraints, feasible where at most zero.
        certainty: Deviations beyond which a sign or an order counts as certain.
    """
    contenders = _sampled_feasible(objective.value, constraints, certainty)
    feasible = contenders.sum(0)
    free = torch.ones_like(contenders[:, 0])
    empty = (feasible == 0).nonzero()[:, 0]
    if empty.numel() > 0:
        contenders[:, empty] = least_violation(constraints, free, empty, certainty)
    while True:
        chosen = _least_objective(objective, contenders, certainty)
        without = (chosen < 0).nonzero()[:, 0]
        if without.numel() == 0:
            return Selection(chosen, feasible)
        # Earlier draws took all contenders of this one: it chooses among what they left.
        first = without[:1]
        free = torch.ones_like(free)
        free[chosen[: int(first)]] = False
        left = least_violation(constraints, free, first, certainty)
        # Draws that are no numbers rule out every candidate: any will do.
        contenders[:, first] = left if bool(left.any()) else free[:, None]


def _sampled_feasible(like: Tensor, constraints: Sequence[Draws], certainty: float) -> Tensor:
    """Which candidates satisfy all constraints in which draw, shape of `like`, `(r, q)`."""
    alive = torch.ones_like(like, dtype=torch.bool)
    # The constraint that most candidates violate comes first: what it rules out costs no more.
    for draw in sorted(constraints, key=share_feasible):
        block = draw.first_block
        while True:
            margin = certainty * draw.deviation[:, None]
            vague = alive & (draw.value.abs() <= margin) & (margin > 0)
            ids = vague.any(1).nonzero()[:, 0]
            if ids.numel() == 0:
                break
            # Candidates stand in the order of a Sobol sequence: the first ones are spread evenly.
            draw.draw(ids[:block])
            draw.refresh(ids[block:])
            block *= 2
        alive &= draw.value <= 0
    return alive


def share_feasible(draw: Draws) -> float:
    """About which share of the candidates satisfies a constraint, by what is known of it."""
    known = draw.deviation < unknown(draw.deviation.dtype)
    return float((draw.value[known, 0] <= 0).double().mean()) if bool(known.any()) else 0.0


def least_violation(
    constraints: Sequence[Draws], free: Tensor, columns: Tensor, certainty: float
) -> Tensor:
    """Which of the `free` candidates `(r,)` violate least in draws `columns`, shape `(r, k)`."""
    order = sorted(constraints, key=share_feasible)
    blocks = 1
    while True:
        bounds = [_excess(draw, columns, certainty) for draw in order]
        least = torch.stack([low for low, _ in bounds]).sum(0)
        most = torch.stack([high for _, high in bounds]).sum(0)
        reach = most[free].amin(0)
        contenders = (least <= reach) & free[:, None]
        ids = (contenders & (most > least)).any(1).nonzero()[:, 0]
        if ids.numel() == 0:
            return contenders
        ids = ids[(least + most)[ids].amin(1).argsort(stable=True)]
        least, contenders = least[ids], contenders[ids]
        for draw, (low, high) in zip(order, bounds, strict=True):
            # What the constraints before this one have shown may rule candidates out already.
            vague = ids[(contenders & (least <= reach) & (high > low)[ids]).any(1)]
            draw.draw(vague[: blocks * draw.first_block])
            draw.refresh(vague[blocks * draw.first_block :])
            least += _excess(draw, columns, certainty)[0][ids] - low[ids]
        blocks *= 2


def _excess(draw: Draws, columns: Tensor, certainty: float) -> tuple[Tensor, Tensor]:
    """Least and largest violation of one constraint in draws `columns`, both `(r, k)`."""
    margin = certainty * draw.deviation[:, None]
    value = draw.value[:, columns]
    return (value - margin).clamp_min_(0.0), (value + margin).clamp_min_(0.0)


def _least_objective(objective: Draws, contenders: Tensor, certainty: float) -> Tensor:
    """For each draw the contender of least objective that no earlier draw took, -1 if none."""
    block = objective.first_block
    while True:
        margin = certainty * objective.deviation[:, None]
        most = (objective.value + margin).masked_fill_(~contenders, torch.inf)
        least = (objective.value - margin).masked_fill_(~contenders, torch.inf)
        chosen, available = allocate(most, contenders)
        columns = torch.arange(chosen.numel(), device=chosen.device)
        reach, found = most[chosen, columns], available[chosen, columns]
        available[chosen, columns] = False
        rivals = available & (least < reach) & ((margin > 0) | (objective.deviation[chosen] > 0))
        rivals[chosen, columns] = rivals.any(0)
        ids = (rivals & (margin > 0)).any(1).nonzero()[:, 0]
        if ids.numel() == 0:
            return torch.where(found, chosen, -1)
        ids = ids[least[ids].amin(1).argsort(stable=True)]
        objective.draw(ids[:block])
        objective.refresh(ids[block:])
        block *= 2


def allocate(value: Tensor, contenders: Tensor) -> tuple[Tensor, Tensor]:
    """Give each draw in turn its least contender that is not taken yet.

    Returns:
        Indices `(q,)`, and which contenders were available to each draw, shape `(r, q)`.
    """
    available = contenders.clone()
    chosen = value.argmin(0)
    taken: dict[int, None] = {}
    for column, index in enumerate(chosen.tolist()):
        if taken:
            available[list(taken), column] = False
        if index in taken:
            index = int(value[:, column].masked_fill(~available[:, column], torch.inf).argmin())
            chosen[column] = index
        if contenders[index, column]:
            taken[index] = None
    return chosen, available
