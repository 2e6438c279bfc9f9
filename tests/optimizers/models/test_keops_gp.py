"""Matrix-free models with KeOps agree with dense ones; KeOps is quiet and never races.

The first run compiles: two formulas for each of two precisions, and again in a fresh folder.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cbo_suite.errors import InvalidTask, MissingExtra
from cbo_suite.optimizers.models import surrogate
from cbo_suite.optimizers.models.batch_gp import BatchGP
from cbo_suite.optimizers.models.fit import NOISY, default_parameters
from cbo_suite.optimizers.models.fit import fit as dense_fit
from cbo_suite.optimizers.models.keops.build import load_keops
from cbo_suite.optimizers.models.keops.gp import (
    NOISE_FLOOR,
    KeopsDraws,
    KeopsGP,
    fit,
)
from cbo_suite.optimizers.models.keops.operator import (
    WIDTH,
    MaternOperator,
    correlation,
    kernel_operator,
)
from cbo_suite.optimizers.models.likelihood import negative_log_posterior
from cbo_suite.optimizers.scbo.thompson import select
from cbo_suite.protocols import Evaluation
from tests.optimizers.scbo_runs import SPACE, advance, begun, bowl, design, make

pytestmark = pytest.mark.slow

# As many variables as the short runs of SCBO have: what is compiled serves both.
DIM = 2
# The paper's table (Eriksson and Poloczek, AISTATS 2021, supplement), one model of 1000 points.
PAPER_MEAN_MAE, PAPER_VARIANCE_MAE = 1.41e-3, 4.44e-3


def data(count: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs `(n, 2)`, two series with noise of variance 0.01, and their log hyperparameters."""
    generator = np.random.default_rng(1)
    x = generator.random((count, DIM))
    y = np.stack([np.sin(5.0 * x[:, 0]) + x[:, 1] ** 2, np.cos(3.0 * x.sum(1))])
    y = (y - y.mean(1, keepdims=True)) / y.std(1, keepdims=True)
    y += 0.1 * generator.standard_normal(y.shape)
    values = [[0.5, 1.0, 1.5, 0.01], [0.8, 0.7, 2.0, 0.02]]
    tensors = [torch.as_tensor(part, dtype=dtype) for part in (x, y, np.log(values))]
    return tensors[0], tensors[1], tensors[2]


def gpytorch_posterior(
    x: Tensor, y: Tensor, parameters: Tensor, mean: Tensor, points: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean and variance `(b, p)` of GPyTorch's exact models with Cholesky factors."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        import gpytorch

    batch, values = y.shape[:1], parameters.exp()

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
        """Constant mean and Matern-5/2 ARD kernel."""

        def forward(self, x: Tensor) -> object:
            """The prior."""
            return gpytorch.distributions.MultivariateNormal(constant(x), kernel(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood(batch_shape=batch)
    matern = gpytorch.kernels.MaternKernel(2.5, ard_num_dims=DIM, batch_shape=batch)
    kernel = gpytorch.kernels.ScaleKernel(matern, batch_shape=batch)
    constant = gpytorch.means.ConstantMean(batch_shape=batch)
    model = Model(x.expand(*batch, -1, -1), y, likelihood)
    for module in (likelihood, kernel, constant):
        module.to(x.dtype)
    matern.lengthscale, kernel.outputscale = values[:, None, :DIM], values[:, DIM]
    likelihood.noise = values[:, DIM + 1 :]
    constant.constant.data.copy_(mean)
    model.eval()
    with torch.no_grad(), gpytorch.settings.max_cholesky_size(10**6):
        posterior = model(points.expand(*batch, -1, -1))
        return posterior.mean, posterior.variance


def test_products_and_their_gradients_are_those_of_dense_matrices() -> None:
    """For few columns (KeOps) and for many (dense rows), and by points and columns."""
    x, _, parameters = data(40)
    operator = kernel_operator(x, parameters)
    generator = torch.Generator().manual_seed(0)
    left, right = torch.rand(2, 2, 40, DIM, dtype=x.dtype, generator=generator)
    for columns in (1, WIDTH, WIDTH + 1):
        leaves = [left.clone(), right.clone(), torch.rand(2, 40, columns, dtype=x.dtype)]
        few = columns <= WIDTH
        for leaf in leaves:
            leaf.requires_grad_(few)
        product = MaternOperator(leaves[0], leaves[1], covar_func=correlation)._matmul(leaves[2])
        dense = correlation(leaves[0], leaves[1]) @ leaves[2]
        torch.testing.assert_close(product, dense, rtol=1e-9, atol=1e-9)
        if few:
            slope = torch.rand_like(dense)
            ours = torch.autograd.grad((product * slope).sum(), leaves)
            theirs = torch.autograd.grad((dense * slope).sum(), leaves)
            for gradient, expected in zip(ours, theirs, strict=True):
                torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-9)
    assert operator.shape == (2, 40, 40)


def test_posterior_agrees_with_gpytorch_within_the_papers_table() -> None:
    """In single precision, as in the paper, at 1000 points."""
    x, y, parameters = data(1000, torch.float32)
    points = torch.rand(500, DIM, generator=torch.Generator().manual_seed(0))
    model = KeopsGP(x, y, parameters)
    mean, variance = model.predict(points)
    exact = [part.double() for part in (x, y, parameters, model.mean, points)]
    expected_mean, expected_variance = gpytorch_posterior(*exact)
    assert float((mean - expected_mean).abs().mean()) <= PAPER_MEAN_MAE
    assert float((variance - expected_variance).abs().mean()) <= PAPER_VARIANCE_MAE


def test_double_precision_agrees_with_the_dense_models() -> None:
    """Mean and variance to 1e-6, the likelihood within the noise of its estimate."""
    x, y, parameters = data(300)
    points = torch.rand(50, DIM, dtype=x.dtype, generator=torch.Generator().manual_seed(0))
    model, dense = KeopsGP(x, y, parameters), BatchGP(x, y, parameters)
    for ours, expected in zip(model.predict(points), dense.predict(points), strict=True):
        torch.testing.assert_close(ours, expected, rtol=0.0, atol=1e-6)
    torch.testing.assert_close(model.mean, dense.mean, rtol=0.0, atol=1e-6)
    # 1 % of a nat per observation.
    assert float((model.log_likelihood() - dense.log_likelihood()).abs().max()) <= 0.01 * 300


def test_fit_comes_as_high_as_the_dense_fit() -> None:
    """Within 3 % of a nat per observation, from the same start, even in inference mode."""
    x, y, _ = data(200)
    start = default_parameters(2, DIM, NOISY, y)
    _, best = dense_fit(x, y, start, NOISY, steps=100)
    with torch.inference_mode():
        parameters, _ = fit(x.clone(), y.clone(), start.clone(), NOISY, steps=50)
    value, _ = negative_log_posterior(parameters, x, y)
    assert float((value - best).max()) <= 0.03 * 200


def test_one_seed_gives_the_same_bits_and_leaves_global_generators_alone() -> None:
    """And BoTorch's switching off of fast computations does not bring back Cholesky factors."""
    from linear_operator import settings

    x, y, parameters = data(100)
    before = torch.random.get_rng_state()
    first, _ = fit(x, y, parameters, NOISY, steps=3, seed=5)
    likelihood = KeopsGP(x, y, first).log_likelihood()
    with settings.fast_computations(False, False, False):
        second, _ = fit(x, y, parameters, NOISY, steps=3, seed=5)
        assert torch.equal(likelihood, KeopsGP(x, y, second).log_likelihood())
    assert torch.equal(first, second)
    assert not torch.equal(first, fit(x, y, parameters, NOISY, steps=3, seed=6)[0])
    assert torch.equal(before, torch.random.get_rng_state())


def test_draws_have_the_mean_and_covariance_of_the_posterior() -> None:
    """At points far from and near to the data, from 4000 draws; offset and scale apply."""
    x, y, parameters = data(60)
    points = torch.tensor([[0.5, 0.5], [0.52, 0.5], [0.0, 1.0]], dtype=x.dtype)
    model, dense = KeopsGP(x, y, parameters), BatchGP(x, y, parameters)
    draws = KeopsDraws(model, 1, points, 4000, np.random.default_rng(0), offset=3.0, scale=2.0)
    mean, rows = dense.posterior(1, points)
    covariance = dense.kernels[1](points, points) - rows @ rows.mT
    deviation = covariance.diagonal().sqrt()
    error = ((draws.value.mean(1) - 3.0) / 2.0 - mean) / deviation
    assert float(error.abs().max()) <= 5.0 / math.sqrt(4000.0)
    # All draws share their frequencies, which adds to the error of 4000 draws.
    error = (torch.cov(draws.value) / 4.0 - covariance) / torch.outer(deviation, deviation)
    assert float(error.abs().max()) <= 0.15
    assert not draws.deviation.any()


def test_thompson_sampling_takes_the_draws_as_they_are() -> None:
    """A draw selects its least objective among what it samples feasible."""
    x, y, parameters = data(40)
    model, generator = KeopsGP(x, y, parameters), np.random.default_rng(3)
    points = torch.as_tensor(generator.random((200, DIM)))
    objective, constraint = (KeopsDraws(model, k, points, 1, generator) for k in (0, 1))
    chosen = select(objective, [constraint], certainty=7.0).chosen
    expected = torch.where(constraint.value <= 0, objective.value, torch.inf).argmin(0)
    assert 0 < int((constraint.value <= 0).sum()) < 200
    assert torch.equal(chosen, expected)


def test_the_floor_of_the_noise_holds() -> None:
    """Conjugate gradients would not converge without noise."""
    x, y, parameters = data(30)
    parameters[:, -1] = math.log(1e-12)
    model = KeopsGP(x, y, parameters)
    assert [float(kernel.noise) for kernel in model.kernels] == pytest.approx(
        [NOISE_FLOOR[torch.float64]] * 2
    )


def test_a_solution_that_is_not_one_is_announced() -> None:
    """With short length scales and too few iterations."""
    from linear_operator import settings

    x, y, parameters = data(300)
    parameters[:, :DIM], parameters[:, -1] = math.log(0.1), math.log(1e-6)
    with (
        settings.max_cg_iterations(20),
        pytest.warns(RuntimeWarning, match="allow more noise, or use the dense models"),
    ):
        KeopsGP(x, y, parameters)


def test_nothing_is_compiled_after_the_first_use() -> None:
    """Neither another number of models nor of columns asks the compiler again."""
    x, y, parameters = data(30)
    KeopsGP(x, y, parameters)
    folder = Path(load_keops().get_build_folder())
    before = sorted(folder.iterdir())
    fit(x, y[:1], parameters[:1], NOISY, steps=1)
    model = KeopsGP(x, y[:1], parameters[:1])
    model.predict(x[:5])
    model.log_likelihood()
    KeopsDraws(model, 0, x, 20, np.random.default_rng(0), num_frequencies=10)
    assert sorted(folder.iterdir()) == before


def test_scbo_runs_on_matrix_free_models_and_resumes() -> None:
    """The whole loop with KeOps goes on from its state as if it had never stopped, and improves."""
    whole = begun(models="keops", dtype="float64")
    advance(whole, 3)
    data = [
        part[:9].copy() for part in (whole._archive.x, *bowl(SPACE.from_unit(whole._archive.x)))
    ]
    state = whole.get_state()
    resumed = make(models="keops")
    resumed.tell(SPACE.from_unit(data[0]), Evaluation(data[1], data[2]))
    resumed.set_state(state)
    assert np.array_equal(whole.ask(2), resumed.ask(2))
    advance(whole, 10)
    best = bowl(whole.recommend()[None])
    assert (best.constraints <= 0.0).all()
    assert best.objective[0] < 2.3


@pytest.mark.parametrize("options", [{"acquisition": "ei"}, {"sampler": "exact"}])
def test_what_needs_cholesky_factors_is_refused(options: dict[str, Any]) -> None:
    """Matrix-free models have none."""
    with pytest.raises(InvalidTask, match='leave models at "auto"'):
        make(models="keops", **options)


def test_large_models_are_matrix_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """With "auto" the size decides, never the machine."""
    monkeypatch.setattr(surrogate, "MOST_DENSE_BYTES", 3 * 8 * 8 * 8)
    optimizer = begun(count=8)
    optimizer.ask()
    assert optimizer._surrogate._factors
    x = design(1, seed=1)
    optimizer.tell(x, bowl(x))
    optimizer.ask()
    assert not optimizer._surrogate._factors


def test_large_models_stay_dense_where_keops_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has grown large goes on, and says what it lacks."""
    monkeypatch.setattr(surrogate, "MOST_DENSE_BYTES", 0)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    optimizer = begun(count=8)
    with pytest.warns(RuntimeWarning, match=r"GB and grow .* install g\+\+"):
        optimizer.ask()
    assert optimizer._surrogate._factors


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """KeOps itself would only fail later, on an import."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(MissingExtra, match=r"C\+\+ compiler and found none: install g\+\+"):
        load_keops()


def test_without_pykeops_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line to type is in it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "cbo-suite\[scbo\]"'):
        load_keops()


PROGRAM = """
import logging, sys, torch
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
from cbo_suite.optimizers.models.keops.gp import KeopsGP
x = torch.linspace(0.0, 1.0, 20, dtype=torch.float64)[:, None].repeat(1, 2)
parameters = torch.tensor([[-1.0, -1.0, 0.0, -4.0]], dtype=torch.float64)
model = KeopsGP(x, torch.sin(6.0 * x[:, :1]).T.contiguous(), parameters)
print("mean %.6f" % model.mean.item())
"""


def start(folder: Path, **variables: str) -> subprocess.Popen[str]:
    """Start a process that uses KeOps with this cache folder, any warning being an error."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**os.environ, "KEOPS_CACHE_FOLDER": str(folder), "OMP_NUM_THREADS": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_build_once_what_a_dead_builder_left_behind(tmp_path: Path) -> None:
    """Of two that begin at once, one clears away what a killed one left, and compiles for both."""
    x, y, parameters = data(20)
    KeopsGP(x, y, parameters)
    whole = Path(load_keops().get_build_folder())
    torn = tmp_path / whole.name
    torn.mkdir()
    for library in whole.glob("*.so"):
        (torn / library.name).write_bytes(library.read_bytes()[:1000])
    (torn / "started").touch()
    outcomes = [process.communicate() for process in [start(tmp_path), start(tmp_path)]]
    lines = [stdout.splitlines() for stdout, _ in outcomes]
    assert [stderr for _, stderr in outcomes] == ["", ""]
    assert len({printed[-1] for printed in lines}) == 1
    assert lines[0][-1].startswith("mean ")
    compiling = "KeOps compiles its kernels once (about a minute) for matern-2d-float64-cpu"
    spoken = sorted(line for printed in lines for line in printed[:-1])
    assert spoken in (
        [compiling],
        [compiling, "another process compiles the kernels of KeOps: waiting for it"],
    )
    built = {library.name for library in torn.glob("*.so") if library.stat().st_size > 1000}
    assert built
    assert built <= {library.name for library in whole.glob("*.so")}
    assert not (torn / "started").exists()
    assert not list(tmp_path.rglob("*.pkl"))


def test_a_compiler_that_fails_is_named(tmp_path: Path) -> None:
    """With what to check, and the mark of the unfinished build stays for the next process."""
    _, stderr = start(tmp_path, CXX="false").communicate()
    assert "MissingExtra: KeOps could not compile its kernels" in stderr
    assert list(tmp_path.rglob("started"))
