"""How conformance rules are run and reported; `cbo_suite.checks` is the public side of it.

A rule is a function of the thing under check. It returns when the rule holds, raises
`ConformanceError` when it is broken and `RuleSkipped` when it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np

from cbo_suite.errors import ConformanceError, MissingExecutable, MissingExtra, describe
from cbo_suite.protocols import Array, Evaluation

Subject = TypeVar("Subject")


class Finding(NamedTuple):
    """What one rule found.

    Attributes:
        rule: Short name of the rule.
        outcome: "ok", "failed" or "skipped".
        detail: What the rule asks if it holds, else what was got and what to do, or why it was
            skipped.
        cause: The exception of the checked code, if one made the rule fail.
    """

    rule: str
    outcome: Literal["ok", "failed", "skipped"]
    detail: str
    cause: Exception | None = None


class RuleSkipped(Exception):
    """The rule does not apply, for the reason given."""


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """A named rule.

    Attributes:
        name: Short name, lower case with hyphens.
        check: The function; the first line of its docstring says what the rule asks.
        needs: Rules that must hold before this one means anything.
    """

    name: str
    check: Callable[[Subject], None]
    needs: tuple[str, ...] = ()

    @property
    def asks(self) -> str:
        """What the rule asks, in one sentence without its full stop."""
        return (self.check.__doc__ or "").partition("\n")[0].rstrip(".")


def run_rules(rules: Iterable[Rule[Subject]], subject: Subject) -> list[Finding]:
    """Run every rule on the subject, in order.

    Raises:
        MissingExtra: The subject needs a library that is not installed, which breaks no rule.
        MissingExecutable: The same for an executable.
    """
    findings: dict[str, Finding] = {}
    for rule in rules:
        findings[rule.name] = _run(rule, subject, findings)
    return list(findings.values())


def _run(rule: Rule[Subject], subject: Subject, earlier: Mapping[str, Finding]) -> Finding:
    """Run one rule, unless one that it needs does not hold."""
    for needed in (earlier[name] for name in rule.needs):
        if needed.outcome == "failed":
            return Finding(rule.name, "skipped", f"means nothing until {needed.rule!r} holds")
        if needed.outcome == "skipped":
            return Finding(rule.name, "skipped", needed.detail)
    try:
        rule.check(subject)
    except RuleSkipped as reason:
        return Finding(rule.name, "skipped", str(reason))
    except (MissingExtra, MissingExecutable):
        raise
    except ConformanceError as broken:
        cause = broken.__cause__
        return Finding(
            rule.name, "failed", str(broken), cause if isinstance(cause, Exception) else None
        )
    except Exception as error:
        text = f"raised {describe(error, kind=True)} (the rule: {rule.asks})"
        return Finding(rule.name, "failed", text, error)
    return Finding(rule.name, "ok", rule.asks)


def raise_broken(name: str, findings: list[Finding]) -> None:
    """Raise one error that lists every broken rule, or return if there is none."""
    failed = [finding for finding in findings if finding.outcome == "failed"]
    if not failed:
        return
    lines = [f"- {finding.rule}: {finding.detail}" for finding in failed]
    heading = f"{name} breaks {len(failed)} of {len(findings)} rules:"
    cause = next((finding.cause for finding in failed if finding.cause is not None), None)
    raise ConformanceError("\n".join([heading, *lines])) from cause


def same(first: Evaluation, second: Evaluation) -> bool:
    """Tell whether two evaluations have the same numbers, NaN being the same as NaN."""
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))


def copied(evaluation: Evaluation) -> Evaluation:
    """Copy an evaluation, so that whoever gets it may spoil it."""
    return Evaluation(evaluation.objective.copy(), evaluation.constraints.copy())


def require_float64(value: object, name: str, shape: tuple[int, ...]) -> Array:
    """Return `value` if it is a float64 array of this shape, or say what it is instead."""
    if not isinstance(value, np.ndarray):
        raise ConformanceError(
            f"{name} is of type {type(value).__name__}: return a NumPy array of shape {shape}"
        )
    if value.dtype != np.float64:
        raise ConformanceError(f"{name} has dtype {value.dtype}: return float64")
    if value.shape != shape:
        raise ConformanceError(f"{name} has shape {value.shape}: return shape {shape}")
    return value
