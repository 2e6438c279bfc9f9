"""Whose runs are these? An id stands for one method, with one identity and runs of its own.

What is found by comparing files with each other is pointed out, not refused: two methods may do the
same, and which of two is the copy the files do not say. A maintainer has to look.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from cbo_suite.harness.identity import identify_target
from cbo_suite.harness.releases import released_identities
from cbo_suite.records import SOURCE
from cbo_suite.records.agreement import Refused
from cbo_suite.records.lines import check_size
from cbo_suite.registry import OWN_PACKAGE, OptimizerInfo, list_optimizers
from cbo_suite.verify.submission import Complaints, Row, Submission, read_lines, row_name
from cbo_suite.verify.verdict import Case

_IDENTITY = re.compile(r"[0-9a-f]{64}")
_NUMBERED = re.compile(r"(.+)-[0-9]+")
# Characters of the versions that are listed.
MAX_SHOWN = 500
# Signs that the eye takes for others, and hyphens, which it overlooks.
_CONFUSABLE = {"rn": "m", "vv": "w", "cl": "d", "0": "o", "1": "l", "i": "l", "5": "s", "-": ""}


class _Head(msgspec.Struct, frozen=True):
    """What of a record says whose it is; everything else is skipped."""

    options: msgspec.Raw
    versions: dict[str, str]
    digest: str
    root: str | None = None
    sample: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def fingerprints(self) -> list[str]:
        """What the run is known by; the digest of one that opens a sample is but a claim."""
        claims = [self.digest] if bytes(self.sample) == b"null" else []
        return [*claims, self.root] if self.root else claims


_decoder = msgspec.json.Decoder(_Head)


class Setting(NamedTuple):
    """What made the runs of a row.

    Attributes:
        identity: Identity of the optimizer, None if it is not on record.
        options: Options that were given to it, as they are written.
    """

    identity: str | None
    options: bytes


class Neighbours:
    """What stands beside a file: the published rows, and the files that are verified with it.

    Attributes:
        published: Number of published runs of each row "<problem>/<optimizer>".
        settings: What made the runs, by optimizer and problem.
        runs: Ids of the optimizers that a run stands under, by its digest and its root.
    """

    def __init__(self, published: Path | None = None, together: Iterable[Path] = ()) -> None:
        """Read the heads of all records.

        Args:
            published: Folder of published runs, `<problem>/<optimizer>.jsonl`.
            together: Files that are verified together.
        """
        self.published: dict[str, int] = {}
        self.settings: dict[str, dict[str, Setting]] = defaultdict(dict)
        self.runs: dict[str, set[str]] = defaultdict(set)
        for path in [] if published is None else sorted(published.glob("*/*.jsonl")):
            self.published[row_name(path)] = self._add(path)
        for path in together:
            self._add(path)

    def _add(self, path: Path) -> int:
        """Take in a file as far as it can be read; what is wrong with it is said elsewhere."""
        problem, _, optimizer = row_name(path).partition("/")
        count = 0
        for head in _read_heads(path) if optimizer else ():
            count += 1
            self.settings[optimizer][problem] = Setting(
                head.versions.get(SOURCE), bytes(head.options)
            )
            for fingerprint in head.fingerprints:
                self.runs[fingerprint].add(optimizer)
        return count


def _read_heads(path: Path) -> Iterator[_Head]:
    """Give the heads of a file's records until a line that is none."""
    try:
        for line in read_lines(path, Complaints(path)):
            check_size(line)
            yield _decoder.decode(line)
    except (Refused, msgspec.DecodeError, ValueError, RecursionError, OSError):
        return


def check_identity(submission: Submission, neighbours: Neighbours, case: Case) -> None:
    """Check that the id is nobody else's and that the runs are of its method."""
    own = {info.id: info for info in list_optimizers() if info.package == OWN_PACKAGE}
    optimizer, first = submission.optimizer, submission.rows[0]
    published = {row.partition("/")[2] for row in neighbours.published}
    if optimizer not in own and optimizer not in published:
        _check_name(optimizer, {*own, *published}, case.complaints)
    if first.record.identity is None and first.record.schema == 1 and case.sound:
        case.skip("identity", "the runs do not say which code made them, so the row cannot grow")
    else:
        detail = _check_source(first, own.get(optimizer), case.complaints)
        case.note("identity", detail + _varied_versions(submission.rows))
    if not case.sound:
        return
    _find_copies(submission, neighbours, case)
    _find_mixture(submission, neighbours, case)
    if optimizer in own and first.record.options:
        case.flags.append(f"the runs have options that {optimizer} does not have by itself")
        # It is another method then, under the name of this one.
        case.doubted |= neighbours.published.get(f"{submission.problem}/{optimizer}", 0) == 0


def _check_source(row: Row, own: OptimizerInfo | None, complaints: Complaints) -> str:
    """Check that a run names an identity which its optimizer can have; say which.

    Args:
        row: The run.
        own: The optimizer if it is one of the suite.
        complaints: Takes what is wrong.
    """
    identity = row.record.identity
    if identity is None:
        complaints.add(
            row.line,
            "versions",
            f"it does not name {SOURCE!r}: code of a notebook or a script has none, nor has a run "
            "that was begun before the code changed; run it anew from a file that can be imported",
        )
        return ""
    short = identity[:12]
    if not _IDENTITY.fullmatch(identity):
        complaints.add(
            row.line, "versions", f"{SOURCE} is {short!r}, expected a SHA-256 of 64 digits"
        )
        return ""
    if own is None:
        return f"{short}, of an optimizer that is not in the suite"
    if identity == identify_target(own.target, own.options):
        return f"{short}, what {own.id} is here"
    if (own.id, identity) in released_identities():
        return f"{short}, what {own.id} was in a release"
    complaints.add(
        row.line,
        "versions",
        f"{SOURCE} {short}... is neither what {own.id} is here nor what it was in a release: "
        f"changed code has an id of its own, such as {own.id}-2",
    )
    return ""


def _check_name(optimizer: str, others: Iterable[str], complaints: Complaints) -> None:
    """Refuse an id that can be mistaken for another."""
    for other in sorted(others):
        one_edit = is_look_alike(optimizer, other)
        if one_edit or looks_the_same(optimizer, other):
            how = "is one letter away from" if one_edit else "looks like"
            complaints.add(
                0,
                "path",
                f"the id {optimizer!r} {how} {other!r}: choose one that nobody takes for it",
            )
            return


def is_look_alike(first: str, second: str) -> bool:
    """Tell whether one edit makes one id of another: a sign more, less or other, or two swapped.

    Numbered versions of one method, such as my-search-2 and my-search-3, are none.
    """
    stems = [match[1] for id_ in (first, second) if (match := _NUMBERED.fullmatch(id_))]
    if first == second or (len(stems) == 2 and stems[0] == stems[1]):
        return False
    short, long = sorted((first, second), key=len)
    same = next((i for i, sign in enumerate(short) if sign != long[i]), len(short))
    one, other = short[same:], long[same:]
    swapped = one[1:2] + one[:1] + one[2:]
    return one == other[1:] or one[1:] == other[1:] or swapped == other


def looks_the_same(first: str, second: str) -> bool:
    """Tell whether two ids are the same to the eye, however many signs differ."""
    seen = []
    for id_ in (first, second):
        for signs, shape in _CONFUSABLE.items():
            id_ = id_.replace(signs, shape)
        seen.append(id_)
    return first != second and seen[0] == seen[1]


def _varied_versions(rows: Iterable[Row]) -> str:
    """Name the versions of what the runs had in several, which is no part of an identity."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for package, version in row.record.versions.items():
            found[package].add(version)
    text = "".join(
        f"; {package} {', '.join(sorted(versions))}"
        for package, versions in sorted(found.items())
        if len(versions) > 1
    )
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _find_copies(submission: Submission, neighbours: Neighbours, case: Case) -> None:
    """Point out runs that stand under the id of another method too.

    Those of variants may be equal: an option can be without effect. A run that is published already
    stays as it is; that of a newcomer is not verified.
    """
    targets = {info.id: info.target for info in list_optimizers()}
    mine = targets.get(submission.optimizer, submission.optimizer)
    known = neighbours.published.get(f"{submission.problem}/{submission.optimizer}", 0)
    for number, row in enumerate(submission.rows):
        fingerprints = (row.record.digest if row.record.whole else None, row.record.root)
        others = {id_ for key in fingerprints if key for id_ in neighbours.runs.get(key, ())}
        others = {id_ for id_ in others - {submission.optimizer} if targets.get(id_, id_) != mine}
        # Runs that failed before their first evaluation are alike, and honest.
        if others and len(row.record.objectives):
            text = f"line {row.line}: the same run stands under {', '.join(sorted(others))}"
            case.flags.append(text)
            if number >= known:
                case.doubted = True
            return


def _find_mixture(submission: Submission, neighbours: Neighbours, case: Case) -> None:
    """Point out an id that is not one identity with one set of options on all its problems."""
    record = submission.rows[0].record
    # Canonical: 1, 1.0 and true are different options.
    mine = Setting(record.identity, msgspec.json.encode(record.options, order="deterministic"))
    for field, words in (("identity", "another identity"), ("options", "other options")):
        differing = sorted(
            problem
            for problem, setting in neighbours.settings.get(submission.optimizer, {}).items()
            if problem != submission.problem and getattr(setting, field) != getattr(mine, field)
        )
        if differing:
            more = f" and {len(differing) - 1} more" if len(differing) > 1 else ""
            case.flags.append(f"{words} than on {differing[0]}{more}")
