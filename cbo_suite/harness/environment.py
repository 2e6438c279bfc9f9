"""Facts of the software and the machine that a run was made with; no names of people or hosts."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from cbo_suite._version import __version__
from cbo_suite.system import cores

# Libraries whose version can change a result; named when a run has imported them.
LIBRARIES = ("numpy", "scipy", "torch", "gpytorch", "cma", "gymnasium", "Box2D")

# What the digest of an optimizer's code is called among the versions.
SOURCE = "optimizer-source"

# All of them share models, so they have one digest.
_OWN_OPTIMIZERS = "cbo_suite.optimizers"


def describe_versions(factory: Callable[..., object] | None = None) -> dict[str, str]:
    """Name the versions of cbo-suite, Python, the libraries in use and the optimizer's package.

    "optimizer-source" is a digest of the optimizer's code: an author changes it more often than
    its version.
    """
    versions = {"cbo-suite": __version__, "python": platform.python_version()}
    for library in LIBRARIES:
        if library in sys.modules:
            versions[library] = _version(library)
    module = str(getattr(factory, "__module__", ""))
    source = _source_digest(_OWN_OPTIMIZERS if module.startswith(_OWN_OPTIMIZERS) else module)
    if source is not None:
        versions[SOURCE] = source
    package = module.partition(".")[0]
    if package not in ("", "builtins", "cbo_suite", "__main__"):
        for distribution in _distributions().get(package, []):
            versions[distribution] = _version(distribution)
    return versions


@cache
def describe_machine() -> dict[str, str]:
    """Describe the machine: system, architecture, processor and number of cores in reach."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": str(cores()),
    }


@cache
def _source_digest(module: str) -> str | None:
    """Digest the source of an imported module, of its whole package if it stands in one."""
    parent = module if module == _OWN_OPTIMIZERS else module.partition(".")[0]
    owner = sys.modules.get(parent, sys.modules.get(module))
    folders = [Path(folder) for folder in getattr(owner, "__path__", [])]
    file = getattr(owner, "__file__", None)
    files = [(path, path.relative_to(top)) for top in folders for path in top.rglob("*.py")]
    if not folders and file is not None:
        files = [(Path(file), Path(Path(file).name))]
    digest = hashlib.sha256()
    try:
        for path, name in sorted(files, key=lambda pair: pair[1].as_posix()):
            digest.update(f"{name.as_posix()}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    except OSError:
        return None
    return digest.hexdigest()[:16] if files else None


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
