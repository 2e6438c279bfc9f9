"""Random functions from the posteriors of all models, to be evaluated anywhere, with gradients.

A draw is a draw of the prior from random Fourier features plus the exact correction by the data
(Matheron's rule; Wilson et al., "Efficiently sampling functions from Gaussian process posteriors",
ICML 2020). Seen otherwise, every draw is linear in one basis: cosines, sines, and the kernel at
the data. So the basis at a set of points is computed once for all draws.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from cbo_suite.optimizers.models.kernel import scale_points, square_distance
from cbo_suite.optimizers.models.pathwise import frequencies
from cbo_suite.optimizers.models.posterior import Posterior

# As many features as PESC's authors use, a sine and a cosine for each frequency.
NUM_FREQUENCIES = 500


class RandomFunctions:
    """The basis of draws from b posteriors; a draw is a vector of coefficients per function."""

    def __init__(
        self,
        posterior: Posterior,
        generator: np.random.Generator,
        num_frequencies: int = NUM_FREQUENCIES,
    ) -> None:
        """Draw the frequencies."""
        self._posterior = posterior
        dim, like = posterior.x.shape[1], posterior.x
        # One set for all functions: their draws are independent given it, as those of one function.
        waves, weights = frequencies(num_frequencies, dim, generator)
        self._waves = torch.as_tensor(waves).to(like) / posterior.lengthscale[:, None, :]
        share = torch.as_tensor(weights / num_frequencies).to(like)
        amplitude = (share * posterior.variance[:, None]).sqrt()
        self._amplitude = torch.cat([amplitude, amplitude], dim=1)

    def basis(self, points: Tensor) -> Tensor:
        """All basis functions at points `(p, d)`, shape `(b, p, 2 F + n)`."""
        return torch.cat(
            [self._features(points), self._posterior.prior(points, self._posterior.x)], dim=2
        )

    def values(self, basis: Tensor, coefficients: Tensor) -> Tensor:
        """Values `(b, p, k)` of k draws where the basis is known."""
        return self._posterior.constant[:, None, None] + basis @ coefficients

    def draw(self, count: int, generator: np.random.Generator) -> Tensor:
        """Coefficients of `count` independent draws, shape `(b, 2 F + n, count)`."""
        posterior, like = self._posterior, self._posterior.x
        models, features = self._amplitude.shape
        normals = generator.standard_normal((models, features + like.shape[0], count))
        normal = torch.as_tensor(normals).to(like)
        prior = normal[:, :features] * self._amplitude[:, :, None]
        noise = normal[:, features:] * posterior.noise.sqrt()[:, None, None]
        surprise = self._features(like) @ prior + noise
        correction = posterior.weights[:, :, None] - torch.cholesky_solve(surprise, posterior.lower)
        return torch.cat([prior, correction], dim=1)

    def value_and_gradient(self, point: Tensor, coefficients: Tensor) -> tuple[Tensor, Tensor]:
        """Values `(b,)` and gradients `(b, d)` of one draw `(b, 2 F + n)` at a point `(d,)`."""
        posterior, count = self._posterior, self._waves.shape[1]
        phase = self._waves @ (point - 0.5)
        cosine, sine = phase.cos(), phase.sin()
        of_cosine, of_sine = coefficients[:, :count], coefficients[:, count : 2 * count]
        of_kernel = coefficients[:, 2 * count :]
        slope = of_sine * cosine - of_cosine * sine
        gradient = (slope[:, None, :] @ self._waves)[:, 0]

        here = scale_points(point[None], posterior.lengthscale)
        data = scale_points(posterior.x, posterior.lengthscale)
        distance = square_distance(here, data)[:, 0].sqrt_()
        decay = of_kernel * (posterior.variance[:, None] / 3.0) * torch.exp(-distance)
        kernel = decay * (3.0 + 3.0 * distance + distance.square())
        pull = decay * (1.0 + distance)
        towards = (pull[:, None, :] @ data)[:, 0] - pull.sum(1, keepdim=True) * here[:, 0]
        gradient = gradient + towards * (math.sqrt(5.0) / posterior.lengthscale)
        value = (of_cosine * cosine + of_sine * sine).sum(1) + kernel.sum(1)
        return posterior.constant + value, gradient

    def _features(self, points: Tensor) -> Tensor:
        """Cosines and sines at points `(p, d)`, shape `(b, p, 2 F)`."""
        phase = (points - 0.5) @ self._waves.mT
        return torch.cat([phase.cos(), phase.sin_()], dim=2)
