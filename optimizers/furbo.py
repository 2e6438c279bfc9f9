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

from cbo_suite.optimizers.models.fit import NOISE_FREE
from cbo_suite.optimizers.models.prediction import predict
from cbo_suite.optimizers.models.surrogate import Model, Surrogate, Transform
from cbo_suite.optimizers.scbo.acquisition import Acquisition
from cbo_suite.optimizers.scbo.archive import Archive
from cbo_suite.optimizers.scbo.candidates import (
    PERTURBED_VARIABLES,
    candidate_count,
    candidates,
)
from cbo_suite.optimizers.scbo.designs import design_points
from cbo_suite.optimizers.scbo.region import Region
from cbo_suite.optimizers.scbo.trust_region import TrustRegion
from cbo_suite.optimizers.shared.placing import Ground
from cbo_suite.protocols import (
    Array,
    BoolArray,
    Evaluation,
    Prediction,
    Space,
    whole_number,
)

INITIAL_RADIUS = 1.0
LARGEST_RADIUS = 1.0
# Batches in a row after which the radius doubles, and after which it is halved.
SUCCESSES, FAILURES = 2, 3
# Inspectors for every variable, of which the best share spans the trust region. There are no more
# of them than 30 variables have: their number times that of the data is what an ask takes.
INSPECTORS, MOST_INSPECTORS = 1000, 30_000
BEST_SHARE = 0.1
# Elements of one model's cross-covariance that are handled at once.
BLOCK_ELEMENTS = 1 << 22
# Streams of random numbers: one per restart for its design, one per ask for everything else.
_DESIGN_STREAM, _ASK_STREAM = 0, 1


class Ball(TrustRegion):
    """The ball that inspectors are drawn from: its radius is the length, with FuRBO's counters."""

    def __post_init__(self) -> None:
        """Take the tolerances of the publication, which do not depend on the problem's size."""
        self.success_tolerance, self.failure_tolerance = SUCCESSES, FAILURES

    def update(self, success: bool) -> None:
        """Count one batch and resize where a counter reaches its tolerance."""
        super().update(success)
        self.length = min(self.length, LARGEST_RADIUS)


class FuRBO:
    """Inspectors, a trust region round the best of them, constrained Thompson sampling."""

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
        """
        self._space, self._seed = space, seed
        self._batch_size = whole_number("batch_size", batch_size, 1)
        usual = min(INSPECTORS * space.dim, MOST_INSPECTORS)
        self._num_inspectors = whole_number("num_inspectors", num_inspectors or usual, 1)
        usual = candidate_count(space.dim)
        self._num_candidates = whole_number("num_candidates", num_candidates or usual, 1)
        self._transform = Transform(transformed, transformed)
        self._acquisition = Acquisition("ts", "auto", "dense")
        self._archive, self._ground = Archive(space), Ground(space)
        self._expected = 0
        self._asks = 0
        self._told_first = 0
        self._inspection: dict[str, Any] = {}
        self._region, self._surrogate = self._new_region(0), self._new_surrogate()

    def expect_design(self, n: int) -> None:
        """Know that the run begins with a design of `n` points: so it does after a restart."""
        self._expected = whole_number("n", n, 0)

    def ask(self, n: int = 1) -> Array:
        """Propose up to `n` points, shape `(k, d)`."""
        whole_number("n", n, 1)
        if self._asks == 0:
            self._told_first = len(self._archive)
        self._asks += 1
        self._inspection = {}
        from_model = bool(self._region.members) and self._design_left() <= 0
        if from_model:
            with torch.inference_mode():
                points = self._choose(n)
        else:
            points = self._design_points(n)
        x = self._space.place(points)
        self._archive.ask(x, self._region.number, from_model)
        return x

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results: cheap, models are fitted when points are asked for."""
        first = len(self._archive)
        for offset, asked in enumerate(self._archive.tell(x, evaluation)):
            if asked is None or asked.region == self._region.number:
                self._region.add(first + offset, asked is not None and asked.from_model)
        self._region.judge(self._archive.objective, self._violation())
        if self._region.trust.finished:
            self._begin(self._region.number + 1)

    def predict(self, x: Array) -> Prediction:
        """What models of all results since the last restart say about points `(p, d)`.

        Of a region without results it is what models of all results say.

        Raises:
            InvalidTask: Nothing was told yet.
            InvalidPoint: The points have the wrong shape or leave the box.
        """
        archive, members = self._archive, self._region.members
        surrogate = self._surrogate.copy() if members else self._new_surrogate()
        own = members or list(range(len(archive)))
        told = Evaluation(archive.objective[own], archive.constraints[own])
        return predict(self._space, x, surrogate, self._transform, archive.x[own], told)

    def inspect(self) -> dict[str, Any]:
        """Where the ball stands and what the last ask did, as plain JSON."""
        trust = self._region.trust
        return {
            "radius": trust.length,
            "successes": trust.successes,
            "failures": trust.failures,
            "restarts": self._region.number,
            **self._inspection,
        }

    def get_state(self) -> dict[str, Any]:
        """All but the told data, as plain JSON."""
        return {
            "asks": self._asks,
            "told_first": self._told_first,
            "expected_design": self._expected,
            "pending": self._archive.get_state(),
            "region": self._region.get_state(),
            "surrogate": self._surrogate.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` told, after all data of that time were told."""
        self._asks, self._told_first = state["asks"], state["told_first"]
        # What was said to this optimizer holds: a longer run may have a larger design.
        self._expected = self._expected or state["expected_design"]
        self._begin(state["region"]["number"])
        self._archive.set_state(state["pending"])
        ball = self._region.trust
        self._region = Region.from_state(state["region"], self._space.dim, self._batch_size)
        ball.length = self._region.trust.length
        ball.successes, ball.failures = self._region.trust.successes, self._region.trust.failures
        self._region.trust = ball
        self._surrogate.set_state(state["surrogate"])

    def _begin(self, number: int) -> None:
        """Begin with a ball of full size, and without data."""
        self._region, self._surrogate = self._new_region(number), self._new_surrogate()

    def _new_region(self, number: int) -> Region:
        """A region of full size without results."""
        return Region(number, Ball(self._space.dim, self._batch_size, INITIAL_RADIUS))

    def _new_surrogate(self) -> Surrogate:
        """Models that know no data."""
        return Surrogate(
            self._space.dim,
            self._space.num_constraints,
            NOISE_FREE,
            self._transform,
            torch.zeros((), dtype=torch.float64),
        )

    def _design_left(self) -> int:
        """Points of the region's own design that are still to be asked."""
        if self._region.number == 0 and self._told_first:
            return 0
        return self._design_size() - self._region.design_asked

    def _design_size(self) -> int:
        """Points of a design: as many as the run began with, else as in the publication."""
        return self._expected or 3 * self._space.dim

    def _design_points(self, n: int) -> Array:
        """The next points of the region's own design, and of its sequence after that."""
        start, left = self._region.design_asked, self._design_left()
        stop = start + (min(n, left) if left > 0 else n)
        self._region.design_asked = stop
        archive, size = self._archive, self._design_size()
        generator = self._generator(_DESIGN_STREAM, self._region.number)
        failed = ~self._finite()
        points = design_points(start, stop, size, generator, archive.x, failed)
        others = self._generator(_ASK_STREAM, self._asks)
        return self._ground.renew(points, archive.known(), others)

    def _generator(self, stream: int, number: int) -> np.random.Generator:
        """A generator of its own for each purpose: the state needs no generator."""
        return np.random.default_rng([self._seed, stream, number])

    def _finite(self) -> BoolArray:
        """Which results are all finite numbers, shape `(n,)`: no other one can be the best."""
        series = np.column_stack([self._archive.objective, self._archive.constraints])
        return np.asarray(np.isfinite(series).all(axis=1))

    def _violation(self) -> Array:
        """Total violation of every result as the models see it, shape `(n,)`."""
        values = self._transform.constraints(self._archive.constraints)
        total: Array = np.where(self._finite(), np.maximum(values, 0.0).sum(axis=1), np.inf)
        return total

    def _choose(self, n: int) -> Array:
        """Choose `n` points of the unit cube by the models, shape `(n, d)`."""
        archive, members = self._archive, self._region.members
        model = self._surrogate.update(
            archive.x[members], archive.objective[members], archive.constraints[members]
        )
        violation = self._violation()
        index = self._region.centre(archive.objective, violation)
        centre = archive.x[index]
        generator = self._generator(_ASK_STREAM, self._asks)
        inspectors = ball_points(self._num_inspectors, centre, self._region.trust.length, generator)
        best = best_inspectors(posterior_means(model, self._surrogate.tensor(inspectors)))
        lower, upper = inspectors[best].min(axis=0), inspectors[best].max(axis=0)
        lower, upper = self._ground.widen(centre, lower, upper)
        share = min(1.0, PERTURBED_VARIABLES / centre.size)
        count = max(self._num_candidates, n)
        points = candidates(count, centre, lower, upper, generator, share)
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
    """Points `(count, d)`, uniform in a ball round `centre` `(d,)`, moved into the unit cube."""
    directions = generator.standard_normal((count, centre.size))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    distances = radius * generator.random((count, 1)) ** (1.0 / centre.size)
    points: Array = np.clip(centre + distances * directions, 0.0, 1.0)
    return points


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


def best_inspectors(means: Array) -> NDArray[np.intp]:
    """Indices of the best tenth of p inspectors by their means `(1 + m, p)`, best first.

    Those that satisfy all constraints come first, by their objective; the others follow by their
    largest violation, each constraint measured by its largest magnitude among the inspectors.
    """
    objective, limits = means[0], means[1:]
    largest = np.abs(limits).max(axis=1, initial=0.0, keepdims=True)
    scaled = limits / np.where(largest > 0.0, largest, 1.0)
    violation = np.maximum(scaled, 0.0).max(axis=0, initial=0.0)
    order = np.lexsort((objective, violation))
    return np.asarray(order[: max(1, int(BEST_SHARE * objective.size))])
