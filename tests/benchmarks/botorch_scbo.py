"""The rival: SCBO whose models and draws are BoTorch's own parts, everything else being ours.

As in BoTorch's SCBO tutorial: one SingleTaskGP with a Matern-5/2 ARD kernel per function, fitted
by fit_gpytorch_mll, and ConstrainedMaxPosteriorSampling. Trust region, transforms and candidates
are those of our SCBO, to the last digit under one seed, so what differs is what is compared.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cbo_suite.optimizers.models.fit import NOISE_FREE
from cbo_suite.optimizers.models.surrogate import Transform
from cbo_suite.optimizers.scbo import SCBO
from cbo_suite.protocols import Array, Space

# GPyTorch imports KeOps, which prints that there is no GPU.
with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
    warnings.simplefilter("ignore")
    from botorch.fit import fit_gpytorch_mll
    from botorch.generation.sampling import ConstrainedMaxPosteriorSampling
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms.outcome import Standardize
    from gpytorch import settings
    from gpytorch.constraints import Interval
    from gpytorch.kernels import MaternKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.mlls import ExactMarginalLogLikelihood


def fit_one(x: Tensor, y: Tensor) -> SingleTaskGP:
    """Fit one of BoTorch's models to points `(n, d)` of the unit cube and values `(n,)`."""
    with _with_gradients():
        lengthscale, noise = Interval(*NOISE_FREE.lengthscale), Interval(*NOISE_FREE.noise)
        kernel = MaternKernel(nu=2.5, ard_num_dims=x.shape[1], lengthscale_constraint=lengthscale)
        model = SingleTaskGP(
            x.clone(),
            y.clone()[:, None],
            covar_module=ScaleKernel(kernel),
            likelihood=GaussianLikelihood(noise_constraint=noise),
            outcome_transform=Standardize(m=1),
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def draw_one(model: SingleTaskGP, candidates: Tensor, draws: int) -> Tensor:
    """Draw one model over candidates `(r, d)` as ConstrainedMaxPosteriorSampling does: `(q, r)`."""
    with _with_gradients(), torch.no_grad(), settings.max_cholesky_size(float("inf")):
        samples: Tensor = model.posterior(candidates.clone()).rsample(torch.Size([draws]))
    return samples[..., 0]


class BotorchSCBO(SCBO):
    """Our SCBO with BoTorch's models and draws."""

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Take over everything but the models and the draws."""
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        self._acquisition: Any = _Acquisition()

    def _new_surrogate(self) -> Any:
        """BoTorch's models."""
        return _Surrogate(self._transform)


class _Surrogate:
    """One SingleTaskGP per function, fitted anew whenever there are new data."""

    def __init__(self, transform: Transform) -> None:
        """Keep the transforms of the observations."""
        self._transform = transform

    def tensor(self, values: Array) -> Tensor:
        """The values as a tensor."""
        return torch.as_tensor(values, dtype=torch.float64)

    def update(self, x: Array, objective: Array, constraints: Array) -> SimpleNamespace:
        """Fit to points `(n, d)` of the unit cube, objective `(n,)` and constraints `(n, m)`."""
        inputs = self.tensor(x)
        # BoTorch maximises.
        values = self.tensor(-self._transform.objective(objective))
        limits = self.tensor(self._transform.constraints(constraints))
        return SimpleNamespace(
            objective=fit_one(inputs, values),
            constraints=ModelListGP(*(fit_one(inputs, column) for column in limits.T)),
        )

    def at_bounds(self) -> dict[str, list[int]]:
        """Not known."""
        return {}

    def get_state(self) -> dict[str, Any]:
        """Nothing: every fit begins anew."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Ignore the state."""


class _Acquisition:
    """BoTorch's constrained Thompson sampling."""

    def choose(
        self,
        model: SimpleNamespace,
        candidates: Tensor,
        count: int,
        best_feasible: float | None,
        generator: np.random.Generator,
    ) -> tuple[np.ndarray, list[int]]:
        """Choose `count` of the candidates `(r, d)`; returns their indices."""
        sampling = ConstrainedMaxPosteriorSampling(
            model.objective, model.constraints, replacement=False
        )
        with torch.random.fork_rng(), _with_gradients(), torch.no_grad():
            torch.manual_seed(int(generator.integers(2**31)))
            with settings.max_cholesky_size(float("inf")):
                points = sampling(candidates.clone(), num_samples=count)
        same = (points[:, None] == candidates[None]).all(-1)
        return same.int().argmax(1).numpy(), []


@contextmanager
def _with_gradients() -> Iterator[None]:
    """Leave inference mode, which GPyTorch cannot work in, and silence what BoTorch warns of."""
    with torch.inference_mode(False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
