"""What was found of a result file: each check, each complaint, and the verdict they come to."""

from __future__ import annotations

from typing import Literal, NamedTuple

from cbo_suite.checks.rules import Finding
from cbo_suite.errors import MissingExecutable, MissingExtra, WrongExecutable
from cbo_suite.verify.submission import Complaints

Status = Literal["verified", "unverified", "refused"]
# What a problem or an optimizer may lack here: no fault of the file.
MISSING = (MissingExtra, MissingExecutable, WrongExecutable)


class Verdict(NamedTuple):
    """What was found of one file.

    Attributes:
        file: Its path, safe to print.
        row: "<problem>/<optimizer>", "" if the path does not say it.
        status: "verified" if its values came out again, "unverified" if they could not be
            replayed here, a run not be made again or a maintainer has to look first, "refused" if
            something is wrong.
        runs: Number of runs.
        provisional: Whether these are fewer than a full grid.
        sha256: Digest of the bytes of the file, "" if it is not well formed.
        salt: What seeds and samples were drawn with; with the same one they are drawn again.
        findings: What each check found; after one that failed there are no others.
        complaints: What is wrong: file, line, field, reason.
        flags: What is not wrong but worth a look.
        replayed: Share of the evaluations that were made again.
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
    replayed: float


class Case:
    """What was found of a file so far."""

    def __init__(self, complaints: Complaints, salt: str) -> None:
        """Start with nothing found."""
        self.complaints, self.salt = complaints, salt
        self.findings: list[Finding] = []
        self.flags: list[str] = []
        self.checked = False
        self.doubted = False
        self.replayed = 0.0

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

    def doubt(self, rule: str, reason: str) -> None:
        """Note a check that leaves a file unverified, though nothing in it is wrong by itself."""
        self.findings.append(Finding(rule, "failed", reason))
        self.checked = False

    def verdict(self, row: str, runs: int, provisional: bool, sha256: str) -> Verdict:
        """Sum up."""
        status: Status = "verified" if self.checked and not self.doubted else "unverified"
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
            self.replayed,
        )
