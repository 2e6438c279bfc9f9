"""Who may import whom, and what is not imported until it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lint_imports import lay_out, lint

HEAVY = ("torch", "gymnasium", "matplotlib", "pandas", "botorch", "pymoo", "optuna")

# Every module of the core and of the problems, and the table of the optimizers; the modules of
# the optimizers themselves may need torch.
IMPORT_CORE = """
import importlib, pkgutil, sys
import cbo_suite, cbo_suite.optimizers
# Those that need their libraries: torch, dask, submitit.
unwanted = ("__main__", "optimizers", "engines.dask", "engines.dask_worker", "engines.slurm")
count = 0
todo = [cbo_suite]
while todo:
    package = todo.pop()
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if not found.name.endswith(unwanted):
            module = importlib.import_module(found.name)
            todo += [module] if found.ispkg else []
            count += 1
print(count, *sys.modules)
"""

HELP = """
import sys
from cbo_suite.cli import main
main(["--help"], standalone_mode=False)
print(*sys.modules)
"""


def run_python(code: str) -> str:
    """Run code in a fresh interpreter and return what it printed."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_contract_holds(tmp_path: Path) -> None:
    """Every import goes down the floors of the house."""
    lay_out(tmp_path)
    result = lint(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("problems/toy.py", "cbo_suite.harness"),
        ("problems/toy.py", "cbo_suite.optimizers.random_search"),
        ("optimizers/random_search.py", "cbo_suite.problems.toy"),
        ("optimizers/random_search.py", "cbo_suite.registry"),
        ("scoring/runs.py", "cbo_suite.registry"),
        ("leaderboard/__init__.py", "cbo_suite.harness"),
        ("harness/__init__.py", "cbo_suite.problems.toy"),
        ("harness/loop.py", "cbo_suite.optimizers"),
        ("minimization/__init__.py", "cbo_suite.cli"),
        ("protocols.py", "cbo_suite.tasks"),
    ],
)
def test_contract_refuses(tmp_path: Path, module: str, imported: str) -> None:
    """An import that the contract forbids is reported by name, even inside a function."""
    path = lay_out(tmp_path) / module
    path.write_text(f"{path.read_text()}\n\ndef late():\n    import {imported}\n")
    result = lint(tmp_path)
    assert result.returncode == 1
    assert imported in " ".join(result.stdout.split())


def test_contract_has_a_place_for_every_module(tmp_path: Path) -> None:
    """A module that `.importlinter` does not name is reported."""
    (lay_out(tmp_path) / "newcomer.py").write_text('"""A module without a place."""\n')
    result = lint(tmp_path)
    assert result.returncode == 1
    assert "cbo_suite.newcomer" in result.stdout


def test_core_imports_nothing_heavy() -> None:
    """All of the core can be imported without torch, gymnasium, matplotlib and their like."""
    count, *modules = run_python(IMPORT_CORE).split()
    assert int(count) > 30
    assert "cbo_suite.problems.toy" in modules
    assert "cbo_suite.cli.run" in modules
    assert not set(HEAVY) & set(modules)


def test_help_imports_almost_nothing() -> None:
    """`cbo --help` imports neither numpy nor anything heavy: it answers at once."""
    text = run_python(HELP)
    assert "leaderboard" in text
    assert not {"numpy", "scipy", "rich", "msgspec", *HEAVY} & set(text.split())
