"""KeOps as a guest: quiet, in a folder of its own, and compiled by one process at a time.

KeOps turns a formula into C++ code, compiles it and keeps the library in a folder that all
processes share, without asking who else is writing there. Here every compilation and every first
loading happens under a file lock, and a mark in the folder shows that a builder died halfway.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import io
import logging
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from platformdirs import user_cache_path

from cbo_suite.errors import MissingExtra

LOGGER = logging.getLogger("cbo_suite")
_ready: set[str] = set()


def load_keops() -> ModuleType:
    """Import pykeops without a word on the console, and keep its pickles off the disk.

    Where pykeops was not imported before and `KEOPS_CACHE_FOLDER` is not set, its libraries are
    kept in the user's cache folder of cbo-suite.

    Returns:
        The module `pykeops`.

    Raises:
        MissingExtra: pykeops is not installed, or there is no C++ compiler.
    """
    if importlib.util.find_spec("pykeops") is None:
        raise MissingExtra(
            'the KeOps models need pykeops: pip install "cbo-suite[scbo]" (KeOps does not run on '
            "Windows), or use the dense models"
        )
    _require_compiler()
    if "pykeops" not in sys.modules:
        _import_quietly()
    pykeops = importlib.import_module("pykeops")
    pykeops.set_verbose(False)
    # At exit KeOps would write its tables as pickles, unguarded; it does as well without them.
    tables = [importlib.import_module("keopscore.get_keops_dll").get_keops_dll]
    tables += pykeops.common.keops_io.keops_binder.values()
    for table in tables:
        atexit.unregister(table.save_cache)
    return pykeops


def ensure_built(signature: str, warm_up: Callable[[], object]) -> None:
    """Run `warm_up`, which uses all formulas of `signature` once, where nobody else builds.

    Once it has run, the formulas stay loaded: later calls with this signature return at once.

    Args:
        signature: A name that stands for these formulas, usable in a file name.
        warm_up: Calls KeOps, which compiles and loads what it does not have yet.

    Raises:
        MissingExtra: KeOps cannot be used here, or its C++ code does not compile.
    """
    if signature in _ready:
        return
    pykeops = load_keops()
    folder = Path(pykeops.get_build_folder())
    complete, started = folder / f"{signature}.complete", folder / "started"
    with _locked(folder.with_name(folder.name + ".lock")):
        if started.exists():
            # Whoever made the mark died before the end: half a library may lie here.
            pykeops.clean_pykeops()
        if not complete.exists():
            # Logged as a warning: whoever waits for a minute is to know why, logging set up or not.
            LOGGER.warning("KeOps compiles its kernels once (about a minute) for %s", signature)
            started.touch()
        try:
            warm_up()
        except (ImportError, OSError) as error:
            raise MissingExtra(
                f"KeOps could not compile its kernels in {folder} ({error}): check that the C++ "
                "compiler works and that Python's header files are installed, or use the dense "
                "models"
            ) from error
        complete.touch()
        started.unlink(missing_ok=True)
    _ready.add(signature)


def _require_compiler() -> None:
    """Refuse where KeOps would find no C++ compiler."""
    names = [os.environ.get("CXX", ""), "g++", "clang++" if sys.platform == "darwin" else ""]
    if not any(name and shutil.which(name) for name in names):
        raise MissingExtra(
            "the KeOps models need a C++ compiler and found none: install g++ (or set CXX to a "
            "compiler), or use the dense models"
        )


def _import_quietly() -> None:
    """Import pykeops for the first time."""
    variables = {"KEOPS_VERBOSE": "0", "PYKEOPS_VERBOSE": "0"}
    if "KEOPS_CACHE_FOLDER" not in os.environ:
        folder = user_cache_path("cbo-suite") / f"keops-{version('pykeops')}"
        variables["KEOPS_CACHE_FOLDER"] = str(folder)
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            importlib.import_module("pykeops")
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of `path`; it falls with the process, however that ends."""
    import fcntl

    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            LOGGER.warning("another process compiles the kernels of KeOps: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
