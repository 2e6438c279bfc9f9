"""The paper's table of batch Gaussian processes, on this machine: ours, GPyTorch Cholesky and CG.

Eriksson and Poloczek, AISTATS 2021, supplement: standardised functions with noise of variance
0.01, 50 gradient steps, prediction and one joint draw at 5000 points, single precision. The paper
does not name the functions: here they are random sums of waves in 10 variables. Errors are those
against exact models in double precision with the same hyperparameters, so free of luck in training.

    python tests/benchmarks/batch_gp_table.py leaderboard/measurements

writes the file that `cbo paper build` reads, in about an hour on a quiet core.
"""

from __future__ import annotations

import io
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cbo_suite.harness.environment import describe_machine
from cbo_suite.optimizers.models.batch_gp import BatchGP
from cbo_suite.optimizers.models.fit import NOISY, default_parameters, fit
from cbo_suite.optimizers.models.pathwise import PathwiseDraws
from cbo_suite.paper.measurements import (
    BATCH_GP,
    BatchCell,
    BatchSide,
    BatchTable,
    write_measurement,
)

# GPyTorch imports KeOps, which prints that there is no GPU.
with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
    warnings.simplefilter("ignore")
    import gpytorch

DIM, TEST_POINTS, STEPS, NOISE = 10, 5000, 50, 0.01
SIZES = [(models, points) for models in (1, 10, 50) for points in (1000, 2000)]
# GPyTorch's sides are timed over this many steps and scaled to 50, unless asked in full.
MEASURED_STEPS = 3
# Elements of one batch of kernel matrices: autograd keeps several of them.
MOST_ELEMENTS = 40_000_000


class Side(NamedTuple):
    """Seconds of training, prediction and sampling, and predictions for the first models."""

    seconds: list[float]
    mean: Tensor
    variance: Tensor


class _BatchModel(gpytorch.models.ExactGP):  # type: ignore[misc]
    """A batch of GPyTorch's exact models with the paper's kernel."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        """Take inputs `(b, n, d)` and outputs `(b, n)`."""
        shape = y.shape[:1]
        noise = gpytorch.constraints.GreaterThan(0.1 * NOISY.noise[0])
        super().__init__(
            x, y, gpytorch.likelihoods.GaussianLikelihood(noise_constraint=noise, batch_shape=shape)
        )
        kernel = gpytorch.kernels.MaternKernel(2.5, ard_num_dims=x.shape[-1], batch_shape=shape)
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel, batch_shape=shape)

    def forward(self, x: Tensor) -> Any:
        """The prior at `(b, n, d)`."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def assume(self, parameters: Tensor, mean: Tensor) -> None:
        """Take over log hyperparameters `(b, d + 2)` and means `(b,)`."""
        values = parameters.exp()
        self.covar_module.base_kernel.lengthscale = values[:, None, :-2]
        self.covar_module.outputscale = values[:, -2]
        self.likelihood.noise = values[:, -1:]
        self.mean_module.constant.data.copy_(mean)


def table_rows(quick: bool, full: bool) -> Iterator[dict[str, Any]]:
    """The rows of the table, each with three sides."""
    for models, points in SIZES[:3] if quick else SIZES:
        x, y, test = _data(models, points)
        parameters, gp, ours = _ours(x, y, test)
        shown = max(1, min(models, MOST_ELEMENTS // points**2))
        steps = STEPS if full else MEASURED_STEPS
        cholesky = _gpytorch(x, y, test, gp, parameters, 1, models if full else 1, steps, _dense)
        gradient = _gpytorch(
            x, y, test, gp, parameters, shown, models if full else shown, steps, _matrix_free
        )
        exact = BatchGP(x.double(), y[:shown].double(), parameters[:shown].double())
        truth = exact.predict(test.double())
        for name, side in (("ours", ours), ("cholesky", cholesky), ("cg", gradient)):
            yield {
                "case": "table",
                "what": f"{models} x {points} {name}",
                **dict(zip(("training", "prediction", "sampling"), side.seconds, strict=True)),
                "mean_mae": _error(side.mean, truth[0]),
                "variance_mae": _error(side.variance, truth[1]),
            }


def _data(models: int, points: int) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs `(n, d)`, noisy values `(b, n)` of standardised functions, and test points."""
    generator = np.random.default_rng([models, points])
    x, test = generator.random((points, DIM)), generator.random((TEST_POINTS, DIM))
    waves = generator.standard_normal((models, DIM, 5))
    phases = generator.random((models, 1, 5)) * 2.0 * np.pi
    values = np.cos(x @ waves + phases).sum(-1)
    values = (values - values.mean(1, keepdims=True)) / values.std(1, keepdims=True)
    values += np.sqrt(NOISE) * generator.standard_normal(values.shape)
    tensors = (torch.as_tensor(part, dtype=torch.float32) for part in (x, values, test))
    return next(tensors), next(tensors), next(tensors)


def _ours(x: Tensor, y: Tensor, test: Tensor) -> tuple[Tensor, BatchGP, Side]:
    """Our models: hyperparameters, conditioned models and times."""
    clock = [time.process_time()]
    with torch.inference_mode():
        start = default_parameters(len(y), DIM, NOISY, y)
        # As many steps as the others take, however little the last ones gain.
        parameters, _ = fit(x, y, start, NOISY, steps=STEPS, tolerance=0.0)
        clock.append(time.process_time())
        gp = BatchGP(x, y, parameters)
        mean, variance = gp.predict(test)
        clock.append(time.process_time())
        generator, everything = np.random.default_rng(0), torch.arange(TEST_POINTS)
        for index in range(len(y)):
            draws = PathwiseDraws(gp, index, test, 1, generator)
            draws.draw(everything)
        clock.append(time.process_time())
    return parameters, gp, Side(np.diff(clock).tolist(), mean.clone(), variance.clone())


def _gpytorch(
    x: Tensor,
    y: Tensor,
    test: Tensor,
    gp: BatchGP,
    parameters: Tensor,
    batch: int,
    measured: int,
    steps: int,
    settings: Any,
) -> Side:
    """GPyTorch's models, `batch` at a time, of which `measured` are timed; times are scaled."""
    # What PyTorch does once only is not timed.
    _train(_BatchModel(x[None, :DIM], y[:1, :DIM]), 1)
    seconds, means, variances = np.zeros(3), [], []
    for first in range(0, measured, batch):
        part = slice(first, min(first + batch, len(y)))
        size = part.stop - part.start
        model = _BatchModel(x.expand(size, -1, -1), y[part].clone())
        points = test.expand(size, -1, -1)
        with settings():
            clock = [time.process_time()]
            _train(model, steps)
            clock.append(time.process_time())
            model.assume(parameters[part].clone(), gp.mean[part].clone())
            model.eval()
            with torch.no_grad():
                posterior = model(points)
                means.append(posterior.mean)
                variances.append(posterior.variance)
                clock.append(time.process_time())
                posterior.rsample()
                clock.append(time.process_time())
        seconds += np.diff(clock) * np.array([STEPS / steps, 1.0, 1.0])
    seconds *= len(y) / min(measured, len(y))
    return Side(seconds.tolist(), torch.cat(means), torch.cat(variances))


def _train(model: _BatchModel, steps: int) -> None:
    """Take gradient steps on the marginal likelihood, as TuRBO does."""
    model.train()
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -likelihood(model(*model.train_inputs), model.train_targets).sum()
        loss.backward()
        optimizer.step()


def _dense() -> AbstractContextManager[Any]:
    """Let GPyTorch factorise."""
    stack = _quiet()
    stack.enter_context(gpytorch.settings.max_cholesky_size(10**9))
    return stack


def _matrix_free() -> AbstractContextManager[Any]:
    """Let GPyTorch use conjugate gradients and the Lanczos process."""
    stack = _quiet()
    # BoTorch switches these off for the whole process when it is imported.
    stack.enter_context(gpytorch.settings.fast_computations(True, True, True))
    stack.enter_context(gpytorch.settings.max_cholesky_size(0))
    stack.enter_context(gpytorch.settings.fast_pred_var())
    stack.enter_context(gpytorch.settings.fast_pred_samples())
    return stack


def _quiet() -> ExitStack:
    """Silence what GPyTorch warns of."""
    stack = ExitStack()
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    return stack


def _error(side: Tensor, truth: Tensor) -> float:
    """Mean absolute error over the first models, as many as both know."""
    count = min(len(side), len(truth))
    return float((side[:count] - truth[:count]).abs().mean())


def make_table(rows: Iterable[dict[str, Any]]) -> BatchTable:
    """Put rows together as the report wants them, one cell for the three sides of a size."""
    sides: dict[str, dict[str, BatchSide]] = {}
    for row in rows:
        size, _, side = row["what"].rpartition(" ")
        fields = {name: float(row[name]) for name in BatchSide.__struct_fields__}
        sides.setdefault(size, {})[side] = BatchSide(**fields)
    cells = []
    for size, own in sides.items():
        models, points = (int(part) for part in size.split(" x "))
        cells.append(BatchCell(models, points, own["cholesky"], own["cg"], own["ours"]))
    return BatchTable(describe_machine()["processor"], cells)


def main() -> None:
    """Measure the table and write it into the folder that is named."""
    [folder] = sys.argv[1:]
    print(
        f"wrote {write_measurement(Path(folder), BATCH_GP, make_table(table_rows(False, False)))}"
    )


if __name__ == "__main__":
    main()
