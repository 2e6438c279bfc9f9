"""A problem in the hands of the real SciPy, BoTorch, pymoo and Optuna."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.errors import InvalidPoint, MissingExtra, UnknownId
from cbo_suite.interop import ScipyProblem, as_botorch, as_optuna, as_pymoo, as_scipy
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space

# Gramacy et al., "Modeling an augmented Lagrangian for blackbox constrained optimization" (2016).
TOY_OPTIMUM = 0.5997880520


class Counting:
    """Counts the points of another problem that are evaluated."""

    def __init__(self, inner: Any) -> None:
        self.id, self.space, self.inner = inner.id, inner.space, inner
        self.points: list[tuple[float, ...]] = []

    def evaluate(self, x: Array) -> Evaluation:
        """Count and evaluate."""
        self.points.extend(map(tuple, x.tolist()))
        values: Evaluation = self.inner.evaluate(x)
        return values


class Unconstrained:
    """A parabola without constraints on a box away from zero."""

    id = "parabola-1d-v1"
    space = Space(np.array([2.0]), np.array([5.0]), 0)
    best_known = BestKnown(0.25, np.array([3.0]), "by construction")

    def evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points."""
        x = self.space.validate(x)
        return Evaluation(((x - 3.0) ** 2).sum(axis=1) + 0.25, np.empty((len(x), 0)))


class Undefined(Unconstrained):
    """Has a constraint that is NaN everywhere."""

    space = Space(np.array([2.0]), np.array([5.0]), 1)

    def evaluate(self, x: Array) -> Evaluation:
        """Give NaN."""
        return Evaluation(np.ones(len(x)), np.full((len(x), 1), np.nan))


@pytest.fixture
def toy() -> Counting:
    """The toy problem with a counter."""
    return Counting(cbo.make_problem("toy-2d-v1"))


def points_of(space: Space, n: int) -> Array:
    """Draw points of shape `(n, d)`."""
    return space.from_unit(np.random.default_rng(0).random((n, space.dim)))


# SciPy


def constraint_values(problem: ScipyProblem, x: Array) -> Array:
    """Return the very array that the constraints of a point give."""
    return np.asarray(problem.constraints[0].fun(x))


def test_scipy_values_signs_and_bounds(toy: Counting) -> None:
    """Objective and constraints are those of the problem; feasible is at most zero."""
    from scipy.optimize import NonlinearConstraint

    p = as_scipy(toy)
    assert np.array_equal(p.bounds.lb, toy.space.lower)
    assert np.array_equal(p.bounds.ub, toy.space.upper)
    (constraint,) = p.constraints
    assert isinstance(constraint, NonlinearConstraint)
    assert constraint.lb == -np.inf
    assert constraint.ub == 0.0
    for x in points_of(toy.space, 5):
        expected = toy.inner.evaluate(x[None])
        assert p.fun(x) == expected.objective[0]
        assert np.array_equal(constraint_values(p, x), expected.constraints[0])
    assert len(toy.points) == 5


@pytest.mark.parametrize("method", ["SLSQP", "COBYLA", "trust-constr"])
def test_scipy_finds_the_toy_optimum_with_one_evaluation_per_point(
    toy: Counting, method: Literal["SLSQP", "COBYLA", "trust-constr"]
) -> None:
    """Real optimisers find the optimum; no point is evaluated twice."""
    from scipy.optimize import minimize

    p = as_scipy(toy)
    with warnings.catch_warnings():
        # trust-constr says so when its quasi-Newton update sees a linear objective.
        warnings.filterwarnings("ignore", message="delta_grad == 0.0", category=UserWarning)
        result = minimize(
            p.fun, [0.5, 0.5], bounds=p.bounds, constraints=p.constraints, method=method
        )
    assert result.fun == pytest.approx(TOY_OPTIMUM, abs=1e-3), result
    assert np.all(constraint_values(p, result.x) <= 1e-6), result
    assert len(toy.points) == len(set(toy.points))


def test_scipy_works_with_differential_evolution(toy: Counting) -> None:
    """The same object serves the global optimisers."""
    from scipy.optimize import differential_evolution

    p = as_scipy(toy)
    result = differential_evolution(
        p.fun,
        p.bounds,
        constraints=p.constraints,  # type: ignore[arg-type]  # its stubs know no tuple of them
        rng=0,
        maxiter=60,
        popsize=10,
        polish=False,
    )
    assert result.fun == pytest.approx(TOY_OPTIMUM, abs=1e-2), result
    assert result.maxcv == 0.0, result


def test_scipy_without_constraints_gets_none() -> None:
    """Without constraints there is no object for them; points outside get the nearest values."""
    p = as_scipy(Unconstrained())
    assert p.constraints == ()
    assert p.fun(np.array([3.0])) == 0.25
    assert p.fun(np.array([1.0])) == p.fun(np.array([2.0]))


@given(st.lists(st.integers(0, 40), min_size=1, max_size=80))
@settings(max_examples=50, deadline=None)
def test_scipy_memory_never_mixes_points(order: list[int]) -> None:
    """Whatever the order of calls, every point gets its own values."""
    p = as_scipy(Unconstrained())
    for i in order:
        x = 2.0 + 3.0 * i / 40
        assert p.fun(np.array([x])) == (x - 3.0) ** 2 + 0.25


def test_scipy_constraint_values_belong_to_the_caller(toy: Counting) -> None:
    """Whoever overwrites the values it got spoils nothing."""
    p = as_scipy(toy)
    x = np.array([0.2, 0.3])
    first = constraint_values(p, x)
    kept = first.copy()
    first[:] = 99.0
    assert np.array_equal(constraint_values(p, x), kept)


# BoTorch


@pytest.fixture
def torch() -> Any:
    """PyTorch, imported with BoTorch, whose import warns."""
    with warnings.catch_warnings():
        # linear_operator and gpytorch decorate functions with torch.jit.script when imported.
        warnings.filterwarnings("ignore", message=r".*torch\.jit", category=DeprecationWarning)
        import botorch  # noqa: F401
        import torch
    return torch


def test_botorch_values_slack_and_feasibility(torch: Any, toy: Counting) -> None:
    """It is a real test problem; slack is minus the constraints, and feasible at zero or more."""
    from botorch.test_functions.base import ConstrainedBaseTestProblem

    p = as_botorch(toy)
    assert isinstance(p, ConstrainedBaseTestProblem)
    assert (p.dim, p.num_constraints, p.is_minimization_problem) == (2, 2, True)
    assert np.array_equal(p.bounds.numpy(), [toy.space.lower, toy.space.upper])
    x = points_of(toy.space, 50)
    expected = toy.inner.evaluate(x)
    X = torch.tensor(x)
    assert np.array_equal(p.evaluate_true(X).numpy(), expected.objective)
    assert np.array_equal(p.evaluate_slack(X).numpy(), -expected.constraints)
    assert np.array_equal(p.is_feasible(X).numpy(), expected.feasible)
    assert 0 < expected.feasible.sum() < 50
    assert len(toy.points) == 50


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 2), (2, 1, 3)])
def test_botorch_batch_shapes(torch: Any, toy: Counting, shape: tuple[int, ...]) -> None:
    """Any batch shape goes in and comes out."""
    p = as_botorch(toy)
    X = torch.rand(*shape, 2, dtype=torch.double)
    flat = toy.inner.evaluate(X.reshape(-1, 2).numpy())
    assert p(X).shape == torch.Size(shape)
    assert p.evaluate_slack(X).shape == torch.Size((*shape, 2))
    assert p.is_feasible(X).shape == torch.Size(shape)
    assert np.array_equal(p(X).reshape(-1).numpy(), flat.objective)
    assert np.array_equal(p.evaluate_slack(X).reshape(-1, 2).numpy(), -flat.constraints)


def test_botorch_negate_turns_the_call_but_not_the_slack(torch: Any) -> None:
    """As BoTorch has it: negate is for maximisers, `evaluate_true` and slack stay."""
    plain, negated = as_botorch("toy-2d-v1"), as_botorch("toy-2d-v1", negate=True)
    X = torch.rand(5, 2, dtype=torch.double)
    assert torch.equal(negated(X), -plain(X))
    assert torch.equal(negated.evaluate_true(X), plain.evaluate_true(X))
    assert torch.equal(negated.evaluate_slack(X), plain.evaluate_slack(X))
    assert not negated.is_minimization_problem
    assert plain.optimal_value == pytest.approx(TOY_OPTIMUM, abs=1e-9)
    assert negated.optimal_value == -plain.optimal_value
    assert plain.is_feasible(plain.optimizers).all()


def test_botorch_keeps_single_precision_and_refuses_points_outside(torch: Any) -> None:
    """The type of the points is the type of the values; the box is the box."""
    p = as_botorch("tension-string-3d-v1").to(torch.float32)
    corner = p.bounds
    assert p(corner).dtype == torch.float32
    assert torch.isfinite(p.evaluate_slack(corner)).all()
    with pytest.raises(ValueError, match="within the bounds"):
        as_botorch(Unconstrained())(torch.tensor([[1.0]], dtype=torch.double))


def test_botorch_matches_its_own_gramacy_problem(torch: Any) -> None:
    """BoTorch ships the same toy problem: objective, slack and feasibility agree."""
    from botorch.test_functions.synthetic import ConstrainedGramacy

    ours, theirs = as_botorch("toy-2d-v1"), ConstrainedGramacy()
    X = torch.rand(200, 2, dtype=torch.double)
    torch.testing.assert_close(ours(X), theirs(X), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(
        ours.evaluate_slack(X), theirs.evaluate_slack(X), rtol=1e-12, atol=1e-12
    )
    assert torch.equal(ours.is_feasible(X), theirs.is_feasible(X))


@pytest.mark.slow
def test_botorch_optimises_it(torch: Any) -> None:
    """A short constrained Bayesian optimisation with BoTorch's own parts improves."""
    from botorch.acquisition.logei import qLogExpectedImprovement
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    p = as_botorch("toy-2d-v1", negate=True)
    torch.manual_seed(0)
    X = torch.rand(12, 2, dtype=torch.double)

    def best() -> float:
        values = torch.where(p.is_feasible(X), p(X), torch.tensor(-2.0))
        return float(values.max())

    start = best()
    for _ in range(4):
        Y = torch.cat([p(X)[:, None], -p.evaluate_slack(X)], dim=-1)
        model = SingleTaskGP(X, Y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = qLogExpectedImprovement(
            model,
            best_f=best(),
            objective=GenericMCObjective(lambda Z, X=None: Z[..., 0]),
            constraints=[lambda Z: Z[..., 1], lambda Z: Z[..., 2]],
        )
        candidate, _ = optimize_acqf(acquisition, p.bounds, q=1, num_restarts=2, raw_samples=32)
        X = torch.cat([X, candidate])
    assert best() > start
    assert -best() == pytest.approx(TOY_OPTIMUM, abs=0.3)


# pymoo


def test_pymoo_values_and_signs(toy: Counting) -> None:
    """F and G come from one call; G at most zero is feasible."""
    from pymoo.core.problem import Problem

    p = as_pymoo(toy)
    assert isinstance(p, Problem)
    assert (p.n_var, p.n_obj, p.n_ieq_constr, p.n_eq_constr) == (2, 1, 2, 0)
    assert np.array_equal(p.xl, toy.space.lower)
    assert np.array_equal(p.xu, toy.space.upper)
    x = points_of(toy.space, 20)
    out = p.evaluate(x, return_values_of=["F", "G", "feas"], return_as_dictionary=True)
    expected = toy.inner.evaluate(x)
    assert np.array_equal(out["F"], expected.objective[:, None])
    assert np.array_equal(out["G"], expected.constraints)
    assert len(toy.points) == 20


def test_pymoo_optimises_it(toy: Counting) -> None:
    """A few generations of a genetic algorithm end at a feasible point near the optimum."""
    from pymoo.algorithms.soo.nonconvex.ga import GA
    from pymoo.optimize import minimize

    result = minimize(as_pymoo(toy), GA(pop_size=30), ("n_gen", 25), seed=1)
    assert result.F[0] == pytest.approx(TOY_OPTIMUM, abs=0.05), result.F
    assert np.all(result.G <= 0.0)
    assert len(toy.points) == 30 * 25


def test_pymoo_without_constraints_and_at_the_edge() -> None:
    """No constraints are fine; rounding at the edge is forgiven, a point outside is not."""
    p = as_pymoo(Unconstrained())
    assert p.evaluate(np.array([[3.0], [5.0 + 1e-12]]))[0, 0] == 0.25
    with pytest.raises(InvalidPoint):
        p.evaluate(np.array([[5.1]]))


# Optuna


@pytest.fixture
def optuna() -> Any:
    """Optuna without its progress messages."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield optuna
    optuna.logging.set_verbosity(level)


def test_optuna_study_optimises_it(optuna: Any, toy: Counting) -> None:
    """A sampler that knows constraints finds feasible points; one evaluation per trial."""
    p = as_optuna(toy)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(p.objective, n_trials=60)
    assert len(toy.points) == 60
    for trial in study.trials:
        expected = toy.inner.evaluate(np.array([[trial.params["x0"], trial.params["x1"]]]))
        assert trial.value == expected.objective[0]
        assert list(trial.constraints.values()) == expected.constraints[0].tolist()
        assert list(p.constraints_func(trial)) == expected.constraints[0].tolist()
    assert max(study.best_trial.constraints.values()) <= 0.0
    assert study.best_value < 0.9


def test_optuna_constraints_func_serves_older_samplers(
    optuna: Any, toy: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where trials set no constraints, as in Optuna 4, the sampler gets them all the same."""
    for kind in optuna.trial.Trial.__mro__:
        if "set_constraint" in vars(kind):
            monkeypatch.delattr(kind, "set_constraint")
    p = as_optuna(toy)
    with warnings.catch_warnings():
        # Optuna 5 prefers constraints that the trial sets.
        warnings.filterwarnings("ignore", message=".*constraints_func", category=FutureWarning)
        sampler = optuna.samplers.TPESampler(seed=0, constraints_func=p.constraints_func)
    study = optuna.create_study(sampler=sampler)
    study.optimize(p.objective, n_trials=60)
    assert len(toy.points) == 60
    for trial in study.trials:
        assert list(trial.constraints.values()) == list(p.constraints_func(trial))
    assert study.best_value < 0.9
    assert max(p.constraints_func(study.best_trial)) <= 0.0


def test_optuna_nan_constraint_is_infeasible(optuna: Any) -> None:
    """Optuna knows no NaN among constraints; the trial is infeasible."""
    p = as_optuna(Undefined())
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(p.objective, n_trials=1)
    assert list(p.constraints_func(study.trials[0])) == [np.inf]


# All of them


@pytest.mark.parametrize(
    ("adapt", "library"),
    [(as_botorch, "botorch"), (as_pymoo, "pymoo"), (as_optuna, "optuna")],
)
def test_missing_library_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, adapt: Any, library: str
) -> None:
    """Without the library the error holds the line that installs it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=r'pip install "cbo-suite\[interop\]"'):
        adapt("toy-2d-v1")


@pytest.mark.parametrize("adapt", [as_scipy, as_pymoo, as_optuna])
def test_unknown_id_is_refused(adapt: Any) -> None:
    """Ids go through the registry, with its suggestions."""
    with pytest.raises(UnknownId, match="toy-2d-v1"):
        adapt("toy-2d-v9")
