"""Cholesky factors: extension equals a fresh factor, and the ladder of jitter never fails."""

import numpy as np
import pytest
import torch

from cbo_suite.optimizers.models.cholesky import Factor, Kernel, extend, factorise

pytestmark = pytest.mark.usefixtures("default_device")


def kernel(noise: float = 1e-6) -> Kernel:
    """A kernel over three variables."""
    scale = torch.tensor([0.3, 0.5, 1.0], dtype=torch.float64)
    variance = torch.tensor(1.7, dtype=torch.float64)
    return Kernel(scale, variance, torch.tensor(noise, dtype=torch.float64))


def points(count: int, seed: int = 0) -> torch.Tensor:
    """Random points of the unit cube."""
    return torch.tensor(np.random.default_rng(seed).random((count, 3)))


def test_factor_of_the_kernel_matrix_with_noise() -> None:
    """The product of the factor with its transpose is the matrix."""
    x = points(40)
    factor = factorise(kernel(), x)
    expected = kernel()(x, x) + 1e-6 * torch.eye(40, dtype=torch.float64)
    torch.testing.assert_close(factor.lower @ factor.lower.mT, expected, rtol=1e-10, atol=1e-10)
    assert factor.jitter == 0.0


@pytest.mark.parametrize("steps", [[40], [25, 40], [10, 11, 30, 40]])
def test_extension_equals_a_fresh_factor(steps: list[int]) -> None:
    """Appending data in any steps gives the factor of all data."""
    x = points(40)
    factor = factorise(kernel(), x[: steps[0]])
    for stop in steps:
        factor = extend(kernel(), factor, x[:stop])
    torch.testing.assert_close(factor.lower, factorise(kernel(), x).lower, rtol=1e-8, atol=1e-8)


def test_extension_by_nothing_is_the_same_object() -> None:
    """No data appended, nothing computed."""
    factor = factorise(kernel(), points(5))
    assert extend(kernel(), factor, points(5)) is factor


def test_duplicated_points_without_noise_need_jitter() -> None:
    """A singular matrix gets the least jitter that helps, silently while it is tiny."""
    x = points(6).repeat(4, 1)
    factor = factorise(kernel(noise=0.0), x)
    assert 0.0 < factor.jitter <= 1e-6
    extended = extend(kernel(noise=0.0), factor, torch.cat([x, x[:3]]))
    assert extended.lower.isfinite().all()


def test_jitter_that_changes_predictions_is_announced() -> None:
    """A matrix that is far from positive definite is made one, with a warning."""

    class Indefinite(Kernel):
        """Not a covariance: correlations above one."""

        def __call__(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
            """Too large off the diagonal."""
            return torch.full((len(left), len(right)), 1.005, dtype=torch.float64)

    one = torch.ones((), dtype=torch.float64)
    broken = Indefinite(torch.ones(3, dtype=torch.float64), one, 0.0 * one)
    with pytest.warns(RuntimeWarning, match="close to singular"):
        factor = factorise(broken, points(4))
    assert factor.jitter == pytest.approx(1e-2)


def test_values_that_are_not_finite_are_ignored_with_a_warning() -> None:
    """No factor at all: a model that ignores its data, and a person who is told so."""
    with pytest.warns(RuntimeWarning, match="no Cholesky factor"):
        factor = factorise(kernel(), torch.full((3, 3), torch.nan, dtype=torch.float64))
    assert bool(factor.lower.isfinite().all())


def test_an_extension_that_fails_begins_anew() -> None:
    """A factor that does not belong to the points is replaced by one that does."""
    x = points(8)
    wrong = Factor(1e-3 * torch.eye(5, dtype=torch.float64), 0.0)
    torch.testing.assert_close(extend(kernel(), wrong, x).lower, factorise(kernel(), x).lower)
