"""SCBO: scalable constrained Bayesian optimization.

Source: Eriksson and Poloczek, "Scalable Constrained Bayesian Optimization", AISTATS 2021. One
trust region follows the best point; inside it, Thompson sampling on Gaussian process models of the
transformed objective and constraints chooses each batch from a set of candidates. The method card
is docs/optimizers/scbo.md.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from scipy.special import log_ndtr

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.models.device import sample_tensor
from cbo_suite.optimizers.models.fit import NOISE_FREE, NOISY
from cbo_suite.optimizers.models.prediction import predict
from cbo_suite.optimizers.models.surrogate import Model, Surrogate, Transform
from cbo_suite.optimizers.models.transforms import LARGEST, LARGEST_SINGLE
from cbo_suite.optimizers.scbo.acquisition import Acquisition
from cbo_suite.optimizers.scbo.archive import Archive
from cbo_suite.optimizers.scbo.candidates import (
    PERTURBED_VARIABLES,
    candidate_count,
    candidates,
)
from cbo_suite.optimizers.scbo.designs import design_points
from cbo_suite.optimizers.scbo.region import Region
from cbo_suite.optimizers.scbo.trust_region import (
    RELATIVE_GAIN,
    TrustRegion,
    best_index,
    side_weights,
)
from cbo_suite.optimizers.shared.placing import Ground
from cbo_suite.protocols import Array, BoolArray, Evaluation, Prediction, Space, whole_number

__all__ = ["SCBO"]

# Streams of random numbers: one per restart for its design, one per ask for everything else.
_DESIGN_STREAM, _ASK_STREAM = 0, 1
# Points of a design if nobody says how many, as for the paper's small problems.
_SMALLEST_DESIGN = 10


class SCBO:
    """Trust region, transforms and constrained Thompson sampling; ask and tell."""

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        acquisition: str = "ts",
        trust_region: bool = True,
        tr_shape: str = "hypercube",
        copula: bool = True,
        bilog: bool = True,
        perturbation: bool = True,
        sampler: str = "auto",
        models: str = "auto",
        noisy: bool = False,
        delta: float = 0.05,
        n_init: int | None = None,
        num_candidates: int | None = None,
        device: str = "cpu",
        dtype: str = "float64",
    ) -> None:
        """Set up the optimizer; the defaults of all options make the paper's SCBO.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the whole run.
            batch_size: Number q of points that are told together.
            seed: Fixes all randomness.
            acquisition: "ts" for Thompson sampling, "ei" for constrained expected improvement.
            trust_region: False searches the whole box with all data, and never restarts.
            tr_shape: "hypercube" as in the paper, or "ard-objective" for a box of the same volume
                with sides in proportion to the length scales of the objective's model.
            copula: Whether the objective is mapped to normal quantiles.
            bilog: Whether the constraints are mapped by the bilog.
            perturbation: Whether candidates keep variables of the centre in high dimensions.
            sampler: How Thompson sampling draws: "exact", "pathwise" or "auto" by size.
            models: "dense" for exact models, "keops" for matrix-free ones (conjugate gradients
                with KeOps, as in the paper), "auto" for these where Cholesky factors would take
                more than 4 GB.
            noisy: Whether observations are noisy: then posterior means say what is better.
            delta: Accepted probability that the point recommended for a noisy problem is
                infeasible.
            n_init: Number of points of the design after a restart; by default as many as the
                initial design has (`expect_design`), else max(10, 2 d).
            num_candidates: Number r of candidates, min(200 d, 5000) by default.
            device: Device of the models, such as "cpu" or "cuda".
            dtype: Precision of the models, "float64" or "float32".

        Raises:
            InvalidTask: An option has a value that it cannot have.
        """
        if tr_shape not in ("hypercube", "ard-objective"):
            raise InvalidTask(f"tr_shape must be hypercube or ard-objective, got {tr_shape!r}")
        if not 0.0 < delta < 1.0:
            raise InvalidTask(f"delta is a probability between 0 and 1, got {delta!r}")
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("seed", seed, 0),
            ("n_init", 1 if n_init is None else n_init, 1),
            ("num_candidates", 1 if num_candidates is None else num_candidates, 1),
        ):
            whole_number(name, value, least)
        self._space, self._batch_size, self._seed = space, batch_size, seed
        self._ground = Ground(space)
        self._acquisition = Acquisition(acquisition, sampler, models)
        self._local, self._noisy, self._delta = trust_region, noisy, delta
        self._weighted = tr_shape == "ard-objective"
        share = PERTURBED_VARIABLES / space.dim if perturbation and trust_region else 1.0
        self._probability = min(1.0, share)
        self._num_candidates = num_candidates or candidate_count(space.dim)
        self._n_init = n_init
        self._like = sample_tensor(device, dtype)
        single = self._like.dtype == torch.float32
        self._transform = Transform(copula, bilog, LARGEST_SINGLE if single else LARGEST)
        self._bounds = (NOISY if noisy else NOISE_FREE).at_precision(self._like.dtype)
        self._archive = Archive(space)
        self._asks = 0
        self._told_first = 0
        self._expected = 0
        self._inspection: dict[str, Any] = {}
        self._start_region(0)

    def expect_design(self, n: int) -> None:
        """Know that the run begins with a design of `n` points: so do later regions."""
        self._expected = whole_number("n", n, 0)

    def ask(self, n: int = 1) -> Array:
        """Propose up to `n` points, shape `(k, d)`."""
        whole_number("n", n, 1)
        if self._asks == 0:
            self._told_first = len(self._archive)
        self._asks += 1
        started = time.perf_counter()
        region, points = self._region, None
        with torch.inference_mode():
            if self._region.members and not self._design_left():
                points = self._choose(n, started)
        from_model = points is not None and region is self._region
        if points is None:
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
        # A noisy problem is judged by posterior means, which the next ask computes.
        if not self._noisy:
            self._judge(self._archive.objective, self._violation())

    def recommend(self) -> Array:
        """The point that the optimizer recommends, shape `(d,)`, of all that it was told.

        For a noisy problem this is the point of least posterior mean among those that are
        feasible with probability at least 1 - delta, else the one most probably feasible; the
        models are fitted to all data. Otherwise it is the best observed point.
        """
        archive = self._archive
        if not len(archive):
            raise InvalidTask("nothing can be recommended before a result was told")
        if self._noisy:
            with torch.inference_mode():
                best = self._most_credible()
        else:
            evaluation = Evaluation(archive.objective, archive.constraints)
            best = evaluation.best()
        recommended: Array = archive.told[best].copy()
        return recommended

    def predict(self, x: Array) -> Prediction:
        """What the models of the current region's results say about points `(p, d)` of the box.

        They know nothing of earlier regions, and little far from the region. Of a region without
        results it is what models of all results say.

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
        """What the last ask did and where the trust region stands, as plain JSON."""
        trust = self._region.trust
        return {
            "length": trust.length,
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
        self._expected = self._expected or state.get("expected_design", 0)
        self._start_region(state["region"]["number"])
        self._archive.set_state(state["pending"])
        self._region = Region.from_state(state["region"], self._space.dim, self._batch_size)
        self._surrogate.set_state(state["surrogate"])

    def _start_region(self, number: int) -> None:
        """Begin a trust region without data."""
        self._region = Region(number, TrustRegion(self._space.dim, self._batch_size))
        self._surrogate = self._new_surrogate()

    def _new_surrogate(self) -> Surrogate:
        """Models that know no data."""
        return Surrogate(
            self._space.dim,
            self._space.num_constraints,
            self._bounds,
            self._transform,
            self._like,
            self._acquisition.models,
        )

    def _design_left(self) -> int:
        """Points of the current region's own design that are still to be asked."""
        if self._region.number == 0 and self._told_first:
            return 0
        return self._design_size() - self._region.design_asked

    def _design_size(self) -> int:
        """Points of a design: data that were known beforehand are none of it."""
        return self._n_init or self._expected or max(_SMALLEST_DESIGN, 2 * self._space.dim)

    def _design_points(self, n: int) -> Array:
        """The next points of the region's own design, and of its sequence after that."""
        # While no result is there, workers that fall free get further points of the sequence.
        start, left = self._region.design_asked, self._design_left()
        stop = start + (min(n, left) if left > 0 else n)
        generator = self._generator(_DESIGN_STREAM, self._region.number)
        self._region.design_asked = stop
        self._inspection = {}
        failed = ~self._finite()
        size, known = self._design_size(), self._archive.x
        points = design_points(start, stop, size, generator, known, failed)
        others = self._generator(_ASK_STREAM, self._asks)
        return self._ground.renew(points, self._archive.known(), others)

    def _generator(self, stream: int, number: int) -> np.random.Generator:
        """A generator of its own for each purpose: the state needs no generator."""
        return np.random.default_rng([self._seed, stream, number])

    def _violation(self) -> Array:
        """Total violation of every result in transformed units, shape `(n,)`."""
        values = self._transform.constraints(self._archive.constraints)
        total: Array = np.where(self._finite(), np.maximum(values, 0.0).sum(axis=1), np.inf)
        return total

    def _finite(self) -> BoolArray:
        """Which results are all finite numbers, shape `(n,)`: no other one can be the best."""
        series = np.column_stack([self._archive.objective, self._archive.constraints])
        return np.asarray(np.isfinite(series).all(axis=1))

    def _judge(self, objective: Array, violation: Array, gain: float | None = None) -> None:
        """Count results as successes and failures; a region that ended makes room for a new one."""
        if not self._local:
            return
        self._region.judge(objective, violation, gain)
        if self._region.trust.finished:
            self._start_region(self._region.number + 1)

    def _choose(self, n: int, started: float) -> Array | None:
        """Choose `n` points of the unit cube by the models, None if the region ended instead."""
        region, archive = self._region, self._archive
        members = region.members
        model = self._surrogate.update(
            archive.x[members], archive.objective[members], archive.constraints[members]
        )
        fitted = time.perf_counter()
        objective, violation = archive.objective, self._violation()
        if self._noisy:
            objective, violation = self._posterior_values(model)
            self._judge(objective, violation, RELATIVE_GAIN * float(model.scale[0]))
            if region is not self._region:
                return None
        centre = region.centre(objective, violation)
        generator = self._generator(_ASK_STREAM, self._asks)
        lower, upper = np.zeros(self._space.dim), np.ones(self._space.dim)
        if self._local:
            weights: Array | float = 1.0
            if self._weighted:
                weights = side_weights(model.gp.kernels[0].lengthscale.cpu().numpy())
            lower, upper = region.trust.box(archive.x[centre], weights)
            lower, upper = self._ground.widen(archive.x[centre], lower, upper)
        points = candidates(
            max(self._num_candidates, n),
            archive.x[centre],
            lower,
            upper,
            generator,
            self._probability,
        )
        points = self._ground.settle(
            points, archive.known(), generator, centres=archive.x[[centre]], least=n
        )
        best = None
        if violation[centre] == 0.0:
            seen = objective[members]
            # Posterior means are in transformed units already.
            seen = seen if self._noisy else self._transform.objective(seen)
            best = float(seen[members.index(centre)])
        chosen, feasible = self._acquisition.choose(
            model, self._surrogate.tensor(points), min(n, len(points)), best, generator
        )
        self._inspection = {
            "centre": self._space.from_unit(archive.x[centre]).tolist(),
            "feasible_candidates": feasible,
            "at_bounds": self._surrogate.at_bounds(),
            "seconds_fit": fitted - started,
            "seconds_draw": time.perf_counter() - fitted,
        }
        selected: Array = points[chosen]
        return selected

    def _posterior_values(self, model: Model) -> tuple[Array, Array]:
        """Posterior means of objective and violation at the region's results, over the archive."""
        count, members = len(self._archive), self._region.members
        mean, _ = model.predict(self._surrogate.tensor(self._archive.x[members]))
        objective, violation = np.full(count, np.inf), np.full(count, np.inf)
        objective[members] = mean[0]
        constant = sum(max(value, 0.0) for value in model.constants)
        violation[members] = np.maximum(mean[1:], 0.0).sum(axis=0) + constant
        return objective, np.where(self._finite(), violation, np.inf)

    def _most_credible(self) -> int:
        """Index of the result to recommend of a noisy problem."""
        archive = self._archive
        surrogate = self._new_surrogate()
        model = surrogate.update(archive.x, archive.objective, archive.constraints)
        mean, deviation = model.predict(surrogate.tensor(archive.x))
        scaled = -mean[1:] / np.maximum(deviation[1:], 1e-12)
        log_feasible = np.where(self._finite(), log_ndtr(scaled).sum(axis=0), -np.inf)
        violated = any(value > 0.0 for value in model.constants)
        credible = (log_feasible >= np.log1p(-self._delta)) & (not violated)
        if credible.any():
            return best_index(np.where(credible, mean[0], np.inf), np.zeros(len(archive)))
        return best_index(mean[0], -log_feasible)
