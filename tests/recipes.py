"""Recipes of CONTRIBUTING: their steps, and how a reader carries them out."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CBO = Path(sys.executable).with_name("cbo")


class Step(NamedTuple):
    """One step: a command, or a text to be written or changed.

    Attributes:
        language: "console" for a command, else that of the text.
        text: What is typed.
    """

    language: str
    text: str


def recipe(title: str) -> list[Step]:
    """Return the steps of a recipe in their order."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = page.partition(f"## Recipe: {title}\n")[2].partition("\n## ")[0]
    steps: list[Step] = []
    for language, block in re.findall(
        r"^   ```(\w+)\n(.*?)^   ```", section, re.MULTILINE | re.DOTALL
    ):
        # Three spaces are those of the list; what is left belongs to the text.
        text = re.sub(r"^   ", "", block, flags=re.MULTILINE)
        if language == "console":
            commands = re.findall(r"^\$ (.+)$", dedent(text), re.MULTILINE)
            steps += [Step(language, command) for command in commands]
        else:
            steps.append(Step(language, text))
    return steps


def follow(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Run one command as its reader would, and return what it says."""
    words = shlex.split(command)
    if words[0] == "python":
        words[0] = sys.executable
    elif words[:2] == ["pip", "uninstall"]:
        shutil.rmtree(library_of(folder.parent / words[-1]))
        return ""
    elif words[0] == "pip":
        # The package goes into a folder of the test instead of the environment, with no network.
        pip = "-m pip install --quiet --no-deps --no-index --no-build-isolation --target"
        words = [sys.executable, *pip.split(), str(library_of(folder)), "."]
    elif words[0] == "cbo":
        # Ten seeds show as much as thirty.
        words = [str(CBO), *("0-9" if word == "0-29" else word for word in words[1:])]
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    if "pip" in words:
        _make_editable(library_of(folder))
    return done.stdout


def library_of(folder: Path) -> Path:
    """Return where the package of a folder is installed to."""
    return folder / "lib"


def path_of(folder: Path) -> str:
    """Return the search path with which a package is found as if it were installed editable."""
    return f"{library_of(folder)}:{folder}"


def _make_editable(library: Path) -> None:
    """Leave the metadata of an installed package only, so that its code is that of its folder."""
    for path in library.iterdir():
        if path.suffix != ".dist-info":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
