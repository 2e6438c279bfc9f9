"""The identity of an optimizer: a digest of the code and the options that make it what it is.

Runs of one identity were made by one method, so more seeds may join a row. The code is the import
closure of the optimizer's module inside the package that it comes from, `cbo_suite.optimizers` or
the top package of somebody else; what is imported from elsewhere is named by its version, beside
the identity. Nothing is imported to compute it.

The closure is what import statements name, those inside functions included:

- `import a.b` names the module b; `from a import b` names the module b if there is one, else a. A
  parent package that is only passed through does not count.
- What stands under `if TYPE_CHECKING:` is not followed, since it never runs. Neither is a module
  whose name is a text, as in `importlib.import_module("a.b")`.
- The table of ids, `cbo_suite.optimizers` itself, never counts: otherwise a new optimizer would
  change all others. What it says of an id does: the class and its options.

Of each module the syntax tree counts (`cbo_suite.harness.syntax`), of a compiled extension every
byte.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.machinery import SOURCE_SUFFIXES, ExtensionFileLoader, ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from cbo_suite.harness.syntax import Import, Syntax, read_syntax

OWN_OPTIMIZERS = "cbo_suite.optimizers"
_WITHOUT_SOURCE = ("", "__main__", "builtins")


def identify(factory: Callable[..., object]) -> str | None:
    """Return the identity of an optimizer's class or factory: 64 hexadecimal digits.

    Options that `functools.partial` binds to it, as the registry does for variants, belong to it.

    Returns:
        None if there is no source that others could read: code of a notebook, of a prompt or of a
        script, a package of bytecode alone, or options that are no plain JSON.
    """
    return identify_target(*describe_factory(factory))


def describe_factory(factory: Callable[..., object]) -> tuple[str, dict[str, Any]]:
    """Return the "module:class" behind a class or factory, and the options bound to it."""
    options: dict[str, Any] = {}
    while isinstance(factory, partial):
        options = {"*": factory.args, **factory.keywords, **options}
        factory = factory.func
    named = factory if hasattr(factory, "__qualname__") else type(factory)
    if not options.get("*"):
        options.pop("*", None)
    return f"{named.__module__}:{named.__qualname__}", options


def identify_target(target: str, options: Mapping[str, Any]) -> str | None:
    """Return the identity of "module:class" with some options; see `identify`.

    The module itself need not be imported, but the package that it comes from.
    """
    module = target.partition(":")[0]
    own = f"{module}.".startswith(f"{OWN_OPTIMIZERS}.")
    package = _loaded_package(OWN_OPTIMIZERS if own else module.partition(".")[0])
    return None if package is None else package.identify(target, options)


class Package:
    """The modules of a package, found and read without importing them, each once."""

    def __init__(self, spec: ModuleSpec) -> None:
        """Remember where the package is found."""
        self.name = spec.name
        self._specs: dict[str, ModuleSpec | None] = {spec.name: spec}
        self._modules: dict[str, Syntax | None] = {}

    def identify(self, target: str, options: Mapping[str, Any]) -> str | None:
        """Return the identity of "module:class" of this package with some options."""
        try:
            modules = self.closure(target.partition(":")[0])
            facts = {"target": target, "options": dict(options), "modules": modules}
            text = json.dumps(facts, sort_keys=True, allow_nan=False)
        except (ImportError, OSError, SyntaxError, TypeError, ValueError, RecursionError):
            return None
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def closure(self, root: str) -> dict[str, str]:
        """Return the modules that a module needs, itself among them, and their digests.

        Raises:
            ImportError: The module, or one that it needs, has no source.
            OSError: A file cannot be read.
            SyntaxError: A file is no Python.
            ValueError: A file is no text.
        """
        found: dict[str, str] = {}
        waiting = [root]
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            module = self._read(name)
            if module is not None:
                found[name] = module.digest
                waiting += (need for item in module.imports for need in self._needs(item))
            elif name == root:
                raise ImportError(f"there is no {root} in {self.name}")
        return found

    def _needs(self, item: Import) -> Iterator[str]:
        """Give the modules of this package that an import statement names."""
        if not f"{item.module}.".startswith(f"{self.name}."):
            return
        submodule = f"{item.module}.{item.name}"
        is_submodule = item.name not in ("", "*") and self._find(submodule) is not None
        if is_submodule:
            yield submodule
        if item.module == OWN_OPTIMIZERS:
            return
        parent = self._read(item.module) if is_submodule else None
        # A package may bind the name of one of its modules to something else.
        if not is_submodule or (parent is not None and item.name in parent.names):
            yield item.module

    def _find(self, name: str) -> ModuleSpec | None:
        """Find a module; None if it is not there, as a part that is optional may be."""
        if name not in self._specs:
            parent = self._find(name.rpartition(".")[0])
            folders = getattr(parent, "submodule_search_locations", None)
            spec = None
            if folders is not None:
                spec = PathFinder.find_spec(name, list(folders))
                # An editable install may have put a part of the package elsewhere.
                finders = iter(sys.meta_path)
                while spec is None and (finder := next(finders, None)) is not None:
                    spec = finder.find_spec(name, folders)
            self._specs[name] = spec
        return self._specs[name]

    def _read(self, name: str) -> Syntax | None:
        """Read a module; None if it is not there, or a folder without code.

        Raises:
            ImportError: It has no source.
        """
        if name not in self._modules:
            spec = self._find(name)
            is_code = spec is not None and spec.loader is not None and spec.origin is not None
            self._modules[name] = _read_code(spec) if spec is not None and is_code else None
        return self._modules[name]


def _read_code(spec: ModuleSpec) -> Syntax:
    """Read the code of a module from its file.

    Raises:
        ImportError: It has no source.
    """
    origin = spec.origin or ""
    if isinstance(spec.loader, ExtensionFileLoader):
        digest = hashlib.sha256(Path(origin).read_bytes()).hexdigest()
        return Syntax(digest, frozenset(), frozenset())
    if not origin.endswith(tuple(SOURCE_SUFFIXES)):
        raise ImportError(f"{spec.name} has no source: {origin}")
    source = importlib.util.decode_source(Path(origin).read_bytes())
    return read_syntax(source, spec.name, spec.submodule_search_locations is not None)


@cache
def _loaded_package(name: str) -> Package | None:
    """Return a package, or a single module, that is imported; None if it has no file."""
    module = sys.modules.get(name)
    spec: ModuleSpec | None = getattr(module, "__spec__", None)
    file: str | None = getattr(module, "__file__", None)
    if name in _WITHOUT_SOURCE:
        return None
    if spec is None and file is not None:
        spec = importlib.util.spec_from_file_location(name, file)
    return None if spec is None else Package(spec)
