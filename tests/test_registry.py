"""Ids, suggestions, missing extras, and entries of other packages."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import cbo_suite as cbo
from cbo_suite import registry
from cbo_suite.cli import main
from cbo_suite.errors import CboError, DuplicateId, InvalidTask, MissingExtra, UnknownId
from cbo_suite.optimizers import OPTIMIZERS
from cbo_suite.problems import PROBLEMS
from cbo_suite.protocols import (
    DEFAULT_PROTOCOL,
    Array,
    Evaluation,
    OptimizerEntry,
    ProblemEntry,
    RunProtocol,
)


@pytest.mark.parametrize("id_", PROBLEMS)
def test_the_table_of_problems_tells_the_truth(id_: str) -> None:
    """Id, dimension and number of constraints of the table are those of the problem."""
    entry = PROBLEMS[id_]
    if id_ == "mopta08-124d-v1":
        pytest.skip("needs the executable that its user supplies")
    try:
        problem = cbo.make_problem(id_)
    except MissingExtra as missing:
        pytest.skip(str(missing))
    assert problem.id == id_
    assert problem.space.dim == entry.dim
    assert problem.space.num_constraints == entry.num_constraints
    assert entry.title
    assert registry._PROBLEM_ID.fullmatch(id_)


@pytest.mark.parametrize("id_", OPTIMIZERS)
def test_the_table_of_optimizers_tells_the_truth(id_: str) -> None:
    """Every optimizer can be made and asked."""
    space = cbo.Space([0.0, 0.0], [1.0, 1.0], 1)
    try:
        optimizer = cbo.make_optimizer(id_, space, budget=10, seed=1)
    except MissingExtra as missing:
        pytest.skip(str(missing))
    assert space.validate(optimizer.ask(1)).shape == (1, 2)
    assert OPTIMIZERS[id_].title
    assert registry._OPTIMIZER_ID.fullmatch(id_)


def test_variants_are_grouped_under_their_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """By class and options; a package that offers our class under an id of its own takes nobody."""
    rows = dict(registry._optimizers())
    rows["their-scbo"] = rows["scbo"]._replace(package="theirs")
    monkeypatch.setattr(registry, "_optimizers", lambda: rows)
    methods = {row.id: row.method for row in registry.list_optimizers()}
    groups: dict[str, int] = {}
    for method in methods.values():
        groups[method] = groups.get(method, 0) + 1
    assert groups == {
        "random-search": 1,
        "sobol-search": 1,
        "cobyla": 1,
        "cobyqa": 1,
        "cma-es": 3,
        "scbo": 11,
        "cei": 2,
        "slack": 2,
        "pesc": 2,
        "cmes-ibo": 1,
        "egobox": 1,
        "optuna-gp": 1,
        "optuna-tpe": 1,
        "botorch-logcei": 1,
        "isres": 1,
        "nomad": 1,
        "bayesqp": 1,
        "furbo": 1,
        "their-scbo": 1,
    }
    assert methods["scbo-untransformed-ei-global"] == methods["scbo"] == "scbo"
    assert methods["cma-es-al"] == methods["cma-es-violation"] == "cma-es"
    assert methods["their-scbo"] == "their-scbo"


def test_an_id_without_version_is_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions are compared as numbers."""
    rows = dict(registry._problems())
    rows["toy-2d-v10"] = rows["toy-2d-v9"] = rows["toy-2d-v1"]
    monkeypatch.setattr(registry, "_problems", lambda: rows)
    assert registry.resolve_problem_id("toy-2d") == "toy-2d-v10"
    assert registry.resolve_problem_id("toy-2d-v9") == "toy-2d-v9"


def test_unknown_ids_are_answered_with_near_ones() -> None:
    """The suggestion is in the message; the error is a KeyError too."""
    with pytest.raises(UnknownId, match=r"unknown problem 'akley-10d-v1': did you mean 'ackley"):
        cbo.make_problem("akley-10d-v1")
    with pytest.raises(KeyError, match="did you mean 'random-search'"):
        cbo.make_optimizer("random_search", cbo.Space([0.0], [1.0]), budget=1)
    with pytest.raises(UnknownId, match="see `cbo list`"):
        cbo.make_problem("zzzzzz")


def test_options_reach_the_problem() -> None:
    """A family takes its dimension."""
    assert cbo.make_problem("keane-30d-v1", dim=7).space.dim == 7


def test_options_of_an_optimizer_are_known() -> None:
    """Not the arguments that all have; None of who takes any, or does not say."""
    assert registry.known_options("cobyqa") == ["initial_radius", "final_radius"]
    assert registry.known_options("random-search") == []
    takers: list[Any] = [lambda space, *rest, step=1: None, lambda **options: None, type]
    assert [registry.known_options(taker) for taker in takers] == [["step"], None, None]
    assert not registry.has_option("cobyqa", "seed")


def test_a_missing_extra_is_answered_with_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line can be copied as it is."""
    row = registry._Row("a_library_that_is_not_there:Thing", "", "lunar", {}, "cbo-suite")
    monkeypatch.setattr(registry, "_problems", lambda: {"some-1d-v1": row})
    with pytest.raises(MissingExtra) as caught:
        cbo.make_problem("some-1d-v1")
    assert str(caught.value) == (
        "some-1d-v1 needs a_library_that_is_not_there, which is not installed: "
        'pip install "cbo-suite[lunar]"'
    )
    monkeypatch.setattr(registry, "_problems", lambda: {"some-1d-v1": row._replace(extra="")})
    with pytest.raises(ModuleNotFoundError):
        cbo.make_problem("some-1d-v1")


def test_a_target_that_does_not_exist_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken entry point of another package is its package's fault, and says so."""
    row = registry._Row("json:nothing", "", "", {}, "their-package")
    monkeypatch.setattr(registry, "_problems", lambda: {"some-1d-v1": row})
    with pytest.raises(CboError, match="some-1d-v1 of package their-package points to"):
        cbo.make_problem("some-1d-v1")


def test_a_module_that_is_half_there_names_the_cause(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What its import raises is told, not that the class is not there."""
    (tmp_path / "half_there.py").write_text("import json\n\njson.interrupted()\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    row = registry._Row("half_there:Thing", "", "", {}, "their-package")
    monkeypatch.setattr(registry, "_problems", lambda: {"some-1d-v1": row})
    with pytest.raises(CboError, match=r"imported: AttributeError: .* 'interrupted'") as caught:
        cbo.make_problem("some-1d-v1")
    assert isinstance(caught.value.__cause__, AttributeError)


def test_a_broken_entry_point_is_listed_as_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """`cbo list` says which package's thing cannot be made and why; ours are not imported."""
    row = registry._Row("json:nothing", "from their-package", "", {}, "their-package")
    rows = {**registry._problems(), "some-1d-v1": row}
    monkeypatch.setattr(registry, "_problems", lambda: rows)
    assert list(registry.find_faults()) == ["some-1d-v1"]
    listing = json.loads(CliRunner().invoke(main, ["list", "--json"]).output)
    titles = {row["id"]: row["title"] for row in listing["problems"]}
    assert titles["some-1d-v1"].startswith("broken: some-1d-v1 of package their-package points")
    assert titles["toy-2d-v1"] == "Toy with a wavy feasible set"


class Mine:
    """A problem of a user, which declares how it is run."""

    id = "mine-1d-v1"
    space = cbo.Space([0.0], [1.0])
    protocol = RunProtocol(40, 2, 6)

    def evaluate(self, x: Array) -> Evaluation:
        """Evaluate the first variable."""
        return Evaluation(x[:, 0], np.empty((len(x), 0)))


def make_mine() -> Mine:
    """Make it, as the factory of an entry point does."""
    return Mine()


def test_the_protocol_of_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours stands in the table; others declare it on the class or on what a factory makes."""
    rows = dict(registry._problems())
    for name in ("Mine", "make_mine"):
        id_ = f"{name.lower().replace('_', '-')}-1d-v1"
        rows[id_] = registry._Row(f"{__name__}:{name}", "", "", {}, "their-package")
    monkeypatch.setattr(registry, "_problems", lambda: rows)
    assert registry.protocol_of("ackley-10d-v1") == (200, 1, 10)
    assert registry.protocol_of(cbo.make_problem("ackley-10d-v1")) == (200, 1, 10)
    for problem in ("mine-1d-v1", "make-mine-1d-v1", Mine()):
        assert registry.protocol_of(problem) == (40, 2, 6)
    assert registry.protocol_of(cbo.make_problem("keane-30d-v1", dim=7)) == DEFAULT_PROTOCOL
    with pytest.raises(UnknownId, match="did you mean 'mine-1d-v1'"):
        registry.protocol_of("mine-1d-v2")
    monkeypatch.setattr(Mine, "protocol", (40, 2))
    with pytest.raises(InvalidTask, match=r"mine-1d-v1 declares the protocol \(40, 2\)"):
        registry.protocol_of(Mine())


def make_package(folder: Path, name: str, entries: str) -> Path:
    """Build the wheel of a tiny package by hand and unpack it into a folder of its own."""
    code = (
        "import numpy as np\n"
        "from cbo_suite import Evaluation, Space\n"
        "from cbo_suite.optimizers.random_search import RandomSearch as Mine\n"
        "class Bowl:\n"
        "    id = 'bowl-1d-v1'\n"
        "    space = Space([-1.0], [1.0], 1)\n"
        "    def evaluate(self, x):\n"
        "        return Evaluation((x**2).sum(axis=1), x)\n"
    )
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}.py", code)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/entry_points.txt", entries)
        archive.writestr(f"{info}/RECORD", "")
    site = folder / f"site-{name}"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(site), str(wheel)], check=True)
    return site


def cbo_command(*arguments: str, path: list[Path]) -> subprocess.CompletedProcess[str]:
    """Run the command with more folders on the path."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-m", "cbo_suite", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_another_package_adds_its_own(tmp_path: Path) -> None:
    """Entries of an installed package are listed and run like ours."""
    entries = (
        "[cbo_suite.problems]\nbowl-1d-v1 = theirs:Bowl\n"
        "[cbo_suite.optimizers]\ntheir-search = theirs:Mine\n"
    )
    site = make_package(tmp_path, "theirs", entries)
    listed = cbo_command("list", path=[site])
    assert "bowl-1d-v1" in listed.stdout
    assert "their-search" in listed.stdout
    rows = json.loads(cbo_command("list", "--json", path=[site]).stdout)
    assert {"id": "bowl-1d-v1", "package": "theirs"}.items() <= rows["problems"][-1].items()
    done = cbo_command("run", "bowl-1d", "their-search", "--budget", "20", path=[site])
    assert done.returncode == 0, done.stderr
    assert "feasible objective" in done.stdout


def test_collisions_and_bad_names_are_refused(tmp_path: Path) -> None:
    """Nobody can take the place of another; the message names both packages."""
    ours = make_package(tmp_path, "thief", "[cbo_suite.problems]\ntoy-2d-v1 = thief:Bowl\n")
    result = cbo_command("list", path=[ours])
    assert result.returncode == 1
    assert "'toy-2d-v1' in cbo_suite.problems is registered by cbo-suite and by thief" in (
        result.stderr
    )
    one = make_package(tmp_path, "one", "[cbo_suite.optimizers]\nsame = one:Mine\n")
    two = make_package(tmp_path, "two", "[cbo_suite.optimizers]\nsame = two:Mine\n")
    result = cbo_command("list", path=[one, two])
    assert "is registered by one and by two: uninstall one of them" in result.stderr
    bad = make_package(tmp_path, "bad", "[cbo_suite.problems]\nBad_Name = bad:Bowl\n")
    assert "package bad registers 'Bad_Name'" in cbo_command("list", path=[bad]).stderr


def test_the_tables_hold_entries_only() -> None:
    """Each row is of its kind, and its module exists."""
    for table, kind in ((PROBLEMS, ProblemEntry), (OPTIMIZERS, OptimizerEntry)):
        for entry in table.values():
            assert isinstance(entry, kind)
            module = entry.target.partition(":")[0]
            assert importlib.util.find_spec(module) is not None, module
    assert issubclass(DuplicateId, ValueError)
