"""Write constraints.txt: the exact version of everything that the extras `all` and `dev` install.

`make constraints` runs it. A temporary environment gets the newest releases that pyproject.toml
allows, and what is then installed is written down; the environment in use is not touched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
TORCH = "torch==2.13.0"
HEADER = f"""\
# Every direct and transitive dependency of cbo-suite[all,dev], written by `make constraints`
# (tests/write_constraints.py) from a fresh environment of Python {{python}} on {{platform}}.
# Do not edit. {TORCH} is chosen there, the rest is the newest release that fits: the newest
# torch would pull several GB of CUDA packages on a machine without a GPU.
"""


def main() -> None:
    """Install everything into a temporary environment and write down what is there."""
    with tempfile.TemporaryDirectory(prefix="cbo-constraints-") as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        # Old pins must not hold back the new ones.
        environment = {k: v for k, v in os.environ.items() if k != "PIP_CONSTRAINT"}

        def pip(*arguments: str) -> str:
            command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
            return subprocess.run(
                command, env=environment, check=True, stdout=subprocess.PIPE, text=True
            ).stdout

        # torch first, so that nothing asks for a newer one.
        pip("install", "--quiet", TORCH)
        pip("install", "--quiet", "--editable", f"{ROOT}[all,dev]")
        frozen = pip("freeze", "--all", "--exclude-editable").splitlines()
    path = ROOT / "constraints.txt"
    header = HEADER.format(
        python=f"{sys.version_info[0]}.{sys.version_info[1]}", platform=sys.platform
    )
    path.write_text(header + "".join(f"{line}\n" for line in pins(frozen)))
    sys.stdout.write(f"wrote {path}\n")


def pins(frozen: list[str]) -> list[str]:
    """Turn the lines of `pip freeze` into pins that hold on every machine.

    A local version such as 2.13.0+cpu names one build of a release; the pin names the release.
    pip itself installs the rest and is not pinned.
    """
    releases = [line.partition("+")[0] for line in frozen]
    return sorted((r for r in releases if not r.startswith("pip==")), key=str.lower)


if __name__ == "__main__":
    main()
