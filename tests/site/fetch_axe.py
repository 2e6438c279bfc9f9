"""Fetch axe-core, which looks for barriers on web pages, for the tests; it is part of no release.

    python -m tests.site.fetch_axe FOLDER

From the registry of npm, with npm where that is installed and else by its address.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.request import urlopen

NAME = "axe-core-4.14.0.tgz"
SHA256 = "2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af"
ADDRESS = f"https://registry.npmjs.org/axe-core/-/{NAME}"
SECONDS = 60


def fetch_axe(folder: Path) -> str:
    """Return the script, from a folder if it was fetched into it before.

    Raises:
        OSError: It cannot be fetched, or is not the file that was looked at.
    """
    path = folder / NAME
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        if npm := shutil.which("npm"):
            wanted = NAME.removesuffix(".tgz").replace("core-", "core@")
            command = [npm, "pack", wanted, "--pack-destination", str(folder), "--silent"]
            try:
                subprocess.run(
                    command, check=True, capture_output=True, timeout=SECONDS, cwd=folder
                )
            except subprocess.SubprocessError as error:
                raise OSError(f"npm cannot fetch axe-core: {error}") from error
        else:
            with urlopen(ADDRESS, timeout=SECONDS) as answer:
                path.write_bytes(answer.read())
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        path.unlink()
        raise OSError(f"{NAME} is not the file that was looked at: fetch it again")
    with tarfile.open(path) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


if __name__ == "__main__":
    print(len(fetch_axe(Path(sys.argv[1]))), "characters")
