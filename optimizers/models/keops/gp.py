"""A batch of Gaussian processes that never stores a kernel matrix: CG and Lanczos with KeOps.

The models of the paper (Eriksson and Poloczek, AISTATS 2021, supplement): linear systems by
preconditioned conjugate gradients and log determinants by the Lanczos process, all models in one
batch, in GPyTorch's implementation; products with kernel matrices by KeOps, which compiles them on
first use. The memory is linear in the number of points.

They approximate what `batch_gp` computes exactly, and pay off where its Cholesky factors do not fit
in memory, or on a GPU. Conjugate gradients need noise: variances below `NOISE_FLOOR` are raised.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from cbo_suite.optimizers.models.batch_gp import kernels
from cbo_suite.optimizers.models.fit import Bounds
from cbo_suite.optimizers.models.keops.operator import kernel_operator, matrix_free
from cbo_suite.optimizers.models.likelihood import horseshoe, profiled_mean
from cbo_suite.optimizers.models.pathwise import NUM_FREQUENCIES, frequencies
from cbo_suite.protocols import Array

if TYPE_CHECKING:
    from linear_operator.operators import LinearOperator

NOISE_FLOOR = {torch.float32: 1e-4, torch.float64: 1e-6}
# Relative residuals at which conjugate gradients stop: when training, in one round of a solution,
# and after all rounds.
FIT_TOLERANCE = 0.1
ROUND_TOLERANCE = 0.01
SOLVE_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-8}
MOST_ROUNDS = 6
# A relative residual that a person should know of.
NOTABLE_ERROR = 0.01
LEARNING_RATE = 0.1
# Kernel values that a product with many columns, or a prediction, holds at once.
CHUNK_ELEMENTS = 1 << 22


class KeopsGP:
    """Gaussian processes conditioned on data, with given hyperparameters.

    Attributes:
        x: Inputs in the unit cube, shape `(n, d)`.
        y: Outputs, shape `(b, n)`.
        kernels: Hyperparameters of each model, with a noise of at least `NOISE_FLOOR`.
        mean: Most likely constant means, shape `(b,)`.
        weights: `K^-1 (y - mean)`, shape `(b, n)`.
    """

    def __init__(self, x: Tensor, y: Tensor, parameters: Tensor, *, seed: int = 0) -> None:
        """Condition on data.

        Args:
            x: Inputs in the unit cube, shape `(n, d)`.
            y: Outputs, shape `(b, n)`.
            parameters: Logarithms of d length scales, signal and noise variance, `(b, d + 2)`.
            seed: Seed of the random vectors that estimate log determinants.
        """
        self.x, self.y, self._seed = x, y, seed
        self._parameters = parameters.detach().clone()
        self._parameters[:, -1].clamp_min_(math.log(NOISE_FLOOR[x.dtype]))
        self.kernels = kernels(self._parameters)
        right = torch.stack([torch.ones_like(y), y], dim=-1)
        solved = _solve(kernel_operator(x, self._parameters), right)
        self.mean = profiled_mean(solved[..., 0], solved[..., 1])
        self.weights = solved[..., 1] - self.mean[:, None] * solved[..., 0]

    def solve(self, index: int, right: Tensor) -> Tensor:
        """Solve systems with one model's kernel matrix with noise: `right` and result `(n, k)`."""
        operator = kernel_operator(self.x, self._parameters[index : index + 1])
        return _solve(operator, right[None])[0]

    def log_likelihood(self) -> Tensor:
        """Log marginal likelihood of each model, shape `(b,)`, estimated with random vectors."""
        with torch.no_grad(), matrix_free(ROUND_TOLERANCE), _seeded(self._seed):
            operator = kernel_operator(self.x, self._parameters)
            return _log_likelihood(operator, self.y - self.mean[:, None])

    def predict(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and variance of the noise-free functions at `(p, d)`: both `(b, p)`."""
        columns = max(1, CHUNK_ELEMENTS // self.x.shape[0])
        means, variances = [], []
        for index, kernel in enumerate(self.kernels):
            for part in torch.split(points, columns):
                cross = kernel(self.x, part)
                means.append(self.mean[index] + self.weights[index] @ cross)
                explained = (cross * self.solve(index, cross)).sum(0)
                variances.append((kernel.variance - explained).clamp_min(0.0))
        shape = len(self.kernels), points.shape[0]
        return torch.cat(means).view(shape), torch.cat(variances).view(shape)


class KeopsDraws:
    """Joint draws of one model over r candidates by Matheron's rule.

    The prior is drawn from random Fourier features, as in `pathwise`; conjugate gradients make the
    draws agree with the data. All candidates are drawn at once.

    Attributes:
        value: Drawn values, shape `(r, q)`.
        deviation: Zero, for all is drawn, shape `(r,)`.
        first_block: Number of candidates that are drawn at once: all.
    """

    def __init__(
        self,
        model: KeopsGP,
        index: int,
        candidates: Tensor,
        draws: int,
        generator: np.random.Generator,
        offset: float = 0.0,
        scale: float = 1.0,
        *,
        num_frequencies: int = NUM_FREQUENCIES,
    ) -> None:
        """Draw everywhere.

        Args:
            model: The conditioned models.
            index: Which of them.
            candidates: Points in the unit cube, shape `(r, d)`.
            draws: Number q of independent draws.
            generator: Source of randomness.
            offset: Mean that was subtracted from the observations.
            scale: Deviation that the observations were divided by.
            num_frequencies: Number of frequencies; each has a sine and a cosine.
        """
        kernel, x = model.kernels[index], model.x

        def tensor(values: Array) -> Tensor:
            return torch.as_tensor(values, dtype=x.dtype, device=x.device)

        waves, weights = frequencies(num_frequencies, x.shape[1], generator)
        amplitude = np.sqrt(weights / num_frequencies)[:, None]
        normals = generator.standard_normal((2, num_frequencies, draws)) * amplitude
        cosine, sine = tensor(normals[0]), tensor(normals[1])
        scaled_waves = tensor(waves) / kernel.lengthscale

        def prior(points: Tensor) -> Tensor:
            rows = max(1, CHUNK_ELEMENTS // num_frequencies)
            # Phases are measured from the candidates, near which they keep their digits.
            phases = (p @ scaled_waves.mT for p in torch.split(points - candidates.mean(0), rows))
            sums = [phase.cos() @ cosine + phase.sin() @ sine for phase in phases]
            return torch.cat(sums) * kernel.variance.sqrt()

        noise = tensor(generator.standard_normal((x.shape[0], draws))) * kernel.noise.sqrt()
        residual = (model.y[index] - model.mean[index])[:, None] - prior(x) - noise
        update = model.solve(index, residual)
        rows = max(1, CHUNK_ELEMENTS // x.shape[0])
        correction = torch.cat([kernel(p, x) @ update for p in torch.split(candidates, rows)])
        values = model.mean[index] + prior(candidates) + correction
        self.value = offset + scale * values
        self.deviation = candidates.new_zeros(candidates.shape[0])
        self.first_block = candidates.shape[0]

    def draw(self, ids: Tensor) -> None:
        """Do nothing: candidates `ids` are drawn already."""

    def refresh(self, ids: Tensor) -> None:
        """Do nothing: candidates `ids` are drawn already."""


def fit(
    x: Tensor, y: Tensor, start: Tensor, bounds: Bounds, *, steps: int = 50, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Maximise the penalised marginal likelihood of every model by Adam.

    Args:
        x: Inputs shared by all models, shape `(n, d)`.
        y: Standardised outputs, shape `(b, n)`.
        start: Log hyperparameters to begin with, shape `(b, d + 2)`.
        bounds: Bounds of the hyperparameters; the noise is kept above `NOISE_FLOOR`.
        steps: Number of steps.
        seed: Seed of the random vectors that estimate log determinants and their gradients.

    Returns:
        Log hyperparameters `(b, d + 2)` and the negative penalised log likelihoods `(b,)` before
        the last step, which are estimates.
    """
    # Gradients need tensors that were not made in inference mode.
    with torch.inference_mode(False), torch.enable_grad():
        return _adam(x.clone(), y.clone(), start.clone(), bounds, steps, seed)


def _adam(
    x: Tensor, y: Tensor, start: Tensor, bounds: Bounds, steps: int, seed: int
) -> tuple[Tensor, Tensor]:
    """Do what `fit` says, where gradients can be computed."""
    lower, upper = bounds.tensors(y, x.shape[1])
    floor = math.log(NOISE_FLOOR[x.dtype])
    lower[-1], upper[-1] = max(float(lower[-1]), floor), max(float(upper[-1]), floor)
    parameters = start.clamp(lower, upper).requires_grad_()
    mean = y.mean(1).requires_grad_()
    values = torch.full_like(y[:, 0], torch.inf)
    optimizer = torch.optim.Adam([parameters, mean], lr=LEARNING_RATE)
    with matrix_free(FIT_TOLERANCE), _seeded(seed):
        for _ in range(steps):
            optimizer.zero_grad()
            likelihood = _log_likelihood(kernel_operator(x, parameters), y - mean[:, None])
            values = -likelihood - horseshoe(parameters[:, -1].exp())[0]
            torch.autograd.backward(values.sum())
            # A model whose estimate broke down stays where it is in this step.
            for leaf in (parameters, mean):
                if leaf.grad is not None:
                    leaf.grad.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
            optimizer.step()
            with torch.no_grad():
                parameters.clamp_(lower, upper)
    return parameters.detach(), values.detach()


def _solve(operator: LinearOperator, right: Tensor) -> Tensor:
    """Solve linear systems with kernel matrices: `right` and result `(b, n, k)`.

    GPyTorch's conjugate gradients take small numbers for zeros, so that they stall far above the
    precision of the numbers. They are begun anew from what is left of the right-hand sides.
    """
    goal = SOLVE_TOLERANCE[right.dtype]
    size = right.norm(dim=-2).clamp_min(torch.finfo(right.dtype).tiny)
    solved, rest, error = torch.zeros_like(right), right, math.inf
    with torch.no_grad(), matrix_free(ROUND_TOLERANCE):
        for _ in range(MOST_ROUNDS):
            candidate = solved + operator.solve(rest)
            left = right - operator @ candidate
            new_error = float((left.norm(dim=-2) / size).max())
            if not new_error < error:
                break
            stalled = new_error > 0.5 * error
            solved, rest, error = candidate, left, new_error
            if error <= goal or stalled:
                break
    if error > NOTABLE_ERROR:
        warnings.warn(
            f"conjugate gradients left {error:.1g} of a right-hand side, so a model is less exact "
            "than it should be: allow more noise, or use the dense models",
            RuntimeWarning,
            stacklevel=3,
        )
    return solved


def _log_likelihood(operator: LinearOperator, residual: Tensor) -> Tensor:
    """Log density of residuals `(b, n)` under normal laws with covariances `operator`: `(b,)`."""
    quadratic, log_determinant = operator.inv_quad_logdet(residual[..., None], logdet=True)
    total: Tensor = quadratic + log_determinant + residual.shape[-1] * math.log(2.0 * math.pi)
    return -0.5 * total


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Draw PyTorch's random numbers from a seed, and leave the global generators as they were."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
