"""FuRBO: trust regions that are placed and sized by where the models expect feasible points.

Source: P. Ascia, E. Raponi, T. Bäck and F. Duddeck, "Feasibility-driven trust region Bayesian
optimization", AutoML 2025, arXiv:2506.14619. Written from the publication on SCBO's models and
Thompson sampling, so that the two differ in their trust regions. The method card is
docs/optimizers/furbo.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbo_suite.optimizers.models.surrogate import Model
from cbo_suite.optimizers.scbo import SCBO
from cbo_suite.optimizers.scbo.candidates import candidates
from cbo_suite.optimizers.scbo.trust_region import TrustRegion
from cbo_suite.protocols import Array, Space, whole_number

INITIAL_RADIUS = 1.0
LARGEST_RADIUS = 1.0
# Batches in a row after which the radius doubles, and after which it is halved.
SUCCESSES, FAILURES = 2, 3
# Inspectors for every variable, of which the best share spans the trust region. There are no more
# of them than 30 variables have: their number times that of the data is what an ask takes.
INSPECTORS, MOST_INSPECTORS = 1000, 30_000
BEST_SHARE = 0.1
# So many span a region; where fewer lie in the cube, those outside are moved into it.
FEWEST_INSPECTORS = 4
# Elements of one model's cross-covariance that are handled at once.
BLOCK_ELEMENTS = 1 << 22
# The stream of random numbers of an ask, as in SCBO.
_ASK_STREAM = 1


class Ball(TrustRegion):
    """The ball that inspectors are drawn from: its radius is the length, with FuRBO's counters."""

    def __post_init__(self) -> None:
        """Take the tolerances of the publication, which do not depend on the problem's size."""
        self.success_tolerance, self.failure_tolerance = SUCCESSES, FAILURES

    def update(self, success: bool) -> None:
        """Count one batch and resize where a counter reaches its tolerance."""
        super().update(success)
        self.length = min(self.length, LARGEST_RADIUS)


class FuRBO(SCBO):
    """Inspectors, a trust region round the best of them, constrained Thompson sampling.

    What is told, restarts, designs and state are SCBO's, with a ball in place of its trust region.
    """

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        transformed: bool = False,
        num_inspectors: int | None = None,
        num_candidates: int | None = None,
    ) -> None:
        """Set up the optimizer.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the run, which makes no difference.
            batch_size: Number q of points that are told together.
            seed: Fixes all randomness.
            transformed: Whether the models see the Gaussian copula of the objective and the bilog
                of the constraints, as SCBO's do, instead of plain values as in the publication.
            num_inspectors: Number of inspectors, by default 1000 d, at most 30,000.
            num_candidates: Number of candidates, by default SCBO's min(200 d, 5000).

        Raises:
            InvalidTask: An option has a value that it cannot have.
        """
        usual = min(INSPECTORS * space.dim, MOST_INSPECTORS)
        wanted = usual if num_inspectors is None else num_inspectors
        self._num_inspectors = whole_number("num_inspectors", wanted, 1)
        super().__init__(
            space,
            budget=budget,
            batch_size=batch_size,
            seed=seed,
            copula=transformed,
            bilog=transformed,
            # The means of inspectors are computed from dense models.
            models="dense",
            num_candidates=num_candidates,
        )

    def inspect(self) -> dict[str, Any]:
        """Where the ball stands and what the last ask did, as plain JSON."""
        report = super().inspect()
        return {"radius": report.pop("length"), **report}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` told, after all data of that time were told."""
        super().set_state(state)
        trust = self._region.trust
        self._region.trust = self._ball(trust.length, trust.successes, trust.failures)

    def _start_region(self, number: int) -> None:
        """Begin with a ball of full size, and without data."""
        super()._start_region(number)
        self._region.trust = self._ball(INITIAL_RADIUS)

    def _ball(self, radius: float, successes: int = 0, failures: int = 0) -> Ball:
        """A ball with counters."""
        return Ball(self._space.dim, self._batch_size, radius, successes, failures)

    def _design_size(self) -> int:
        """Points of a design: as many as the run began with, else as in the publication."""
        return self._expected or 3 * self._space.dim

    def _design_left(self) -> int:
        """Points of the region's own design that are still to be asked, none if more were."""
        return max(0, super()._design_left())

    def _choose(self, n: int, started: float) -> Array:
        """Choose `n` points of the unit cube by the models, shape `(n, d)`."""
        archive, members = self._archive, self._region.members
        model = self._surrogate.update(
            archive.x[members], archive.objective[members], archive.constraints[members]
        )
        centre = archive.x[self._region.centre(archive.objective, self._violation())]
        generator = self._generator(_ASK_STREAM, self._asks)
        inspectors = ball_points(self._num_inspectors, centre, self._region.trust.length, generator)
        means = posterior_means(model, self._surrogate.tensor(inspectors))
        # A share of those drawn, as the authors take it, also where some were dropped.
        best = best_inspectors(means, max(1, int(BEST_SHARE * self._num_inspectors)))
        lower, upper = inspectors[best].min(axis=0), inspectors[best].max(axis=0)
        lower, upper = self._ground.widen(centre, lower, upper)
        count = max(self._num_candidates, n)
        points = candidates(count, centre, lower, upper, generator, self._probability)
        points = self._ground.settle(
            points, archive.known(), generator, centres=centre[None], least=n
        )
        # Thompson sampling needs no best value.
        chosen, feasible = self._acquisition.choose(
            model, self._surrogate.tensor(points), min(n, len(points)), None, generator
        )
        self._inspection = {
            "sides": float(np.exp(np.log(np.maximum(upper - lower, 1e-12)).mean())),
            "feasible_candidates": feasible,
        }
        selected: Array = points[chosen]
        return selected


def ball_points(count: int, centre: Array, radius: float, generator: np.random.Generator) -> Array:
    """Points of the unit cube in a ball round `centre` `(d,)`, shape `(k, d)`, k at most `count`.

    Their directions are uniform, and so are their distances: they are densest near the centre. Of
    `count` points those outside the cube are dropped, unless hardly one would be left: then all of
    them are moved to its nearest point.
    """
    directions = generator.standard_normal((count, centre.size))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    points: Array = centre + radius * generator.random((count, 1)) * directions
    inside = np.all((points >= 0.0) & (points <= 1.0), axis=1)
    return points[inside] if inside.sum() >= FEWEST_INSPECTORS else np.clip(points, 0.0, 1.0)


def posterior_means(model: Model, points: Tensor) -> Array:
    """Posterior means of objective and constraints at `(p, d)`, shape `(b, p)`, without variances.

    Constraints that never changed have none: they rank no point before another.
    """
    gp = model.dense
    rows = max(1, BLOCK_ELEMENTS // gp.x.shape[0])
    means = torch.stack(
        [
            gp.mean[index]
            + torch.cat(
                [gp.weights[index] @ kernel(gp.x, part) for part in torch.split(points, rows)]
            )
            for index, kernel in enumerate(gp.kernels)
        ]
    )
    values: Array = model.offset[:, None] + model.scale[:, None] * means.cpu().numpy()
    return values


def best_inspectors(means: Array, most: int) -> NDArray[np.intp]:
    """Indices of the best of p inspectors by their means `(1 + m, p)`, `most` or all, best first.

    Those that satisfy all constraints come first, by their objective; the others follow by their
    largest violation, each constraint measured by its largest magnitude among the inspectors.
    """
    objective, limits = means[0], means[1:]
    largest = np.abs(limits).max(axis=1, initial=0.0, keepdims=True)
    scaled = limits / np.where(largest > 0.0, largest, 1.0)
    violation = np.maximum(scaled, 0.0).max(axis=0, initial=0.0)
    order = np.lexsort((objective, violation))
    return np.asarray(order[:most])
