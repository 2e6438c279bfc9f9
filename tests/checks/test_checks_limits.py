"""The check of optimizers respects declared limits, refusals and what is not offered."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import pytest

from cbo_suite.checks import check_optimizer, optimizer_report
from cbo_suite.checks.rules import Finding
from cbo_suite.errors import ConformanceError, MissingExtra, UnsupportedTask
from cbo_suite.optimizers.random_search import RandomSearch
from cbo_suite.protocols import Array, Space


def rules_that(findings: list[Finding], outcome: str) -> list[str]:
    """Name the rules that ended with this outcome."""
    return [finding.rule for finding in findings if finding.outcome == outcome]


def detail(findings: list[Finding], rule: str) -> str:
    """Return what one rule says."""
    return next(finding.detail for finding in findings if finding.rule == rule)


def test_registered_style_optimizer_skips_what_it_does_not_offer() -> None:
    """State, inspection and recommendation are offers, not duties."""
    findings = optimizer_report(RandomSearch)
    assert rules_that(findings, "failed") == []
    assert rules_that(findings, "skipped") == ["state", "inspection", "recommendation"]


def test_unusable_proposals_do_not_flood_the_report() -> None:
    """One cause is reported once, not by every rule."""

    class UnitCube(RandomSearch):
        def ask(self, n: int = 1) -> Array:
            return self._space.to_unit(super().ask(n))

    findings = optimizer_report(UnitCube)
    assert rules_that(findings, "failed") == ["ask-first", "proposals"]
    assert detail(findings, "batch") == "means nothing until 'proposals' holds"


class Sequential(RandomSearch):
    """Refuses batches, and declares it."""

    sequential = True
    deterministic_search = True
    max_dim = 1
    largest: ClassVar[list[int]] = []

    def __init__(self, space: Space, *, budget: int, batch_size: int, seed: int) -> None:
        """Write down what was asked of it."""
        if space.dim > self.max_dim:
            raise UnsupportedTask("one variable only")
        self.largest.append(batch_size)
        super().__init__(space, budget=budget, batch_size=batch_size, seed=0)


def test_declared_limits_are_kept_and_reported() -> None:
    """An optimizer is not asked for what it declares that it cannot do."""
    findings = optimizer_report(Sequential)
    assert rules_that(findings, "failed") == []
    assert rules_that(findings, "skipped")[:4] == [
        "batch",
        "budget-remainder",
        "seeds-differ",
        "pending",
    ]
    assert detail(findings, "batch") == "the optimizer declares sequential = True"
    assert "deterministic_search" in detail(findings, "seeds-differ")
    assert set(Sequential.largest) == {1}


def test_limits_show_through_a_factory_that_is_no_class() -> None:
    """Options bound with partial, or a function, keep the limits of the class."""

    class Small(RandomSearch):
        max_batch_size = 2

    findings = optimizer_report(functools.partial(Small))
    assert detail(findings, "batch") == "the optimizer declares max_batch_size = 2"
    assert rules_that(findings, "failed") == []


def test_refused_task_is_skipped_with_the_reason() -> None:
    """An optimizer may refuse a task when it is made."""

    class Constrained(RandomSearch):
        def __init__(self, space: Space, *, budget: int, batch_size: int, seed: int) -> None:
            if space.num_constraints == 0:
                raise UnsupportedTask("needs a constraint")
            super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)

    findings = optimizer_report(Constrained)
    assert rules_that(findings, "skipped")[0] == "no-constraints"
    assert "needs a constraint" in detail(findings, "no-constraints")


def test_an_optimizer_that_refuses_everything_fails() -> None:
    """Refusing every task is not a way to pass."""

    def refuse(space: Space, **options: Any) -> RandomSearch:
        raise UnsupportedTask("no task will do")

    findings = optimizer_report(refuse)
    assert rules_that(findings, "failed") == ["constructor"]
    with pytest.raises(ConformanceError, match="refuse breaks 1 of"):
        check_optimizer(refuse)


def test_missing_library_is_no_broken_rule() -> None:
    """A library that is not installed says nothing about the optimizer."""

    def needs_library(space: Space, **options: Any) -> RandomSearch:
        raise MissingExtra('pip install "cbo-suite[scbo]"')

    with pytest.raises(MissingExtra, match="scbo"):
        check_optimizer(needs_library)


def test_budget_below_the_least_is_refused() -> None:
    """Too small a budget would check nothing."""
    with pytest.raises(ValueError, match="budget must be at least 7, got 6"):
        check_optimizer(RandomSearch, budget=6)
