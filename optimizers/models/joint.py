"""Exact joint draws from a Gaussian process posterior, made only where they are needed.

Thompson sampling asks for a joint draw over thousands of candidates, but only to know which of
them satisfy a constraint or which one is the least. A Gaussian vector may be drawn in blocks, each
given the blocks before it, in any order and by any rule that looks only at what was drawn: the law
is that of one joint draw. After each block the conditional mean and deviation of all other
candidates are known. A candidate whose conditional mean lies more than z deviations on one side of
a threshold is on that side, except with probability Phi(-z); with z from `certainty` the total
variation distance to a full joint draw is at most 1e-9 per iteration. So a draw ends early and its
law is, for every practical purpose, exact.

A block is one step of a blocked Cholesky factorisation of the posterior covariance: the data are
its first rows, and rows of other candidates are computed when somebody asks for them.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from cbo_suite.optimizers.models.batch_gp import BatchGP

# Bound on the total variation distance between early-ended and full draws of one iteration.
TOTAL_VARIATION = 1e-9
# Conditional variances below this share of the signal variance are rounding errors.
RELATIVE_FLOOR = 1e-11


def certainty(tests: int) -> float:
    """Deviations that make `tests` one-sided decisions all right but with probability 1e-9."""
    return float(-ndtri(TOTAL_VARIATION / max(1, tests)))


class _Block(NamedTuple):
    """Candidates drawn together."""

    pivots: Tensor  # (k,)
    start: int  # first row of the block in the factor
    factor: Tensor  # (k, k)
    normals: Tensor  # (k, q)


class JointDraws:
    """Joint draws of one model over r candidates.

    Attributes:
        value: Conditional mean of every candidate in every draw, in units of the observations;
            the drawn value where the candidate was drawn, shape `(r, q)`.
        deviation: Conditional standard deviation, zero where drawn, shape `(r,)`.
        first_block: How many candidates are best drawn at first.
    """

    first_block = 64

    def __init__(
        self,
        model: BatchGP,
        index: int,
        candidates: Tensor,
        draws: int,
        generator: np.random.Generator,
        offset: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        """Begin with nothing drawn.

        Args:
            model: The conditioned models.
            index: Which of them.
            candidates: Points in the unit cube, shape `(r, d)`.
            draws: Number q of independent draws.
            generator: Source of the normal numbers.
            offset: Mean that was subtracted from the observations.
            scale: Deviation that the observations were divided by.
        """
        self._kernel, self._candidates = model.kernels[index], candidates
        self._generator, self._scale = generator, scale
        mean, rows = model.posterior(index, candidates)
        self._signal = float(self._kernel.variance)
        self.value = (offset + scale * mean)[:, None].repeat(1, draws)
        self._square = (self._signal - rows.square().sum(1)).clamp_min_(0.0)
        self.deviation = self._square.sqrt() * scale
        self._count = candidates.shape[0]
        self._rows, self._used = rows.contiguous(), rows.shape[1]
        self._blocks: list[_Block] = []
        self._level = torch.zeros(self._count, dtype=torch.long, device=candidates.device)
        self._settle(torch.arange(self._count, device=candidates.device))

    def refresh(self, ids: Tensor) -> None:
        """Bring value and deviation of candidates `ids` up to date with all that was drawn."""
        for number, block in enumerate(self._blocks):
            late = ids[self._level[ids] == number]
            if late.numel() == 0:
                continue
            rows = torch.linalg.solve_triangular(
                block.factor, self._covariance(block.pivots, late, block.start), upper=False
            )
            end = block.start + block.pivots.numel()
            self._rows[late, block.start : end] = rows.mT
            self._square[late] -= rows.square().sum(0)
            self.value[late] += self._scale * (rows.mT @ block.normals)
            self._level[late] = number + 1
            self._settle(late)

    def draw(self, ids: Tensor) -> None:
        """Draw candidates `ids` given all that was drawn before."""
        self.refresh(ids)
        ids = ids[self.deviation[ids] > 0]
        size = ids.numel()
        if size == 0:
            return
        factor = self._factorise(self._covariance(ids, ids, self._used))
        normals = self.value.new_empty(size, self.value.shape[1])
        normals.copy_(torch.from_numpy(self._generator.standard_normal(normals.shape)))
        self._reserve(size)
        self._rows[ids, self._used : self._used + size] = factor
        self.value[ids] += self._scale * (factor @ normals)
        self._square[ids] = 0.0
        self.deviation[ids] = 0.0
        self._blocks.append(_Block(ids, self._used, factor, normals))
        self._used += size
        self._level[ids] = len(self._blocks)

    def _covariance(self, left: Tensor, right: Tensor, rows: int) -> Tensor:
        """Conditional covariances given the first `rows` rows of the factor."""
        prior = self._kernel(self._candidates[left], self._candidates[right])
        factor = self._rows[:, :rows]
        pivots = factor.index_select(0, left)
        if left.numel() == 1 and right.numel() > 0.9 * self._count:
            # A product with all rows takes less time than a copy of most of them.
            return prior.sub_((pivots @ factor.mT)[:, right])
        return prior.addmm_(pivots, factor.index_select(0, right).mT, alpha=-1.0)

    def _factorise(self, matrix: Tensor) -> Tensor:
        """Cholesky factor of conditional covariances `(k, k)`, with as little jitter as needed."""
        diagonal, base = matrix.diagonal(), matrix.diagonal().clone()
        jitter = RELATIVE_FLOOR * self._signal
        while jitter <= self._signal:
            torch.add(base, jitter, out=diagonal)
            lower, failed = torch.linalg.cholesky_ex(matrix)
            if not failed:
                factor: Tensor = lower
                return factor
            jitter *= 10.0
        warnings.warn(
            "a posterior covariance has no Cholesky factor, so a model draws its candidates "
            "independently of each other",
            RuntimeWarning,
            stacklevel=2,
        )
        least = RELATIVE_FLOOR * self._signal
        return base.nan_to_num(nan=self._signal).clamp(least, self._signal).sqrt().diag()

    def _settle(self, ids: Tensor) -> None:
        """Set deviations from variances; what is left of a variance by rounding is zero."""
        square = self._square[ids]
        known = square <= RELATIVE_FLOOR * self._signal
        self.deviation[ids] = torch.where(known, 0.0, square.clamp_min(0.0).sqrt() * self._scale)

    def _reserve(self, size: int) -> None:
        """Make room for `size` more rows of the factor."""
        capacity = self._rows.shape[1]
        if self._used + size > capacity:
            wider = self._rows.new_empty(self._count, max(2 * capacity, self._used + size))
            wider[:, : self._used] = self._rows[:, : self._used]
            self._rows = wider
