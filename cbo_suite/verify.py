"""Can a result file be believed? Read it strictly, replay its points, run some seeds again.

Reading and replaying need no code of the optimizer, so results of a method that is not installed
here can be verified too.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from cbo_suite._rules import Finding
from cbo_suite.environment import describe_machine, describe_versions
from cbo_suite.errors import (
    InvalidTask,
    MissingExecutable,
    MissingExtra,
    OptimizerFailed,
    RecordError,
    UnknownId,
    UnsupportedTask,
    WrongExecutable,
)
from cbo_suite.files import write_whole
from cbo_suite.harness import run_task
from cbo_suite.registry import make_problem, optimizer_factory
from cbo_suite.replay import check_digests, check_points, draw, find_flags, known_points, replay
from cbo_suite.results import Run
from cbo_suite.submission import (
    Complaints,
    Row,
    Submission,
    check_published,
    differing_version,
    read_submission,
    row_name,
)

Status = Literal["verified", "unverified", "refused"]
_MISSING = (MissingExtra, MissingExecutable, WrongExecutable)


class Verdict(NamedTuple):
    """What was found of one file.

    Attributes:
        file: Its path, safe to print.
        row: "<problem>/<optimizer>", "" if the path does not say it.
        status: "verified" if its values came out again, "unverified" if they could not be
            replayed here or a run not be made again, "refused" if something is wrong.
        runs: Number of runs.
        provisional: Whether these are fewer than a full grid.
        sha256: Digest of the bytes of the file, "" if it is not well formed.
        salt: What seeds and samples were drawn with; with the same one they are drawn again.
        findings: What each check found; after one that failed there are no others.
        complaints: What is wrong: file, line, field, reason.
        flags: What is not wrong but worth a look.
    """

    file: str
    row: str
    status: Status
    runs: int
    provisional: bool
    sha256: str
    salt: str
    findings: list[Finding]
    complaints: list[str]
    flags: list[str]


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
    case = _Case(Complaints(path), new_salt() if salt is None else salt)
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
        _rerun(submission, rerun, case)
    return case.verdict(
        f"{submission.problem}/{submission.optimizer}",
        len(submission.rows),
        submission.provisional,
        submission.sha256,
    )


class _Case:
    """What was found of a file so far."""

    def __init__(self, complaints: Complaints, salt: str) -> None:
        """Start with nothing found."""
        self.complaints, self.salt = complaints, salt
        self.findings: list[Finding] = []
        self.flags: list[str] = []
        self.checked = False

    @property
    def sound(self) -> bool:
        """Whether there is no complaint."""
        return not self.complaints.texts

    def note(self, rule: str, detail: str) -> None:
        """Note how a check ended: well, with what it saw, unless there is a complaint."""
        if self.sound:
            self.findings.append(Finding(rule, "ok", detail))
        else:
            self.findings.append(Finding(rule, "failed", "see below"))

    def skip(self, rule: str, reason: object) -> None:
        """Note that a check could not be made."""
        self.findings.append(Finding(rule, "skipped", str(reason)))

    def verdict(self, row: str, runs: int, provisional: bool, sha256: str) -> Verdict:
        """Sum up."""
        status: Status = "verified" if self.checked else "unverified"
        return Verdict(
            self.complaints.name,
            row,
            status if self.sound else "refused",
            runs,
            provisional,
            sha256,
            self.salt,
            self.findings,
            self.complaints.texts,
            self.flags,
        )


def _replay(submission: Submission, case: _Case) -> None:
    """Check points, values and digests against the problem, if it can be made here."""
    try:
        problem = make_problem(submission.problem)
    except _MISSING as reason:
        case.skip("replay", reason)
        return
    check_points(submission, problem, case.complaints)
    case.note("points", "inside the box, first the design of problem and seed")
    if not case.sound:
        return
    case.flags += find_flags(submission, problem)
    done = replay(submission, problem, case.salt, case.complaints)
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


def _rerun(submission: Submission, count: int, case: _Case) -> None:
    """Run some seeds again, if problem and optimizer can be made here."""
    try:
        notes = _compare_again(submission, count, case)
        case.note("rerun", ", ".join(notes))
    except (UnknownId, *_MISSING) as reason:
        absent = (
            f"{submission.optimizer} is not installed here: install its package, or leave out "
            "--rerun"
        )
        case.skip("rerun", absent if isinstance(reason, UnknownId) else reason)
        case.checked = False


def _compare_again(submission: Submission, count: int, case: _Case) -> list[str]:
    """Run some seeds again and compare; which ones, nobody can choose beforehand."""
    factory = optimizer_factory(submission.optimizer)
    random = draw(submission, case.salt, "seeds")
    rows, complaints = submission.rows, case.complaints
    seeds = sorted(random.choice(len(rows), size=min(count, len(rows)), replace=False).tolist())
    machine = describe_machine()
    notes = []
    for row in (rows[seed] for seed in seeds):
        try:
            again = _run_again(row)
        except (InvalidTask, UnsupportedTask, OptimizerFailed) as reason:
            complaints.add(row.line, "task", f"it cannot be run again: {reason}")
            continue
        # What the run has imported is known only after it.
        other = differing_version(row.versions, describe_versions(factory))
        difference = _first_difference(row, again)
        if difference is None:
            notes.append(f"seed {row.task.seed} identical")
        elif again.digest == row.digest or (other is None and dict(row.machine) == machine):
            complaints.add(row.line, "digest", f"run again, {difference}")
        elif _in_range(again, rows):
            where = other or "another machine"
            notes.append(f"seed {row.task.seed} within the range of the runs (here: {where})")
        else:
            complaints.add(
                row.line, "objective", "run again, it ends outside the range of all these runs"
            )
    return notes


def _run_again(row: Row) -> Run:
    """Run a task as recorded; a run that fails gives what it had until then.

    Raises:
        OptimizerFailed: It has no evaluation, unlike the recorded one.
    """
    try:
        return run_task(row.task, options=row.options)
    except OptimizerFailed as failure:
        if isinstance(failure.__cause__, _MISSING):
            raise failure.__cause__ from failure
        failed: Run | None = failure.run
        if failed is None or len(failed.x) < min(1, len(row.objective)):
            raise
        return failed


def _first_difference(row: Row, again: Run) -> str | None:
    """Say where a run that was made again leaves the recorded one, None if it does not.

    The digest alone proves nothing: it may be the right one beside points of another run.
    """
    n = min(len(row.objective), len(again.objective))
    _, x, numbers = known_points(row)
    x, numbers = x[numbers < n], numbers[numbers < n]
    objective, now = row.objective[:n], again.objective[:n]
    equal = (objective == now) | (np.isnan(objective) & np.isnan(now))
    equal &= row.violation[:n] == again.evaluation.violation[:n]
    if len(numbers):
        equal[numbers] &= (x == again.x[numbers]).all(axis=1)
    if not equal.all():
        return f"evaluation {int(np.argmin(equal))} is another one"
    if len(again.objective) != len(row.objective):
        return f"it has {len(again.objective)} evaluations instead of {len(row.objective)}"
    return None if again.digest == row.digest else "its digest is another one"


def _in_range(again: Run, rows: Iterable[Row]) -> bool:
    """Tell whether a run ends between the best and the worst of the recorded ones.

    A run without an evaluation ends nowhere.
    """
    if not len(again.x):
        return False
    ends = [
        (float(row.violation[row.steps[-1]]), float(row.objective[row.steps[-1]]))
        for row in rows
        if len(row.steps)
    ]
    end = float(again.evaluation.violation[again.best_index]), again.best_objective
    return bool(ends) and min(ends) <= end <= max(ends)


def mark_verified(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Write down which files were verified: "<problem>/<optimizer>" to the digest of the file.

    A row that is refused loses its mark. One that cannot be verified here keeps it: the mark
    counts as long as the file is the one that was verified elsewhere.

    Raises:
        RecordError: The file holds something else.
    """
    marks: dict[str, str] = {}
    if path.exists():
        try:
            marks = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
        except msgspec.DecodeError as error:
            raise RecordError(f"{path}, field line: {error}; remove the file") from error
    for verdict in verdicts:
        if verdict.status == "verified":
            marks[verdict.row] = verdict.sha256
        elif verdict.status == "refused":
            marks.pop(verdict.row, None)
    data = msgspec.json.format(msgspec.json.encode(marks, order="sorted"), indent=1)
    write_whole(path, data + b"\n")
