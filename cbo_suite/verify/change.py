"""The records that a commit changes, read from git as they are stored there.

A working tree shows what `.gitattributes`, submodules and links make of a commit. The board is made
of what is committed, so entries are looked at in the tree itself and records are read as blobs.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from cbo_suite.errors import RecordError

RUNS = "leaderboard/runs"
MARKS = "leaderboard/verified.json"
_FILE_MODE = "100644"
# Ids alone: git may hold a folder "..", and a backslash is one on Windows.
_RECORD = re.compile(rf"{RUNS}/[a-z0-9-]+/[a-z0-9-]+\.jsonl")
# What decides how records are read, judged and shown: a change of it is for a maintainer's eyes.
_SENSITIVE = re.compile(
    r"(.*/)?\.gitattributes|\.gitmodules|\.github/.*|cbo_suite/.*|problems/.*|optimizers/.*"
    r"|constraints\.txt|pyproject\.toml|Makefile"
)


class Entry(NamedTuple):
    """A file of a commit.

    Attributes:
        mode: Its mode in octal digits: 100644 for a plain file, 120000 for a link, 160000 for a
            submodule.
        blob: The name of its contents.
    """

    mode: str
    blob: str


class Change(NamedTuple):
    """What a commit does to the records since another one.

    Attributes:
        records: Paths of the record files that are new or differ.
        complaints: What no submission may do, a line each.
        notices: Paths that a maintainer should look at, because they decide how records are judged.
    """

    records: list[str]
    complaints: list[str]
    notices: list[str]


def find_change(repository: Path, base: str, commit: str) -> Change:
    """Look at what a commit changes since its base.

    Raises:
        RecordError: There is no such repository or commit, or a commit holds a file twice.
    """
    before, after = (_entries(repository, name) for name in (base, commit))
    changed = sorted(path for path in after if after[path] != before.get(path))
    complaints = [
        f"{path}: published records are not removed"
        for path in sorted(before.keys() - after.keys())
        if _is_below(path, RUNS)
    ]
    if before.get(MARKS) != after.get(MARKS):
        complaints.append(
            f"{MARKS}: it is written by a maintainer who has verified the rows: leave it out"
        )
    for path, entry in sorted(after.items()):
        if _is_below(path, RUNS):
            complaints += [f"{path}: {reason}" for reason in _faults(path, entry)]
    if any(entry.mode == "160000" for entry in after.values()):
        complaints.append("submodules: a submission consists of files of its own")
    records = [path for path in changed if _RECORD.fullmatch(path)]
    gone = before.keys() - after.keys()
    notices = sorted(path for path in {*changed, *gone} if _SENSITIVE.fullmatch(path))
    return Change(records, complaints, notices)


def _is_below(path: str, folder: str) -> bool:
    """Tell whether a path is a folder or something in it, whatever the case of its letters."""
    return f"{path}/".casefold().startswith(f"{folder}/".casefold())


def _faults(path: str, entry: Entry) -> Iterator[str]:
    """Say why an entry below the records cannot be one."""
    if not _RECORD.fullmatch(path):
        yield f"the place of a record file is {RUNS}/<problem>/<optimizer>.jsonl"
    if entry.mode != _FILE_MODE:
        yield f"it must be a plain file of mode {_FILE_MODE}, got mode {entry.mode}"


def write_records_of(
    repository: Path, commit: str, folder: Path, paths: Iterable[str] | None = None
) -> list[Path]:
    """Write record files of a commit below a folder, byte by byte as they are committed.

    Args:
        repository: The repository.
        commit: The commit.
        folder: Where `<problem>/<optimizer>.jsonl` are written.
        paths: Which of its files; None for all records.

    Returns:
        The files written, in the order of their names.
    """
    entries = _entries(repository, commit)
    wanted = sorted(path for path in entries if _RECORD.fullmatch(path)) if paths is None else paths
    written = []
    for path in wanted:
        target = folder / Path(path).relative_to(RUNS)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            _git(repository, "cat-file", "blob", entries[path].blob, output=file.fileno())
        written.append(target)
    return written


def _entries(repository: Path, commit: str) -> dict[str, Entry]:
    """List the files of a commit by their path."""
    # The end of options: a name that begins with a hyphen is a name.
    listed = _git(repository, "ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit)
    found: dict[str, Entry] = {}
    for line in filter(None, listed.split(b"\0")):
        facts, _, path = line.partition(b"\t")
        mode, _, blob = facts.decode("ascii").split()
        name = path.decode("utf-8", "surrogateescape")
        if name in found:
            raise RecordError(f"{commit} holds {name!r} twice, so nobody knows which one counts")
        found[name] = Entry(mode, blob)
    return found


def _git(repository: Path, *words: str, output: int = subprocess.PIPE) -> bytes:
    """Call git on a repository, without its hooks and filters, and return what it prints."""
    command = ["git", "-C", str(repository), *words]
    try:
        done = subprocess.run(command, check=True, stdout=output, stderr=subprocess.PIPE)
    except FileNotFoundError as error:
        raise RecordError("git is not installed: install it, or name the files") from error
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip()
        raise RecordError(f"git cannot read {repository}: {reason}") from error
    return done.stdout or b""
