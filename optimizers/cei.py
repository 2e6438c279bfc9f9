"""Constrained expected improvement (cEI) on global models.

Source: Schonlau, Welch and Jones, "Global versus local search in constrained optimization of
computer models", 1998, and Gardner et al., "Bayesian optimization with inequality constraints",
ICML 2014. The method card is docs/optimizers/cei.md.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cbo_suite.optimizers.models.posterior import Posterior
from cbo_suite.optimizers.scbo.candidates import PERTURBED_VARIABLES, candidate_count, candidates
from cbo_suite.optimizers.shared.believer import (
    believed_best,
    choose_batch,
    log_constrained_improvement,
)
from cbo_suite.optimizers.shared.global_optimizer import GlobalOptimizer, on_arrays
from cbo_suite.optimizers.shared.placing import new_points
from cbo_suite.optimizers.shared.search import maximise, spread_points
from cbo_suite.protocols import Array, Space

# Largest number of variables, and of points asked at once, for which gradients improve candidates.
REFINED_DIM, REFINED_BATCH = 20, 4
# Candidates before that, and how many of them are improved.
REFINED_CANDIDATES, STARTS = 512, 2
# Candidates of all other problems, at least; by default they have as many as SCBO.
FEWEST_CANDIDATES = 1024
# Numbers of one block of predictions of all models.
BLOCK_ELEMENTS = 1 << 22


class CEI(GlobalOptimizer):
    """Expected improvement times probability of feasibility; ask and tell, in batches."""

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        transformed: bool = False,
        num_candidates: int | None = None,
        device: str = "cpu",
    ) -> None:
        """Set up the optimizer.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the whole run.
            batch_size: Number of points asked together.
            seed: Fixes all randomness.
            transformed: Whether the models see the Gaussian copula of the objective and the bilog
                of the constraints instead of plain values.
            num_candidates: Number of candidates; neighbours of the best point come on top. By
                default 512 where gradients improve the best ones, which is up to 20 variables
                and 4 points asked at once, else min(200 d, 5000) and at least 1024.
            device: Device of the models, such as "cpu" or "cuda".

        Raises:
            InvalidTask: There is no such device here.
        """
        super().__init__(
            space,
            budget=budget,
            batch_size=batch_size,
            seed=seed,
            transformed=transformed,
            device=device,
        )
        self._num_candidates = num_candidates

    def _propose(self, posterior: Posterior, n: int, generator: np.random.Generator) -> Array:
        """Choose `n` points of the unit cube, shape `(n, d)`."""
        index = self._told.best()
        feasible = bool(self._told.feasible[index])
        best = float(posterior.y[0, index]) if feasible else None
        self._inspection = {"acquisition": "improvement" if feasible else "feasibility"}
        if self._space.dim <= REFINED_DIM and n <= REFINED_BATCH:
            points = self._candidates(self._num_candidates or REFINED_CANDIDATES, n, generator)
            return self._refined(posterior, points, best, n)
        usual = max(FEWEST_CANDIDATES, candidate_count(self._space.dim))
        points = self._candidates(max(self._num_candidates or usual, n), n, generator)
        # The models are fitted: this only hands them over.
        model = self._surrogate.update(self._x, *self._told)
        pool, under_way = (self._surrogate.tensor(part) for part in (points, self._under_way()))
        chosen = choose_batch(model, pool, under_way, best, min(n, len(points)))
        return np.asarray(points[chosen.cpu().numpy()])

    def _candidates(self, count: int, least: int, generator: np.random.Generator) -> Array:
        """About `count` new points of the unit cube, and neighbours of the best one.

        There are at least `least` of them unless the space has no more.
        """
        dim, incumbent = self._space.dim, self._incumbent()
        if dim <= PERTURBED_VARIABLES:
            points = spread_points(count, dim, generator, incumbent[None])
        else:
            half = (count + 1) // 2
            lower, upper = np.zeros(dim), np.ones(dim)
            share = PERTURBED_VARIABLES / dim
            points = np.concatenate(
                [
                    spread_points(half, dim, generator, incumbent[None]),
                    candidates(half, incumbent, lower, upper, generator, share),
                ]
            )
        known = np.concatenate([self._x, self._under_way()])
        points = new_points(points, known)
        return self._ground.settle(points, known, generator, centres=incumbent[None], least=least)

    def _refined(self, posterior: Posterior, points: Array, best: float | None, n: int) -> Array:
        """Choose `n` points one after another, improving the best candidates by gradients."""
        known, under_way = self._x, self._under_way()
        chosen: list[Array] = []
        for _ in range(n):
            if len(under_way):
                believed = self._surrogate.tensor(under_way)
                mean, _ = posterior.predict(believed)
                best = believed_best(best, mean, posterior.violated)
                posterior = posterior.believe(believed)
                known = np.concatenate([known, under_way])
            score = on_arrays(Acquisition(posterior, best), self._surrogate.tensor)
            point = maximise(score, points, avoid=known, ground=self._ground, starts=STARTS)
            under_way = point[None]
            chosen.append(under_way)
        return np.concatenate(chosen)


class Acquisition:
    """The acquisition function, block by block."""

    def __init__(self, posterior: Posterior, best: float | None) -> None:
        """Take the models and the best feasible objective, None if there is none."""
        self._posterior, self._best = posterior, best
        self._rows = max(1, BLOCK_ELEMENTS // posterior.y.numel())

    def __call__(self, points: Tensor) -> Tensor:
        """Values at points `(p, d)`, shape `(p,)`."""
        parts = []
        for part in torch.split(points, self._rows):
            mean, variance = self._posterior.predict(part)
            parts.append(log_constrained_improvement(mean, variance.sqrt(), self._best))
        return torch.cat(parts)
