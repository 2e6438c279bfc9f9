"""The models of all functions: transforms, hyperparameters, and when they are fitted again."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbo_suite.errors import MissingExtra
from cbo_suite.optimizers.models.batch_gp import BatchGP, kernels
from cbo_suite.optimizers.models.cholesky import Factor, extend, factorise
from cbo_suite.optimizers.models.fit import (
    Bounds,
    default_parameters,
    expected_curvature,
    fit,
    restart_parameters,
    revive,
)
from cbo_suite.optimizers.models.keops.build import load_keops
from cbo_suite.optimizers.models.transforms import (
    LARGEST,
    Standardized,
    bilog,
    bilog_back,
    copula,
    copula_back,
    finite_constraints,
    finite_objective,
    standardize,
)
from cbo_suite.protocols import Array

if TYPE_CHECKING:
    from cbo_suite.optimizers.models.keops.gp import KeopsGP

# Bytes of all Cholesky factors beyond which "auto" takes the matrix-free models. A constant, not
# the machine's memory: a run gives the same result everywhere.
MOST_DENSE_BYTES = 4e9
# Steps of a fit, and the gain in nats below which it ends.
FIT_STEPS, FIT_TOLERANCE = 40, 0.02
# Number of models times cube of the number of data from which fits are expensive: they begin where
# the last one ended, end sooner, and wait until the data grew by a factor. In between only the
# Cholesky factors are extended.
EXPENSIVE = 1e8
EXPENSIVE_STEPS, EXPENSIVE_TOLERANCE = 8, 0.5
# An expensive fit that knows nothing: steps with half of the data in single precision, then with
# all in full. On three sets (130 and 500 data of the vehicle, 500 of Keane 30D) models ended 4 to 6
# nats from their maximum in the mean, against 3 to 7 after eight steps with all data, in half the
# time.
ROUGH_STEPS, FINAL_STEPS = 12, 3
REFIT_GROWTH = 1.1
# Most data that hyperparameters are fitted to: some hundreds know the length scales, and a step
# costs the cube of their number. The posterior is always that of all data, whose factors are the
# larger part of a fit then: it waits longer, but not for a model to which new data come as a
# surprise. That is one whose log likelihood per result falls by this many nats.
MOST_FITTED = 512
LATE_GROWTH = 1.2
SURPRISE = 0.1
# Log hyperparameters are rounded to whole multiples of 1 / QUANTA: a state is exact and short.
QUANTA = 1000


@dataclass(frozen=True)
class Model:
    """Models of the objective and the constraints, and the way back from standardised values.

    Attributes:
        gp: Models of the objective (index 0) and of the constraints that are not constant, dense
            or matrix-free.
        offset: Mean of each series before standardisation, shape `(b,)`.
        scale: Deviation of each series before standardisation, shape `(b,)`.
        constants: Values of the constraints that never changed.
    """

    gp: BatchGP | KeopsGP
    offset: Array
    scale: Array
    constants: list[float]

    @property
    def dense(self) -> BatchGP:
        """The models where they have Cholesky factors."""
        if not isinstance(self.gp, BatchGP):
            raise TypeError(f"dense models are needed here, got {type(self.gp).__name__}")
        return self.gp

    def predict(self, x: Tensor) -> tuple[Array, Array]:
        """Posterior mean and deviation in transformed units at `(p, d)`: both `(b, p)`."""
        mean, variance = (part.cpu().numpy().astype(float) for part in self.gp.predict(x))
        return (
            self.offset[:, None] + self.scale[:, None] * mean,
            self.scale[:, None] * np.sqrt(variance),
        )


class Transform:
    """From observations to what the models see."""

    def __init__(self, use_copula: bool, use_bilog: bool, largest: float = LARGEST) -> None:
        """Choose the transforms of the objective and of the constraints.

        Args:
            use_copula: Whether the objective is mapped to normal quantiles.
            use_bilog: Whether the constraints are mapped by the bilog.
            largest: Transformed values beyond this are cut off.
        """
        self._use_copula, self._use_bilog, self._largest = use_copula, use_bilog, largest

    def objective(self, values: Array) -> Array:
        """Transformed objective values `(n,)`, all finite."""
        values = finite_objective(values)
        return self._cut(copula(values) if self._use_copula else values)

    def constraints(self, values: Array) -> Array:
        """Transformed constraint values `(n, m)`, all finite."""
        values = finite_constraints(values)
        return self._cut(bilog(values) if self._use_bilog else values)

    def objective_back(self, transformed: Array, values: Array) -> Array:
        """What transformed objectives, any shape, were before, among told values `(n,)`."""
        return (
            copula_back(transformed, finite_objective(values)) if self._use_copula else transformed
        )

    def constraints_back(self, transformed: Array) -> Array:
        """What transformed constraints, any shape, were before."""
        return bilog_back(transformed) if self._use_bilog else transformed

    def _cut(self, values: Array) -> Array:
        """Values that are not too large for the precision of the models."""
        cut: Array = np.clip(values, -self._largest, self._largest)
        return cut


class Surrogate:
    """Fits one model per function to growing data, beginning where it last ended."""

    def __init__(
        self,
        dim: int,
        num_constraints: int,
        bounds: Bounds,
        transform: Transform,
        like: Tensor,
        kind: str = "dense",
    ) -> None:
        """Begin without data.

        Args:
            dim: Number of variables.
            num_constraints: Number of constraints.
            bounds: Bounds of the hyperparameters.
            transform: From observations to what the models see.
            like: Sets device and precision.
            kind: "dense", "keops", or "auto" by size.
        """
        self._bounds, self._transform, self._like, self._kind = bounds, transform, like, kind
        self._default = default_parameters(num_constraints + 1, dim, bounds, like)
        self._parameters = self._default.clone()
        # Numbers of data at which the first factors were made and all were then extended.
        self._built: list[int] = []
        # For each model at which of these its factor was made, and its log likelihood per result
        # then, in the units of the series.
        self._made: list[int] = []
        self._likelihood: list[float] = []
        self._factors: list[Factor] = []
        self._varying: list[int] = []

    def copy(self) -> Surrogate:
        """One that goes on as this one would, and leaves it as it is."""
        twin = copy.copy(self)
        twin._parameters = self._parameters.clone()
        twin._built, twin._factors = list(self._built), list(self._factors)
        twin._made, twin._likelihood = list(self._made), list(self._likelihood)
        return twin

    def tensor(self, values: Array) -> Tensor:
        """The values on the models' device, in their precision."""
        return torch.as_tensor(values, dtype=self._like.dtype, device=self._like.device)

    def update(self, x: Array, objective: Array, constraints: Array) -> Model:
        """Models of all data: points `(n, d)` of the unit cube, values `(n,)` and `(n, m)`.

        The data of earlier calls come first and in the same order.
        """
        transformed = self._transform.constraints(constraints)
        series = standardize(np.column_stack([self._transform.objective(objective), transformed]))
        varying = [0, *(int(k) for k in np.flatnonzero(~series.constant) if k > 0)]
        inputs, outputs = self.tensor(x), self.tensor(series.values[:, varying].T.copy())
        constants = [float(transformed[0, k - 1]) for k in _missing(varying, series)]
        gp: BatchGP | KeopsGP
        if self._is_matrix_free(outputs):
            gp = self._matrix_free(inputs, outputs, varying)
        else:
            gp = self._dense(inputs, outputs, varying, series.scale[varying])
        return Model(gp, series.mean[varying], series.scale[varying], constants)

    def _is_matrix_free(self, y: Tensor) -> bool:
        """Whether models of outputs `(b, n)` are to do without Cholesky factors."""
        size = y.shape[0] * y.shape[1] ** 2 * y.element_size()
        if self._kind == "auto" and size > MOST_DENSE_BYTES:
            self._kind = _keops_or_dense(size)
        return self._kind == "keops"

    def _dense(self, x: Tensor, y: Tensor, varying: list[int], scale: Array) -> BatchGP:
        """Exact models of inputs `(n, d)` and outputs `(b, n)`, which were divided by `scale`."""
        if self._must_fit(len(x), varying):
            self._fit(x, y, varying)
        self._factorise(x)
        gp = BatchGP(x, y, self._parameters[varying], self._factors)
        if len(x) <= MOST_FITTED or not _expensive(len(x), varying):
            return gp
        likelihood = _likelihood(gp, scale)
        if not self._likelihood:
            self._likelihood = likelihood.tolist()
        surprised = np.flatnonzero(likelihood < np.array(self._likelihood) - SURPRISE)
        if surprised.size == 0:
            return gp
        self._fit_again(x, y, surprised)
        gp = BatchGP(x, y, self._parameters[varying], self._factors)
        for index, value in zip(surprised, _likelihood(gp, scale)[surprised], strict=True):
            self._likelihood[index] = float(value)
        return gp

    def _fit_again(self, x: Tensor, y: Tensor, models: NDArray[np.intp]) -> None:
        """Fit some of the models to part of the data and make their Cholesky factors anew."""
        rows, part = [self._varying[index] for index in models], fitted_part(len(x))
        start = revive(self._parameters[rows], x)
        own = y[torch.as_tensor(models, device=y.device)]
        best = self._fit_briefly(x[part], own[:, part], start, EXPENSIVE_STEPS)
        self._parameters[rows] = _rounded(best)
        for index, kernel in zip(models, kernels(self._parameters[rows]), strict=True):
            self._made[index] = len(self._built) - 1
            self._factors[index] = factorise(kernel, x)

    def _matrix_free(self, x: Tensor, y: Tensor, varying: list[int]) -> KeopsGP:
        """Models by conjugate gradients, fitted when the data have grown by a factor."""
        # Not at the top: KeOps takes seconds to import, and few runs need it.
        from cbo_suite.optimizers.models.keops import gp

        self._factors = []
        grown = not self._built or len(x) >= REFIT_GROWTH * self._built[0]
        if grown or varying != self._varying:
            best, _ = gp.fit(x, y, self._parameters[varying], self._bounds)
            self._keep(best, len(x), varying)
        return gp.KeopsGP(x, y, self._parameters[varying])

    def _must_fit(self, count: int, varying: list[int]) -> bool:
        """Whether hyperparameters must follow the data."""
        if not self._built or varying != self._varying:
            return True
        if count == self._built[-1]:
            return False
        growth = REFIT_GROWTH if self._built[0] <= MOST_FITTED else LATE_GROWTH
        return not _expensive(count, varying) or count >= growth * self._built[0]

    def _fit(self, x: Tensor, y: Tensor, varying: list[int]) -> None:
        """Fit hyperparameters; the Cholesky factors are then to be made anew."""
        count, start = x.shape[0], self._parameters[varying]
        expensive = _expensive(count, varying)
        if self._built:
            start = revive(start, x)
            start = start if expensive else restart_parameters(start, self._bounds)
        if count > MOST_FITTED:
            part = fitted_part(count)
            x, y = x[part], y[:, part]
        if not expensive:
            best, _ = fit(x, y, start, self._bounds, steps=FIT_STEPS, tolerance=FIT_TOLERANCE)
        elif self._built:
            best = self._fit_briefly(x, y, start, EXPENSIVE_STEPS)
        else:
            start = self._fit_briefly(x[::2].float(), y[:, ::2].float(), start, ROUGH_STEPS)
            best = self._fit_briefly(x, y, start, FINAL_STEPS)
        self._keep(best, count, varying)

    def _fit_briefly(self, x: Tensor, y: Tensor, start: Tensor, steps: int) -> Tensor:
        """Log hyperparameters `(b, d + 2)` after a few steps, each of which takes long."""
        best, _ = fit(
            x,
            y,
            start,
            self._bounds.at_precision(x.dtype),
            steps=steps,
            tolerance=EXPENSIVE_TOLERANCE,
            curvature=expected_curvature(*x.shape),
        )
        return best

    def _keep(self, best: Tensor, count: int, varying: list[int]) -> None:
        """Take over hyperparameters that were fitted to `count` data."""
        self._parameters[varying] = _rounded(best)
        self._built, self._factors, self._varying = [count], [], varying
        self._made, self._likelihood = [0] * len(varying), []

    def _factorise(self, x: Tensor) -> None:
        """Bring the Cholesky factors up to date, by the same steps as without interruption."""
        if self._built[-1] < x.shape[0]:
            self._built.append(x.shape[0])
        own = kernels(self._parameters[self._varying])
        if not self._factors:
            self._factors = [
                factorise(kernel, x[: self._built[made]])
                for kernel, made in zip(own, self._made, strict=True)
            ]
        for index, kernel in enumerate(own):
            for stop in self._built:
                if stop > self._factors[index].lower.shape[0]:
                    self._factors[index] = extend(kernel, self._factors[index], x[:stop])

    def at_bounds(self) -> dict[str, list[int]]:
        """How many hyperparameters of all models have reached their lower and upper bound."""
        parameters = self._parameters[self._varying]
        bounds = self._bounds.tensors(self._like, parameters.shape[1] - 2)
        # Those that stand there may have been rounded.
        reached = [(parameters - bound).abs() <= 1.0 / QUANTA for bound in bounds]
        parts = {"lengthscale": slice(0, -2), "variance": slice(-2, -1), "noise": slice(-1, None)}
        return {
            name: [int(side[:, part].sum()) for side in reached] for name, part in parts.items()
        }

    def get_state(self) -> dict[str, Any]:
        """Hyperparameters and the history of the factors, as plain JSON."""
        return {
            "parameters": (self._parameters * QUANTA).round().int().tolist(),
            "built": list(self._built),
            "made": list(self._made),
            "likelihood": list(self._likelihood),
            "varying": list(self._varying),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` described; the factors are made again when needed."""
        stored = self.tensor(np.array(state["parameters"], dtype=float)) / QUANTA
        self._built, self._made = list(state["built"]), list(state["made"])
        self._likelihood = list(state["likelihood"])
        self._varying, self._factors = list(state["varying"]), []
        # What was never fitted is not rounded either.
        self._parameters = self._default.clone()
        self._parameters[self._varying] = stored[self._varying]


def fitted_part(count: int, size: int = MOST_FITTED) -> NDArray[np.intp]:
    """Which `size` of more data stand for all of them, ascending.

    Half of them are the newest data, which are where an optimizer is searching; the others are
    spread evenly over the history, from the initial design on.
    """
    newest = size // 2
    older = np.linspace(0, count - newest, size - newest, endpoint=False)
    return np.concatenate([older.astype(np.intp), np.arange(count - newest, count)])


def _rounded(parameters: Tensor) -> Tensor:
    """Log hyperparameters as whole multiples of 1 / `QUANTA`."""
    return (parameters * QUANTA).round() / QUANTA


def _likelihood(gp: BatchGP, scale: Array) -> Array:
    """Log likelihood per result of each model, shape `(b,)`, in the units before `scale`."""
    per_result = gp.log_likelihood().cpu().numpy().astype(float) / gp.x.shape[0]
    unscaled: Array = per_result - np.log(scale)
    return unscaled


def _keops_or_dense(size: int) -> str:
    """The kind of models whose Cholesky factors take `size` bytes: no run ends for that."""
    try:
        load_keops()
    except MissingExtra as missing:
        warnings.warn(
            f"the models take {size / 1e9:.1f} GB and grow with the square of the data, since "
            f"{missing}",
            RuntimeWarning,
            stacklevel=2,
        )
        return "dense"
    return "keops"


def _expensive(count: int, varying: list[int]) -> bool:
    """Whether one step of a fit to `count` data takes long."""
    return len(varying) * count**3 >= EXPENSIVE


def _missing(varying: list[int], series: Standardized) -> list[int]:
    """Indices of the constant constraints' series."""
    return [k for k in range(1, series.values.shape[1]) if k not in varying]
