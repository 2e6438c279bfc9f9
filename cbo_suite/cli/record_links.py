"""Where the site leads to for record files: where they are, or where they are published."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote


def record_addresses(
    folders: Iterable[Path], site: Path, published: str = "", mark: str = ""
) -> dict[str, list[str]]:
    """Find the addresses of the record files as the pages of problems link to them.

    Records are not copied into the site, which would become as large as all of them together.

    Args:
        folders: Folders with `<problem>/<optimizer>.jsonl`.
        site: Folder of the site.
        published: Address that the content of the folders has on the web; "" for links to the
            files where they are, which work on this machine and wherever files and site are moved
            together.
        mark: What the board puts before the ids of these optimizers.

    Returns:
        Problem and optimizer, with "/" between them, to the addresses of their files.
    """
    start = (site / "problem").resolve()
    found: dict[str, list[str]] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*/*.jsonl")):
        problem, optimizer = path.parent.name, path.stem
        if published:
            name = f"{quote(problem, safe='')}/{quote(path.name, safe='')}"
            address = f"{published.rstrip('/')}/{name}"
        else:
            address = _relative(path.resolve(), start)
        found.setdefault(f"{problem}/{mark}{optimizer}", []).append(address)
    return found


def _relative(path: Path, start: Path) -> str:
    """Write the way from a folder to a file as an address."""
    try:
        return quote(Path(os.path.relpath(path, start)).as_posix())
    except ValueError:  # another drive
        return path.as_uri()
