"""Check the import contract of `.importlinter`; `make check` and the commit hook run it.

import-linter reads the folders of a package without importing it, so in a checkout it does not
see that problems/ and optimizers/ belong to cbo_suite. It is shown a copy laid out as installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lay_out(folder: Path) -> Path:
    """Copy the package into a folder as the wheel installs it; return its top."""
    package = folder / "cbo_suite"
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "cbo_suite", package, ignore=unwanted)
    for room in ("problems", "optimizers"):
        shutil.copytree(ROOT / room, package / room, ignore=unwanted)
    return package


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the package that is laid out in a folder."""
    # The linter puts its working folder first on the path, before any installed copy.
    command = "from importlinter.cli import lint_imports_command as lint; lint()"
    options = ["--no-cache", "--no-logo", "--config", str(ROOT / ".importlinter")]
    return subprocess.run(
        [sys.executable, "-c", command, *options],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )


def main() -> int:
    """Lint a fresh copy and print what was found."""
    with tempfile.TemporaryDirectory(prefix="cbo-imports-") as folder:
        lay_out(Path(folder))
        result = lint(Path(folder))
    sys.stdout.write(result.stdout)
    sys.stderr.write(result.stderr)
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
