"""Are the points of a file what they must be: in the space, first the design, then as drawn?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from cbo_suite.errors import InvalidPoint
from cbo_suite.protocols import Array, ConstrainedProblem, Space
from cbo_suite.records import BLOCK_SEEDS, Record
from cbo_suite.records.blocks import draw_block, opens
from cbo_suite.records.record import Indices
from cbo_suite.scoring.references import found_by, load_references
from cbo_suite.verify.designs import Designs
from cbo_suite.verify.submission import Complaints, Row, Submission

# Coordinates of a design may round, as part of the box, where a scale is a logarithm.
ROUNDING = 1e-12
# How soon after the design it is remarkable to be at the optimum, and what counts as being there:
# every variable within this part of its range, or the regret within this part of the problem's.
SOON = 5
NEAR = 1e-3
SMALL_REGRET = 1e-6


def check_points(
    submission: Submission,
    problem: ConstrainedProblem,
    designs: Designs,
    complaints: Complaints,
) -> None:
    """Check that points lie in the space and begin with the design of their problem and seed."""
    space = problem.space
    box = hashlib.sha256(space.lower.tobytes() + space.upper.tobytes()).hexdigest()
    has_executable = hasattr(problem, "executable_sha256")
    for row in submission.rows:
        record = row.record
        sizes = (record.dim, record.num_constraints)
        # Old records name the bounds alone, and no numbers if nothing was evaluated.
        if record.facts.get("space", space.digest) != space.digest:
            complaints.add(row.line, "facts.space", "it was made with another space")
        elif record.facts.get("box", box) != box:
            complaints.add(row.line, "facts.box", "it was made with another box")
        elif ("executable_sha256" in record.facts) != has_executable:
            # Which one is the platform's: its values come out again or not.
            what = "is missing" if has_executable else "is there, the problem needs none"
            complaints.add(row.line, "facts.executable_sha256", f"it {what}")
        elif record.dim != space.dim and (record.schema == 2 or len(record.points)):
            complaints.add(row.line, "dim", f"{sizes[0]} variables instead of {space.dim}")
        elif sizes[1] != space.num_constraints and (record.schema == 2 or len(record.steps)):
            complaints.add(
                row.line,
                "num_constraints",
                f"{sizes[1]} constraints instead of {space.num_constraints}",
            )
        else:
            _check_allowed(row, space, complaints)
            if not complaints.texts:
                task = record.task
                design = designs.points(problem, task.n_init, task.seed)
                _check_design(row, problem, design, complaints)
        if complaints.texts:
            return


def _check_allowed(row: Row, space: Space, complaints: Complaints) -> None:
    """Check that all points which a record holds are points of the space."""
    record = row.record
    parts = {"points": record.points}
    if record.sample is not None:
        parts["sample.points"] = record.sample.points
    for field, x in parts.items():
        try:
            space.validate(x)
        except InvalidPoint as reason:
            complaints.add(row.line, field, str(reason))


def _check_design(
    row: Row, problem: ConstrainedProblem, design: Array, complaints: Complaints
) -> None:
    """Check that the first points of a run are the Latin hypercube of its problem and seed."""
    record, space = row.record, problem.space
    early = record.kept < len(design)
    x, numbers = record.points[early], record.kept[early]
    off = np.abs(x - design[numbers]) / (space.upper - space.lower)
    different = (off > ROUNDING).any(axis=1)
    if not different.any():
        return
    known = getattr(problem, "best_known", None)
    what = "the design of this seed has another point there: was the run renamed or chosen?"
    if known is not None and (_distance(x[different], known.x, space) <= 1e-9).any():
        what = "the best known point of the problem, before the optimizer was ever asked"
    first = numbers[different.argmax()]
    complaints.add(row.line, "points", f"point {first} of the initial design: {what}")


def check_samples(submission: Submission, complaints: Complaints) -> list[Indices]:
    """Check that large runs open what their blocks draw, and that their roots commit to it.

    Returns:
        The numbers of the evaluations that each row opens.
    """
    nothing = np.empty(0, dtype=np.intp)
    found: list[Indices] = []
    for first in range(0, len(submission.rows), BLOCK_SEEDS):
        block = submission.rows[first : first + BLOCK_SEEDS]
        records = [row.record for row in block]
        if all(record.whole for record in records):
            found += [nothing] * len(block)
            continue
        for row, drawn in zip(block, draw_block(records), strict=True):
            found.append(nothing if row.record.whole else drawn)
            if row.record.whole:
                continue
            if row.record.sample is None:
                complaints.add(
                    row.line,
                    "sample",
                    "it is missing: all ten runs of a block are written together, by `cbo export`",
                )
            elif not opens(row.record, drawn):
                complaints.add(
                    row.line,
                    "sample",
                    "it is not what the ten runs of its block draw, or the root of the run does "
                    "not commit to it",
                )
            if complaints.texts:
                return []
    return found


def find_flags(submission: Submission, problem: ConstrainedProblem) -> list[str]:
    """Find what is no fault but worth a look: knowing the optimum too exactly or too soon."""
    known = getattr(problem, "best_known", None)
    if known is None:
        return []
    reference = load_references().get(problem.id)
    flags = []
    for row in submission.rows:
        task = row.record.task
        if reference and reference.source.startswith(found_by(task.optimizer, task.seed)):
            continue  # its own point became the best known
        hits = row.record.kept[(row.record.points == known.x).all(axis=1)]
        if len(hits):
            flags.append(
                f"line {row.line}: evaluation {hits[0]} is the best known point to the last bit"
            )
        else:
            flags += _early(row, known.x, problem.space)
    return flags


def _early(row: Row, optimum: Array, space: Space) -> Iterable[str]:
    """Flag a run that is at the optimum within a few evaluations after the design."""
    record, end = row.record, row.record.task.n_init + SOON
    soon = (record.kept >= record.task.n_init) & (record.kept < end)
    x, numbers = record.points[soon], record.kept[soon]
    near = _distance(x, optimum, space) <= NEAR
    if near.any():
        yield (
            f"line {row.line}: evaluation {numbers[near.argmax()]}, within {SOON} after the "
            "design, is next to the best known point"
        )
    reference = load_references().get(record.task.problem)
    design = record.objectives[: record.task.n_init][record.feasible[: record.task.n_init]]
    if reference is None:
        return
    goal = reference.best + SMALL_REGRET * (reference.worst - reference.best)
    values = np.where(record.feasible, record.objectives, np.inf)[record.task.n_init : end]
    if (values <= goal).any() and not (design <= goal).any() and not near.any():
        yield (
            f"line {row.line}: evaluation {record.task.n_init + int((values <= goal).argmax())}, "
            f"within {SOON} after the design, has next to no regret"
        )


def _distance(x: Array, point: Array, space: Space) -> Array:
    """Return how far points `(n, d)` are from another one: their largest part of a range."""
    distance: Array = (np.abs(x - point) / (space.upper - space.lower)).max(axis=1, initial=0.0)
    return distance


def replayable(records: Iterable[Record]) -> bool:
    """Tell whether records hold what a replay needs: large ones of version 1 do not."""
    return all(record.whole or record.schema == 2 for record in records)
