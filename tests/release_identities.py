"""Write down the identities that the suite's optimizers have now, so that their rows stay theirs.

Run from the root of the repository when runs for the leaderboard are made:

    python -m tests.release_identities

It appends to `cbo_suite/harness/released.jsonl` what is not there yet, and changes no line of it.
"""

from __future__ import annotations

import sys

import msgspec

from cbo_suite import __version__, list_optimizers
from cbo_suite.harness.identity import identify_target
from cbo_suite.harness.releases import FILE, Release, read_releases
from cbo_suite.registry import OWN_PACKAGE


def missing_releases(text: bytes) -> list[Release]:
    """Return the present identities of the suite's optimizers that a file of releases lacks."""
    known = {(release.id, release.identity) for release in read_releases(text)}
    present = [
        Release(info.id, __version__, identity)
        for info in list_optimizers()
        if info.package == OWN_PACKAGE
        and (identity := identify_target(info.target, info.options)) is not None
    ]
    return [release for release in present if (release.id, release.identity) not in known]


def main() -> None:
    """Append what is missing."""
    missing = missing_releases(FILE.read_bytes())
    with FILE.open("ab") as file:
        file.writelines(msgspec.json.encode(release) + b"\n" for release in missing)
    sys.stdout.write(f"{len(missing)} identities appended to {FILE.name}\n")


if __name__ == "__main__":
    main()
