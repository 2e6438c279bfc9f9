"""Released identities: well formed, and never taken back."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from cbo_suite import list_optimizers
from cbo_suite.harness.identity import identify_target
from cbo_suite.harness.releases import FILE, Release, read_releases
from tests.release_identities import missing_releases

ROOT = Path(__file__).parents[2]
NAME = "cbo_suite/harness/released.jsonl"


def git(*arguments: str) -> bytes:
    """Ask git about this repository."""
    command = [shutil.which("git") or "git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout


def test_the_file_is_well_formed() -> None:
    """One line each, as it is written, of an optimizer of the suite, and each once."""
    text = FILE.read_bytes()
    releases = read_releases(text)
    assert b"".join(msgspec.json.encode(release) + b"\n" for release in releases) == text
    assert len({(release.id, release.identity) for release in releases}) == len(releases)
    known = {info.id for info in list_optimizers()}
    for release in releases:
        assert release.id in known
        assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+\S*", release.version)
        assert re.fullmatch(r"[0-9a-f]{64}", release.identity)


def test_the_file_is_only_appended_to() -> None:
    """Every version of it that git knows is the beginning of the present one."""
    try:
        # Of a merge both sides: what either had is there.
        commits = git("rev-list", "--full-history", "HEAD", "--", NAME).split()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"there is no history here, as in an unpacked archive: {error}")
    text = FILE.read_bytes()
    for commit in commits:
        assert text.startswith(git("show", f"{commit.decode()}:{NAME}")), commit


def test_the_command_appends_what_is_missing() -> None:
    """All identities at first, then none; an older one stays and does not count."""
    own = [info for info in list_optimizers() if info.package == "cbo-suite"]
    missing = missing_releases(b"")
    assert [release.id for release in missing] == [info.id for info in own]
    assert missing[0].identity == identify_target(own[0].target, own[0].options)
    text = b"".join(msgspec.json.encode(release) + b"\n" for release in missing)
    assert missing_releases(text) == []
    older = msgspec.json.encode(Release(own[0].id, "0.0.1", "0" * 64)) + b"\n"
    assert missing_releases(older + text[text.index(b"\n") + 1 :]) == missing[:1]
