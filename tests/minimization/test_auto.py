"""`minimize` without a named optimizer: what the result says, and how a journal is resumed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cbo_suite as cbo
from cbo_suite import choice
from cbo_suite.errors import JournalError, MissingExtra
from cbo_suite.protocols import Array
from tests.doubles import Hill, contents_of


def bowl(x: Array) -> tuple[Array, Array]:
    """A bowl with its floor at (0.3, 0.3), where x1 + x2 >= 0.5."""
    return ((x - 0.3) ** 2).sum(axis=1), (0.5 - x.sum(axis=1))[:, None]


def minimize(**more: Any) -> Any:
    """Minimise the bowl over the unit square, by default with twelve evaluations."""
    return cbo.minimize(bowl, [0, 0], [1, 1], **({"num_constraints": 1, "budget": 12} | more))


def test_the_result_says_what_was_taken_and_why() -> None:
    """It is the run that this optimizer makes when it is named."""
    pytest.importorskip("torch", reason="needs the extra scbo")
    result = minimize()
    assert result.optimizer == result.run.task.optimizer == "cei"
    assert result.choice.startswith(
        "cei for 2 variables, 1 constraint, 12 evaluations, one at a time: "
    )
    named = minimize(optimizer="cei")
    assert named.run.digest == result.run.digest
    assert (named.optimizer, named.choice) == ("cei", "")


def test_a_class_has_its_name_in_the_result() -> None:
    """As in the journal."""
    assert minimize(optimizer=Hill).optimizer == "tests.doubles:Hill"


def test_noise_is_told_to_who_knows_it(tmp_path: Path) -> None:
    """The declaration becomes an option of SCBO, which recommends a point."""
    pytest.importorskip("torch", reason="needs the extra scbo")
    path = tmp_path / "run.jsonl"
    result = minimize(options={"noisy": True}, journal=path)
    assert result.optimizer == "scbo"
    assert contents_of(path).header.options == {"noisy": True}
    assert result.run.recommended_x is not None
    # The same call, and one that says nothing, go on.
    for options in ({"noisy": True}, None):
        assert minimize(options=options, journal=path).run.digest == result.run.digest


def test_a_larger_budget_keeps_the_optimizer_of_the_journal(tmp_path: Path) -> None:
    """Also where the rule would now take another one."""
    pytest.importorskip("torch", reason="needs the extra scbo")
    path = tmp_path / "run.jsonl"
    first = minimize(journal=path)
    assert first.optimizer == "cei"
    larger = minimize(journal=path, budget=9000, callback=lambda progress: progress.done >= 14)
    assert larger.optimizer == "cei"
    assert larger.choice == "cei, with which the journal was begun"
    assert (larger.run.x[:12] == first.run.x).all()
    assert larger.nfev == 14
    assert minimize(budget=9000, callback=lambda progress: True).optimizer == "cobyla"


def test_torch_that_comes_or_goes_changes_no_run_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal of COBYLA stays one; one that needs torch says so when it is gone."""
    pytest.importorskip("torch", reason="needs the extra scbo")
    plain, modelled = tmp_path / "plain.jsonl", tmp_path / "modelled.jsonl"
    minimize(journal=modelled)
    with monkeypatch.context() as patch:
        patch.setattr(choice, "find_spec", lambda name: None)
        before = minimize(journal=plain, stop_at=10.0, options={"noisy": True})
    assert before.optimizer == "cobyla"
    assert 0 < before.nfev < 12
    after = minimize(journal=plain, options={"noisy": True})
    assert (after.optimizer, after.nfev) == ("cobyla", 12)
    named = minimize(optimizer="cobyla")
    assert after.run.digest == named.run.digest


def test_the_default_goes_on_from_a_journal_of_a_named_optimizer(tmp_path: Path) -> None:
    """Whatever was named when it was begun, its options too."""
    path = tmp_path / "run.jsonl"
    options = {"subproblem": "scipy"}
    first = minimize(optimizer="cobyla", options=options, journal=path)
    for again in (None, options):
        same = minimize(journal=path, options=again)
        assert same.run.digest == first.run.digest
        assert same.optimizer == "cobyla"
    with pytest.raises(JournalError, match="its options is"):
        minimize(journal=path, options={"subproblem": "exact"})


def test_a_journal_that_is_set_aside_is_no_reason(tmp_path: Path) -> None:
    """With another function and `on_change="restart"` the rule decides anew."""
    path = tmp_path / "run.jsonl"
    minimize(optimizer="random-search", journal=path)
    fresh = cbo.minimize(
        lambda x: x.sum(axis=1),
        [0, 0],
        [1, 1],
        journal=path,
        on_change="restart",
        budget=9000,
        callback=lambda progress: True,
    )
    assert fresh.optimizer == "cobyla"


# A process in which libraries are not found, whatever is installed.
WITHOUT = """
import json
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *more: (
    None if name.partition(".")[0] in {libraries!r} else find(name, *more)
)
import cbo_suite as cbo

result = cbo.minimize(
    lambda x: ((x - 0.3).sum(axis=1) ** 2, 0.5 - x.sum(axis=1, keepdims=True)),
    [0, 0], [1, 1], num_constraints=1, budget=30, batch_size={batch_size},
)
print(json.dumps([result.optimizer, result.choice, bool(result.success), result.nfev]))
"""


@pytest.mark.parametrize(
    ("libraries", "batch_size", "optimizer"),
    [
        (["torch"], 1, "cobyla"),
        (["torch"], 4, "cma-es-al"),
        (["torch", "cma", "gpytorch", "linear_operator", "pykeops"], 4, "cobyla"),
    ],
)
def test_a_process_without_torch_is_served(
    libraries: list[str], batch_size: int, optimizer: str
) -> None:
    """It finds a feasible point, and standard error has the hint once."""
    if "cma" in optimizer:
        pytest.importorskip("cma", reason="needs the extra cma")
    code = WITHOUT.format(libraries=libraries, batch_size=batch_size)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    taken, reason, success, nfev = json.loads(done.stdout)
    assert (taken, success, nfev) == (optimizer, True, 30)
    hint = 'better methods come with pip install "cbo-suite[scbo]"'
    assert hint in reason
    assert done.stderr.count(hint) == 1


def test_a_journal_whose_library_is_gone_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else takes over."""
    path = tmp_path / "run.jsonl"
    pytest.importorskip("cma", reason="needs the extra cma")
    minimize(optimizer="cma-es", journal=path)
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(MissingExtra, match="cma-es needs pycma: pip install"):
        minimize(journal=path, budget=20)
