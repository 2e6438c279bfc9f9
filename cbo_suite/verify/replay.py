"""Replay a result file: put its points into the problem again and compare what comes out.

What is replayed and how closely it is compared is told in docs/submit-results.md. Feasibility is
what the problem says here. Tolerances come from the problem, never from the file.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cbo_suite.harness.evaluate import evaluate_points
from cbo_suite.protocols import Array, BoolArray, ConstrainedProblem, Evaluation
from cbo_suite.records import Record, regular_batches
from cbo_suite.records.record import Indices
from cbo_suite.records.tree import compute_root, hash_leaves
from cbo_suite.scoring.references import load_references
from cbo_suite.verify.designs import Design, Scale
from cbo_suite.verify.submission import Complaints, Submission
from cbo_suite.verify.tolerance import ROUNDING, allow, local_scale

# Share of the stored points of an expensive problem that is replayed beside the improvements.
SAMPLE = 0.05
# Part of the scale of a problem by which a value may be above its worst.
WORST_MARGIN = 1e-9
_MAX_COMPLAINTS = 10


class Replay(NamedTuple):
    """Evaluations that were made again, ordered by row and number.

    Attributes:
        row: Which row of the submission, shape `(k,)`.
        number: Number of the evaluation in its run, shape `(k,)`.
        x: The points, shape `(k, d)`.
        evaluation: Their values now.
        equal: Which of them are the recorded ones to the bit, shape `(k,)`.
        lost: Which of them have no values on record and may have some now, shape `(k,)`.
        rounding: Part of a value's size by which it may differ.
        flips: How many are recorded as feasible and by rounding are not here, to no advantage.
    """

    row: Indices
    number: Indices
    x: Array
    evaluation: Evaluation
    equal: BoolArray
    lost: BoolArray
    rounding: float
    flips: int = 0

    @property
    def agreement(self) -> str:
        """Say how closely the values agree with the recorded ones."""
        if self.exact:
            return "bit-equal"
        return f"{self.equal.mean():.1%} bit-equal, others within {self.rounding:g} of their scale"

    @property
    def exact(self) -> bool:
        """Whether every value that is on record came out to the bit."""
        return bool((self.equal | self.lost).all())


def replay_file(
    submission: Submission,
    problem: ConstrainedProblem,
    designs: Mapping[int, Design],
    scale: Scale,
    drawn: Sequence[Indices],
    salt: str,
    complaints: Complaints,
) -> Replay | None:
    """Evaluate the points of a file again and compare objective, constraints and violation.

    Args:
        submission: The file.
        problem: Its problem.
        designs: The initial designs, with their values, of the seeds that are replayed.
        scale: Typical size of the problem's values.
        drawn: The numbers of the evaluations that each row opens.
        salt: What a sample of the stored points of an expensive problem is drawn with.
        complaints: Takes what differs.

    Returns:
        What came out, None if there is no point.
    """
    cheap = bool(getattr(problem, "cheap", True))
    random = draw(submission, salt, "points")
    row, number, x, known = [], [], [], []
    for place, record in enumerate(row.record for row in submission.rows):
        # Drawn in any case, so that the sample of one run does not depend on the others.
        chosen = random.random(len(record.objectives)) < SAMPLE
        if place not in designs:
            continue
        numbers, points = _select(record, drawn[place], chosen | cheap)
        design = designs[place]
        early = min(len(design.x), len(record.objectives))
        if record.whole and not np.array_equal(record.points[:early], design.x[:early]):
            # Rounded differently: the recorded points count.
            numbers = np.concatenate([np.arange(early), numbers])
            points = np.concatenate([record.points[:early], points])
        else:
            known.append((place, Evaluation(*(values[:early] for values in design.evaluation))))
        row.append(np.full(len(numbers), place))
        number.append(numbers)
        x.append(points)
    fresh = np.concatenate([np.empty((0, problem.space.dim)), *x])
    values = [evaluate_points(problem, fresh).evaluation] if len(fresh) else []
    for place, evaluation in known:
        row.append(np.full(len(evaluation.objective), place))
        number.append(np.arange(len(evaluation.objective)))
        x.append(designs[place].x[: len(evaluation.objective)])
        values.append(evaluation)
    rows, numbers = np.concatenate(row), np.concatenate(number)
    if not len(rows):
        return None
    order = np.lexsort((numbers, rows))
    evaluation = Evaluation(
        np.concatenate([value.objective for value in values])[order],
        np.concatenate([value.constraints for value in values])[order],
    )
    nothing = np.zeros(len(rows), dtype=bool)
    replay = Replay(
        rows[order],
        numbers[order],
        np.concatenate(x)[order],
        evaluation,
        nothing,
        nothing,
        float(getattr(problem, "rounding", ROUNDING)),
    )
    _check_unseen(submission, replay, complaints)
    return _compare(submission, problem, replay, scale, drawn, complaints)


def _select(record: Record, drawn: Indices, chosen: BoolArray) -> tuple[Indices, Array]:
    """Choose what is replayed after the design: numbers and points.

    Of a run that keeps all points those chosen, and its improvements; of another one the
    improvements and what its block has drawn.
    """
    wanted = chosen[record.kept] | np.isin(record.kept, record.steps)
    wanted &= record.kept >= record.task.n_init
    numbers, points = record.kept[wanted], record.points[wanted]
    if record.sample is not None and len(drawn):
        numbers = np.concatenate([numbers, drawn])
        points = np.concatenate([points, record.sample.points])
    return numbers, points


def reproduces(problem: ConstrainedProblem) -> bool:
    """Tell whether a problem gives its best known value here, if it states one.

    Where it does not, processor or libraries give other values than those it was made with, and a
    replay would show nothing. The file has no say in it.
    """
    known = getattr(problem, "best_known", None)
    if known is None:
        return True
    value = float(evaluate_points(problem, known.x[None, :]).evaluation.objective[0])
    # As close as `cbo check` asks for.
    return math.isclose(value, known.objective, rel_tol=1e-9, abs_tol=1e-12)


def draw(submission: Submission, salt: str, purpose: str) -> np.random.Generator:
    """Make the generator of a draw, the same for the same file and salt.

    The author of the file does not know the salt: a draw from the content of the file alone could
    be tried out until it falls on what is honest.
    """
    key = hashlib.sha256(f"{salt} {purpose} {submission.sha256}".encode())
    return np.random.default_rng(int.from_bytes(key.digest(), "big"))


def _check_unseen(submission: Submission, replay: Replay, complaints: Complaints) -> None:
    """Check that no feasible value whose point is not replayed is above the worst there is.

    The largest feasible value of all runs is what the paper's rule gives to everybody's runs
    without a feasible point, so an invented one would move the scores of others.
    """
    reference = load_references().get(submission.problem)
    # What cannot be shipped was never searched for its worst value.
    if reference is None or reference.optional:
        return
    limit = reference.worst + WORST_MARGIN * (reference.worst - reference.best)
    for place, (line, _, record) in enumerate(submission.rows):
        unseen = record.feasible & (record.objectives > limit)
        unseen[replay.number[replay.row == place]] = False
        if unseen.any():
            number = int(unseen.argmax())
            complaints.add(
                line,
                "objective",
                f"evaluation {number} is feasible with {float(record.objectives[number])}, its "
                f"point is not replayed, and no feasible value above {reference.worst} is known; "
                "if it is true, open an issue with the point",
            )
            return


def _compare(
    submission: Submission,
    problem: ConstrainedProblem,
    replay: Replay,
    scale: Scale,
    drawn: Sequence[Indices],
    complaints: Complaints,
) -> Replay:
    """Compare the values of a replay with the recorded ones; complain of what differs."""
    objective, violation = (np.empty(len(replay.row)) for _ in range(2))
    constraints = np.full_like(replay.evaluation.constraints, np.nan)
    stated, lost = (np.zeros(len(replay.row), dtype=bool) for _ in range(2))
    for place in np.unique(replay.row):
        record, mask = submission.rows[place].record, replay.row == place
        numbers = replay.number[mask]
        objective[mask] = record.objectives[numbers]
        violation[mask] = record.violations[numbers]
        if not getattr(problem, "cheap", True):
            lost[mask] = _may_come_back(record)[numbers]
        listed, values = record.steps, record.step_constraints
        if record.sample is not None:
            listed, values = drawn[place], record.sample.constraints
        if values is not None and len(listed):
            there = np.isin(numbers, listed)
            stated[mask] = there
            places = np.flatnonzero(mask)[there]
            constraints[places] = values[np.searchsorted(listed, numbers[there])]
    now, now_violation = replay.evaluation, replay.evaluation.violation
    same = {
        "objective": _same(objective, now.objective),
        "violation": violation == now_violation,
        "constraints": ~stated[:, None] | _same(constraints, now.constraints),
    }
    recorded = objective, violation, constraints
    near = _near(recorded, now, allow(now, scale, replay.rounding))
    equal = ~(_any(~same["constraints"]) | ~same["objective"] | ~same["violation"])
    far = [_any(~same[field] & ~near[field]) for field in same]
    close = ~equal & ~np.any(far, axis=0)
    if close.any():
        # Few, if any: only these are worth a second evaluation.
        part = Evaluation(now.objective[close], now.constraints[close])
        narrow = local_scale(problem, replay.x[close], part, scale)
        allowed = allow(part, narrow, replay.rounding)
        again = _near([values[close] for values in recorded], part, allowed)
        for field, mask in again.items():
            near[field][close] = mask
    bad = {field: _any(~same[field] & ~near[field]) for field in same}
    flipped = (violation == 0) & (now_violation > 0)
    harmless = flipped & near["violation"] & ~_matters(submission, replay, flipped)
    bad["feasible"] = flipped & ~harmless
    bad = {field: mask & ~lost for field, mask in bad.items()}
    _complain(submission, replay, bad, complaints)
    return replay._replace(equal=equal, lost=lost, flips=int(harmless.sum()))


def _matters(submission: Submission, replay: Replay, flipped: BoolArray) -> BoolArray:
    """Tell of which points that are feasible on record and not here a score could make use.

    That is an improvement, or a run's largest feasible value, which others may be measured by.
    """
    matters = np.zeros(len(flipped), dtype=bool)
    for place in np.unique(replay.row[flipped]):
        record, mask = submission.rows[place].record, flipped & (replay.row == place)
        others = record.feasible.copy()
        others[replay.number[mask]] = False
        largest = np.max(record.objectives[others], initial=-np.inf)
        numbers = replay.number[mask]
        matters[mask] = np.isin(numbers, record.steps) | (record.objectives[numbers] > largest)
    return matters


def _near(recorded: Sequence[Array], now: Evaluation, allowed: Evaluation) -> dict[str, BoolArray]:
    """Tell which recorded values are as near to those of now as is allowed, by field.

    Args:
        recorded: Objective, violation and constraints, the last NaN where they are not on record.
        now: What the problem gives here.
        allowed: How far the values may be apart.
    """
    objective, violation, constraints = recorded
    with np.errstate(invalid="ignore"):
        # A constraint has a share in the violation, or could have with another rounding.
        shares = np.where(now.constraints > -allowed.constraints, allowed.constraints, 0.0)
        return {
            "objective": np.abs(objective - now.objective) <= allowed.objective,
            "violation": np.abs(violation - now.violation) <= shares.sum(axis=1),
            "constraints": np.abs(constraints - now.constraints) <= allowed.constraints,
        }


def _may_come_back(record: Record) -> BoolArray:
    """Tell which evaluations have no values on record but may have some now: time-outs and crashes.

    Records of version 1 do not tell them from values that are not finite.
    """
    if record.statuses is None:
        lost: BoolArray = ~np.isfinite(record.violations)
        return lost
    return np.array([letter in "ft" for letter in record.statuses], dtype=bool)


def _any(mask: BoolArray) -> BoolArray:
    """Tell in which rows something is true, shape `(k,)`."""
    return mask if mask.ndim == 1 else np.asarray(mask.any(axis=1))


def _same(first: Array, second: Array) -> BoolArray:
    """Tell which values are equal, or both NaN."""
    same: BoolArray = (first == second) | (np.isnan(first) & np.isnan(second))
    return same


def _complain(
    submission: Submission, replay: Replay, bad: dict[str, BoolArray], complaints: Complaints
) -> None:
    """Name the first values that do not come out again, and count the rest."""
    found = [(int(place), field) for field, mask in bad.items() for place in np.flatnonzero(mask)]
    for place, field in sorted(found)[:_MAX_COMPLAINTS]:
        reason = "does not come out again: the point gives another value"
        if field == "feasible":
            violation = float(replay.evaluation.violation[place])
            reason = f"is recorded as feasible; the problem says its violation is {violation:.6g}"
        line = submission.rows[replay.row[place]].line
        complaints.add(line, field, f"evaluation {replay.number[place]} {reason}")
    if len(found) > _MAX_COMPLAINTS:
        complaints.add(0, "objective", f"{len(found)} values in all do not come out again")


def check_digests(submission: Submission, done: Replay, complaints: Complaints) -> tuple[int, str]:
    """Compute digest and root of the runs whose replayed values are the recorded ones to the bit.

    Returns:
        How many came out again, and why not all of them.
    """
    count, obstacle = 0, ""
    for place, (line, _, record) in enumerate(submission.rows):
        mask = done.row == place
        if not record.whole or mask.sum() != len(record.objectives):
            obstacle = "not every point was replayed"
            continue
        if not done.equal[mask].all():
            obstacle = "values are not bit-equal here"
            continue
        evaluation = Evaluation(*(values[mask] for values in done.evaluation))
        if compute_fingerprints(record, evaluation) == (record.digest, record.root):
            count += 1
        elif done.exact:
            complaints.add(line, "digest", "it is not that of the points and values")
            break
        else:
            # Constraints that are not on record may round differently where others do.
            obstacle = "values are not bit-equal here"
    return count, obstacle


def compute_fingerprints(record: Record, evaluation: Evaluation) -> tuple[str, str | None]:
    """Compute digest and root of a run from its points and values; version 1 has no root."""
    x, sizes = record.points, record.batches or regular_batches(record.task, len(record.points))
    parts = [
        np.ascontiguousarray(np.where(np.isnan(values), np.nan, values), dtype="<f8")
        for values in (x, *evaluation)
    ]
    total, first = hashlib.sha256(), 0
    for size in sizes:
        total.update(first.to_bytes(8, "little"))
        for values in parts:
            total.update(values[first : first + size].tobytes())
        first += size
    root = None
    if record.statuses is not None:
        leaves = hash_leaves(range(len(x)), x, evaluation, record.statuses)
        root = compute_root(leaves).hex()
    return total.hexdigest(), root
