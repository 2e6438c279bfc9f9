"""A check of what the paper's proof of consistency rests on, on SCBO as it is.

Every trust region must end after finitely many evaluations, and a restart must draw a fresh Sobol
sequence over the whole box. The optimizer is driven by values made up for it; nothing is random.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cbo_suite.errors import MissingExtra
from cbo_suite.protocols import Array, Evaluation, Space
from cbo_suite.registry import make_optimizer

# Points of a design: a power of two, so that a Sobol sequence has one in each slice of a variable.
_DESIGN = 8
_GAIN = 1.0  # what every success of a made-up objective gains
_GAINS = 12  # how often it does
_SIZES = ((2, 1), (2, 4), (5, 2))  # variables and batch size
_REGIONS = 2


class Consistency(NamedTuple):
    """What came of the check.

    Attributes:
        cases: Number of made-up objectives and sizes that SCBO was driven with.
        ended: Number of those in which as many trust regions ended as were waited for.
        longest: Evaluations of the longest trust region that ended.
        restarts: Number of restarts whose designs were looked at.
        fresh: Number of those that have no point in common with anything asked before.
        spread: Number of those with one point in each equal slice of every variable.
    """

    cases: int
    ended: int
    longest: int
    restarts: int
    fresh: int
    spread: int


def check_consistency() -> Consistency | None:
    """Drive SCBO until it has restarted several times, with objectives that stop improving.

    Returns:
        What came of it; None if what SCBO needs is not installed.
    """
    found = []
    try:
        for dim, batch_size in _SIZES:
            for improves in (0, _GAINS):
                found.append(_drive(dim, batch_size, _falling(improves)))
    except MissingExtra:
        return None
    designs = [design for _, own in found for design in own]
    return Consistency(
        cases=len(found),
        ended=sum(len(lengths) == _REGIONS for lengths, _ in found),
        longest=max(length for lengths, _ in found for length in lengths),
        restarts=len(designs),
        fresh=sum(is_fresh for is_fresh, _ in designs),
        spread=sum(is_spread for _, is_spread in designs),
    )


def _falling(steps: int) -> Callable[[int], float]:
    """Make an objective of the number of batches in a region: it falls for a while, then stays."""
    return lambda batch: -_GAIN * min(batch, steps)


def _drive(
    dim: int, batch_size: int, objective: Callable[[int], float]
) -> tuple[list[int], list[tuple[bool, bool]]]:
    """Drive SCBO through some trust regions.

    Returns:
        The evaluations of each region that ended, and of each restart whether its design is fresh
        and spread. A region that does not end in a thousand batches is given up.
    """
    space = Space(np.zeros(dim), np.ones(dim), num_constraints=1)
    optimizer = make_optimizer("scbo", space, budget=10**6, batch_size=batch_size, seed=0)
    design = np.random.default_rng(0).random((_DESIGN, dim))
    optimizer.tell(design, _values(_DESIGN, 10.0))
    asked, lengths, designs = [design], [], []
    begin, region = 0, 0
    new: list[Array] = []
    for _ in range(1000 * _REGIONS):
        x = optimizer.ask(batch_size)
        count = _restarts(optimizer)
        if count > region:
            # What was asked before this batch belongs to the regions that have ended.
            total = sum(map(len, asked))
            lengths.append(total - begin)
            begin, region, new = total, count, []
        asked.append(x)
        if region and sum(map(len, new)) < _DESIGN:
            new.append(x)
            if sum(map(len, new)) >= _DESIGN:
                before = np.concatenate(asked)[:begin]
                designs.append(_look(np.concatenate(new)[:_DESIGN], before))
        age = sum(map(len, asked)) - begin
        in_design = region > 0 and age <= _DESIGN
        optimizer.tell(x, _values(len(x), 10.0 if in_design else objective(age // batch_size)))
        if len(lengths) == _REGIONS and len(designs) == _REGIONS:
            break
    return lengths[:_REGIONS], designs


def _values(n: int, objective: float) -> Evaluation:
    """Give n feasible points one objective value."""
    return Evaluation(np.full(n, objective), np.full((n, 1), -1.0))


def _restarts(optimizer: object) -> int:
    """Read how many regions the optimizer has left behind."""
    return int(optimizer.inspect()["restarts"])  # type: ignore[attr-defined]


def _look(design: Array, before: Array) -> tuple[bool, bool]:
    """Tell whether a design has no point of those before, and one point in each slice."""
    fresh = not (design[:, None, :] == before[None, :, :]).all(axis=2).any()
    slices = np.sort(np.floor(design * len(design)), axis=0)
    spread = bool((slices == np.arange(len(design))[:, None]).all())
    return bool(fresh), spread
