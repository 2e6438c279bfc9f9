"""Constrained Thompson sampling: which candidates a joint draw selects.

In every draw the best candidate is the one of least sampled total violation (zero if it is sampled
feasible), ties broken by the sampled objective. A batch never takes a candidate twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


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
        contenders[:, empty] = _least_violation(constraints, free, empty, certainty)
    chosen = _least_objective(objective, contenders, certainty)
    # A draw whose contenders were all taken by others chooses again among what is left.
    for column in (chosen < 0).nonzero()[:, 0].tolist():
        free[chosen[chosen >= 0]] = False
        column_id = torch.tensor([column], device=free.device)
        rest = contenders & False
        rest[:, column_id] = _least_violation(constraints, free, column_id, certainty)
        chosen[column] = _least_objective(objective, rest, certainty)[column]
    return Selection(chosen, feasible)


def _sampled_feasible(like: Tensor, constraints: Sequence[Draws], certainty: float) -> Tensor:
    """Which candidates satisfy all constraints in which draw, shape of `like`, `(r, q)`."""
    alive = torch.ones_like(like, dtype=torch.bool)
    # The constraint that most candidates violate comes first: what it rules out costs no more.
    order = sorted(constraints, key=lambda draw: int((draw.value[:, 0] <= 0).sum()))
    for draw in order:
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


def _least_violation(
    constraints: Sequence[Draws], free: Tensor, columns: Tensor, certainty: float
) -> Tensor:
    """Which of the `free` candidates `(r,)` violate least in draws `columns`, shape `(r, k)`."""
    blocks = 1
    while True:
        least, most = (
            _total_violation(constraints, columns, sign * certainty).masked_fill_(
                ~free[:, None], torch.inf
            )
            for sign in (-1.0, 1.0)
        )
        contenders = (least <= most.amin(0)) & free[:, None]
        vague = contenders & (most > least)
        ids = vague.any(1).nonzero()[:, 0]
        if ids.numel() == 0:
            return contenders
        ids = ids[(least + most)[ids].amin(1).argsort(stable=True)]
        for draw in constraints:
            margin = certainty * draw.deviation[ids, None]
            matters = ((draw.value[ids][:, columns] + margin > 0) & (margin > 0)).any(1)
            open_ids = ids[matters]
            draw.draw(open_ids[: blocks * draw.first_block])
            draw.refresh(open_ids[blocks * draw.first_block :])
        blocks *= 2


def _total_violation(constraints: Sequence[Draws], columns: Tensor, deviations: float) -> Tensor:
    """Total violation so many deviations from the conditional means, shape `(r, k)`."""
    total = torch.zeros_like(constraints[0].value[:, columns])
    for draw in constraints:
        excess = draw.value[:, columns] + deviations * draw.deviation[:, None]
        total += excess.clamp_min_(0.0)
    return total


def _least_objective(objective: Draws, contenders: Tensor, certainty: float) -> Tensor:
    """For each draw the contender of least objective that no earlier draw took, -1 if none."""
    block = objective.first_block
    while True:
        margin = certainty * objective.deviation[:, None]
        most = (objective.value + margin).masked_fill_(~contenders, torch.inf)
        least = (objective.value - margin).masked_fill_(~contenders, torch.inf)
        chosen, available = _allocate(most, contenders)
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


def _allocate(value: Tensor, contenders: Tensor) -> tuple[Tensor, Tensor]:
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
