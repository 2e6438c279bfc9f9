"""Kernel matrices that are never stored: products by KeOps, for GPyTorch's linear algebra.

KeOps compiles a formula for every number of variables, precision and number of columns; here the
number of columns is always the same, and gradients take one further formula.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from cbo_suite.optimizers.models.keops.build import ensure_built, load_keops
from cbo_suite.optimizers.models.kernel import covariance, scale_points

with warnings.catch_warnings():
    # PyTorch declares torch.jit.script deprecated while this library is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from linear_operator import settings
    from linear_operator.operators import KernelLinearOperator, LinearOperator
    from linear_operator.utils.warnings import NumericalWarning

# Columns of every product by KeOps: ten random vectors and the data in training.
WIDTH = 11
# Kernel values that a product with more columns holds at once.
CHUNK_ELEMENTS = 1 << 22
PRECONDITIONER_RANK = 50


def kernel_operator(x: Tensor, parameters: Tensor) -> LinearOperator:
    """Kernel matrices with noise `(b, n, n)` of inputs `(n, d)`, from log hyperparameters."""
    dim, kind = x.shape[1], str(x.dtype).removeprefix("torch.")
    ensure_built(
        f"matern-{dim}d-{kind}-{x.device.type}",
        functools.partial(_warm_up, dim, x.dtype, x.device),
    )
    values = parameters.exp()
    scaled = scale_points(x, values[:, :dim])
    matrices: LinearOperator = MaternOperator(scaled, scaled, covar_func=correlation)
    signal: LinearOperator = matrices * values[:, dim, None, None]
    return signal.add_diagonal(values[:, dim + 1, None])


def correlation(left: Tensor, right: Tensor) -> Tensor:
    """Matern-5/2 correlations of scaled points, dense and differentiable."""
    distance = torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")
    values: Tensor = (1.0 + distance + distance.square() / 3.0) * torch.exp(-distance)
    return values


class MaternOperator(KernelLinearOperator):  # type: ignore[misc]
    """Matern-5/2 correlations of scaled points, stored as these points.

    Products with few columns go through KeOps. Those with many would evaluate the kernel once for
    every `WIDTH` columns; they evaluate it once, for some rows at a time.
    """

    def _matmul(self, rhs: Tensor) -> Tensor:
        """Multiply with `rhs` `(b, n, k)`."""
        columns = rhs.shape[-1]
        if columns > WIDTH:
            ones = torch.ones(1, dtype=rhs.dtype, device=rhs.device)
            rows = max(1, CHUNK_ELEMENTS // max(1, self.x2.shape[-2]))
            models = zip(self.x1, self.x2, rhs.expand(self.x1.shape[0], -1, -1), strict=True)
            return torch.stack(
                [
                    torch.cat(
                        [
                            covariance(p[None], right[None], ones)[0] @ v
                            for p in torch.split(left, rows)
                        ]
                    )
                    for left, right, v in models
                ]
            )
        padded = torch.nn.functional.pad(rhs, (0, WIDTH - columns))
        padded = padded.expand(*self.x2.shape[:-1], WIDTH).contiguous()
        product: Tensor = _Product.apply(self.x1, self.x2, padded)  # type: ignore[no-untyped-call]
        return product[..., :columns]


class _Product(torch.autograd.Function):
    """Correlations of scaled points times a matrix, with gradients by two formulas in all."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, columns: Tensor) -> Tensor:
        """Multiply correlations of `(b, p, d)` and `(b, n, d)` with `(b, n, WIDTH)`."""
        ctx.save_for_backward(left, right, columns)
        multiply, _ = _formulas(left.shape[-1])
        product: Tensor = multiply(left, right, columns / 3.0)
        return product

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        """Pull back the derivative `slope` `(b, p, WIDTH)`."""
        left, right, columns = ctx.saved_tensors
        multiply, differentiate = _formulas(left.shape[-1])
        slope = slope.contiguous() / 3.0
        by_left, by_right, by_columns = ctx.needs_input_grad
        return (
            differentiate(left, right, slope, columns) if by_left else None,
            differentiate(right, left, columns, slope) if by_right else None,
            multiply(right, left, slope) if by_columns else None,
        )


@functools.cache
def _formulas(dim: int) -> tuple[Any, Any]:
    """KeOps' reductions: 3 times a product with correlations, and its slope by the left points."""
    load_keops()
    from pykeops.torch import Genred

    points = [f"X = Vi({dim})", f"Y = Vj({dim})"]
    distance = "Sqrt(SqDist(X, Y))"
    # KeOps would write 1/3 in single precision, whatever the data are: callers divide.
    value = f"(IntCst(3) + IntCst(3) * {distance} + SqDist(X, Y)) * Exp(-{distance})"
    # The derivative by X of the correlation is this times X - Y.
    slope = f"-(IntCst(1) + {distance}) * Exp(-{distance})"
    multiply = Genred(f"({value}) * V", [*points, f"V = Vj({WIDTH})"], axis=1)
    differentiate = Genred(
        f"({slope} * (U | V)) * (X - Y)",
        [*points, f"U = Vi({WIDTH})", f"V = Vj({WIDTH})"],
        axis=1,
    )
    return multiply, differentiate


def _warm_up(dim: int, dtype: torch.dtype, device: torch.device) -> None:
    """Use both formulas once."""
    points = torch.zeros(1, 2, dim, dtype=dtype, device=device)
    columns = torch.zeros(1, 2, WIDTH, dtype=dtype, device=device)
    multiply, differentiate = _formulas(dim)
    multiply(points, points, columns)
    differentiate(points, points, columns, columns)


@contextlib.contextmanager
def matrix_free(tolerance: float) -> Iterator[None]:
    """Let GPyTorch use conjugate gradients and the Lanczos process, whatever the size."""
    with (
        # BoTorch switches these off for the whole process when it is imported.
        settings.fast_computations(True, True, True),
        settings.max_cholesky_size(0),
        settings.cg_tolerance(tolerance),
        settings.num_trace_samples(WIDTH - 1),
        settings.min_preconditioning_size(0),
        settings.max_preconditioner_size(PRECONDITIONER_RANK),
        warnings.catch_warnings(),
    ):
        # A gradient that is a little off is still one to follow; solutions are checked apart.
        warnings.simplefilter("ignore", NumericalWarning)
        yield
