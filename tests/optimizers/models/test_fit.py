"""Fitting hyperparameters: as good as SciPy's L-BFGS-B, inside the bounds, all models at once."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from cbo_suite.optimizers.models.fit import (
    NOISE_FREE,
    NOISY,
    Bounds,
    default_parameters,
    expected_curvature,
    fit,
    restart_parameters,
    revive,
)
from cbo_suite.optimizers.models.likelihood import negative_log_posterior
from cbo_suite.optimizers.models.surrogate import FIT_STEPS, FIT_TOLERANCE


def smooth_data(count: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Three smooth functions of four variables, one of them constant in two of them."""
    x = np.random.default_rng(seed).random((count, 4))
    rows = np.stack(
        [
            np.sin(5.0 * x[:, 0]) + x[:, 1] ** 2,
            np.exp(x).sum(axis=1),
            np.cos(9.0 * x[:, 2]) * x[:, 3],
        ]
    )
    rows = (rows - rows.mean(axis=1, keepdims=True)) / rows.std(axis=1, keepdims=True)
    return torch.tensor(x), torch.tensor(rows)


@pytest.mark.usefixtures("default_device")
@pytest.mark.parametrize("count", [8, 60])
def test_as_likely_as_scipy_finds(count: int) -> None:
    """From the same start the fit is no more than a tenth of a nat behind L-BFGS-B."""
    x, y = smooth_data(count)
    start = default_parameters(3, 4, NOISE_FREE, y)
    _, values = fit(x, y, start, NOISE_FREE, steps=300, tolerance=1e-6)
    lower, upper = NOISE_FREE.tensors(y, 4)
    for index in range(3):

        def objective(parameters: np.ndarray, index: int = index) -> tuple[float, np.ndarray]:
            point = torch.tensor(parameters)[None]
            value, gradient = negative_log_posterior(point, x, y[index : index + 1])
            return float(value), gradient[0].cpu().numpy()

        found = minimize(
            objective,
            start[index].cpu().numpy(),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(lower.tolist(), upper.tolist(), strict=True)),
            options={"maxiter": 1000},
        )
        assert float(values[index]) <= found.fun + 0.1


@pytest.mark.parametrize(
    ("bounds", "deviation", "behind"),
    [(NOISE_FREE, 0.0, 2.0), (NOISY, 0.3, 1.5), (NOISY, 0.05, 3.0)],
)
@pytest.mark.parametrize("count", [20, 60])
@pytest.mark.usefixtures("default_device")
def test_fits_of_a_run_end_near_the_maximum(
    bounds: Bounds, deviation: float, behind: float, count: int
) -> None:
    """As many steps as the models of a run take, and where a later fit begins."""
    x, y = smooth_data(count)
    noise = np.random.default_rng(1).standard_normal(y.shape)
    y = y + deviation * torch.tensor(noise)
    start = default_parameters(3, 4, bounds, y)
    _, best = fit(x, y, start, bounds, steps=400, tolerance=1e-6)
    for _ in range(2):
        start, values = fit(x, y, start, bounds, steps=FIT_STEPS, tolerance=FIT_TOLERANCE)
        assert bool((values - best < behind).all()), values - best
        start = restart_parameters(start, bounds)


def test_the_expected_curvature_saves_steps() -> None:
    """Eight steps in many dimensions: with it the models are less than half as far from the end."""
    x = np.random.default_rng(0).random((200, 100))
    slopes = np.random.default_rng(1).standard_normal(100)
    rows = np.stack([np.sin(4.0 * x[:, :3]).sum(axis=1), x[:, 5:15].sum(axis=1) ** 2, x @ slopes])
    rows = (rows - rows.mean(axis=1, keepdims=True)) / rows.std(axis=1, keepdims=True)
    inputs, outputs = torch.tensor(x), torch.tensor(rows)
    start, guess = default_parameters(3, 100, NOISE_FREE, outputs), expected_curvature(200, 100)

    def values(steps: int, curvature: np.ndarray | None) -> torch.Tensor:
        return fit(inputs, outputs, start, NOISE_FREE, steps=steps, curvature=curvature)[1]

    best, finished = values(300, None), values(300, guess)
    torch.testing.assert_close(finished, best, rtol=0.0, atol=0.5)
    assert (values(8, guess) - best).sum() < 0.5 * (values(8, None) - best).sum()


def test_models_do_not_influence_each_other() -> None:
    """A model fitted alone gets the same hyperparameters as in a batch."""
    x, y = smooth_data(30)
    start = default_parameters(3, 4, NOISE_FREE, y)
    together, values = fit(x, y, start, NOISE_FREE, steps=20)
    for index in range(3):
        part = slice(index, index + 1)
        alone, value = fit(x, y[part], start[part], NOISE_FREE, steps=20)
        torch.testing.assert_close(alone[0], together[index], rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(value[0], values[index], rtol=1e-6, atol=1e-6)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One model at a time, as under a memory limit, gives the same hyperparameters."""
    x, y = smooth_data(30)
    start = default_parameters(3, 4, NOISE_FREE, y)
    whole, _ = fit(x, y, start, NOISE_FREE, steps=10)
    monkeypatch.setattr("cbo_suite.optimizers.models.fit.CHUNK_ELEMENTS", 1)
    chunked, _ = fit(x, y, start, NOISE_FREE, steps=10)
    torch.testing.assert_close(chunked, whole, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bounds", [NOISE_FREE, NOISY, Bounds(lengthscale=(0.4, 0.6))])
def test_bounds_hold(bounds: Bounds) -> None:
    """Whatever the data say, the hyperparameters stay inside."""
    x, y = smooth_data(25)
    parameters, _ = fit(x, y, default_parameters(3, 4, bounds, y), bounds, steps=60)
    lower, upper = bounds.tensors(y, 4)
    assert bool(((parameters >= lower) & (parameters <= upper)).all())


def test_noise_is_found_when_allowed() -> None:
    """Noise of variance 0.25 in standardised data is told from the signal."""
    generator = np.random.default_rng(3)
    x = torch.tensor(generator.random((150, 1)))
    signal = torch.sin(6.0 * x[:, 0])
    y = signal + 0.5 * torch.tensor(generator.standard_normal(150))
    y = ((y - y.mean()) / y.std())[None]
    parameters, _ = fit(x, y, default_parameters(1, 1, NOISY, y), NOISY, steps=60)
    assert 0.2 < float(parameters[0, -1].exp()) < 0.6


def test_a_variable_without_influence_switches_off() -> None:
    """Its length scale grows long, that of the others does not."""
    x, y = smooth_data(60)
    parameters, _ = fit(x, y[:1], default_parameters(1, 4, NOISE_FREE, y), NOISE_FREE, steps=100)
    lengthscale = parameters[0, :4].exp()
    assert float(lengthscale[2:].min()) > 2.0
    assert float(lengthscale[0]) < 1.0


@pytest.mark.parametrize(
    "y", [torch.zeros(2, 6), torch.full((2, 6), 3.0)], ids=["zeros", "constant"]
)
def test_data_without_information(y: torch.Tensor) -> None:
    """Constant outputs and duplicated inputs give finite hyperparameters."""
    x = torch.full((6, 2), 0.5, dtype=torch.float64)
    y = y.to(torch.float64)
    parameters, values = fit(x, y, default_parameters(2, 2, NOISE_FREE, y), NOISE_FREE, steps=30)
    assert bool(parameters.isfinite().all())
    assert bool(values.isfinite().all())


def test_a_start_without_factor_is_returned() -> None:
    """Inputs that are not finite have no likelihood: the start comes back, marked infinite."""
    x = torch.full((4, 2), torch.nan, dtype=torch.float64)
    y = torch.zeros(1, 4, dtype=torch.float64)
    start = default_parameters(1, 2, NOISE_FREE, y)
    parameters, values = fit(x, y, start, NOISE_FREE, steps=5)
    torch.testing.assert_close(parameters, start)
    assert bool(values.isinf().all())


def test_a_kernel_matrix_without_factor_in_a_batch() -> None:
    """One broken model of three has an infinite value; the others keep theirs."""
    x, y = smooth_data(20)
    x = torch.cat([x, x])
    y = torch.cat([y, y], dim=1)
    parameters = default_parameters(3, 4, NOISE_FREE, y).clone()
    parameters[1, -1] = -80.0  # no noise on duplicated inputs: singular
    value, _ = negative_log_posterior(parameters, x, y)
    assert value.isinf().tolist() == [False, True, False]


def test_bounds_in_single_precision() -> None:
    """More noise, and room above it; double precision needs none."""
    low, high = NOISE_FREE.at_precision(torch.float32).noise
    assert low == pytest.approx(1.19e-5, rel=0.01)
    assert high > low
    assert low < NOISE_FREE.at_precision(torch.float32).first_noise < high
    for bounds in (NOISE_FREE, NOISY):
        assert bounds.at_precision(torch.float64) == bounds
    assert NOISY.at_precision(torch.float32).first_noise == NOISY.first_noise


def test_exact_data_have_little_noise() -> None:
    """It does not rise from where a run begins its fits, unless the data ask for more."""
    x, y = smooth_data(60)
    start = default_parameters(3, 4, NOISE_FREE, y)
    parameters, _ = fit(x, y, start, NOISE_FREE, steps=FIT_STEPS, tolerance=FIT_TOLERANCE)
    assert float(parameters[:, -1].exp().max()) < 5e-6
    # Two results at every point that differ by a hundredth, which no smooth function does.
    twice = torch.cat([y, y + 0.01], dim=1)
    noisy, _ = fit(torch.cat([x, x]), twice, start, NOISE_FREE, steps=300)
    assert float(noisy[:, -1].exp().min()) > 1e-5


def test_restart_leaves_dead_ends() -> None:
    """Long length scales come back to the others, the noise to the middle of its bounds."""
    earlier = torch.tensor([[0.1, 0.1, 4.0, 2.0, 1e-8]], dtype=torch.float64).log()
    start = restart_parameters(earlier, NOISE_FREE).exp()[0]
    np.testing.assert_allclose(start[:2], 0.1, rtol=1e-9)
    assert float(start[2]) == pytest.approx(0.1 * 40**0.2)
    assert float(start[3]) == pytest.approx(2.0)
    assert float(start[4]) == pytest.approx((1e-8 * 1e-3) ** 0.5)


def test_collapsed_models_are_revived() -> None:
    """A model that took its data for independent learns from new ones, others keep their scales."""
    x, y = smooth_data(60)
    collapsed = torch.tensor([0.006, 0.008, 0.01, 0.3, 1.0, 1e-6], dtype=torch.float64).log()
    healthy = torch.tensor([0.2, 0.9, 0.5, 4.0, 1.0, 1e-6], dtype=torch.float64).log()
    before = torch.stack([collapsed, healthy, collapsed])
    after = revive(before, x)
    torch.testing.assert_close(after[1], healthy)
    nearest = torch.cdist(x, x).fill_diagonal_(torch.inf).amin(dim=1).median()
    torch.testing.assert_close(after[0, :-2].median().exp(), 0.5 * nearest)
    torch.testing.assert_close(after[0, :-2].diff(), collapsed[:-2].diff())

    def likelihoods(start: torch.Tensor) -> torch.Tensor:
        return fit(x, y, restart_parameters(start, NOISE_FREE), NOISE_FREE, steps=40)[1]

    _, best = fit(x, y, default_parameters(3, 4, NOISE_FREE, y), NOISE_FREE, steps=300)
    # Without it the fit stays where it is, far from what the data could tell.
    assert bool((likelihoods(before)[[0, 2]] > best[[0, 2]] + 20.0).all())
    torch.testing.assert_close(likelihoods(after), best, rtol=0.0, atol=0.5)


@pytest.mark.parametrize("count", [1, 2])
def test_revival_needs_no_distances(count: int) -> None:
    """One point, or points that coincide, do not make length scales infinite."""
    parameters = default_parameters(2, 3, NOISE_FREE, torch.zeros((), dtype=torch.float64))
    revived = revive(parameters - 5.0, torch.full((count, 3), 0.3, dtype=torch.float64))
    assert bool(revived.isfinite().all())
    assert bool((revived[:, :-2] <= parameters[:, :-2]).all())
