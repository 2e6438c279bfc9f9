"""Constrained Thompson sampling with random functions: the objective is looked at first.

The values of random functions do not depend on the order in which they are computed, so the order
is free. The objective is computed at all candidates; the constraints then only where the objective
is so low that the candidate may be chosen, and one after another, until one is violated. What is
chosen is what `thompson.select` chooses when it knows everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cbo_suite.optimizers.scbo.thompson import (
    Draws,
    Selection,
    allocate,
    least_violation,
    share_feasible,
)

# So many candidates are looked at first, about, in all draws together; then twice as many.
FIRST_LOOK = 128


def select(objective: Draws, constraints: Sequence[Draws], certainty: float) -> Selection:
    """Choose one candidate per draw; there must be at least as many candidates as draws.

    Args:
        objective: Random functions of the objective.
        constraints: Random functions of the m constraints, feasible where at most zero.
        certainty: Deviations beyond which a sign or an order counts as certain.

    Returns:
        The chosen candidates, and how many are known to be feasible in each draw: not all are
        looked at.
    """
    count, draws = objective.value.shape
    objective.draw(torch.arange(count, device=objective.value.device))
    search = _Search(objective.value, sorted(constraints, key=share_feasible))
    block = max(1, FIRST_LOOK // draws)
    while True:
        chosen, found = search.best()
        unsure = found & ~search.settled & ~search.checked[chosen]
        if bool(unsure.any()):
            search.look(unsure.nonzero()[:, 0], block)
            block *= 2
            continue
        without = (~found).nonzero()[:, 0]
        if without.numel() == 0:
            return Selection(chosen, search.known_feasible())
        free = torch.ones_like(search.checked)
        empty = without[~search.contenders[:, without].any(0)]
        if empty.numel() == 0:
            # Earlier draws took all contenders of this one: it chooses among what they left.
            empty = without[:1]
            free[chosen[: int(empty)]] = False
        left = least_violation(constraints, free, empty, certainty)
        # Draws that are no numbers rule out every candidate: any will do.
        search.contenders[:, empty] = torch.where(left.any(0), left, free[:, None])
        search.settled[empty] = True


class _Search:
    """What is known of the candidates.

    Attributes:
        contenders: Which candidates are not known to be infeasible in which draw, `(r, q)`.
        checked: Whether all constraints of a candidate are known, shape `(r,)`.
        settled: In which draws the contenders are those of least violation, shape `(q,)`.
    """

    def __init__(self, objective: Tensor, constraints: Sequence[Draws]) -> None:
        """Begin with all candidates: objective `(r, q)`, constraints in the order to look at."""
        self._objective, self._constraints = objective, constraints
        self.contenders = torch.ones_like(objective, dtype=torch.bool)
        self.checked = torch.zeros_like(self.contenders[:, 0])
        self.settled = torch.zeros_like(self.contenders[0])

    def best(self) -> tuple[Tensor, Tensor]:
        """The best contender of each draw that no earlier one took, and whether there is one."""
        value = self._objective.masked_fill(~self.contenders, torch.inf)
        chosen, available = allocate(value, self.contenders)
        return chosen, available.gather(0, chosen[None])[0]

    def known_feasible(self) -> Tensor:
        """Number of candidates that are known to be feasible in each draw, shape `(q,)`."""
        return (self.contenders & self.checked[:, None]).sum(0)

    def look(self, columns: Tensor, block: int) -> None:
        """Look at the `block` best contenders that are not checked, of each draw of `columns`."""
        open_pairs = self.contenders[:, columns] & ~self.checked[:, None]
        value = self._objective[:, columns].masked_fill(~open_pairs, torch.inf)
        best = value.topk(min(block, value.shape[0]), dim=0, largest=False).indices
        wanted = torch.zeros_like(open_pairs).scatter_(0, best, True) & open_pairs
        ids = wanted.any(1).nonzero()[:, 0]
        wanted = wanted[ids]
        for draw in self._constraints:
            draw.draw(ids)
            self.contenders[ids] &= (draw.value[ids] <= 0) | self.settled
            wanted &= self.contenders[ids][:, columns]
            left = wanted.any(1)
            ids, wanted = ids[left], wanted[left]
        self.checked[ids] = True
