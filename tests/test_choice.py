"""`optimizer="auto"`: every line of the rule, what it needs, and what it refuses."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite import choice
from cbo_suite.choice import AUTO, LONGEST, RULE, Choice, Situation, choose_optimizer, find_branch
from cbo_suite.errors import InvalidTask, MissingExtra, UnknownId
from cbo_suite.harness.execution import named_factory, unsupported_reason
from cbo_suite.protocols import Space, Task
from tests.doubles import Hill


def choose(
    dim: int = 3,
    num_constraints: int = 2,
    *,
    budget: int = 100,
    batch_size: int = 1,
    workers: int | None = None,
    optimizer: Any = AUTO,
    options: Any = None,
    recorded: Any = None,
) -> Choice:
    """Choose for a box of this size."""
    space = Space([0.0] * dim, [1.0] * dim, num_constraints)
    task = Task("user", "auto", budget, batch_size, 10, 0, workers)
    return choose_optimizer(optimizer, options, space, task, recorded)


def without(monkeypatch: pytest.MonkeyPatch, *libraries: str) -> None:
    """Take libraries away, as if these and no others were not installed."""
    monkeypatch.setattr(choice, "find_spec", lambda name: name not in libraries or None)


# A task for each line of the rule, from the first to the last, and what is taken there.
BRANCHES: list[tuple[Situation, str]] = [
    (Situation(5, 5, 100, 1, models=False), "cobyla"),
    (Situation(5, 5, 100, 4, models=False), "cma-es-al"),
    (Situation(5, 5, 100, 1, noisy=True), "scbo"),
    (Situation(4, 5, 100, 1), "slack"),
    (Situation(5, 5, 100, 4), "cei"),
    (Situation(30, 5, 100, 4), "scbo"),
]


def test_the_rule_is_short_and_every_line_is_tried() -> None:
    """At most six lines, each of which is the first that holds for some task."""
    assert len(RULE) <= 6
    assert [find_branch(situation) for situation, _ in BRANCHES] == list(RULE)


@pytest.mark.parametrize(("situation", "optimizer"), BRANCHES)
def test_every_line_of_the_rule(
    situation: Situation, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives a factory of that id, and the reason names the optimizer and the task."""
    if situation.models:
        pytest.importorskip("torch", reason="needs the extra scbo")
    else:
        without(monkeypatch, "torch")
    taken = choose(
        situation.dim,
        situation.num_constraints,
        budget=situation.budget,
        batch_size=situation.at_once,
        options={"noisy": True} if situation.noisy else None,
    )
    assert taken.name == optimizer
    assert taken.reason.startswith(f"{optimizer} for {situation.in_words}: ")
    assert find_branch(situation).why in taken.reason
    assert taken.options == ({"noisy": True} if situation.noisy else {})
    assert taken.factory == named_factory(optimizer)[1] or optimizer == "cma-es-al"


@pytest.mark.parametrize(
    ("change", "optimizer"),
    [
        ({"dim": 15, "budget": 1000}, "cei"),
        ({"dim": 16}, "scbo"),
        ({"budget": 1000}, "slack"),
        ({"budget": 1001}, "scbo"),
        ({"dim": 2}, "cei"),
        ({"dim": 4}, "slack"),
        ({"dim": 5}, "cei"),
        ({"batch_size": 2}, "cei"),
        ({"workers": 2}, "cei"),
        ({"workers": 1, "batch_size": 8}, "slack"),
        ({"num_constraints": 0}, "slack"),
        ({"num_constraints": 68}, "slack"),
        ({"options": {"noisy": False}}, "slack"),
        ({"budget": 5000}, "scbo"),
        ({"budget": 5001}, "cobyla"),
        ({"budget": 5001, "batch_size": 2}, "cma-es-al"),
        ({"budget": 5001, "options": {"noisy": True}}, "cobyla"),
    ],
)
def test_where_lines_end(
    change: dict[str, Any], optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides of every limit."""
    pytest.importorskip("torch", reason="needs the extra scbo")
    without(monkeypatch)
    assert choose(**change).name == optimizer


@given(
    dim=st.integers(1, 300),
    num_constraints=st.integers(0, 100),
    budget=st.integers(1, 10**6),
    at_once=st.integers(1, 500),
    noisy=st.booleans(),
    models=st.booleans(),
)
def test_whoever_is_taken_can_do_it(models: bool, **numbers: Any) -> None:
    """No task is given to an optimizer that declares not to handle it."""
    situation = Situation(models=models, **numbers)
    for id_ in find_branch(situation).optimizers:
        try:
            factory = named_factory(id_)[1]
        except MissingExtra:
            continue
        space = Space([0.0] * situation.dim, [1.0] * situation.dim, situation.num_constraints)
        task = Task("user", id_, situation.budget, situation.at_once, 0, 0)
        assert unsupported_reason(factory, space, task) is None


def test_without_torch_a_hint_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As a warning, which is shown without any setup, and in the reason."""
    without(monkeypatch, "torch")
    taken = choose()
    assert taken.name == "cobyla"
    hint = 'torch is not installed, so auto took cobyla; better methods come with pip install "'
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING] == [
        f'{hint}cbo-suite[scbo]"'
    ]
    assert taken.reason.endswith(f'{hint}cbo-suite[scbo]"')


@pytest.mark.parametrize(
    ("missing", "budget", "extra"), [(("torch", "cma"), 100, "scbo"), (("cma",), 9000, "cma")]
)
def test_without_cma_batches_are_served_too(
    missing: tuple[str, ...],
    budget: int,
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By COBYLA, point by point: it is there wherever the suite is."""
    if "torch" not in missing:
        pytest.importorskip("torch", reason="needs the extra scbo")
    without(monkeypatch, *missing)
    taken = choose(batch_size=8, budget=budget)
    assert taken.name == "cobyla"
    assert "cma-es-al is not installed" in taken.reason
    assert f'pip install "cbo-suite[{extra}]"' in caplog.text


def test_noise_without_torch_is_no_option_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who does not know noise is not told of it."""
    without(monkeypatch, "torch")
    assert choose(options={"noisy": True}).options == {}


def test_the_log_says_what_was_taken_and_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One line for who listens; a named optimizer is nobody's choice and says nothing."""
    without(monkeypatch)
    caplog.set_level(logging.INFO, "cbo_suite")
    taken = choose(budget=LONGEST + 1)
    assert [record.getMessage() for record in caplog.records] == [f"auto took {taken.reason}"]
    caplog.clear()
    assert choose(optimizer="cobyla").reason == ""
    assert caplog.records == []


class Steep(Hill):
    """Takes whatever options it is given."""

    def __init__(self, space: Space, **options: Any) -> None:
        """Keep none of them."""
        super().__init__(space, budget=options["budget"], seed=options["seed"])


@pytest.mark.parametrize(
    ("optimizer", "options"), [("cobyla", {"final_radius": 0.1}), (Hill, {}), (Steep, {"a": 1})]
)
def test_what_is_named_is_taken(optimizer: Any, options: Any) -> None:
    """With its options, whatever the rule or a journal says."""
    taken = choose(
        optimizer=optimizer, options=options, batch_size=9, recorded=("random-search", {})
    )
    assert (taken.name, taken.factory) == named_factory(optimizer)
    assert taken.options == options


@pytest.mark.parametrize(
    ("optimizer", "options", "words"),
    [
        ("cobyla", {"rho": 1}, "cobyla has no option rho: its options are initial_radius, final_"),
        ("cobyla", {"seed": 1, "rho": 1}, "cobyla has no option rho, seed: "),
        ("cma-es-al", {"noisy": True}, "has no option noisy: its options are handling"),
        (Hill, {"step": 0.1}, "Hill has no option step: it has no options"),
        ("cobyla", ["rho"], r"options must be a mapping of names to values, got \['rho'\]"),
        (
            None,
            {},
            'optimizer must be "auto", an id of `cbo list`, or a class or factory, got N',
        ),
        (3, {}, "or a class or factory, got 3"),
    ],
)
def test_what_makes_no_optimizer_is_refused_before_the_first_evaluation(
    optimizer: Any, options: Any, words: str
) -> None:
    """The error says which options or optimizers there are."""
    with pytest.raises(InvalidTask, match=words):
        cbo.minimize(
            lambda x: pytest.fail("evaluated"), [0], [1], optimizer=optimizer, options=options
        )


@pytest.mark.parametrize(
    ("options", "kept"), [(None, {"handling": "x"}), ({"noisy": True}, {"handling": "x"})]
)
def test_a_journal_is_gone_on_with(
    options: Any, kept: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """With its optimizer and options; noise may be declared again to who does not know it."""
    caplog.set_level(logging.INFO, "cbo_suite")
    taken = choose(options=options, recorded=("cobyla", {"handling": "x"}))
    assert (taken.name, taken.options) == ("cobyla", kept)
    assert taken.reason == "cobyla, with which the journal was begun"
    assert "auto took cobyla, with which the journal was begun" in caplog.text


def test_other_options_than_those_of_the_journal_are_left_to_it() -> None:
    """It is the journal that refuses them."""
    taken = choose(options={"subproblem": "scipy"}, recorded=("cobyla", {}))
    assert taken.options == {"subproblem": "scipy"}


def test_a_class_of_ones_own_is_given_again() -> None:
    """Its name in a journal is no id."""
    with pytest.raises(UnknownId, match=r"begun with 'mine:Search'.* give the optimizer again"):
        choose(recorded=("mine:Search", {}))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.1, "noisy": True}, "options delta are those of one optimizer: name it"),
        ({"noisy": "yes"}, "noisy must be True or False, got 'yes'"),
        (["noisy"], "must be a mapping of names to values"),
    ],
)
def test_options_that_cannot_be_placed_are_refused(options: Any, words: str) -> None:
    """One error before anything is evaluated."""
    with pytest.raises(InvalidTask, match=words):
        cbo.minimize(lambda x: pytest.fail("evaluated"), [0], [1], options=options)


def test_a_misspelt_auto_is_an_unknown_id() -> None:
    """No other word is taken for it."""
    with pytest.raises(UnknownId, match="unknown optimizer 'Auto'"):
        choose(optimizer="Auto")


def test_auto_is_no_optimizer_of_a_benchmark() -> None:
    """Who compares optimizers names them; the error says who chooses."""
    with pytest.raises(UnknownId, match="'auto' is no optimizer: minimize, Study and `cbo ask`"):
        cbo.run("toy-2d", "auto", budget=5)


def test_choosing_imports_no_torch() -> None:
    """A process that is served by SciPy never loads it, whether it is installed or not."""
    code = (
        "import sys, cbo_suite as cbo\n"
        "r = cbo.minimize(lambda x: x.sum(axis=1), [0], [1], budget=9000,\n"
        "                 callback=lambda progress: True)\n"
        "assert r.optimizer == 'cobyla', r.optimizer\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_ids_of_the_rule_are_known() -> None:
    """Each has an extra of which we know the library."""
    for branch in RULE:
        for id_ in branch.optimizers:
            extra = choice._extra_of(id_)
            assert extra == "" or extra in choice._LIBRARIES
        assert choice._extra_of(branch.optimizers[-1]) in ("", choice.MODELS)
