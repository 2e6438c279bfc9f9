"""Approximate joint draws from a Gaussian process posterior by Matheron's rule.

A draw is a random function: a draw of the prior from random Fourier features, plus the exact
correction that makes it agree with the data. Its cost grows linearly with the number of
candidates. See Wilson et al., "Efficiently sampling functions from Gaussian process posteriors",
ICML 2020.

With fresh random frequencies the draws have exactly the mean and covariance of the posterior, but
they are sums of finitely many waves. The waves that the data determine do not matter: what is left
of the prior near the data comes from the few waves of high frequency. So half of the frequencies
are drawn from a law with heavier tails, with weights that keep the covariance (defensive
importance sampling), the radial law is stratified, and directions are orthogonal.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.special import gammaincinv, gammaln
from torch import Tensor

from cbo_suite.optimizers.models.batch_gp import BatchGP

# Features of one block of candidates stay in a core's cache.
BLOCK_ELEMENTS = 1 << 18
# Stands for "not known" in sums and comparisons without making them NaN.
UNKNOWN = 1e200


def frequencies(
    count: int, dim: int, tail_shape: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies of the Matern-5/2 kernel with unit length scales, and their weights.

    The spectral law is a multivariate t with 5 degrees of freedom: a normal vector over the root
    of an independent gamma variable of shape 5/2 and rate 5/2. Half of the gamma variables have
    the shape `tail_shape` instead.

    Args:
        count: Number of frequencies.
        dim: Number of variables d.
        tail_shape: Shape of the gamma law with heavier tails, at most 5/2.
        generator: Source of randomness.

    Returns:
        Frequencies `(count, d)` and weights `(count,)` whose mean is about 1.
    """
    shape = 2.5
    strata = (np.arange(count) + generator.random(count)) / count
    # Alternating strata: both laws are stratified, and neither is tied to a direction.
    shapes = np.where(np.arange(count) % 2 == 0, shape, tail_shape)
    gamma = gammaincinv(shapes, strata) / shape
    gamma = np.maximum(gamma, 1e-300)
    log_ratio = (tail_shape - shape) * np.log(shape * gamma) + gammaln(shape) - gammaln(tail_shape)
    weights = 2.0 / (1.0 + np.exp(log_ratio))
    order = generator.permutation(count)
    gamma, weights = gamma[order], weights[order]
    blocks = []
    for _ in range(math.ceil(count / dim)):
        normal = generator.standard_normal((dim, dim))
        rotation, upper = np.linalg.qr(normal)
        rotation *= np.sign(np.diagonal(upper))
        radius = np.sqrt(generator.chisquare(dim, size=(dim, 1)))
        blocks.append(rotation * radius)
    directions = np.concatenate(blocks)[:count]
    return directions / np.sqrt(gamma)[:, None], weights


class PathwiseDraws:
    """Draws of one model over r candidates, as values of random functions.

    Attributes:
        value: Drawn values where they were asked for, shape `(r, q)`.
        deviation: Zero where drawn, a huge number elsewhere, shape `(r,)`.
        first_block: All candidates, since drawing some says nothing about the others.
    """

    def __init__(
        self,
        model: BatchGP,
        index: int,
        candidates: Tensor,
        draws: int,
        generator: np.random.Generator,
        *,
        num_frequencies: int,
        tail_shape: float = 0.5,
        offset: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        """Draw the functions; no candidate is evaluated yet.

        Args:
            model: The conditioned models.
            index: Which of them.
            candidates: Points in the unit cube, shape `(r, d)`.
            draws: Number q of independent draws.
            generator: Source of randomness.
            num_frequencies: Number of frequencies; each has a sine and a cosine.
            tail_shape: See `frequencies`.
            offset: Mean that was subtracted from the observations.
            scale: Deviation that the observations were divided by.
        """
        self._kernel, self._inputs, self._candidates = model.kernels[index], model.x, candidates
        self._mean = model.mean[index]
        self._offset, self._scale = offset, scale
        count, dim = candidates.shape
        self.first_block = count
        self.value = candidates.new_zeros(count, draws)
        self.deviation = candidates.new_full((count,), UNKNOWN)
        waves, weights = frequencies(num_frequencies, dim, tail_shape, generator)
        amplitude = np.sqrt(weights * float(self._kernel.variance) / num_frequencies)
        normals = generator.standard_normal((2, num_frequencies, draws)) * amplitude[:, None]

        def single(values: np.ndarray) -> Tensor:
            return torch.as_tensor(values, dtype=torch.float32, device=candidates.device)

        self._waves = single(waves) / self._kernel.lengthscale.to(torch.float32)
        self._cosine, self._sine = single(normals[0]), single(normals[1])
        # The data and all candidates move together: near the origin, phases keep their digits.
        self._origin = candidates.mean(0)
        noise = torch.as_tensor(
            generator.standard_normal((model.x.shape[0], draws)),
            dtype=candidates.dtype,
            device=candidates.device,
        )
        residual = (
            (model.y[index] - self._mean)[:, None]
            - self._prior(model.x)
            - noise * self._kernel.noise.sqrt()
        )
        self._update = torch.cholesky_solve(residual, model.factors[index].lower)

    def refresh(self, ids: Tensor) -> None:
        """Do nothing: what was drawn says nothing about what was not."""

    def draw(self, ids: Tensor) -> None:
        """Evaluate the functions at candidates `ids`."""
        points = self._candidates[ids]
        update = self._kernel(points, self._inputs) @ self._update
        values = self._mean + self._prior(points) + update
        self.value[ids] = self._offset + self._scale * values
        self.deviation[ids] = 0.0

    def _prior(self, points: Tensor) -> Tensor:
        """The draws of the prior at points `(p, d)`, shape `(p, q)`."""
        shifted = (points - self._origin).to(torch.float32)
        rows = max(1, BLOCK_ELEMENTS // self._waves.shape[0])
        parts = []
        for part in torch.split(shifted, rows):
            phase = part @ self._waves.mT
            parts.append(phase.cos() @ self._cosine + phase.sin_() @ self._sine)
        return torch.cat(parts).to(points.dtype)
