"""Check the import contract of `.importlinter`; `make check` and the commit hook run it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lay_out(folder: Path) -> Path:
    """Copy the package into a folder as the wheel installs it; return its top."""
    # What stands behind the links to problems/ and optimizers/ is copied to where they are.
    unwanted = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(ROOT / "cbo_suite", folder / "cbo_suite", ignore=unwanted)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the package in a folder: the checkout, or a copy as installed."""
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
    """Lint the checkout and print what was found."""
    result = lint(ROOT)
    sys.stdout.write(result.stdout)
    sys.stderr.write(result.stderr)
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
