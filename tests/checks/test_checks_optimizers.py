"""Every rule for optimizers catches what breaks it; a well-behaved optimizer passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cbo_suite.checks import check_optimizer, optimizer_report
from cbo_suite.checks.optimizer_rules import OPTIMIZER_RULES
from cbo_suite.checks.rules import Finding
from cbo_suite.errors import ConformanceError
from cbo_suite.protocols import Array, Evaluation, Space
from tests.checks.wanderer import Wanderer


def rules_that(findings: list[Finding], outcome: str) -> list[str]:
    """Name the rules that ended with this outcome."""
    return [finding.rule for finding in findings if finding.outcome == outcome]


def detail(findings: list[Finding], rule: str) -> str:
    """Return what one rule says."""
    return next(finding.detail for finding in findings if finding.rule == rule)


def picky(name: str, before_ask: Callable[[Wanderer, int], object]) -> type[Wanderer]:
    """Make an optimizer that computes something before every ask, which may fail."""

    def ask(self: Wanderer, n: int = 1) -> Array:
        before_ask(self, n)
        return Wanderer.ask(self, n)

    return type(name, (Wanderer,), {"ask": ask})


def needs_feasible(optimizer: Wanderer, n: int) -> None:
    """Take the best of possibly no feasible points."""
    values = optimizer.evaluation
    if np.isfinite(values.objective).all() and len(optimizer.x):
        np.argmin(values.objective[values.feasible])


def needs_spread(optimizer: Wanderer, n: int) -> None:
    """Scale by the range of the values, which may be zero."""
    values = optimizer.evaluation.objective
    if np.isfinite(values).all() and len(values):
        1.0 / float(values.max() - values.min())


def needs_finite(optimizer: Wanderer, n: int) -> None:
    """Refuse values that are not finite."""
    np.asarray_chkfinite(optimizer.evaluation.objective)


def needs_distinct(optimizer: Wanderer, n: int) -> None:
    """Divide by the least distance of two points, which may be zero."""
    distances = np.abs(optimizer.x[:, None] - optimizer.x).sum(axis=2)
    [1.0 / float(value) for value in distances[np.triu_indices(len(distances), 1)]]


def needs_new_points(optimizer: Wanderer, n: int) -> None:
    """Look for a point of a grid that is not known, where there may be none."""
    space = optimizer.space
    if space.integer.all():
        known = optimizer.x.tolist()
        points = space.from_unit(np.random.default_rng(0).random((1000, space.dim)))
        next(iter([point for point in points.tolist() if point not in known]))


NeedsNewPoints = picky("NeedsNewPoints", needs_new_points)
NeedsData = picky("NeedsData", lambda optimizer, n: optimizer.evaluation.best())
WholeBatches = picky("WholeBatches", lambda optimizer, n: [1, optimizer.batch_size].index(n))
NeedsFeasible = picky("NeedsFeasible", needs_feasible)
NeedsSpread = picky("NeedsSpread", needs_spread)
NeedsFinite = picky("NeedsFinite", needs_finite)
NeedsDistinct = picky("NeedsDistinct", needs_distinct)


def spoiling(name: str, change: Callable[[Array], Any]) -> type[Wanderer]:
    """Make an optimizer that changes its good proposals before it returns them."""

    def ask(self: Wanderer, n: int = 1) -> Any:
        return change(Wanderer.ask(self, n))

    return type(name, (Wanderer,), {"ask": ask})


UnitCube = spoiling("UnitCube", lambda x: np.full_like(x, 0.5))
NanPoint = spoiling("NanPoint", lambda x: np.full_like(x, np.nan))
ListOfPoints = spoiling("ListOfPoints", lambda x: x.tolist())
OnePoint = spoiling("OnePoint", lambda x: x[0])
TooMany = spoiling("TooMany", lambda x: np.concatenate([x, x]))
Shifted = spoiling("Shifted", lambda x: x + 1e-3 * (np.round(x) == x))
Repeats = spoiling("Repeats", lambda x: np.repeat(x[:1], len(x), axis=0))


class NoSeed(Wanderer):
    """Does not take a seed."""

    def __init__(self, space: Space, *, budget: int, batch_size: int) -> None:
        """Forget the seed."""
        super().__init__(space, budget=budget, batch_size=batch_size, seed=0)


class NoTell(Wanderer):
    """Cannot be told."""

    tell: Any = None


class WrongLimit(Wanderer):
    """Declares a limit that is no number."""

    max_dim = "many"


class WrongFlag(Wanderer):
    """Declares a flag that is neither true nor false."""

    sequential: Any = "yes"


class LeavesLater(Wanderer):
    """Leaves the box once it has been told twenty points."""

    def ask(self, n: int = 1) -> Array:
        """Step out when nobody seems to look any more."""
        return super().ask(n) + (1e6 if len(self.x) >= 20 else 0.0)


class NeedsConstraints(Wanderer):
    """Cannot work without constraints."""

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take the largest of possibly no constraints."""
        evaluation.constraints.max(axis=1)
        super().tell(x, evaluation)


class GlobalSeed(Wanderer):
    """Seeds the global generator and draws from it."""

    def __init__(self, space: Space, **task: int) -> None:
        """Share one generator between all optimizers."""
        super().__init__(space, **task)
        np.random.seed(task["seed"])
        self.random: Any = np.random

    get_state: Any = None
    set_state: Any = None


class IgnoresSeed(Wanderer):
    """Does the same for every seed."""

    def __init__(self, space: Space, **task: int) -> None:
        """Use another number than the seed."""
        super().__init__(space, **{**task, "seed": 12345})


class Bookkeeper(Wanderer):
    """Remembers what it asked."""

    def __init__(self, space: Space, **task: int) -> None:
        """Start with nothing asked."""
        super().__init__(space, **task)
        self.asked: list[list[list[float]]] = []

    def ask(self, n: int = 1) -> Array:
        """Write down the batch."""
        x = super().ask(n)
        self.asked.append(x.tolist())
        return x

    def get_state(self) -> dict[str, Any]:
        """Keep what was asked too."""
        return {**super().get_state(), "asked": self.asked}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over what was asked."""
        super().set_state(state)
        self.asked = list(state["asked"])


class OnlyOwnPoints(Bookkeeper):
    """Refuses points it did not ask for, the initial design excepted."""

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Look every point up."""
        own = [point for batch in self.asked for point in batch]
        if self.asked and not all(point in own for point in x.tolist()):
            raise KeyError("never asked")
        super().tell(x, evaluation)


class WholeTells(Bookkeeper):
    """Wants a batch back as it was asked."""

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Refuse a part of a batch, and another order."""
        points = x.tolist()
        if any(points != batch and points[0] in batch for batch in self.asked):
            raise ValueError("told in parts or in another order")
        super().tell(x, evaluation)


class Stubborn(Wanderer):
    """Repeats its proposal until it is told something."""

    proposal: Array | None = None

    def ask(self, n: int = 1) -> Array:
        """Propose again what is under way."""
        if self.proposal is None or len(self.proposal) != n:
            self.proposal = super().ask(n)
        return self.proposal.copy()

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Allow another proposal."""
        super().tell(x, evaluation)
        self.proposal = None

    get_state: Any = None
    set_state: Any = None


class SpoilsTold(Wanderer):
    """Standardises the told values in place."""

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Subtract the mean in place."""
        super().tell(x, evaluation)
        evaluation.objective[:] -= evaluation.objective.mean()


class SpoilsAsked(Wanderer):
    """Returns a buffer that it uses again."""

    def __init__(self, space: Space, **task: int) -> None:
        """Make the buffer."""
        super().__init__(space, **task)
        self.buffer = np.empty((100, space.dim))

    def ask(self, n: int = 1) -> Array:
        """Write into the buffer."""
        self.buffer[:n] = super().ask(n)
        return self.buffer[:n]


class NotPlaced(Wanderer):
    """Knows the box and the whole numbers, and forgets the linear constraints."""

    def ask(self, n: int = 1) -> Array:
        """Draw points of the cube."""
        return self.space.from_unit(self.random.random((n, self.space.dim)))


class ForgetfulState(Wanderer):
    """Leaves the generator out of its state."""

    def get_state(self) -> dict[str, Any]:
        """Return too little."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Do nothing."""


class ArrayState(Wanderer):
    """Puts an array into its state."""

    def get_state(self) -> dict[str, Any]:
        """Return an array."""
        return {**super().get_state(), "x": self.x}


class TupleState(Wanderer):
    """Puts a tuple into its state, which JSON gives back as a list."""

    def get_state(self) -> dict[str, Any]:
        """Return a tuple."""
        return {**super().get_state(), "shape": self.x.shape}


class HalfState(Wanderer):
    """Offers only one half of the state."""

    set_state: Any = None


class NanInspection(Wanderer):
    """Says something of itself that JSON cannot."""

    def inspect(self) -> dict[str, Any]:
        """Return NaN."""
        return {"length": float("nan")}


class RecommendsOutside(Wanderer):
    """Recommends a point outside the box."""

    def recommend(self) -> Array:
        """Return a point of the unit cube."""
        return np.zeros(self.space.dim)


BROKEN_OPTIMIZERS: list[tuple[str, Any, str]] = [
    ("constructor", NoSeed, "unexpected keyword argument 'seed'"),
    ("constructor", NoTell, "no method tell"),
    ("limits", WrongLimit, "'many'"),
    ("limits", WrongFlag, "True or False"),
    ("ask-first", NeedsData, "IndexError"),
    ("proposals", UnitCube, "outside [10.0, 12.0]"),
    ("proposals", NanPoint, "nan outside"),
    ("proposals", ListOfPoints, "list"),
    ("proposals", OnePoint, "has shape (1,): return shape (1, 1)"),
    ("proposals", TooMany, "returned 2 points: return 1 to 1"),
    ("long-run", LeavesLater, "outside"),
    ("no-constraints", NeedsConstraints, "zero-size"),
    ("batch", Repeats, "4 times"),
    ("budget-remainder", WholeBatches, "3 is not in list"),
    ("repeatable", GlobalSeed, "differ at ask 1"),
    ("seeds-differ", IgnoresSeed, "seeds 0 and 1"),
    ("foreign-points", OnlyOwnPoints, "never asked"),
    ("tell-order", WholeTells, "in parts"),
    ("pending", Stubborn, "still to come"),
    ("infeasible-only", NeedsFeasible, "ValueError"),
    ("constant-data", NeedsSpread, "ZeroDivisionError"),
    ("nonfinite-data", NeedsFinite, "must not contain infs or NaNs"),
    ("duplicates", NeedsDistinct, "ZeroDivisionError"),
    ("told-arrays", SpoilsTold, "work on a copy"),
    ("asked-arrays", SpoilsAsked, "return a new array"),
    ("state", ForgetfulState, "ask 1 after resuming differs"),
    ("state", ArrayState, "not plain JSON"),
    ("state", TupleState, "does not come back"),
    ("state", HalfState, "get_state stands alone"),
    ("inspection", NanInspection, "does not come back"),
    ("recommendation", RecommendsOutside, "outside [10.0, 12.0]"),
    ("mixed-space", NotPlaced, "space.place(unit)"),
    ("mixed-space", Shifted, "takes whole numbers"),
    ("small-grid", NeedsNewPoints, "StopIteration"),
]


@pytest.mark.parametrize("optimizer", [Wanderer, Bookkeeper])
def test_well_behaved_optimizer_passes_every_rule(optimizer: type[Wanderer]) -> None:
    """A good optimizer is ok in all rules, in their order."""
    assert rules_that(optimizer_report(optimizer), "ok") == [rule.name for rule in OPTIMIZER_RULES]
    check_optimizer(optimizer, budget=15)


@pytest.mark.parametrize(
    ("rule", "optimizer", "text"),
    BROKEN_OPTIMIZERS,
    ids=[row[1].__name__ for row in BROKEN_OPTIMIZERS],
)
def test_broken_optimizer_is_caught_by_its_rule(rule: str, optimizer: Any, text: str) -> None:
    """The rule fails that the optimizer breaks, and says so."""
    findings = optimizer_report(optimizer)
    failed = rules_that(findings, "failed")
    assert rule in failed, findings
    assert text in detail(findings, rule)
    # An optimizer with unusable proposals is also seen before it was told anything.
    assert failed == [rule] or (rule == "proposals" and failed == ["ask-first", rule]), findings
    with pytest.raises(ConformanceError, match=rf"(?s){optimizer.__name__} breaks .*- {rule}: "):
        check_optimizer(optimizer)


def test_every_optimizer_rule_has_something_that_breaks_it() -> None:
    """No rule is left without a broken example."""
    assert {row[0] for row in BROKEN_OPTIMIZERS} == {rule.name for rule in OPTIMIZER_RULES}
