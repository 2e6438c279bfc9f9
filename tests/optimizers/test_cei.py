"""Constrained expected improvement: its logarithm, batches of believed points, and runs."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.optimizers.cei import CEI
from cbo_suite.optimizers.models.fit import NOISE_FREE
from cbo_suite.optimizers.models.posterior import Posterior
from cbo_suite.optimizers.models.surrogate import Model, Surrogate, Transform
from cbo_suite.optimizers.shared import believer
from cbo_suite.optimizers.shared.believer import (
    believed_best,
    choose_batch,
    log_constrained_improvement,
    shortlist,
)
from cbo_suite.protocols import Array, Evaluation, Space


def exact_log_score(mean: list[float], deviation: list[float], best: float | None) -> float:
    """The acquisition function at one point, with 60 digits."""
    with mpmath.workdps(60):
        total = mpmath.mpf(0)
        for centre, width in zip(mean[1:], deviation[1:], strict=True):
            total += mpmath.log(mpmath.ncdf(-mpmath.mpf(centre) / mpmath.mpf(width)))
        if best is not None:
            width = mpmath.mpf(deviation[0])
            u = (mpmath.mpf(best) - mpmath.mpf(mean[0])) / width
            total += mpmath.log(mpmath.npdf(u) + u * mpmath.ncdf(u)) + mpmath.log(width)
        return float(total)


def score_one(mean: list[float], deviation: list[float], best: float | None) -> float:
    """The acquisition function of the optimizer at one point."""
    centre, width = torch.tensor([mean, deviation], dtype=torch.float64)[:, :, None]
    return float(log_constrained_improvement(centre, width, best)[0])


@pytest.mark.parametrize(
    "u", [40.0, 3.0, 0.0, -0.5, -0.999, -1.0, -1.001, -5.0, -30.0, -300.0, -5e3, -2e4, -1e6]
)
def test_log_improvement_keeps_its_digits_in_the_tails(u: float) -> None:
    """The logarithm agrees with 40 digits to 1e-7, relatively, down to a million deviations."""
    with mpmath.workdps(40):
        exact = _exact_log_h(u)
    assert score_one([-u * 0.1], [0.1], 0.0) == pytest.approx(exact + np.log(0.1), rel=1e-7)


def _exact_log_h(u: float) -> float:
    """Log of phi(u) + u Phi(u), by an integral without cancellation where u is negative."""
    if u > -2.0:
        return float(mpmath.log(mpmath.npdf(u) + u * mpmath.ncdf(u)))
    z = -mpmath.mpf(u)
    # h(u) / phi(u) = 1 - z M(z) with the Mills ratio M as an integral of exp(-z t - t^2 / 2).
    rest = mpmath.quad(
        lambda t: t * mpmath.exp(-t * z - t * t / 2), [0, 1 / z, 5 / z, 20 / z, 80 / z, 400 / z]
    )
    return float(mpmath.log(rest) - z * z / 2 - mpmath.log(2 * mpmath.pi) / 2)


def test_score_agrees_with_high_precision() -> None:
    """Improvement and feasibility together, among them a constraint 35 deviations off."""
    mean, deviation = [0.3, -1.0, 0.7, 3.5], [0.2, 0.5, 0.9, 0.1]
    for best in (1.0, 0.0, None):
        expected = exact_log_score(mean, deviation, best)
        assert score_one(mean, deviation, best) == pytest.approx(expected, rel=1e-10)


def test_score_agrees_with_monte_carlo() -> None:
    """Four million draws of the constrained improvement, within 4 standard errors."""
    mean, deviation, best = np.array([0.2, -0.4, 0.3]), np.array([0.7, 0.5, 0.8]), 0.1
    normals = np.random.default_rng(0).standard_normal((4_000_000, 3))
    values = mean + deviation * normals
    gain = np.maximum(best - values[:, 0], 0.0) * (values[:, 1:] <= 0).all(axis=1)
    error = gain.std() / np.sqrt(len(gain))
    score = np.exp(score_one(mean.tolist(), deviation.tolist(), best))
    assert abs(score - gain.mean()) < 4.0 * error
    assert error < 2e-3 * gain.mean()


def test_68_improbable_constraints_do_not_underflow() -> None:
    """The product would be below 1e-1500; its logarithm still orders points."""
    mean = torch.full((69, 2), 10.0, dtype=torch.float64)
    mean[1:, 1] = 9.0
    score = log_constrained_improvement(mean, torch.ones_like(mean), None)
    expected = 68 * float(mpmath.log(mpmath.ncdf(-10)))
    assert float(score[0]) == pytest.approx(expected, rel=1e-12)
    assert expected < -3500.0
    assert score[1] > score[0]


def test_observed_points_have_finite_scores() -> None:
    """A deviation of zero is no division by zero."""
    score = score_one([0.0, -1.0], [0.0, 0.0], 0.0)
    assert np.isfinite(score)
    assert score < -20.0


@given(
    st.lists(st.tuples(st.floats(-3, 3), st.floats(-1, 1)), min_size=1, max_size=8),
    st.none() | st.floats(-3, 3),
)
def test_best_counts_what_is_believed_feasible(
    points: list[tuple[float, float]], best: float | None
) -> None:
    """The best value falls to that of a point believed feasible, and never rises."""
    mean = torch.tensor(points, dtype=torch.float64).T
    found = believed_best(best, mean, violated=False)
    values = [f for f, c in points if c <= 0] + ([] if best is None else [best])
    assert found == min(values, default=None)
    assert believed_best(best, mean, violated=True) == best


def fitted(n: int, dim: int, m: int, seed: int = 0) -> tuple[Model, Array, Evaluation]:
    """Models of a bowl with m wavy constraints, from n random points."""
    random = np.random.default_rng(seed)
    x = random.random((n, dim))
    constraints = np.sin(4.0 * x @ random.standard_normal((dim, m)) + np.arange(m))
    told = Evaluation(((x - 0.4) ** 2).sum(axis=1), constraints)
    like = torch.zeros((), dtype=torch.float64)
    surrogate = Surrogate(dim, m, NOISE_FREE, Transform(False, False), like)
    return surrogate.update(x, *told), x, told


def greedy_by_whole_models(
    model: Model, candidates: torch.Tensor, under_way: torch.Tensor, best: float | None, count: int
) -> list[int]:
    """The same choice, each time with models that were conditioned anew on all believed points."""
    posterior, believed = Posterior.of(model), under_way
    chosen: list[int] = []
    for _ in range(count):
        if len(believed):
            best = believed_best(best, posterior.predict(believed)[0], violated=False)
            posterior = posterior.believe(believed)
        mean, variance = posterior.predict(candidates)
        score = log_constrained_improvement(mean, variance.sqrt(), best)
        score[chosen] = -torch.inf
        chosen.append(int(score.argmax()))
        believed = candidates[chosen[-1:]]
    return chosen


@pytest.mark.parametrize("pending", [0, 3])
def test_batches_are_those_of_models_conditioned_anew(pending: int) -> None:
    """Rows appended to the Cholesky factor choose what models of all believed points choose."""
    model, _, told = fitted(40, 3, 2)
    random = np.random.default_rng(1)
    candidates = torch.from_numpy(random.random((200, 3)))
    under_way = torch.from_numpy(random.random((pending, 3)))
    best = float(model.gp.y[0, told.best()])
    chosen = choose_batch(model, candidates, under_way, best, 6).tolist()
    assert chosen == greedy_by_whole_models(model, candidates, under_way, best, 6)
    assert len(set(chosen)) == 6


def _scores(model: Model, candidates: torch.Tensor, best: float | None) -> torch.Tensor:
    """The acquisition function at candidates `(r, d)`."""
    mean, variance = Posterior.of(model).predict(candidates)
    return log_constrained_improvement(mean, variance.sqrt(), best)


def test_shortlist_keeps_the_best_where_work_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """With time for 50 candidates the best 50 stay, and the first choice is the same."""
    model, _, told = fitted(40, 3, 2)
    candidates = torch.from_numpy(np.random.default_rng(3).random((300, 3)))
    best = float(model.gp.y[0, told.best()])
    assert torch.equal(shortlist(model, candidates, best, 1), torch.arange(300))
    everything = choose_batch(model, candidates, candidates[:0], best, 1)
    monkeypatch.setattr(believer, "MOST_WORK", 50 * 40**2 * 3)
    monkeypatch.setattr(believer, "FEWEST_EXACT", 1)
    kept = shortlist(model, candidates, best, 1)
    score = _scores(model, candidates, best)
    assert kept.tolist() == sorted(score.argsort(descending=True)[:50].tolist())
    assert torch.equal(choose_batch(model, candidates, candidates[:0], best, 1), everything)
    assert len(shortlist(model, candidates, best, 15)) == 60


def test_rough_posterior_finds_the_best_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sieved by a posterior of half of the data, the best candidates are still there."""
    model, _, told = fitted(120, 3, 2)
    candidates = torch.from_numpy(np.random.default_rng(3).random((1000, 3)))
    best = float(model.gp.y[0, told.best()])
    monkeypatch.setattr(believer, "MOST_WORK", 1.0)
    monkeypatch.setattr(believer, "ROUGH_DATA", 60)
    kept = set(shortlist(model, candidates, best, 1).tolist())
    assert len(kept) == believer.FEWEST_EXACT
    score = _scores(model, candidates, best)
    assert set(score.argsort(descending=True)[:10].tolist()) <= kept


def test_contenders_are_the_best_by_the_whole_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is built of the candidates of largest exact score."""
    model, _, told = fitted(40, 3, 2)
    candidates = torch.from_numpy(np.random.default_rng(3).random((300, 3)))
    best = float(model.gp.y[0, told.best()])
    monkeypatch.setattr(believer, "CONTENDERS", 20)
    kept = shortlist(model, candidates, best, 2)
    order = _scores(model, candidates, best).argsort(descending=True)
    assert kept.tolist() == sorted(order[:20].tolist())


def test_believed_values_need_not_become_the_best_one() -> None:
    """With or without trust in means the batches are greedy, and differ where means are low."""
    model, _, told = fitted(40, 3, 2)
    candidates = torch.from_numpy(np.random.default_rng(5).random((200, 3)))
    best = float(model.gp.y[0, told.best()])
    trusting = choose_batch(model, candidates, candidates[:0], best, 6)
    careful = choose_batch(model, candidates, candidates[:0], best, 6, trust_means=False)
    posterior = Posterior.of(model)
    free = torch.ones(200, dtype=torch.bool)
    for index in careful.tolist():
        mean, variance = posterior.predict(candidates)
        score = log_constrained_improvement(mean, variance.sqrt(), best)
        assert int(score.masked_fill(~free, -torch.inf).argmax()) == index
        free[index] = False
        posterior = posterior.believe(candidates[index][None])
    assert trusting[0] == careful[0]
    assert len(set(careful.tolist())) == 6


def test_proposals_without_a_feasible_point_seek_one() -> None:
    """Until something is feasible the probability of feasibility is maximised."""
    space = Space(np.zeros(2), np.ones(2), 1)
    optimizer = CEI(space, budget=20, seed=0)
    x = np.random.default_rng(0).random((8, 2)) * 0.5

    def evaluate(points: Array) -> Evaluation:
        return Evaluation(points.sum(axis=1), 1.7 - points.sum(axis=1, keepdims=True))

    optimizer.tell(x, evaluate(x))
    phases = []
    for _ in range(4):
        asked = optimizer.ask()
        phases.append(optimizer.inspect()["acquisition"])
        optimizer.tell(asked, evaluate(asked))
    assert phases[0] == "feasibility"
    assert phases[-1] == "improvement"


@pytest.mark.parametrize("dim", [2, 30])
def test_told_and_pending_points_are_not_asked_again(dim: int) -> None:
    """All points of a run with workers differ, also where the best one lies in a corner."""
    space = Space(np.zeros(dim), np.ones(dim), 1)
    optimizer = CEI(space, budget=100, batch_size=6, seed=0, num_candidates=64)
    x = np.vstack([np.zeros(dim), np.random.default_rng(0).random((10, dim))])

    def evaluate(points: Array) -> Evaluation:
        return Evaluation(points.sum(axis=1), points[:, :1] - 0.9)

    optimizer.tell(x, evaluate(x))
    asked = [x]
    for n in (1, 6, 3):
        asked.append(optimizer.ask(n))
        assert len(asked[-1]) == n
    optimizer.tell(asked[2], evaluate(asked[2]))
    asked.append(optimizer.ask(6))
    everything = np.vstack(asked)
    assert len(np.unique(everything.round(8), axis=0)) == len(everything)


def test_large_batches_resume_bit_by_bit() -> None:
    """A fresh optimizer with the data and the state of another proposes the same batch of 6."""
    space = Space(np.zeros(25), np.ones(25), 2)

    def evaluate(points: Array) -> Evaluation:
        return Evaluation(points.sum(axis=1), 0.4 - points[:, :2])

    x = np.random.default_rng(0).random((12, 25))
    first, fresh = (CEI(space, budget=60, batch_size=6, seed=3) for _ in range(2))
    first.tell(x, evaluate(x))
    fresh.tell(x, evaluate(x))
    asked = first.ask(6)
    fresh.set_state(first.get_state())
    for optimizer in (first, fresh):
        optimizer.tell(asked[:4], evaluate(asked[:4]))
    assert np.array_equal(first.ask(6), fresh.ask(6))


def test_toy_problem_is_solved() -> None:
    """The toy problem's 0.605 is reached within 60 evaluations; the optimum is 0.59979."""
    run = cbo.run("toy-2d-v1", "cei", budget=60, n_init=10, batch_size=1, seed=0)
    assert run.best_objective < 0.605


@pytest.mark.slow
def test_many_variables_and_constraints_in_batches() -> None:
    """A batch of 10 at d = 124 and m = 68 lowers the least violation of 140 random points."""
    dim, m = 124, 68
    random = np.random.default_rng(0)
    normals = random.standard_normal((dim, m)) / np.sqrt(dim)

    def evaluate(points: Array) -> Evaluation:
        return Evaluation(points.sum(axis=1), (points - 0.5) @ normals + 0.05)

    optimizer = CEI(Space(np.zeros(dim), np.ones(dim), m), budget=200, batch_size=10, seed=0)
    x = random.random((140, dim))
    optimizer.tell(x, evaluate(x))
    asked = optimizer.ask(10)
    assert len(asked) == 10
    assert evaluate(asked).violation.min() < evaluate(x).violation.min()
