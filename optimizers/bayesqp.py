"""BayeSQP, sequential quadratic programming on Gaussian processes, as ask/tell.

Source: P. Brunzema and S. Trimpe, "BayeSQP: Bayesian optimization through sequential quadratic
programming", NeurIPS 2025. The method card is docs/optimizers/bayesqp.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from cbo_suite.optimizers.shared.library import Library
from cbo_suite.optimizers.shared.recast import CallbackOptimizer, Evaluate, Solve, Values
from cbo_suite.protocols import Array, Space

LIBRARY = Library("bayesqp", "bayesqp", "0.1.1", "bayesqp")
TORCH = Library("torch", "torch", "2.13.0", "bayesqp")


class BayeSQP(CallbackOptimizer):
    """BayeSQP at its own settings, started at the best point of the initial design.

    Objective and constraints are divided by their deviations over the design: the library has
    constants that suit values of about one.
    """

    deterministic_search: ClassVar[bool] = False

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Prepare a run.

        Args:
            space: The box and the number of constraints.
            budget: Evaluations of the run.
            batch_size: Not used: the solver goes point by point.
            seed: Fixes all randomness.

        Raises:
            MissingExtra: bayesqp is not installed.
        """
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        torch = TORCH.load("bayesqp")
        with _own_precision():
            self._library = LIBRARY.load("bayesqp")
        self._scales: Values | None = None
        self._errors: list[str] = []
        short = int(np.random.SeedSequence(seed).generate_state(1)[0])
        self._generators = (
            torch.Generator().manual_seed(short).get_state(),
            np.random.RandomState(short).get_state(),
        )

    def ask(self, n: int = 1) -> Array:
        """Return the solver's next point, shape `(1, d)`; a random one while that is pending."""
        # The solver draws from the global generators, which belong to everybody.
        theirs = _swap_generators(self._generators)
        try:
            with _own_precision(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return super().ask(n)
        finally:
            self._generators = _swap_generators(theirs)

    def inspect(self) -> dict[str, int]:
        """Return the number of restarts, and how many of them an error made necessary."""
        return {**super().inspect(), "errors": len(self._errors)}

    def _solver(self, start: Array) -> Solve:
        """Return the solver from this start `(d,)` of the unit cube."""
        library, budget, limits = self._library, self._budget, self._space.num_constraints
        if self._scales is None:
            self._scales = _deviations(list(self._memory.values()), limits)
        (of_objective, of_constraints), errors = self._scales, self._errors

        def solve(evaluate: Evaluate) -> None:
            import torch

            def scaled(unit: Array) -> Values:
                objective, constraints = evaluate(unit)
                return objective / of_objective, constraints / of_constraints

            problem = _Problem(start.size, limits, scaled)
            solver = _repaired(library)(objective_function=problem)
            try:
                # More evaluations than it can use, as the budget is the harness's.
                solver.minimize(torch.tensor(start[None]), max_evals=2 * budget)
            except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
                # The library gives up on models that cannot be fitted and on subproblems that
                # cannot be solved: it is started again, as when it has converged.
                errors.append(type(error).__name__)

        return solve


def _deviations(told: list[Values], num_constraints: int) -> Values:
    """Return by what values are divided: their deviation, 1 where they do not differ."""
    if len(told) < 2:
        return 1.0, np.ones(num_constraints)
    objective = float(np.std([values[0] for values in told]))
    constraints = np.std([values[1] for values in told], axis=0)
    return objective or 1.0, np.where(constraints > 0.0, constraints, 1.0)


def _repaired(library: Any) -> Any:
    """Return the solver's class, able to live with NumPy 2.4.

    There an array of one number is no number any more: left as it is, every subproblem fails, the
    solver takes random directions instead, and these have roots of negative numbers in them.
    """

    class Solver(library.BayeSQP):  # type: ignore[misc]
        """BayeSQP whose constraint models predict numbers."""

        def evaluate_point(self, x: Any) -> tuple[Any, ...]:
            """Predict means and deviations of objective and constraints at a point `(1, d)`."""
            mean, deviation, means, deviations = super().evaluate_point(x)
            numbers = None if means is None else [np.asarray(value).item() for value in means]
            return mean, deviation, numbers, deviations

    return Solver


class _Problem:
    """A problem on the unit cube as BayeSQP expects it: constraints hold where not negative.

    Attributes:
        dim: Number of variables.
        num_constraints: Number of constraints.
        bounds: Lower and upper bounds, shape `(2, d)`.
    """

    def __init__(self, dim: int, num_constraints: int, evaluate: Evaluate) -> None:
        """Keep what gives the values of a point `(d,)`."""
        import torch

        self.dim, self.num_constraints = dim, num_constraints
        self.bounds = torch.tensor([[0.0] * dim, [1.0] * dim])
        self._evaluate = evaluate

    def __call__(self, points: Any) -> Any:
        """Objective at points `(..., d)`, shape `(...)`."""
        import torch

        values = [self._evaluate(row)[0] for row in points.reshape(-1, self.dim).numpy()]
        return torch.tensor(values).reshape(points.shape[:-1])

    def _evaluate_slack_true(self, points: Any) -> Any:
        """Constraints with their sign turned at points `(..., d)`, shape `(..., m)`."""
        import torch

        values = [-self._evaluate(row)[1] for row in points.reshape(-1, self.dim).numpy()]
        return torch.tensor(np.array(values)).reshape(*points.shape[:-1], self.num_constraints)


def _swap_generators(states: tuple[Any, Any]) -> tuple[Any, Any]:
    """Give the global generators of PyTorch and NumPy these states; return those they had."""
    import torch

    before = torch.get_rng_state(), np.random.get_state()
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    return before


@contextmanager
def _own_precision() -> Iterator[None]:
    """Double precision by default: the library asks for it when imported, and for good."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
