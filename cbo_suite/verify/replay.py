"""Replay a result file: put its points into the problem again and compare what comes out.

All points of a file go into the problem in one call. What is compared, and how closely, is told in
docs/submit-results.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from cbo_suite.harness.design import initial_design
from cbo_suite.harness.evaluate import evaluate_points
from cbo_suite.journal import Batch, digest
from cbo_suite.protocols import Array, BoolArray, ConstrainedProblem, Evaluation, Space
from cbo_suite.records import MAX_POINT_NUMBERS, regular_batches
from cbo_suite.scoring.references import load_references
from cbo_suite.verify.submission import Complaints, Row, Submission

# Where most values agree to the bit, arithmetic is no excuse: 1,000 units in the last place are
# more than this, the rounding of another mathematical library is less.
CLOSE = 1e-13
# Another processor or library rounds differently, but not by more than this.
TOLERANCE = 1e-12
# From this share of equal values on, the file counts as computed with the arithmetic used here.
SAME_ARITHMETIC = 0.9
# Share of the stored points of an expensive problem that is replayed beside the improvements.
SAMPLE = 0.05
# Part of the scale of a problem by which a value may be above its worst.
ROUNDING = 1e-9
_MAX_COMPLAINTS = 10

Agreement = Literal["bit-equal", "within 1e-13", "within 1e-12"]
Indices = np.ndarray[tuple[int], np.dtype[np.intp]]


class Points(NamedTuple):
    """The points of a file that are replayed, one row each.

    Attributes:
        row: Which row of the submission, shape `(k,)`.
        number: Number of the evaluation in its run, shape `(k,)`.
        x: The points, shape `(k, d)`.
        step: Place among the improvements of its run, -1 if it is none, shape `(k,)`.
    """

    row: Indices
    number: Indices
    x: Array
    step: Indices


class Replay(NamedTuple):
    """What came of a replay.

    Attributes:
        points: The points.
        evaluation: Their values now.
        equal: Which of them are the recorded ones to the bit, shape `(k,)`.
        agreement: How closely all of them agree with the recorded ones, None if they do not.
    """

    points: Points
    evaluation: Evaluation
    equal: BoolArray
    agreement: Agreement | None


def check_points(
    submission: Submission, problem: ConstrainedProblem, complaints: Complaints
) -> None:
    """Check that points lie in the box and begin with the design of their problem and seed."""
    space = problem.space
    box = hashlib.sha256(space.lower.tobytes() + space.upper.tobytes()).hexdigest()
    for row in submission.rows:
        field, x, numbers = known_points(row)
        variables, constraints = x.shape[1], row.step_constraints.shape[1]
        outside = np.zeros(len(x), dtype=bool)
        if variables == space.dim:
            outside = np.asarray(((x < space.lower) | (x > space.upper)).any(axis=1))
        # Records before "space" name the bounds alone.
        if row.facts.get("space", space.digest) != space.digest:
            complaints.add(row.line, "facts.space", "it was made with another space")
        elif row.facts.get("box", box) != box:
            complaints.add(row.line, "facts.box", "it was made with another box")
        elif row.x is None and len(row.objective) * space.dim <= MAX_POINT_NUMBERS:
            complaints.add(
                row.line, "points", "the points are missing: write the record with this version"
            )
        elif len(x) and variables != space.dim:
            complaints.add(row.line, field, f"{variables} variables instead of {space.dim}")
        elif len(row.steps) and constraints != space.num_constraints:
            complaints.add(
                row.line,
                "improvements",
                f"{constraints} constraints instead of {space.num_constraints}",
            )
        elif outside.any():
            complaints.add(row.line, field, f"point {numbers[outside.argmax()]} is outside the box")
        elif len(x):
            _check_design(row, problem, complaints)
        if complaints.texts:
            return


def known_points(row: Row) -> tuple[str, Array, Indices]:
    """Return the points that a row has, their field and the numbers of their evaluations."""
    if row.x is None:
        return "improvements", row.step_x, row.steps
    return "points", row.x, np.arange(len(row.x))


def _check_design(row: Row, problem: ConstrainedProblem, complaints: Complaints) -> None:
    """Check that the first points of a run are the Latin hypercube of its problem and seed."""
    task, space = row.task, problem.space
    field, x, numbers = known_points(row)
    early = numbers < task.n_init
    x, numbers = x[early], numbers[early]
    design = initial_design(task.problem, space, task.n_init, task.seed)
    off = np.abs(x - design[numbers]) / (space.upper - space.lower)
    different = (off > TOLERANCE).any(axis=1)
    if not different.any():
        return
    known = getattr(problem, "best_known", None)
    what = "the design of this seed has another point there: was the run renamed or chosen?"
    if known is not None and _near(x[different], known.x, space).any():
        what = "the best known point of the problem, before the optimizer was ever asked"
    first = numbers[different.argmax()]
    complaints.add(row.line, field, f"point {first} of the initial design: {what}")


def _near(x: Array, point: Array, space: Space) -> BoolArray:
    """Tell which points `(n, d)` are another one, to a billionth of the box."""
    distance: Array = np.abs(x - point) / (space.upper - space.lower)
    near: BoolArray = distance.max(axis=1) <= 1e-9
    return near


def find_flags(submission: Submission, problem: ConstrainedProblem) -> list[str]:
    """Find what is no fault but worth a look: the best known point itself among the proposals."""
    known = getattr(problem, "best_known", None)
    if known is None:
        return []
    flags = []
    for row in submission.rows:
        _, x, numbers = known_points(row)
        hits = numbers[(x == known.x).all(axis=1)] if len(x) else numbers
        if len(hits):
            flags.append(
                f"line {row.line}: evaluation {hits[0]} is the best known point to the last bit"
            )
    return flags


def replay_file(
    submission: Submission, problem: ConstrainedProblem, salt: str, complaints: Complaints
) -> Replay | None:
    """Evaluate the points of a file again and compare objective, constraints and violation.

    Args:
        submission: The file.
        problem: Its problem.
        salt: What a sample of the points is drawn with.
        complaints: Takes what differs.

    Returns:
        What came out, None if the file holds no point.
    """
    points = select_points(submission, bool(getattr(problem, "cheap", True)), salt)
    if not len(points.x):
        return None
    _check_unseen(submission, points, complaints)
    evaluation = evaluate_points(problem, points.x).evaluation
    compared = _compare(submission, points, evaluation, problem, complaints)
    return Replay(points, evaluation, *compared)


def draw(submission: Submission, salt: str, purpose: str) -> np.random.Generator:
    """Make the generator of a draw, the same for the same file and salt.

    The author of the file does not know the salt: a draw from the content of the file alone could
    be tried out until it falls on what is honest.
    """
    key = hashlib.sha256(f"{salt} {purpose} {submission.sha256}".encode())
    return np.random.default_rng(int.from_bytes(key.digest(), "big"))


def select_points(submission: Submission, cheap: bool, salt: str) -> Points:
    """Choose the points to replay: all that are stored, or of an expensive problem a part.

    That part is every improvement and a sample which is drawn with the salt.
    """
    random = draw(submission, salt, "points")
    chosen = []
    for place, row in enumerate(submission.rows):
        steps = np.full(len(row.objective), -1, dtype=np.intp)
        steps[row.steps] = np.arange(len(row.steps))
        wanted = steps >= 0
        if row.x is not None:
            # Drawn in any case, so that the sample of one run does not depend on the others.
            wanted |= (random.random(len(steps)) < SAMPLE) | cheap
        numbers = np.flatnonzero(wanted)
        x = row.step_x[steps[numbers]] if row.x is None else row.x[numbers]
        if len(numbers):
            chosen.append(Points(np.full(len(numbers), place), numbers, x, steps[numbers]))
    if not chosen:
        nothing = np.empty(0, dtype=np.intp)
        return Points(nothing, nothing, np.empty((0, 0)), nothing)
    return Points(*(np.concatenate(parts) for parts in zip(*chosen, strict=True)))


def _check_unseen(submission: Submission, points: Points, complaints: Complaints) -> None:
    """Check that no feasible value whose point is not replayed is above the worst there is.

    The largest feasible value of all runs is what the paper's rule gives to everybody's runs
    without a feasible point, so an invented one would move the scores of others.
    """
    reference = load_references().get(submission.problem)
    # What cannot be shipped was never searched for its worst value.
    if reference is None or reference.optional:
        return
    limit = reference.worst + ROUNDING * (reference.worst - reference.best)
    for place, row in enumerate(submission.rows):
        unseen = (row.violation == 0) & (row.objective > limit)
        unseen[points.number[points.row == place]] = False
        if unseen.any():
            number = int(unseen.argmax())
            complaints.add(
                row.line,
                "objective",
                f"evaluation {number} is feasible with {float(row.objective[number])}, its point "
                f"is not replayed, and no feasible value above {reference.worst} is known; if it "
                "is true, open an issue with the point",
            )
            return


def _compare(
    submission: Submission,
    points: Points,
    evaluation: Evaluation,
    problem: ConstrainedProblem,
    complaints: Complaints,
) -> tuple[BoolArray, Agreement | None]:
    """Compare the values of a replay with the recorded ones; complain of what differs.

    Returns:
        Which evaluations are equal to the bit, shape `(k,)`, and how closely all of them agree.
    """
    rows = submission.rows
    ends = np.cumsum([0, *(len(row.objective) for row in rows)])
    places = ends[points.row] + points.number
    objective = np.concatenate([row.objective for row in rows])[places]
    violation = np.concatenate([row.violation for row in rows])[places]
    improved = np.flatnonzero(points.step >= 0)
    constraints = np.full_like(evaluation.constraints, np.nan)
    if len(improved):
        # Improvements stand in the same order in the rows and in the points.
        constraints[improved] = np.concatenate([r.step_constraints for r in rows if len(r.steps)])
    # Only improvements have their constraints on record.
    now = np.where((points.step >= 0)[:, None], evaluation.constraints, np.nan)
    # How large the terms of a sum typically are: near zero their rounding is what remains.
    size = np.nansum(np.abs(evaluation.constraints), axis=1)
    pairs = {
        "objective": (
            objective,
            evaluation.objective,
            np.median(np.abs(_finite(evaluation.objective))),
        ),
        "violation": (violation, evaluation.violation, np.median(_finite(size))),
        "improvements": (constraints, now, np.median(_finite(size))),
    }
    equal = np.ones(len(places), dtype=bool)
    for recorded, replayed, _ in pairs.values():
        same = (recorded == replayed) | (np.isnan(recorded) & np.isnan(replayed))
        equal &= same if same.ndim == 1 else same.all(axis=1)
    # An evaluation of an expensive problem that was lost, as by a time-out, may succeed now.
    lost = ~np.isfinite(violation) & (not getattr(problem, "cheap", True))
    if (equal | lost).all():
        return equal, "bit-equal"
    strict = bool((equal | lost).mean() >= SAME_ARITHMETIC)
    bad: dict[str, BoolArray] = {}
    for field, (recorded, replayed, scale) in pairs.items():
        # The objective is compared by its own size where arithmetic is the same.
        least = 0.0 if strict and field == "objective" else float(scale)
        off = ~_close(recorded, replayed, CLOSE if strict else TOLERANCE, least)
        bad[field] = (off if off.ndim == 1 else off.any(axis=1)) & ~lost
    if strict:
        bad["feasible"] = ((violation == 0) != (evaluation.violation == 0)) & ~lost
    _complain(submission, points, bad, complaints)
    if any(mask.any() for mask in bad.values()):
        return equal, None
    return equal, "within 1e-13" if strict else "within 1e-12"


def _finite(values: Array) -> Array:
    """Return the finite ones of some values, or a single zero."""
    finite: Array = values[np.isfinite(values)]
    return finite if len(finite) else np.zeros(1)


def _close(first: Array, second: Array, tolerance: float, least: float) -> BoolArray:
    """Tell which values are equal, both NaN, or differ by little for their size."""
    with np.errstate(invalid="ignore"):
        size = np.maximum(np.maximum(np.abs(first), np.abs(second)), least)
        near = np.abs(first - second) <= tolerance * size
    both = np.isfinite(first) & np.isfinite(second)
    close: BoolArray = (first == second) | (np.isnan(first) & np.isnan(second)) | (both & near)
    return close


def _complain(
    submission: Submission, points: Points, bad: dict[str, BoolArray], complaints: Complaints
) -> None:
    """Name the first values that do not come out again, and count the rest."""
    found = [(int(place), field) for field, mask in bad.items() for place in np.flatnonzero(mask)]
    for place, field in sorted(found)[:_MAX_COMPLAINTS]:
        row = submission.rows[points.row[place]]
        complaints.add(
            row.line,
            field,
            f"evaluation {points.number[place]} does not come out again: the point gives another "
            "value",
        )
    if len(found) > _MAX_COMPLAINTS:
        complaints.add(0, "objective", f"{len(found)} values in all do not come out again")


def check_digests(submission: Submission, done: Replay, complaints: Complaints) -> tuple[int, str]:
    """Compute the digests of the runs whose replayed values are the recorded ones to the bit.

    Returns:
        How many came out again, and why not all of them.
    """
    count, obstacle = 0, ""
    for place, row in enumerate(submission.rows):
        mask = done.points.row == place
        if row.x is None or mask.sum() != len(row.objective):
            obstacle = "not every point was replayed"
            continue
        if not done.equal[mask].all():
            obstacle = "values are not bit-equal here"
            continue
        evaluation = Evaluation(*(values[mask] for values in done.evaluation))
        sizes = row.batches or regular_batches(row.task, len(row.x))
        if digest(_batches(row.x, evaluation, sizes)) == row.digest:
            count += 1
        elif done.agreement == "bit-equal":
            complaints.add(row.line, "digest", "it is not that of the points and values")
            break
        else:
            # Constraints that are not on record may round differently where others do.
            obstacle = "values are not bit-equal here"
    return count, obstacle


def _batches(x: Array, evaluation: Evaluation, sizes: Sequence[int]) -> list[Batch]:
    """Cut the evaluations of a run into its batches."""
    ends = np.cumsum(sizes)
    return [
        Batch(
            first=int(end - size),
            x=x[end - size : end].tolist(),
            objective=evaluation.objective[end - size : end].tolist(),
            constraints=evaluation.constraints[end - size : end].tolist(),
            status=[],
            clock=0.0,
            seconds_optimizer=0.0,
            seconds_evaluation=0.0,
        )
        for size, end in zip(sizes, ends, strict=True)
    ]
