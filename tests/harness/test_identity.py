"""What an optimizer's identity is made of: what changes it, and what does not."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import py_compile
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.harness import identity
from cbo_suite.harness.environment import describe_versions
from cbo_suite.harness.identity import OWN_OPTIMIZERS, Package, identify, identify_target
from cbo_suite.harness.settings import Progress
from cbo_suite.harness.syntax import read_syntax
from cbo_suite.journal import read_journal
from cbo_suite.optimizers.random_search import RandomSearch
from cbo_suite.registry import list_optimizers, optimizer_factory

ROOT = Path(__file__).parents[2]

# Where versions of Python differ: strings with values, empty and new fields, very large numbers.
SAMPLE = '''
from __future__ import annotations
import a.b as c, d
from . import e
@d.f(1, *c, **{"k": 0x10, **e})
class A(B, metaclass=C):
    """A docstring."""
    x: int = 1_000
    def f(self, a, /, b=1.5, *c, d, e=None, **g) -> None: ...
    async def g(self):
        async with a as b, c: await b
        return [x async for x in y if x if not y], {x: 1 for x in y}, (yield)
def joined(x, y):
    return (u"a" "b" f"c{x}d{{e}}" "f" f"{x!r:>{y}.2f}{y:}{x=}" f"{x!s:{'a'}b}", f"",
            f"{{" f"}}", f"{x:a\\N{BULLET}}",
            f"{f'{x}' + 'y'}", rb"\\x", b"\\xff", "\\ud800\\x7f\u00e9", "\\N{BULLET}")
match x:
    case {"a": [1, *_], **rest} if rest: y[1:, ::2] = -1j
    case A(x=None) | (None as z): del y[0], z
try: x = lambda *, a, b=2: (a := b)
except* (ValueError, OSError) as größe: raise E from größe
else: pass
finally: assert x, "y"
while True: break
else: global_ = not 1 < 2 <= 3 != 4
numbers = 0xffffffffffffffff, 1e999, 1e-7, ..., None, True, 1, 1.0, ''' + hex(10**5000)
# Pinned: it must come out on every version of Python that the workflows test.
SAMPLE_DIGEST = "04e44cf8c893eb2de1741c7665e14d4877b546545f7ed37d92ae2dddb02715fb"


def digest(source: str) -> str:
    """The digest of a module with this text."""
    return read_syntax(source, "package.module", False).digest


def test_the_digest_of_a_tree_is_the_same_in_every_version_of_python() -> None:
    """A row may get seeds from somebody with another Python."""
    assert digest(SAMPLE) == SAMPLE_DIGEST


@pytest.mark.parametrize(
    "other",
    [
        "x=1\ndef f(a,\n      b = 'it'):\n        return  (a [0],(b) )",
        '# a comment\nx = 0x1  # one\n\n\ndef f(a, b="""it"""):\n    # why\n    return a[0], b,\n',
        '"""Module."""\nx = 1\n"""Its x."""\ndef f(a, b="i" "t"):\n    """Do."""; return a[0], b',
        "x = 1\ndef f(a, b='it'):\n    pass\n    return a[0], b\n    ...",
    ],
)
def test_comments_docstrings_and_formatting_do_not_count(other: str) -> None:
    """A text that says the same to Python is the same."""
    assert digest(other) == digest("x = 1\ndef f(a, b='it'):\n    return a[0], b\n")


def test_whatever_python_executes_counts() -> None:
    """Each of these texts says something else."""
    texts = [
        "x = 1",
        "x = 1.0",
        "x = True",
        "x = '1'",
        "x = b'1'",
        "x = 1j",
        "x = None",
        "x = ...",
        "x = [1]",
        "x = [[1]]",
        "x = -1",
        "x: int = 1",
        "(x): int = 1",
        "x = y = 1",
        "x = '[', 1, ']'",
        "x = f'{y}'",
        "x = f'{y!r}'",
        "x = f'{y:a}'",
        "x = f'a{y}'",
        "def f(): return",
        "def f(): return None",
        "def f(a, *, b=None, c): ...",
        "def f(a, *, b, c=None): ...",
        "import x",
        "import x as y",
        "from x import y",
        "from .x import y",
        "from x import *",
    ]
    assert len({digest(text) for text in texts}) == len(texts)


@given(st.lists(st.sampled_from(["a", "{{", "}}", "{x}", "{x!r}", "{x:}", "{x:{y}}", ""])))
def test_how_a_string_with_values_is_cut_into_parts_does_not_count(parts: list[str]) -> None:
    """One text or several beside each other."""
    whole = f"x = f'{''.join(parts)}'"
    cut = "x = (f''" + "".join(f" f'{part}'" for part in parts) + ")"
    assert digest(whole) == digest(cut)


def test_a_very_deep_tree_is_digested() -> None:
    """Such as generated code has."""
    assert digest("x = " + "+".join("1" * 2000)) != digest("x = " + "+".join("1" * 2001))


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules that can be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def again(factory: Callable[..., object]) -> str:
    """The identity, read from the disk anew as a new process does."""
    identity._loaded_package.cache_clear()
    importlib.invalidate_caches()
    found = identify(factory)
    assert found is not None
    assert re.fullmatch("[0-9a-f]{64}", found)
    return found


def test_an_edit_of_a_single_file_changes_the_identity(author: Path) -> None:
    """The version in pyproject.toml may stay the same: the code tells."""
    file = author / "somebodys_search.py"
    file.write_text("class Search:\n    scale = 0.1\n", encoding="utf-8")
    factory = importlib.import_module("somebodys_search").Search
    first = again(factory)
    file.write_text("class Search:\n    scale = .1  # a tenth\n", encoding="utf-8")
    assert again(factory) == first
    file.write_text("class Search:\n    scale = 0.2\n", encoding="utf-8")
    assert again(factory) != first


# Modules of a package: the text of each, and whether the optimizer's closure has it.
MODULES = {
    "__init__": ("from somebodys_package.search import Search\n", False),
    "search": (
        "import somebodys_package.steps\n"
        "from . import scale\n"
        "from .inner import helper, value\n"
        "from .passed.through import *\n"
        "from typing import TYPE_CHECKING\n"
        "import numpy, os.path\n"
        "try:\n    import somebodys_package._fast\nexcept ImportError: ...\n"
        "if TYPE_CHECKING:\n    from somebodys_package import types_only\n"
        "else:\n    from somebodys_package import not_for_types\n"
        "class Search:\n"
        "    def ask(self):\n        from somebodys_package.lazy import Lazy as L\n",
        True,
    ),
    "steps": ("import somebodys_package.search\nimport importlib\n"
              "late = importlib.import_module('somebodys_package.by_text')\n", True),
    "scale": ("", True),
    "inner/__init__": ("value = 1\n", True),
    "inner/helper": ("from ..inner2 import name\n", True),
    "inner/other": ("", False),
    "inner2/__init__": ("from somebodys_package.inner2.name import name\n", True),
    "inner2/name": ("def name(): ...\n", True),
    "passed/__init__": ("", False),
    "passed/through": ("", True),
    "lazy": ("class Lazy: ...\n", True),
    "types_only": ("", False),
    "not_for_types": ("", True),
    "by_text": ("", False),
    "unrelated": ("from somebodys_package.search import Search\n", False),
}  # fmt: skip


def write_package(folder: Path) -> Callable[..., object]:
    """Write the package of `MODULES` and return the class in it."""
    for name, (text, _) in MODULES.items():
        file = folder / "somebodys_package" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(
        "somebodys_package",
        folder / "somebodys_package" / "__init__.py",
        submodule_search_locations=[str(folder / "somebodys_package")],
    )
    assert spec is not None
    # The modules are never executed: some import what is not there.
    sys.modules["somebodys_package"] = importlib.util.module_from_spec(spec)
    return type("Search", (), {"__module__": "somebodys_package.search"})


@pytest.mark.parametrize("name", MODULES)
def test_the_import_closure_counts_and_nothing_else(name: str, author: Path) -> None:
    """A constant in any module changes the identity if and only if the optimizer imports it."""
    factory = write_package(author)
    first = again(factory)
    file = author / "somebodys_package" / f"{name}.py"
    file.write_text(file.read_text("utf-8") + "\nstep = 2\n", encoding="utf-8")
    assert (again(factory) != first) == MODULES[name][1]
    file.write_text(MODULES[name][0] + "\n# step = 2\n", encoding="utf-8")
    assert again(factory) == first


def test_a_part_that_is_optional_counts_once_it_is_there(author: Path) -> None:
    """Compiled code by its bytes, since there is nothing else of it."""
    factory = write_package(author)
    found = {again(factory)}
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    for content in (b"one build", b"another"):
        (author / "somebodys_package" / f"_fast{suffix}").write_bytes(content)
        found.add(again(factory))
    assert len(found) == 3


def test_options_of_a_variant_and_the_class_count(author: Path) -> None:
    """However they are bound; a variant without any is its class."""
    scbo = {info.id: identify_target(info.target, info.options) for info in list_optimizers()}
    assert None not in scbo.values()
    assert len(set(scbo.values())) == len(scbo)
    assert identify(optimizer_factory("random-search")) == scbo["random-search"]
    violation = optimizer_factory("cma-es-violation")
    assert identify(violation) == scbo["cma-es-violation"]
    cma = optimizer_factory("cma-es")
    assert identify(partial(cma, handling="violation")) == scbo["cma-es-violation"]
    assert identify(partial(violation, handling="death")) not in scbo.values()
    assert identify(partial(cma, None)) not in (None, scbo["cma-es"])
    assert identify(partial(cma)) == scbo["cma-es"]


def test_code_that_nobody_can_read_has_no_identity(author: Path) -> None:
    """A prompt, a notebook or a script, bytecode alone, a broken file, options like objects."""
    for module in ("typed_into_a_prompt", "__main__", "builtins"):
        factory = type("Typed", (), {"__module__": module})
        assert identify(factory) is None
        assert "optimizer-source" not in describe_versions(factory)
    cma = optimizer_factory("cma-es")
    assert identify(partial(cma, handling=object())) is None
    source = author / "compiled_search.py"
    source.write_text("class Search: ...\n", encoding="utf-8")
    py_compile.compile(str(source), cfile=str(author / "compiled_search.pyc"))
    source.unlink()
    compiled = importlib.import_module("compiled_search").Search
    assert identify(compiled) is None
    broken = author / "unreadable_search.py"
    broken.write_text("class Search: ...\n", encoding="utf-8")
    factory = importlib.import_module("unreadable_search").Search
    for content in (b"class Search(:\n", b"\0", b"\xff"):
        broken.write_bytes(content)
        identity._loaded_package.cache_clear()
        assert identify(factory) is None


SEARCH = """from cbo_suite.optimizers.random_search import RandomSearch

class Search(RandomSearch):
    scale = 0.1
"""


@pytest.mark.parametrize(
    ("edit", "stop", "budget", "kept"),
    [
        ("# It is small.", 30, 40, "first"),
        ("scale = 0.2", 30, 40, "none"),
        ("scale = 0.2", 30, 50, "none"),
        ("scale = 0.2", 8, 40, "second"),
        ("scale = 0.2", 40, 40, "first"),
    ],
)
def test_a_run_that_two_identities_made_has_none(
    edit: str, stop: int, budget: int, kept: str, author: Path
) -> None:
    """It goes on, since evaluations are expensive, but it is nobody's; a design is everybody's."""
    file, journal = author / "resumed_search.py", author / "run.jsonl"
    file.write_text(SEARCH, encoding="utf-8")
    factory = importlib.import_module("resumed_search").Search

    def interrupt(progress: Progress) -> None:
        if progress.done == stop < 40:
            raise KeyboardInterrupt

    identities = {"first": again(factory), "none": None}
    with contextlib.suppress(KeyboardInterrupt):
        cbo.run("toy-2d-v1", factory, budget=40, n_init=10, journal=journal, callback=interrupt)
    file.write_text(f"{SEARCH}    {edit}\n", encoding="utf-8")
    identities["second"] = again(factory)
    run = cbo.run("toy-2d-v1", factory, budget=budget, n_init=10, journal=journal)
    assert len(run.x) == budget
    contents = read_journal(journal)
    assert contents is not None
    assert contents.header.versions.get("optimizer-source") == identities[kept]


def test_versions_of_libraries_stand_beside_it() -> None:
    """They may change a result, and are no part of the method."""
    versions = describe_versions(RandomSearch)
    assert versions["optimizer-source"] == identify(RandomSearch)
    assert {"cbo-suite", "python", "numpy"} < set(versions)


def suite_identities(folder: Path) -> dict[str, str | None]:
    """The identities of the suite's optimizers in a copy of their folder."""
    spec = importlib.util.spec_from_file_location(
        OWN_OPTIMIZERS, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    importlib.invalidate_caches()
    package = Package(spec)
    return {info.id: package.identify(info.target, info.options) for info in list_optimizers()}


def test_an_edit_in_the_suite_changes_exactly_what_imports_it(tmp_path: Path) -> None:
    """No comment changes anything, a constant what uses it, a new row of the table nothing."""
    folder = tmp_path / "optimizers"
    shutil.copytree(ROOT / "optimizers", folder, ignore=shutil.ignore_patterns("__pycache__"))
    first = suite_identities(folder)
    assert first == {i.id: identify_target(i.target, i.options) for i in list_optimizers()}
    for file in folder.rglob("*.py"):
        text = file.read_text("utf-8").replace("\n\n", "\n\n# A comment.\n\n")
        file.write_text(text, encoding="utf-8")
    assert suite_identities(folder) == first

    def changed(name: str) -> set[str]:
        file = folder / name
        text = file.read_text("utf-8")
        file.write_text(text + "\nCONSTANT = 1\n", encoding="utf-8")
        found = suite_identities(folder)
        file.write_text(text, encoding="utf-8")
        return {id_ for id_ in first if found[id_] != first[id_]}

    assert changed("__init__.py") == set()
    assert changed("random_search.py") == {"random-search", "sobol-search"}
    assert changed("cobyla/step.py") == {"cobyla", "cobyqa"}
    regions = {id_ for id_ in first if id_.startswith(("scbo", "furbo"))}
    assert changed("scbo/trust_region.py") == regions
    # Imported inside functions alone.
    others = {id_ for id_ in first if id_.startswith(("cei", "slack", "pesc", "cmes"))}
    models = regions | others
    assert changed("models/keops/gp.py") == models
