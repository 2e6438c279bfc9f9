"""Can a result file be believed? Read it strictly, replay its points, run some seeds again.

Reading and replaying need no code of the optimizer, so results of a method that is not installed
here can be verified too.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path

from cbo_suite.leaderboard.marks import change_marks
from cbo_suite.registry import make_problem
from cbo_suite.verify.replay import check_digests, check_points, find_flags, replay_file
from cbo_suite.verify.rerun import rerun_seeds
from cbo_suite.verify.submission import (
    Complaints,
    Submission,
    check_published,
    read_submission,
    row_name,
)
from cbo_suite.verify.verdict import MISSING, Case, Verdict

__all__ = ["Verdict", "mark_verified", "new_salt", "verify_file"]


def new_salt() -> str:
    """Draw a salt that no author of a file can know."""
    return secrets.token_hex(16)


def verify_file(
    path: Path, *, against: Path | None = None, rerun: int = 0, salt: str | None = None
) -> Verdict:
    """Verify one result file.

    Args:
        path: The file `<problem>/<optimizer>.jsonl`.
        against: Folder of published runs, which must not be overwritten.
        rerun: Number of seeds that are drawn and run again.
        salt: That of an earlier verdict, to repeat its draws; None for a new one.
    """
    case = Case(Complaints(path), new_salt() if salt is None else salt)
    submission = read_submission(path, case.complaints)
    if submission is None:
        case.note("records", "")
        return case.verdict(row_name(path), 0, False, "")
    kind = ", provisional" if submission.provisional else ""
    case.note("records", f"{len(submission.rows)} runs of one version, seeds from 0 on{kind}")
    if against is not None:
        case.note("published", check_published(submission, against, case.complaints))
    if case.sound:
        _replay(submission, case)
    if case.sound and rerun:
        rerun_seeds(submission, rerun, case)
    return case.verdict(
        f"{submission.problem}/{submission.optimizer}",
        len(submission.rows),
        submission.provisional,
        submission.sha256,
    )


def _replay(submission: Submission, case: Case) -> None:
    """Check points, values and digests against the problem, if it can be made here."""
    try:
        problem = make_problem(submission.problem)
    except MISSING as reason:
        case.skip("replay", reason)
        return
    check_points(submission, problem, case.complaints)
    case.note("points", "inside the box, first the design of problem and seed")
    if not case.sound:
        return
    case.flags += find_flags(submission, problem)
    done = replay_file(submission, problem, case.salt, case.complaints)
    total = sum(len(row.objective) for row in submission.rows)
    if done is None:
        case.skip("replay", "no run has a point")
        return
    case.note("replay", f"{len(done.points.x):,} of {total:,} evaluations again: {done.agreement}")
    case.checked = case.sound
    if case.sound:
        count, obstacle = check_digests(submission, done, case.complaints)
        if count or not case.sound:
            others = f"; others: {obstacle}" if obstacle else ""
            case.note("digest", f"{count} of {len(submission.rows)} computed again: equal{others}")
        else:
            case.skip("digest", obstacle)


def mark_verified(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Write down in a file of marks which rows were verified, and take marks from the refused.

    Raises:
        RecordError: The file holds something else.
    """
    found = list(verdicts)
    verified = {verdict.row: verdict.sha256 for verdict in found if verdict.status == "verified"}
    change_marks(path, verified, [verdict.row for verdict in found if verdict.status == "refused"])
