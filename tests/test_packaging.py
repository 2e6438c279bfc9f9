"""The wheel: what is in it, and that it works where no checkout is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Folder in the checkout to its place in the installed package.
ROOMS = {
    "cbo_suite": "cbo_suite",
    "problems": "cbo_suite/problems",
    "optimizers": "cbo_suite/optimizers",
}
LIST_PROBLEMS = """
import cbo_suite as cbo
problem = cbo.make_problem("toy-2d")
run = cbo.run(problem, "random-search", budget=12, seed=0)
print(cbo.__file__)
print(len(run.x), *(row.id for row in cbo.list_problems()))
"""


def package_files() -> Iterator[tuple[Path, str]]:
    """Give every file of the package in the checkout and its name in the wheel."""
    for room, place in ROOMS.items():
        for path in sorted((ROOT / room).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path, f"{place}/{path.relative_to(ROOT / room).as_posix()}"


def copy_rooms(folder: Path) -> None:
    """Copy the folders of the package, with the links from one to the others."""
    unwanted = shutil.ignore_patterns("__pycache__")
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room, symlinks=True, ignore=unwanted)


def run_outside(command: list[str], folder: Path, **variables: str) -> str:
    """Run a command in a folder outside the checkout, without our variables; return its output."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV_"))}
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment | variables,
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy, because setuptools builds in the folder of the sources."""
    source = tmp_path_factory.mktemp("source")
    copy_rooms(source)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    run_outside([*build, str(source)], source)
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Make an environment that has our dependencies but not cbo-suite."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=os.name != "nt")
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    (packages,) = folder.glob("Lib/site-packages" if os.name == "nt" else "lib/*/site-packages")
    # A plain line adds the folder and does not run its .pth files: an editable install of
    # cbo-suite there stays out of sight.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return scripts / "python"


def test_every_package_is_listed() -> None:
    """`packages` in pyproject.toml names the folders that have an `__init__.py`, no more."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = [
        name.removesuffix("/__init__.py").replace("/", ".")
        for _, name in package_files()
        if name.endswith("/__init__.py")
    ]
    assert sorted(settings["packages"]) == sorted(found)


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Every module and data file is in the wheel, at its place, and no test is; it is typed."""
    names = zipfile.ZipFile(wheel).namelist()
    shipped = {name for name in names if ".dist-info/" not in name}
    assert shipped == {name for _, name in package_files()}
    assert "cbo_suite/py.typed" in shipped
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_wheel_works_without_the_checkout(wheel: Path, python: Path, tmp_path: Path) -> None:
    """Installed from the wheel, the package lists and runs, and `cbo` is there."""
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    run_outside([*install, "--no-deps", "--no-index", str(wheel)], tmp_path)
    where, found = run_outside([str(python), "-c", LIST_PROBLEMS], tmp_path).splitlines()
    assert Path(where).is_relative_to(python.parents[1])
    assert found.startswith("12 ")
    assert "keane-30d-v1" in found.split()
    assert "keane-30d-v1" in run_outside([str(python.with_name("cbo")), "list"], tmp_path)
    # The line of our hints looks for libraries only: the package need not be on an index.
    run_outside([*install, "--no-deps", "--no-index", "cbo-suite[scbo]"], tmp_path)


@pytest.mark.parametrize("links", ["links", "files"])
def test_works_from_a_checkout_that_is_not_installed(
    python: Path, tmp_path: Path, links: str
) -> None:
    """With the root of a checkout on the path, nothing needs to be installed.

    Where git cannot make links, it makes files that hold the name of what is linked.
    """
    root = tmp_path / "checkout"
    copy_rooms(root)
    for room in ("problems", "optimizers"):
        link = root / "cbo_suite" / room
        assert link.is_symlink()
        if links == "files":
            link.unlink()
            link.write_text(f"../{room}")
    command = [str(python), "-c", LIST_PROBLEMS]
    where, found = run_outside(command, tmp_path, PYTHONPATH=str(root)).splitlines()
    assert Path(where) == root / "cbo_suite" / "__init__.py"
    assert "keane-30d-v1" in found.split()
