"""Log constrained expected improvement as users of BoTorch run it, as ask/tell.

Source: S. Ament et al., "Unexpected improvements to expected improvement for Bayesian
optimization", NeurIPS 2023, arXiv:2310.20708; M. Balandat et al., "BoTorch", NeurIPS 2020,
arXiv:1910.06403. The method card is docs/optimizers/botorch-logcei.md.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from cbo_suite.optimizers.models.transforms import bilog
from cbo_suite.optimizers.shared.from_data import FromData
from cbo_suite.optimizers.shared.library import Library
from cbo_suite.protocols import Array, Evaluation, Space, whole_number

LIBRARY = Library("botorch", "botorch", "0.18.1", "botorch")
# Values beyond this are cut off, so that their squares stay finite.
LARGEST = 1e100


class BotorchLogCEI(FromData):
    """Gaussian processes and the logarithm of constrained expected improvement, of BoTorch."""

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        use_bilog: bool = True,
        num_restarts: int = 10,
        raw_samples: int = 512,
    ) -> None:
        """Begin without data.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the run, which makes no difference.
            batch_size: Number of points asked together, which makes no difference.
            seed: Fixes all randomness.
            use_bilog: Whether the models see the bilog of the constraints.
            num_restarts: How many points the acquisition function is improved from.
            raw_samples: How many points they are chosen from.

        Raises:
            MissingExtra: BoTorch is not installed.
        """
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        LIBRARY.load("botorch-logcei")
        self._use_bilog = use_bilog
        self._num_restarts = whole_number("num_restarts", num_restarts, 1)
        self._raw_samples = whole_number("raw_samples", raw_samples, self._num_restarts)

    def _propose(self, n: int, generator: np.random.Generator) -> Array:
        """Choose `n` points of the unit cube, shape `(n, d)`."""
        from botorch.exceptions.errors import BotorchError
        from botorch.utils.sampling import manual_seed

        try:
            with warnings.catch_warnings(), manual_seed(int(generator.integers(2**31))):
                warnings.simplefilter("ignore")
                return self._maximised(n)
        except (BotorchError, RuntimeError):
            # A matrix that no jitter makes positive definite, or gradients that are no numbers.
            self._inspection = {"random_instead": n}
            return generator.random((n, self._space.dim))

    def _maximised(self, n: int) -> Array:
        """Fit the models and maximise the acquisition function, one point after another."""
        import torch
        from botorch.optim import optimize_acqf

        values = self._values()
        limits = bilog(values.constraints) if self._use_bilog else values.constraints
        # Constraints that never changed tell nothing.
        limits = limits[:, np.ptp(limits, axis=0) > 0.0]
        # BoTorch maximises.
        series = [-values.objective, *limits.T]
        x = torch.tensor(self._unit, dtype=torch.float64)
        model = _fitted(x, [np.clip(row, -LARGEST, LARGEST) for row in series])
        under_way = torch.tensor(self._under_way(), dtype=torch.float64)
        if n == 1 and not len(under_way):
            acquisition = _analytic(model, len(limits.T), self._told)
        else:
            acquisition = _sampled(model, len(limits.T), self._told, x, under_way)
        self._inspection = {"acquisition": type(acquisition).__name__}
        points, _ = optimize_acqf(
            acquisition,
            bounds=torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, x.shape[1]),
            q=n,
            num_restarts=self._num_restarts,
            raw_samples=self._raw_samples,
            options={"maxiter": 200},
            sequential=True,
        )
        chosen: Array = points.numpy()
        return chosen


def _fitted(x: Any, series: list[Array]) -> Any:
    """BoTorch's standard models of points `(n, d)` and each series `(n,)`, fitted."""
    import torch
    from botorch.exceptions.errors import ModelFittingError
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    models = []
    for values in series:
        model = SingleTaskGP(x, torch.tensor(values[:, None], dtype=torch.float64))
        try:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        except ModelFittingError:
            # What the prior says of the hyperparameters is left; the model is to predict.
            model.train(False)
        models.append(model)
    return ModelListGP(*models)


def _analytic(model: Any, num_limits: int, told: Evaluation) -> Any:
    """The acquisition function of one point while none is under way."""
    from botorch.acquisition import LogExpectedImprovement
    from botorch.acquisition.analytic import (
        LogConstrainedExpectedImprovement,
        LogProbabilityOfFeasibility,
    )

    best = told.best()
    limits = {index: (None, 0.0) for index in range(1, 1 + num_limits)}
    best_f = float(-np.clip(told.objective[best], -LARGEST, LARGEST))
    if not limits:
        # Without a finite value there is nothing to improve on.
        return LogExpectedImprovement(model.models[0], best_f if np.isfinite(best_f) else 0.0)
    if told.feasible[best]:
        return LogConstrainedExpectedImprovement(model, best_f, 0, limits)
    return LogProbabilityOfFeasibility(model, limits)


def _sampled(model: Any, num_limits: int, told: Evaluation, x: Any, under_way: Any) -> Any:
    """The acquisition function of a batch, or beside points under way `(p, d)`."""
    import torch
    from botorch.acquisition.logei import (
        qLogNoisyExpectedImprovement,
        qLogProbabilityOfFeasibility,
    )
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.sampling import SobolQMCNormalSampler

    sampler = SobolQMCNormalSampler(torch.Size([128]))
    pending = under_way if len(under_way) else None
    # Each function picks one output of samples (..., 1 + m).
    limits = [_output(index) for index in range(1, 1 + num_limits)]
    if limits and not told.feasible[told.best()]:
        return qLogProbabilityOfFeasibility(model, limits, sampler, X_pending=pending)
    return qLogNoisyExpectedImprovement(
        model,
        X_baseline=x,
        sampler=sampler,
        objective=GenericMCObjective(lambda samples, X=None: samples[..., 0]),
        constraints=limits or None,
        X_pending=pending,
    )


def _output(index: int) -> Any:
    """A function of samples `(..., k)` that gives one of their outputs."""
    return lambda samples: samples[..., index]
