"""Can a result file be believed? Read it strictly, replay its points, run some seeds again.

Reading and replaying need no code of the optimizer, so results of a method that is not installed
here can be verified too.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path

from cbo_suite.leaderboard.marks import Mark, change_marks
from cbo_suite.registry import make_problem
from cbo_suite.verify.designs import Designs
from cbo_suite.verify.identity_checks import Neighbours, check_identity
from cbo_suite.verify.points import check_points, check_samples, find_flags, replayable
from cbo_suite.verify.replay import check_digests, draw, replay_file, reproduces
from cbo_suite.verify.rerun import rerun_seeds
from cbo_suite.verify.submission import (
    Complaints,
    Submission,
    check_published,
    read_submission,
    row_name,
)
from cbo_suite.verify.twins import check_twins
from cbo_suite.verify.verdict import MISSING, Case, Verdict

__all__ = ["Designs", "Neighbours", "Verdict", "mark_verified", "new_salt", "verify_file"]


def new_salt() -> str:
    """Draw a salt that no author of a file can know."""
    return secrets.token_hex(16)


def verify_file(
    path: Path,
    *,
    against: Path | None = None,
    rerun: int = 0,
    twins: int = 0,
    quick: bool = False,
    salt: str | None = None,
    designs: Designs | None = None,
    neighbours: Neighbours | None = None,
) -> Verdict:
    """Verify one result file.

    Args:
        path: The file `<problem>/<optimizer>.jsonl`.
        against: Folder of published runs, which must not be overwritten.
        rerun: Number of seeds that are drawn and run again.
        twins: Number of twins of the problem that the optimizer is run on.
        quick: Whether of an expensive problem only one run is replayed, which verifies nothing.
        salt: That of an earlier verdict, to repeat its draws; None for a new one.
        designs: Initial designs that files verified together share; None for this file alone.
        neighbours: The published rows and the files verified together; None for those of `against`.
    """
    case = Case(Complaints(path), new_salt() if salt is None else salt)
    submission = read_submission(path, case.complaints)
    if submission is None:
        case.note("records", "")
        return case.verdict(row_name(path), 0, False, "")
    case.note("records", _describe(submission))
    if against is not None:
        case.note("published", check_published(submission, against, case.complaints))
    if case.sound:
        check_identity(submission, Neighbours(against) if neighbours is None else neighbours, case)
    if case.sound:
        _replay(submission, case, Designs() if designs is None else designs, quick)
    if case.sound and rerun:
        rerun_seeds(submission, rerun, case)
    if case.sound and twins:
        check_twins(submission, twins, case)
    return case.verdict(
        f"{submission.problem}/{submission.optimizer}",
        len(submission.rows),
        submission.provisional,
        submission.sha256,
    )


def _describe(submission: Submission) -> str:
    """Say what a file holds, and what it lacks."""
    kind = ", provisional" if submission.provisional else ""
    lacks = submission.rows[0].record.lacks
    old = f"; version 1 lacks {', '.join(lacks)}" if lacks else ""
    return f"{len(submission.rows)} runs of one version, seeds from 0 on{kind}{old}"


def _replay(submission: Submission, case: Case, designs: Designs, quick: bool) -> None:
    """Check points, values and digests against the problem, if it can be made here."""
    rows, n_init = submission.rows, submission.rows[0].record.task.n_init
    try:
        problem = make_problem(submission.problem)
    except MISSING as reason:
        case.skip("replay", reason)
        return
    if not replayable(row.record for row in rows):
        case.skip("replay", "large runs of version 1 say too little: make them with this version")
        return
    if not reproduces(problem):
        case.skip("replay", "the best known point has another value on this kind of machine")
        return
    places = list(range(len(rows)))
    partial = quick and not getattr(problem, "cheap", True)
    if partial:
        places = [int(draw(submission, case.salt, "run").integers(len(rows)))]
    check_points(submission, problem, designs, case.complaints)
    case.note("points", "inside the space, first the design of problem and seed")
    if case.sound:
        drawn = check_samples(submission, case.complaints)
        if any(not row.record.whole for row in rows):
            case.note("sample", "every run opens what its block draws")
    if not case.sound:
        return
    case.flags += find_flags(submission, problem)
    known = designs.evaluated(problem, n_init, places)
    scale = designs.scale(problem, n_init)
    done = replay_file(submission, problem, known, scale, drawn, case.salt, case.complaints)
    if done is None:
        case.skip("replay", "no run has a point")
        return
    total = sum(len(row.record.objectives) for row in rows)
    case.replayed = len(done.row) / total
    share = f"{len(done.row):,} of {total:,} evaluations again"
    case.note("replay", f"{share}: {done.agreement}")
    if not case.sound:
        return
    count, obstacle = check_digests(submission, done, case.complaints)
    if count or not case.sound:
        others = f"; others: {obstacle}" if obstacle else ""
        case.note("digest", f"{count} of {len(rows)} computed again: equal{others}")
    else:
        case.skip("digest", obstacle)
    if partial:
        case.skip("other runs", "only one run of an expensive problem is replayed with --quick")
    case.checked = not partial
    if done.flips:
        case.doubt(
            "feasible",
            f"{done.flips} recorded as feasible are not here, by rounding; no score rests on them",
        )


def mark_verified(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Write down in a file of marks which rows were verified, and take marks from the refused.

    Raises:
        RecordError: The file holds something else.
    """
    found = list(verdicts)
    verified = {
        verdict.row: Mark(verdict.sha256, round(verdict.replayed, 4))
        for verdict in found
        if verdict.status == "verified"
    }
    change_marks(path, verified, [verdict.row for verdict in found if verdict.status == "refused"])
