"""Facts of the software and the machine that a run was made with; no names of people or hosts."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from cbo_suite._version import __version__
from cbo_suite.harness.identity import describe_factory, identify_target
from cbo_suite.records import SOURCE
from cbo_suite.system import cores

# Libraries whose version can change a result, by the module that a run imports; named when it has.
LIBRARIES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "torch": "torch",
    "gpytorch": "gpytorch",
    "cma": "cma",
    "gymnasium": "gymnasium",
    "Box2D": "Box2D",
    "botorch": "botorch",
    "optuna": "optuna",
    "egobox": "egobox",
    "pymoo": "pymoo",
    "PyNomad": "PyNomadBBO",
    "bayesqp": "bayesqp",
    "cvxopt": "cvxopt",
}


def describe_libraries(declared: Iterable[str] = ()) -> dict[str, str]:
    """Name the versions of the libraries in use: imported by now, or declared by their names."""
    imported = [name for module, name in LIBRARIES.items() if module in sys.modules]
    return {distribution: _version(distribution) for distribution in [*imported, *declared]}


def describe_versions(
    factory: Callable[..., object] | None = None, declared: Iterable[str] = ()
) -> dict[str, str]:
    """Name the versions of cbo-suite, Python, the libraries in use and the optimizer's package.

    "optimizer-source" is the identity of the optimizer, which says more than its version: an
    author changes the code more often. It is missing where there is none; see `identify`.

    Args:
        factory: What makes the optimizer.
        declared: Distributions that a problem says it computes with, imported or not.
    """
    versions = {"cbo-suite": __version__, "python": platform.python_version()}
    versions |= describe_libraries(declared)
    if factory is None:
        return versions
    target, options = describe_factory(factory)
    identity = identify_target(target, options)
    if identity is not None:
        versions[SOURCE] = identity
    package = target.partition(":")[0].partition(".")[0]
    if package not in ("", "builtins", "cbo_suite", "__main__"):
        for distribution in _distributions().get(package, []):
            versions[distribution] = _version(distribution)
    return versions


@cache
def describe_machine() -> dict[str, str]:
    """Describe the machine: system, its C library, architecture, processor and cores in reach."""
    return {
        "system": platform.system(),
        # Flights of the lunar lander depend on its sines.
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": str(cores()),
    }


@cache
def _version(distribution: str) -> str:
    """Look up the version of an installed distribution."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"


@cache
def _distributions() -> dict[str, list[str]]:
    """Map top-level import names to the distributions that provide them."""
    return {name: list(owners) for name, owners in packages_distributions().items()}


def _processor() -> str:
    """Name the processor; Linux tells it only in a file of its own."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor()
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor()
