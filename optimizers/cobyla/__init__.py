"""COBYLA and COBYQA of SciPy as ask/tell.

Method card, `cobyla`. Powell's Constrained Optimization BY Linear Approximation: the objective and
each constraint are interpolated linearly on a simplex of d + 1 points, and the model is minimised
in a ball that shrinks as the simplex settles. Local and sequential; the first d + 1 evaluations
are the simplex. Source: M. J. D. Powell, 1994, doi:10.1007/978-94-015-8330-5_4; SciPy's port of
PRIMA, doi:10.5281/zenodo.8052654. What we changed: it works in the unit cube; the few points it
places outside are moved to the nearest point of the box; it starts at the best point of the
initial design, and again when it has converged; the step of the trust region is computed by
`cobyla_step`, which solves the same subproblem exactly and some twenty times quicker than SciPy's
Python loop, which now and then stops short of the solution. `subproblem="scipy"` runs SciPy's
own.

Method card, `cobyqa`. Constrained Optimization BY Quadratic Approximations: quadratic models that
interpolate 2d + 1 points, a trust-region SQP method that respects bounds. Source: T. M. Ragonneau,
Z. Zhang, 2022-2024, https://www.cobyqa.com, in SciPy. What we changed: the unit cube, the start
and the restarts, as above; it calls the constraints far more often than the objective, so each
distinct point is evaluated once and remembered; SciPy's lock round it is left out where there is
one (it would let only one solver of a process be under way).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.optimize import Bounds, NonlinearConstraint, minimize

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.cobyla.step import trust_region_step
from cbo_suite.optimizers.shared.recast import CallbackOptimizer, Evaluate, Solve
from cbo_suite.protocols import Array, Space

Subproblem = Literal["exact", "scipy"]


class _Solver(NamedTuple):
    """A function with the signature of `scipy.optimize.minimize`, and its names for options.

    Attributes:
        minimize: The function, its method chosen.
        initial_radius: Name of the first radius of the trust region.
        final_radius: Name of the radius of convergence.
        max_evaluations: Name of the greatest number of evaluations.
    """

    minimize: Callable[..., object]
    initial_radius: str
    final_radius: str
    max_evaluations: str


class _ScipyOptimizer(CallbackOptimizer):
    """A solver of SciPy in the unit cube."""

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int,
        seed: int,
        initial_radius: float,
        final_radius: float,
        solver: _Solver,
    ) -> None:
        """Prepare a run; arguments as for `Cobyla`, and the solver."""
        if not 0.0 < final_radius < initial_radius <= 0.5:
            raise InvalidTask(
                "the radii must satisfy 0 < final_radius < initial_radius <= 0.5 (the box has "
                f"sides of length 1), got {final_radius=} and {initial_radius=}"
            )
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        self._minimize = solver.minimize
        self._options = {
            solver.initial_radius: initial_radius,
            solver.final_radius: final_radius,
            # More than it can use, as the budget is the harness's: calls for known points count.
            solver.max_evaluations: 2 * (budget + space.dim) + 3,
        }

    def _solver(self, start: Array) -> Solve:
        """Return the solver from this start `(d,)` of the unit cube."""
        minimizer, options = self._minimize, dict(self._options)
        box = Bounds(np.zeros(start.size), np.ones(start.size))
        constrained = self._space.num_constraints > 0

        def solve(evaluate: Evaluate) -> None:
            # One vector of constraints: they are computed together.
            below_zero = NonlinearConstraint(lambda unit: evaluate(unit)[1], -np.inf, 0.0)
            minimizer(
                lambda unit: evaluate(unit)[0],
                start,
                bounds=box,
                constraints=(below_zero,) if constrained else (),
                options=options,
            )

        return solve


class Cobyla(_ScipyOptimizer):
    """SciPy's COBYLA."""

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        initial_radius: float = 0.25,
        final_radius: float = 1e-6,
        subproblem: Subproblem = "exact",
    ) -> None:
        """Prepare a run.

        Args:
            space: The box and the number of constraints.
            budget: Evaluations of the run.
            batch_size: Not used: the solver goes point by point.
            seed: Seed of the restarts.
            initial_radius: First radius of the trust region in the unit cube, at most 0.5.
            final_radius: Radius at which the solver has converged and is started again.
            subproblem: Who computes the step of the trust region: "exact" is ours, "scipy" is
                SciPy's. A SciPy whose COBYLA is built differently always uses its own.
        """
        if subproblem not in get_args(Subproblem):
            raise InvalidTask(f'subproblem must be "exact" or "scipy", got {subproblem!r}')
        super().__init__(
            space,
            budget=budget,
            batch_size=batch_size,
            seed=seed,
            initial_radius=initial_radius,
            final_radius=final_radius,
            solver=_exact_cobyla() if subproblem == "exact" else _scipy_cobyla(),
        )


class Cobyqa(_ScipyOptimizer):
    """SciPy's COBYQA."""

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        initial_radius: float = 0.25,
        final_radius: float = 1e-6,
    ) -> None:
        """Prepare a run; arguments as for `Cobyla`."""
        super().__init__(
            space,
            budget=budget,
            batch_size=batch_size,
            seed=seed,
            initial_radius=initial_radius,
            final_radius=final_radius,
            solver=_cobyqa(),
        )


def _scipy_cobyla() -> _Solver:
    """Return COBYLA as SciPy offers it."""
    return _Solver(partial(minimize, method="COBYLA"), "rhobeg", "tol", "maxiter")


@cache
def _exact_cobyla() -> _Solver:
    """Return a second copy of the COBYLA beneath SciPy's, with our step in place of its own.

    The second copy leaves `scipy.optimize` as it is for everyone else. Where SciPy is built
    differently there is no Python loop to replace, and the answer is SciPy's.
    """
    spec = importlib.util.find_spec("scipy._lib.pyprima")
    if spec is None or spec.origin is None:
        return _scipy_cobyla()
    name = f"{__name__}.pyprima"
    copy = importlib.util.spec_from_file_location(
        name, spec.origin, submodule_search_locations=spec.submodule_search_locations
    )
    if copy is None or copy.loader is None:
        return _scipy_cobyla()
    package = importlib.util.module_from_spec(copy)
    sys.modules[name] = package
    copy.loader.exec_module(package)
    loop = importlib.import_module(f"{name}.cobyla.cobylb")
    if not hasattr(loop, "trstlp"):
        return _scipy_cobyla()
    vars(loop)["trstlp"] = _StepOnce()
    return _Solver(partial(package.minimize, method="cobyla"), "rhobeg", "rhoend", "maxfev")


@cache
def _cobyqa() -> _Solver:
    """Return the COBYQA beneath SciPy's, or SciPy's where it is not there.

    Some versions of SciPy hold a lock while COBYQA runs: a second optimizer in the same process
    would wait for the first to end, for ever.
    """
    if importlib.util.find_spec("scipy._lib.cobyqa") is None:
        public = partial(minimize, method="COBYQA")
        return _Solver(public, "initial_tr_radius", "final_tr_radius", "maxfev")
    package = importlib.import_module("scipy._lib.cobyqa")
    return _Solver(package.minimize, "radius_init", "radius_final", "maxfev")


class _StepOnce:
    """Our step, remembering the last one: COBYLA asks for most steps twice in a row."""

    def __init__(self) -> None:
        self._last: tuple[Array, Array, float, Array, Array] | None = None

    def __call__(self, normals: Array, limits: Array, radius: float, gradient: Array) -> Array:
        """Return the step, shape `(d,)`; see `trust_region_step`."""
        last = self._last
        if (
            last is not None
            and last[2] == radius
            and np.array_equal(last[3], gradient)
            and np.array_equal(last[1], limits)
            and np.array_equal(last[0], normals)
        ):
            return last[4].copy()
        step = trust_region_step(normals, limits, radius, gradient)
        self._last = normals.copy(), limits.copy(), radius, gradient.copy(), step
        return step.copy()
