"""cbo-suite: benchmark problems, optimizers and scoring for constrained black-box optimization."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbo_suite._version import __version__

# In a checkout problems/ and optimizers/ stand beside this folder, which has links to them; where
# git could not make links, this line does the same.
if not (Path(__file__).parent / "problems").is_dir():
    __path__.append(str(Path(__file__).parents[1]))

if TYPE_CHECKING:
    from cbo_suite.harness import run
    from cbo_suite.minimization import minimize
    from cbo_suite.protocols import Evaluation, Space
    from cbo_suite.registry import list_optimizers, list_problems, make_optimizer, make_problem

_HOME = {
    "Evaluation": "protocols",
    "Space": "protocols",
    "list_optimizers": "registry",
    "list_problems": "registry",
    "make_optimizer": "registry",
    "make_problem": "registry",
    "minimize": "minimization",
    "run": "harness",
}

__all__ = [
    "Evaluation",
    "Space",
    "__version__",
    "list_optimizers",
    "list_problems",
    "make_optimizer",
    "make_problem",
    "minimize",
    "run",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import cbo_suite` costs next to nothing."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"cbo_suite.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
