"""The syntax tree of a module as bytes that are the same for every Python, and what it imports.

`ast.dump` differs between versions of Python: fields are added, and left out when they are empty.
Here no empty field is written, and strings with values in them, which Python 3.12 splits otherwise
than 3.11, are put together first.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

# What follows from other fields (the context of a name), or from how a text is written (u"").
_SKIPPED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


class Import(NamedTuple):
    """What an import statement names.

    Attributes:
        module: The module, by its full name.
        name: What is taken from it; "" for the module itself, "*" for everything.
    """

    module: str
    name: str


class Syntax(NamedTuple):
    """What counts of a module.

    Attributes:
        digest: SHA-256 of its tree without comments, docstrings, positions and formatting.
        imports: What its import statements name, except those for type checkers alone.
        names: All names that it binds, wherever.
    """

    digest: str
    imports: frozenset[Import]
    names: frozenset[str]


def read_syntax(source: str | bytes, module: str, is_package: bool) -> Syntax:
    """Parse the source of a module.

    Args:
        source: Its text.
        module: Its full name.
        is_package: Whether it is the `__init__` of a package.

    Raises:
        SyntaxError: It is no Python.
        ValueError: It holds a zero byte.
    """
    tree = ast.parse(source)
    package = module if is_package else module.rpartition(".")[0]
    imports: set[Import] = set()
    names: set[str] = set()
    for node in _executed(tree):
        match node:
            case ast.Import(names=aliases):
                imports.update(Import(alias.name, "") for alias in aliases)
            case ast.ImportFrom(module=base, names=aliases, level=level):
                start = _absolute(base or "", level, package)
                imports.update(Import(start, alias.name) for alias in aliases)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add(other or name)
    return Syntax(digest_tree(tree), frozenset(imports), frozenset(names))


def digest_tree(tree: ast.AST) -> str:
    """Return the SHA-256 of a tree, written without what is empty."""
    text = "".join(_write(tree))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _write(tree: ast.AST) -> Iterator[str]:
    """Write a tree in pieces of ASCII; equal pieces are equal trees."""
    # A stack instead of recursion: sums of a thousand terms are a thousand deep.
    waiting: list[object] = [tree]
    while waiting:
        item = waiting.pop()
        match item:
            case _Text():
                yield item
            case ast.AST():
                yield f"({type(item).__name__}"
                waiting.append(_Text(")"))
                for field in reversed(item._fields):
                    value = _content(item, field)
                    if field not in _SKIPPED and value is not None and value != []:
                        waiting += [value, _Text(f" {field}=")]
            case list():
                yield "["
                waiting.append(_Text("]"))
                waiting += reversed(item)
            case int():
                # In hexadecimal, because Python refuses to write very large ones in decimal.
                yield f"{type(item).__name__} {item:x},"
            case _:
                # Which signs are printable, and so how `repr` writes a text, is up to the version.
                yield f"{type(item).__name__} {item!a},"


class _Text(str):
    """A piece of what is written, unlike a text of the tree."""

    __slots__ = ()


def _content(node: ast.AST, field: str) -> object:
    """Return a field of a node without what does nothing."""
    value = getattr(node, field, None)
    if isinstance(node, ast.JoinedStr) and field == "values":
        return _joined(value or [])
    if field == "format_spec" and isinstance(value, ast.JoinedStr) and not _joined(value.values):
        return None
    if isinstance(value, list):
        return [item for item in value if not _does_nothing(item)]
    return value


def _does_nothing(node: object) -> bool:
    """Tell whether a node is a docstring or another statement without effect."""
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or isinstance(node, ast.Pass)


def _joined(values: list[ast.expr]) -> list[object]:
    """Put the constant parts of a string with values together, and leave out empty ones."""
    parts: list[object] = []
    for value in values:
        text = value.value if isinstance(value, ast.Constant) else None
        if not isinstance(text, str):
            parts.append(value)
        elif parts and isinstance(parts[-1], str):
            parts[-1] += text
        elif text:
            parts.append(text)
    return parts


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Give all nodes of a tree but those that only type checkers see."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _is_type_checking(test: ast.expr) -> bool:
    """Tell whether a condition is `TYPE_CHECKING`, however it was imported."""
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _absolute(module: str, level: int, package: str) -> str:
    """Return the full name of a module that is imported relative to a package."""
    if level == 0:
        return module
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])])
