"""BoTorch through our interface: its parts, put together anew, choose the same points."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from cbo_suite import Evaluation
from cbo_suite.optimizers.botorch_logcei import BotorchLogCEI
from tests.optimizers.advancing import SQUARE, advance, corner, draw


def fit_models(x: torch.Tensor, values: Evaluation) -> Any:
    """Fit BoTorch's standard models of the objective, turned round, and the constraints' bilog."""
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from gpytorch.mlls import SumMarginalLogLikelihood

    bilog = np.sign(values.constraints) * np.log1p(np.abs(values.constraints))
    series = torch.tensor(np.column_stack([-values.objective, bilog]))
    model = ModelListGP(*(SingleTaskGP(x, column[:, None]) for column in series.T))
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    return model


def test_botorch_gives_the_point_of_its_own_parts() -> None:
    """The parts of BoTorch, put together as in its documentation, choose the same point."""
    design = np.vstack([draw(SQUARE, 8), [0.2, 1.3]])
    values = corner(design)
    assert values.feasible.any()
    ours = advance(BotorchLogCEI(SQUARE, budget=20, seed=2), corner, design, 1)[-1]

    from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
    from botorch.optim import optimize_acqf
    from botorch.utils.sampling import manual_seed

    seed = int(np.random.default_rng([2, 1]).integers(2**31))
    x = torch.tensor(SQUARE.to_unit(design))
    with warnings.catch_warnings(), manual_seed(seed):
        warnings.simplefilter("ignore")
        model = fit_models(x, values)
        acquisition = LogConstrainedExpectedImprovement(
            model,
            best_f=-values.objective[values.feasible].min(),
            objective_index=0,
            constraints={1: (None, 0.0), 2: (None, 0.0)},
        )
        box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
        point, _ = optimize_acqf(acquisition, box, q=1, num_restarts=10, raw_samples=512)
    assert np.allclose(ours, SQUARE.from_unit(point.numpy())[0], atol=1e-3)
    assert BotorchLogCEI(SQUARE, budget=20).inspect() == {}


def test_botorch_seeks_feasibility_before_anything_is_feasible() -> None:
    """Without a feasible point the acquisition function is the probability of one."""
    design = draw(SQUARE, 6)
    for n, name in ((1, "LogProbabilityOfFeasibility"), (2, "qLogProbabilityOfFeasibility")):
        optimizer = BotorchLogCEI(SQUARE, budget=20, num_restarts=1, raw_samples=16)
        values = corner(design)
        optimizer.tell(design, values._replace(constraints=values.constraints + 9.0))
        optimizer.ask(n)
        assert optimizer.inspect() == {"acquisition": name}


def test_botorch_gives_the_batch_of_its_own_parts() -> None:
    """With feasible data a batch maximises the noisy improvement, one point after the other."""
    design = np.vstack([draw(SQUARE, 8), [0.2, 1.3]])
    values = corner(design)
    assert values.feasible.any()
    optimizer = BotorchLogCEI(SQUARE, budget=20, seed=2)
    ours = advance(optimizer, corner, design, 1, n=2)[len(design) :]
    assert optimizer.inspect() == {"acquisition": "qLogNoisyExpectedImprovement"}

    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from botorch.utils.sampling import manual_seed

    seed = int(np.random.default_rng([2, 1]).integers(2**31))
    x = torch.tensor(SQUARE.to_unit(design))
    with warnings.catch_warnings(), manual_seed(seed):
        warnings.simplefilter("ignore")
        model = fit_models(x, values)
        acquisition = qLogNoisyExpectedImprovement(
            model,
            X_baseline=x,
            sampler=SobolQMCNormalSampler(torch.Size([128])),
            objective=GenericMCObjective(lambda samples, X=None: samples[..., 0]),
            constraints=[lambda samples: samples[..., 1], lambda samples: samples[..., 2]],
        )
        box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
        points, _ = optimize_acqf(
            acquisition, box, q=2, num_restarts=10, raw_samples=512, sequential=True
        )
    assert np.allclose(ours, SQUARE.from_unit(points.numpy()), atol=1e-3)
