"""Constrained Thompson sampling: the rule, and that neither order nor ending early changes it."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cbo_suite.optimizers.models.batch_gp import BatchGP
from cbo_suite.optimizers.models.joint import JointDraws, certainty
from cbo_suite.optimizers.models.pathwise import PathwiseDraws, frequencies
from cbo_suite.optimizers.scbo import objective_first
from cbo_suite.optimizers.scbo.thompson import Constant, Draws, Selection, select

Rule = Callable[[Draws, Sequence[Draws], float], Selection]
RULES = [
    pytest.param(select, id="constraints first"),
    pytest.param(objective_first.select, id="objective first"),
]


class Known:
    """Draws whose values are given."""

    first_block = 4

    def __init__(self, value: object) -> None:
        """Take values (r, q)."""
        self.value = torch.as_tensor(np.array(value, dtype=float))
        self.deviation = torch.zeros(len(self.value), dtype=torch.float64)

    def draw(self, ids: torch.Tensor) -> None:
        """Everything is drawn."""

    def refresh(self, ids: torch.Tensor) -> None:
        """Everything is up to date."""


def by_the_rule(objective: np.ndarray, constraints: list[np.ndarray]) -> list[int]:
    """For each draw in turn: least violation, then least objective, among what is not taken."""
    violation = sum((np.maximum(c, 0.0) for c in constraints), np.zeros_like(objective))
    taken: list[int] = []
    for f, v in zip(objective.T, violation.T, strict=True):
        order = np.lexsort((f, v))
        taken.append(int(next(index for index in order if index not in taken)))
    return taken


def chosen(rule: Rule, objective: Draws, constraints: Sequence[Draws]) -> list[int]:
    """The chosen candidates."""
    indices: list[int] = rule(objective, constraints, certainty(10**6)).chosen.tolist()
    return indices


@pytest.mark.parametrize("rule", RULES)
def test_least_objective_among_the_feasible(rule: Rule) -> None:
    """The best objective does not count where a constraint is violated."""
    assert chosen(rule, Known([[0.0], [1.0], [2.0]]), [Known([[0.1], [0.0], [-3.0]])]) == [1]


@pytest.mark.parametrize("rule", RULES)
def test_least_total_violation_if_nothing_is_feasible(rule: Rule) -> None:
    """Violations of all constraints are summed; slack in one does not pay for another."""
    first, second = Known([[0.5], [-9.0], [0.4]]), Known([[0.5], [1.1], [0.5]])
    assert chosen(rule, Known([[0.0], [0.0], [5.0]]), [first, second]) == [2]


@pytest.mark.parametrize("rule", RULES)
def test_ties_in_violation_are_broken_by_the_objective(rule: Rule) -> None:
    """A constant violated constraint leaves the choice to the others and to the objective."""
    candidates = torch.zeros(4, 1, dtype=torch.float64)
    constant = Constant(candidates, 1, 2.5)
    varying = Known([[-1.0], [-2.0], [0.3], [-1.0]])
    assert chosen(rule, Known([[3.0], [1.0], [0.0], [2.0]]), [constant, varying]) == [1]


@pytest.mark.parametrize("rule", RULES)
def test_draws_that_are_no_numbers_do_not_hang(rule: Rule) -> None:
    """Broken models choose somehow, no candidate twice."""
    nothing = Known(np.full((5, 3), np.nan))
    assert len(set(chosen(rule, nothing, [nothing]))) == 3
    assert len(set(chosen(rule, Known(np.ones((5, 3))), [nothing]))) == 3


@pytest.mark.parametrize("rule", RULES)
def test_without_constraints_the_objective_decides(rule: Rule) -> None:
    """No constraints at all: every candidate is feasible."""
    selection = rule(Known([[3.0, 0.0], [1.0, 4.0]]), [], certainty(100))
    assert selection.chosen.tolist() == [1, 0]
    assert selection.feasible.tolist() == [2, 2]


@pytest.mark.parametrize("rule", RULES)
def test_no_candidate_twice(rule: Rule) -> None:
    """The second draw takes its second best, the third what is left, feasible or not."""
    objective = Known([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    constraint = Known([[-1.0] * 3, [-1.0] * 3, [1.0] * 3])
    assert chosen(rule, objective, [constraint]) == [0, 1, 2]


def test_counts_of_sampled_feasible_candidates() -> None:
    """One count per draw."""
    constraints = [Known([[-1.0, 1.0], [-1.0, 1.0]]), Known([[-1.0, -1.0], [2.0, -1.0]])]
    selection = select(Known([[0.0, 0.0], [0.0, 1.0]]), constraints, certainty(100))
    assert selection.feasible.tolist() == [1, 0]


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 5), st.integers(0, 3))
def test_the_rule_on_known_values(seed: int, count: int, draws: int, m: int) -> None:
    """Any values, also many equal ones: what the rule says is chosen."""
    draws = min(draws, count)
    generator = np.random.default_rng(seed)
    objective = generator.integers(-3, 4, (count, draws)).astype(float)
    constraints = [generator.integers(-2, 2, (count, draws)).astype(float) for _ in range(m)]
    expected = by_the_rule(objective, constraints)
    for rule in (select, objective_first.select):
        assert chosen(rule, Known(objective), [Known(c) for c in constraints]) == expected


def models(count: int, dim: int, num: int, seed: int) -> tuple[BatchGP, torch.Tensor]:
    """Several models of random data, and candidates around one datum."""
    generator = np.random.default_rng(seed)
    x = torch.tensor(generator.random((count, dim)))
    y = torch.tensor(generator.standard_normal((num, count)))
    scale = generator.uniform(0.2, 2.0, (num, dim))
    rest = np.tile([1.0, 1e-7], (num, 1))
    gp = BatchGP(x, y, torch.tensor(np.hstack([scale, rest])).log())
    width = generator.choice([0.02, 0.3, 1.0])
    around = x[0] + width * (torch.tensor(generator.random((250, dim))) - 0.5)
    return gp, around.clamp(0.0, 1.0)


# All candidates of the second draw are taken by the first: it goes before the third.
@example(seed=0, dim=3, m=3, draws=3, offset=0.7)
@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    dim=st.integers(1, 6),
    m=st.integers(0, 3),
    draws=st.integers(1, 6),
    offset=st.sampled_from([-1.0, 0.0, 0.7, 3.0]),
)
def test_ending_early_never_changes_the_choice(
    seed: int, dim: int, m: int, draws: int, offset: float
) -> None:
    """Completed to all candidates, the same joint draws select the same candidates."""
    gp, points = models(12, dim, m + 1, seed)
    generator = np.random.default_rng(seed)
    objective = JointDraws(gp, 0, points, draws, generator, 0.4, 2.0)
    constraints = [
        JointDraws(gp, index, points, draws, generator, offset, 0.8) for index in range(1, m + 1)
    ]
    selection = select(objective, constraints, certainty(250 * draws * (m + 1)))
    everything = torch.arange(len(points))
    for one in (objective, *constraints):
        one.draw(everything)
    values = [one.value.numpy() for one in (objective, *constraints)]
    violation = sum((np.maximum(c, 0.0) for c in values[1:]), np.zeros_like(values[0]))
    assert selection.feasible.tolist() == (violation == 0.0).sum(axis=0).tolist()
    expected = by_the_rule(values[0], values[1:])
    assert selection.chosen.tolist() == expected


@pytest.mark.usefixtures("default_device")
def test_most_candidates_are_never_drawn() -> None:
    """Where a draw is decided early, few candidates are drawn: that is where the time goes."""
    gp, points = models(12, 2, 2, seed=4)
    generator = np.random.default_rng(0)
    draws = [JointDraws(gp, index, points, 1, generator) for index in range(2)]
    select(draws[0], draws[1:], certainty(500))
    assert int((draws[0].deviation == 0).sum()) < 200


@pytest.mark.usefixtures("default_device")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("offset", [-1.0, 0.3, 2.5])
def test_random_functions_are_selected_by_the_rule(offset: float, rule: Rule) -> None:
    """Pathwise draws, feasible and infeasible: evaluated everywhere they choose the same."""
    objective, *constraints = random_functions(offset)
    selection = rule(objective, constraints, certainty(1000))
    for one in (objective, *constraints):
        one.draw(torch.arange(len(one.value)))
    values = [one.value.cpu().numpy() for one in (objective, *constraints)]
    assert selection.chosen.tolist() == by_the_rule(values[0], values[1:])


def random_functions(offset: float) -> list[PathwiseDraws]:
    """Three functions, four draws of each, over 250 candidates."""
    gp, points = models(12, 3, 3, seed=1)
    generator = np.random.default_rng(3)
    spectrum = frequencies(64, points.shape[1], generator)
    return [
        PathwiseDraws(gp, index, points, 4, generator, offset, 0.5, spectrum=spectrum)
        for index in range(3)
    ]


def test_constraints_are_not_looked_at_where_the_objective_is_high() -> None:
    """That is what looking at the objective first is for."""
    generator = np.random.default_rng(0)
    objective = Known(generator.standard_normal((5000, 10)))
    constraints = [Counted(generator.standard_normal((5000, 10)) - 0.5) for _ in range(4)]
    objective_first.select(objective, constraints, certainty(10**6))
    assert max(constraint.drawn for constraint in constraints) < 1000


class Counted(Known):
    """Draws that know how many candidates were asked for."""

    drawn = 0

    def draw(self, ids: torch.Tensor) -> None:
        """Count."""
        self.drawn += ids.numel()
