"""A problem as other libraries see it: SciPy, BoTorch, pymoo and Optuna.

Each function takes a problem or its id and returns what the library expects, with its signs and
shapes; objective and constraints of a point come from one evaluation. The libraries are imported
on use.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cbo_suite.errors import MissingExtra
from cbo_suite.protocols import Array, ConstrainedProblem, Evaluation
from cbo_suite.scoring.references import load_references

if TYPE_CHECKING:
    import optuna
    import torch
    from botorch.test_functions.base import ConstrainedBaseTestProblem
    from pymoo.core.problem import Problem as PymooProblem
    from scipy.optimize import Bounds, NonlinearConstraint


class ScipyProblem(NamedTuple):
    """A problem for `scipy.optimize`.

    Attributes:
        fun: The objective of one point of shape `(d,)`, a number, or of points of shape `(d, n)`,
            an array of shape `(n,)`.
        bounds: The box.
        constraints: One `NonlinearConstraint` with all constraints, none if there are none; its
            function takes the same and gives arrays of shapes `(m,)` and `(m, n)`.
    """

    fun: Callable[[Array], Any]
    bounds: Bounds
    constraints: tuple[NonlinearConstraint, ...]


def as_scipy(problem: ConstrainedProblem | str) -> ScipyProblem:
    """Return a problem for `scipy.optimize.minimize` and its relatives.

    Objective and constraints of a point share one evaluation. Some methods, COBYLA among them,
    try points outside the bounds; these get the values of the nearest point of the box. What is
    returned can be sent to other processes, if the problem can, as `differential_evolution` does
    with `workers`; it also serves `vectorized=True`.

    Args:
        problem: A problem or its id.

    Example:
        p = as_scipy("toy-2d-v1")
        minimize(p.fun, x0, bounds=p.bounds, constraints=p.constraints, method="SLSQP")
    """
    from scipy.optimize import Bounds, NonlinearConstraint

    problem = _resolve(problem)
    space = problem.space
    # Finite differences come back to the last d + 1 points for the constraints.
    memory = _Memory(problem, size=8 * (space.dim + 1))
    constraints = (NonlinearConstraint(memory.constraints, -np.inf, 0.0),)
    return ScipyProblem(
        memory.objective,
        Bounds(space.lower, space.upper),
        constraints if space.num_constraints else (),
    )


class _Memory:
    """Evaluates what SciPy asks for, moved into the box, and remembers the latest results."""

    def __init__(self, problem: ConstrainedProblem, size: int) -> None:
        self._problem = problem
        self._size = size
        self._known: OrderedDict[bytes, Evaluation] = OrderedDict()

    def objective(self, x: Array) -> float | Array:
        """The objective of a point `(d,)`, or those of points `(d, n)`, shape `(n,)`."""
        values = self._evaluate(x).objective
        return float(values[0]) if np.ndim(x) == 1 else values.copy()

    def constraints(self, x: Array) -> Array:
        """The constraints of a point `(d,)`, shape `(m,)`, or of points `(d, n)`, `(m, n)`."""
        values = self._evaluate(x).constraints
        return values[0].copy() if np.ndim(x) == 1 else values.T.copy()

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate a point `(d,)` or points `(d, n)`, or recall them."""
        lower, upper = self._problem.space.lower, self._problem.space.upper
        points = np.ascontiguousarray(np.atleast_2d(np.asarray(x, dtype=float).T))
        points = np.clip(points, lower, upper)
        key = points.tobytes()
        if key not in self._known:
            self._known[key] = self._problem.evaluate(points)
            if len(self._known) > self._size:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]

    def __getstate__(self) -> dict[str, Any]:
        """Leave what is remembered at home."""
        return vars(self) | {"_known": OrderedDict()}


def as_botorch(
    problem: ConstrainedProblem | str, *, negate: bool = False
) -> ConstrainedBaseTestProblem:
    """Return a problem as a test problem of BoTorch.

    `evaluate_slack` has BoTorch's sign: a slack of at least zero is feasible. Points are tensors
    of shape `(..., d)` in the units of the problem; values carry no gradient. Objective and slack
    of the same points share one evaluation. `worst_feasible_value` is that of the reference values
    of the suite.

    Args:
        problem: A problem or its id.
        negate: Whether calling it gives the negative objective, for BoTorch maximises.

    Raises:
        MissingExtra: BoTorch is not installed.
    """
    with _library("BoTorch"):
        import torch
        from botorch.test_functions.synthetic import ConstrainedSyntheticTestFunction

    source = _resolve(problem)
    space = source.space
    best = getattr(source, "best_known", None)
    reference = load_references().get(source.id)

    class BotorchProblem(ConstrainedSyntheticTestFunction):  # type: ignore[misc]
        """A problem of cbo-suite in the form of BoTorch."""

        dim = space.dim
        num_constraints = space.num_constraints
        continuous_inds = list(range(space.dim))  # noqa: RUF012
        _bounds = list(zip(space.lower.tolist(), space.upper.tolist(), strict=True))  # noqa: RUF012
        _optimal_value = None if best is None else float(best.objective)
        _worst_feasible_value = None if reference is None else reference.worst
        _optimizers = None if best is None else [tuple(np.asarray(best.x).tolist())]

        def __init__(self) -> None:
            super().__init__(negate=negate)
            self._latest: tuple[bytes, Evaluation] | None = None

        def _evaluate_true(self, X: torch.Tensor) -> torch.Tensor:
            """Evaluate the objective at points `(..., d)`."""
            objective = torch.tensor(self._evaluate(X).objective)
            return objective.reshape(X.shape[:-1]).to(X)

        def _evaluate_slack_true(self, X: torch.Tensor) -> torch.Tensor:
            """Evaluate the slack of the constraints at points `(..., d)`."""
            slack = torch.tensor(-self._evaluate(X).constraints)
            return slack.reshape(*X.shape[:-1], self.num_constraints).to(X)

        def _evaluate(self, X: torch.Tensor) -> Evaluation:
            """Evaluate points, or recall the same points from the latest call."""
            x = X.detach().to("cpu", torch.double).reshape(-1, space.dim).numpy()
            # BoTorch has checked the bounds, but rounded to single precision if X is.
            x = np.clip(x, space.lower, space.upper)
            key = x.tobytes()
            if self._latest is None or self._latest[0] != key:
                self._latest = (key, source.evaluate(x))
            return self._latest[1]

    return BotorchProblem()


def as_pymoo(problem: ConstrainedProblem | str) -> PymooProblem:
    """Return a problem for pymoo: one objective F, and G <= 0 where a point is feasible.

    Args:
        problem: A problem or its id.

    Raises:
        MissingExtra: pymoo is not installed.
    """
    with _library("pymoo"):
        from pymoo.core.problem import Problem as PymooProblem

    source = _resolve(problem)
    space = source.space

    class Adapter(PymooProblem):  # type: ignore[misc]
        """A problem of cbo-suite in the form of pymoo."""

        def _evaluate(self, x: Array, out: dict[str, Array], *args: Any, **kwargs: Any) -> None:
            """Evaluate points `(n, d)`, objective and constraints in one call."""
            evaluation = source.evaluate(space.snap(np.asarray(x, dtype=float)))
            out["F"] = evaluation.objective[:, None]
            out["G"] = evaluation.constraints

    return Adapter(
        n_var=space.dim,
        n_obj=1,
        n_ieq_constr=space.num_constraints,
        xl=space.lower.copy(),
        xu=space.upper.copy(),
    )


class OptunaProblem:
    """A problem for Optuna studies that minimise.

    From Optuna 5 on, `objective` is all a study needs, for it sets the constraints of the trial.
    For Optuna 4, hand `constraints_func` to the sampler too.
    """

    def __init__(self, problem: ConstrainedProblem) -> None:
        self._problem = problem

    def objective(self, trial: optuna.Trial) -> float:
        """Evaluate the point that a trial suggests in the variables x0, x1, ...

        The constraint values are kept with the trial, as its user attribute "constraints".
        """
        space = self._problem.space
        bounds = enumerate(zip(space.lower.tolist(), space.upper.tolist(), strict=True))
        x = [trial.suggest_float(f"x{i}", lower, upper) for i, (lower, upper) in bounds]
        evaluation = self._problem.evaluate(np.array([x]))
        # Optuna refuses NaN; either value means infeasible.
        values = np.nan_to_num(evaluation.constraints[0], nan=np.inf, posinf=np.inf, neginf=-np.inf)
        trial.set_user_attr("constraints", values.tolist())
        if hasattr(trial, "set_constraint"):
            for i, value in enumerate(values.tolist()):
                trial.set_constraint(f"c{i}", value)
        return float(evaluation.objective[0])

    def constraints_func(self, trial: optuna.trial.FrozenTrial) -> Sequence[float]:
        """Return the constraint values of a trial that was evaluated; feasible if all <= 0."""
        values: Sequence[float] = trial.user_attrs["constraints"]
        return values


def as_optuna(problem: ConstrainedProblem | str) -> OptunaProblem:
    """Return a problem for Optuna.

    Args:
        problem: A problem or its id.

    Raises:
        MissingExtra: Optuna is not installed.

    Example:
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        study.optimize(as_optuna("toy-2d-v1").objective, n_trials=50)
    """
    with _library("Optuna"):
        import optuna  # noqa: F401

    return OptunaProblem(_resolve(problem))


def _resolve(problem: ConstrainedProblem | str) -> ConstrainedProblem:
    """Make the problem of an id; return a problem as it is."""
    if not isinstance(problem, str):
        return problem
    from cbo_suite.registry import make_problem

    return make_problem(problem)


@contextmanager
def _library(name: str) -> Iterator[None]:
    """Answer a failing import with the line that installs the library."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f'{name} is not installed ({error}): pip install "cbo-suite[interop]"'
        ) from error
