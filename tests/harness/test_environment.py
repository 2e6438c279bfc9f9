"""What is on record about the software of a run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cbo_suite.harness.environment import _source_digest, describe_versions
from cbo_suite.optimizers.random_search import RandomSearch
from cbo_suite.registry import optimizer_factory


def source(factory: object) -> str:
    """The digest of an optimizer's code, read from the disk again."""
    _source_digest.cache_clear()
    return describe_versions(factory)["optimizer-source"]  # type: ignore[arg-type]


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules that can be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_edit_changes_the_digest(author: Path) -> None:
    """The version in pyproject.toml may stay the same: the code tells."""
    file = author / "somebodys_search.py"
    file.write_text("class Search:\n    scale = 0.1\n", encoding="utf-8")
    factory = importlib.import_module("somebodys_search").Search
    first = source(factory)
    assert first == source(factory)
    file.write_text("class Search:\n    scale = 0.2\n", encoding="utf-8")
    assert source(factory) != first


def test_a_package_counts_as_a_whole(author: Path) -> None:
    """What the optimizer's module imports from its own package belongs to it."""
    (author / "somebodys_package").mkdir()
    for name in ("__init__", "search", "steps"):
        (author / "somebodys_package" / f"{name}.py").write_text("class Search: ...\n")
    factory = importlib.import_module("somebodys_package.search").Search
    first = source(factory)
    (author / "somebodys_package" / "steps.py").write_text("length = 2\n")
    second = source(factory)
    (author / "somebodys_package" / "steps.py").rename(author / "somebodys_package" / "step.py")
    assert len({first, second, source(factory)}) == 3


def test_all_optimizers_of_the_suite_have_one() -> None:
    """They share code; a variant is the code of its class."""
    assert source(optimizer_factory("scbo-ei")) == source(RandomSearch)


def test_code_without_a_file_has_none() -> None:
    """Such as what is typed into a prompt."""
    factory = type("Typed", (), {"__module__": "typed_into_a_prompt"})
    assert "optimizer-source" not in describe_versions(factory)
