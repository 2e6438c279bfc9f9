"""Rows that lie: well formed, consistent in themselves, with digests and roots of what they claim.

Each entry of `FORGERIES` is an idea of its own. None of them may be verified; the message is what
the complaint, or the reason why the row is left unverified, must say.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

import cbo_suite as cbo
from cbo_suite.protocols import Evaluation
from cbo_suite.records import Record, Sample
from cbo_suite.records.blocks import draw_block
from cbo_suite.scoring.references import load_references
from tests.submissions.honest import sealed
from tests.submissions.material import (
    LARGE,
    SMALL,
    Edit,
    Forgery,
    Material,
    claim,
    edited,
    file_of,
    large_lie,
    lie,
    old_record,
    true_values,
)


def best_of(objective: np.ndarray, constraints: np.ndarray) -> int:
    """Return the number of the infeasible point after the design of least objective."""
    infeasible = np.asarray((constraints > 0).any(axis=1))
    infeasible[:10] = False
    return int(np.where(infeasible, objective, np.inf).argmin())


def one_feasible(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Let the infeasible point of least objective be feasible."""
    constraints[best_of(objective, constraints)] = -1.0


def barely_infeasible(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Put a point where a constraint is as little above zero as can be, and call it feasible."""
    problem = cbo.make_problem(SMALL)
    inside, outside = (constraints <= 0).all(axis=1), (constraints > 0).any(axis=1)
    low, high = x[np.flatnonzero(inside)[-1]].copy(), x[np.flatnonzero(outside)[-1]].copy()
    for _ in range(200):
        middle = (low + high) / 2
        if problem.evaluate(middle[None]).feasible[0]:
            low = middle
        else:
            high = middle
    x[60] = high
    value, found = problem.evaluate(high[None])
    objective[60], constraints[60] = value[0], np.minimum(found[0], 0.0)


def by_the_median(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Let most constraint values be huge, so that lies are small beside their median."""
    constraints[10:] = 1e15
    constraints[best_of(objective, constraints)] = -1e15


def another_arithmetic(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Let all values be off by a little, as from another processor, and one point be feasible."""
    objective *= 1 + 1e-14
    constraints *= 1 + 1e-14
    one_feasible(x, objective, constraints)


def next_to_the_optimum(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Claim the best known value at a point next to the best known one."""
    known = cbo.make_problem(SMALL).best_known  # type: ignore[attr-defined]
    x[10] = known.x + 1e-7
    objective[10], constraints[10] = known.objective, -1e-9


def swap_design(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Let two points of the design change places."""
    for array in (x, objective, constraints):
        array[[2, 3]] = array[[3, 2]]


def better_design(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Put the best point of the run into the design."""
    best = Evaluation(objective, constraints).best()
    for array in (x, objective, constraints):
        array[[0, best]] = array[[best, 0]]


def reference_claim(problem: str, value: float, idea: str) -> Forgery:
    """A row of true runs which all end with a value that nobody can reach."""

    def make(material: Material) -> bytes:
        values = {seed: true_values(problem, seed) for seed in range(10)}
        for _, (objective, constraints) in values.values():
            # Below nine of ten equal values the old rules looked at medians of the file.
            objective[50:] *= 1 + 1e-13
            constraints[50:] *= 1 + 1e-13
            objective[-1], constraints[-1] = value, -1e-12
        return file_of(claim(problem, values, material.like))

    return Forgery(idea, "evaluation .* (does not come out|is recorded as feasible)", make, problem)


def outside_sample(material: Material, edit: Callable[[Record, int], Record]) -> bytes:
    """Edit a sealed run at an evaluation that is not opened."""
    records = list(material.large.records)
    drawn = set(draw_block(records)[4].tolist()) | set(records[4].steps.tolist())
    number = next(i for i in range(500, 1000) if i not in drawn)
    records[4] = edit(records[4], number)
    return file_of(records)


def other_objective(record: Record, number: int) -> Record:
    """Change one objective value that no sample shows."""
    objectives = record.objectives.copy()
    objectives[number] += 1.0
    return msgspec.structs.replace(record, objectives=objectives)


def chosen_sample(material: Material) -> bytes:
    """Open evaluations of one's own choice."""
    records = list(material.large.records)
    other = sealed([msgspec.structs.replace(r, error="x") for r in records], material.large.values)
    records[4] = msgspec.structs.replace(records[4], sample=other[4].sample)
    return file_of(records)


def swapped_samples(material: Material) -> bytes:
    """Let two runs change their samples."""
    records = list(material.large.records)
    one, other = records[4].sample, records[5].sample
    records[4] = msgspec.structs.replace(records[4], sample=other)
    records[5] = msgspec.structs.replace(records[5], sample=one)
    return file_of(records)


def shifted(field: str, amount: float) -> Callable[[Record, Material], Sample]:
    """Shift the numbers of a sample."""

    def change(record: Record, material: Material) -> Sample:
        assert record.sample is not None
        return record.sample._replace(**{field: getattr(record.sample, field) + amount})

    return change


def cut_path(record: Record, material: Material) -> Sample:
    """Leave out the end of a path."""
    assert record.sample is not None
    return record.sample._replace(path=record.sample.path[:-32])


def root_of_nothing(material: Material) -> bytes:
    """Seal a block whose roots commit to something else than its values."""
    records = [msgspec.structs.replace(r, root="ab" * 32) for r in material.large.records]
    return file_of(sealed(records, material.large.values))


def old_constraints(material: Material) -> bytes:
    """Misstate constraints that are kept beside an improvement of version 1."""
    records = [old_record(record, True) for record in material.small.records]
    constraints = records[4].step_constraints
    assert constraints is not None
    changed = np.where(constraints < 0, constraints * 2, constraints)
    records[4] = msgspec.structs.replace(records[4], step_constraints=changed)
    return file_of(records)


def old_improvements(material: Material) -> bytes:
    """Keep nothing but improvements, as version 1 did, and invent the rest."""
    records = [old_record(record, False) for record in material.small.records]
    return file_of(records)


def worst_value(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Claim a feasible value above the worst there is, which moves the scores of others."""
    worst = load_references()[LARGE].worst
    objective[777], constraints[777] = worst + 1.0, -1.0


def nudge(number: int, amount: float) -> Edit:
    """Change one objective value by a little."""
    return lambda x, objective, constraints: objective.__setitem__(
        number, objective[number] + amount
    )


def best_value(amount: float) -> Edit:
    """Change the objective of the best point."""

    def edit(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
        objective[Evaluation(objective, constraints).best()] += amount

    return edit


def scaled(factor: float) -> Edit:
    """Scale all violations."""

    def edit(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
        constraints[constraints > 0] *= factor

    return edit


def all_feasible(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Let everything be feasible."""
    np.minimum(constraints, 0.0, out=constraints)


def lost_points(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Let infeasible points have no values."""
    infeasible = (constraints > 0).any(axis=1)
    objective[infeasible], constraints[infeasible] = np.nan, np.nan


def improved_points(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Let a large run end with a value that it did not find."""
    objective[999], constraints[999] = -0.8, -1.0


TRUE = "does not come out again|is recorded as feasible"
FORGERIES: dict[str, Forgery] = {
    "keane -28000": reference_claim(LARGE, -28000.0, "a value far below the optimum of Keane"),
    "string 0.0025": reference_claim(
        "tension-string-3d-v1", 0.0025, "a spring lighter than any that holds"
    ),
    "beam 2.38092": reference_claim(
        "welded-beam-4d-v1", 2.2, "a beam cheaper than any that carries its load"
    ),
    "one point feasible": lie("call the best infeasible point feasible", TRUE, one_feasible),
    "all points feasible": lie("call every point feasible", TRUE, all_feasible, range(10)),
    "barely infeasible": lie(
        "call a point feasible that is infeasible by rounding",
        "recorded as feas",
        barely_infeasible,
    ),
    "median": lie("make room for a lie by a huge median of constraints", TRUE, by_the_median),
    "other arithmetic": lie(
        "let all values be off by a little, so that feasibility is not looked at",
        TRUE,
        another_arithmetic,
        range(10),
    ),
    "best value": lie("a best value that is a little better", TRUE, best_value(-1e-6)),
    "best value, a trifle": lie("the same by 1e-12", TRUE, best_value(-1e-12)),
    "all values": lie(
        "all values a percent better", TRUE, lambda x, f, c: f.__imul__(0.99), range(10)
    ),
    "minus infinity": lie("a value of minus infinity", "field", nudge(50, -np.inf)),
    "violation halved": lie("infeasible points that are nearly feasible", TRUE, scaled(0.5)),
    "violation of 1e-300": lie("violations next to nothing", TRUE, scaled(1e-300)),
    "violation doubled": lie("violations that are too large", TRUE, scaled(2.0)),
    "violation in the last digits": lie("violations off by 1e-11", TRUE, scaled(1 + 1e-11)),
    "lost points": lie(
        "say that what is infeasible could not be evaluated", TRUE, lost_points, range(10)
    ),
    "optimum nearby": lie("the best known value, next to its point", TRUE, next_to_the_optimum),
    "design swapped": lie("a design in another order", "initial design", swap_design),
    "design improved": lie("a best point in the design", "initial design", better_design),
    "design value": lie("a value of the design that is better", TRUE, nudge(3, -0.5)),
    "point outside": lie(
        "a point outside the box", "inside the box", lambda x, f, c: x.__setitem__((60, 0), -1e-12)
    ),
    "point moved": lie(
        "a point that is not the one evaluated", TRUE, lambda x, f, c: x.__setitem__((60, 0), 0.123)
    ),
    "renamed seed": Forgery(
        "the best of many seeds under other numbers",
        "initial design",
        lambda material: file_of(
            claim(
                SMALL,
                {seed: true_values(SMALL, seed + (90 if seed == 4 else 0)) for seed in range(10)},
                material.like,
            )
        ),
    ),
    "one seed twice": Forgery(
        "the best run under two seeds, the design changed",
        "initial design|same run",
        lambda material: file_of(
            claim(
                SMALL,
                {seed: material.small.values[3 if seed == 4 else seed] for seed in range(10)},
                material.like,
            )
        ),
    ),
    "digest of another": edited(
        "the digest of another run", "digest", False, digest=lambda r, m: "0" * 64
    ),
    "root of another": edited("another root", "digest", False, root="0" * 64),
    "told at once": edited(
        "batches larger than the protocol allows", "batches", False, batches=[100]
    ),
    "another space": edited(
        "a space of another problem", "facts", False, facts={"space": "0" * 64}
    ),
    "bounds alone": edited("no digest of the whole space", "facts", False, facts={"box": "0" * 64}),
    "no constraints": edited(
        "a problem without constraints", "num_constraints", False, num_constraints=0
    ),
    "statuses": edited(
        "evaluations that failed, with values", "statuses", False, statuses="f" * 100
    ),
    "improvement invented": large_lie("a large run that ends better", TRUE, improved_points),
    "large design": large_lie("design values of a large run", TRUE, nudge(7, -0.1)),
    "large best value": large_lie("a best value of a large run", TRUE, best_value(-1e-9)),
    "a third invented": large_lie(
        "a third of the values of a block invented, and sealed",
        TRUE,
        lambda x, f, c: f.__setitem__(slice(400, 700), 0.0),
        range(10),
    ),
    "constraints invented": large_lie(
        "constraints of a third invented", TRUE, lambda x, f, c: c[400:700].__isub__(0.5), range(10)
    ),
    "points invented": large_lie(
        "true values at points that do not give them",
        TRUE,
        lambda x, f, c: x.__setitem__(slice(400, 700), 5.0),
        range(10),
    ),
    "beyond the worst": large_lie(
        "a feasible value above the worst, where no sample looks",
        "is feasible with|" + TRUE,
        worst_value,
    ),
    "roots of something else": Forgery(
        "true values beside roots that do not commit to them",
        "not commit to it",
        root_of_nothing,
        LARGE,
    ),
    "no sample": edited("open nothing", "sample: it is missing", True, sample=None),
    "sample chosen": Forgery("open what one likes", "field sample", chosen_sample, LARGE),
    "samples swapped": Forgery("open another run", "field sample", swapped_samples, LARGE),
    "sample moved": edited("open other points", "sample", True, sample=shifted("points", 1e-9)),
    "sample constraints": edited(
        "open other constraints", "sample", True, sample=shifted("constraints", -0.1)
    ),
    "path cut": edited("a path that is too short", "sample", True, sample=cut_path),
    "edited after the draw": Forgery(
        "change a value that is not opened, once that is known",
        "field sample",
        lambda material: outside_sample(material, other_objective),
        LARGE,
    ),
    "machine after the draw": edited(
        "change a word of one run, once the draw is known",
        "sample",
        True,
        machine={"system": "other"},
    ),
    "seeds of two blocks": Forgery(
        "nine seeds, so that no block is whole",
        "at least 10 seeds",
        lambda material: file_of(material.large.records[:9]),
        LARGE,
    ),
    "a block and a half": Forgery(
        "a block that is not whole",
        "whole blocks",
        lambda material: file_of(
            [*material.small.records, *claim(SMALL, {10: true_values(SMALL, 10)}, material.like)]
        ),
    ),
    "version 1, large": Forgery(
        "the old format, which opens nothing",
        "say too little",
        lambda material: file_of([old_record(r, False) for r in material.large.records]),
        LARGE,
    ),
    "version 1, improvements alone": Forgery(
        "the old format without points", "say too little", old_improvements
    ),
    "version 1, constraints": Forgery(
        "constraints beside improvements that are not theirs", TRUE, old_constraints
    ),
    "both versions": Forgery(
        "one old run among new ones",
        "schema|facts",
        lambda material: file_of(
            [*material.small.records[:9], old_record(material.small.records[9], True)]
        ),
    ),
}
