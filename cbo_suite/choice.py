"""`optimizer="auto"`: an optimizer that suits a task, by a short rule made from the records.

The rule is the table `RULE`: its first line that holds is taken. `tests/golden/derive_choice.py`
derives it from the published records and judges it with each problem left out; docs/choose.md
tells it in words, with the table behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

from cbo_suite.errors import InvalidTask, UnknownId
from cbo_suite.harness import Factory, named_factory
from cbo_suite.protocols import Space, Task
from cbo_suite.registry import AUTO as AUTO
from cbo_suite.registry import has_option, known_options, list_optimizers

# The option by which users say that their results are noisy.
NOISY = "noisy"
# The longest runs of any problem of the suite: beyond, models of all results take too long.
LONGEST = 5000
# Up to here a model of the whole box is ahead of a trust region; no run there is longer.
SMALL_DIM, SMALL_BUDGET = 15, 1000
# The numbers of variables where SLACK is ahead of cEI.
SLACK_DIMS = (3, 4)

# The extra with the models, and the library that each extra is there for.
MODELS = "scbo"
_LIBRARIES = {MODELS: "torch", "cma": "cma"}

_log = logging.getLogger(__name__)


class Situation(NamedTuple):
    """What the rule looks at.

    Attributes:
        dim: Number of variables.
        num_constraints: Number of constraints.
        budget: Number of evaluations.
        at_once: Number of points under way together: the batch size, or the number of workers.
        noisy: Whether results are declared to be noisy.
        models: Whether torch is installed, which all models need.
    """

    dim: int
    num_constraints: int
    budget: int
    at_once: int
    noisy: bool = False
    models: bool = True

    @property
    def in_words(self) -> str:
        """The numbers as people say them."""
        parts = [
            _count(self.dim, "variable"),
            _count(self.num_constraints, "constraint"),
            _count(self.budget, "evaluation"),
            "one at a time" if self.at_once == 1 else f"{self.at_once} at once",
        ]
        return ", ".join([*parts, "noisy"] if self.noisy else parts)


class Branch(NamedTuple):
    """A line of the rule.

    Attributes:
        when: When it holds, in words.
        holds: Tells whether it does.
        optimizers: Ids; the first whose library is installed is taken.
        why: Why this is a good one there, in words.
    """

    when: str
    holds: Callable[[Situation], bool]
    optimizers: tuple[str, ...]
    why: str


class Choice(NamedTuple):
    """Which optimizer a run has, and why.

    Attributes:
        name: Its id; "module:name" of a class that has none.
        factory: Makes it.
        options: Its options.
        reason: Why `auto` took it, "" if the user named it.
    """

    name: str
    factory: Factory
    options: Mapping[str, Any]
    reason: str = ""


def _has_models(situation: Situation) -> bool:
    """Tell whether models can be had, and can be afforded."""
    return situation.models and situation.budget <= LONGEST


def _is_small(situation: Situation) -> bool:
    """Tell whether a model of the whole box is good and quick enough."""
    return situation.dim <= SMALL_DIM and situation.budget <= SMALL_BUDGET


RULE: tuple[Branch, ...] = (
    Branch(
        f"no torch, or more than {LONGEST} evaluations; one point at a time",
        lambda s: not _has_models(s) and s.at_once == 1,
        ("cobyla",),
        "of the methods without Gaussian processes it has the best mean score",
    ),
    Branch(
        f"no torch, or more than {LONGEST} evaluations; several points at once",
        lambda s: not _has_models(s),
        ("cma-es-al", "cobyla"),
        "of the evolution strategies, which take batches, it has the best mean score",
    ),
    Branch(
        "the results are noisy",
        lambda s: s.noisy,
        ("scbo",),
        "it alone has a model of noise, by which it recommends a point",
    ),
    Branch(
        f"one point at a time, {SLACK_DIMS[0]} or {SLACK_DIMS[1]} variables, at most "
        f"{SMALL_BUDGET} evaluations",
        lambda s: _is_small(s) and s.at_once == 1 and s.dim in SLACK_DIMS,
        ("slack",),
        "it has the best mean score on such problems",
    ),
    Branch(
        f"at most {SMALL_DIM} variables and {SMALL_BUDGET} evaluations",
        _is_small,
        ("cei",),
        "it has the best mean score on such problems",
    ),
    Branch(
        "all else: more variables, or more evaluations",
        lambda s: True,
        ("scbo",),
        "it has the best mean score on such problems, and is made for long runs",
    ),
)


def find_branch(situation: Situation) -> Branch:
    """Return the line of the rule for a situation."""
    return next(branch for branch in RULE if branch.holds(situation))


def choose_optimizer(
    optimizer: str | Factory,
    options: Mapping[str, Any] | None,
    space: Space,
    task: Task,
    recorded: tuple[str, Mapping[str, Any]] | None = None,
) -> Choice:
    """Return the optimizer that was named, that of the journal, or one that suits the task.

    Args:
        optimizer: An id, a class or factory, or "auto".
        options: Options of the optimizer; with "auto" none but `noisy`.
        space: Where points may lie.
        task: The numbers of the run; its optimizer is not looked at.
        recorded: Optimizer and options of the journal that the run goes on from: "auto" keeps to
            them, whatever the rule says by now.

    Raises:
        InvalidTask: There are options that "auto" cannot place or the optimizer does not know; the
            optimizer is something else.
        UnknownId: No optimizer has this id; that of the journal has none.
        MissingExtra: The optimizer needs a library that is not installed.
    """
    if not isinstance(optimizer, str) and not callable(optimizer):
        raise InvalidTask(
            f'optimizer must be "{AUTO}", an id of `cbo list`, or a class or factory, got '
            f"{optimizer!r:.80}"
        )
    given = _checked(options)
    if optimizer != AUTO:
        name, factory = named_factory(optimizer)
        _refuse_unknown(name, factory, given)
        return Choice(name, factory, given)
    if recorded is not None:
        return _go_on(*recorded, options)
    noisy = _declared_noisy(given)
    at_once = task.workers or task.batch_size
    models = find_spec(_LIBRARIES[MODELS]) is not None
    situation = Situation(space.dim, space.num_constraints, task.budget, at_once, noisy, models)
    branch = find_branch(situation)
    missing = [id_ for id_ in branch.optimizers if not _is_installed(id_)]
    name = next(id_ for id_ in branch.optimizers if id_ not in missing)
    factory = named_factory(name)[1]
    why = f"{missing[0]} is not installed, and it needs nothing" if missing else branch.why
    reason = f"{name} for {situation.in_words}: {why}"
    _log.info("auto took %s", reason)
    if missing or not models:
        hint = _hint(name, MODELS if not models else _extra_of(missing[0]))
        _log.warning("%s", hint)
        reason = f"{reason}; {hint}"
    own = {NOISY: True} if noisy and has_option(factory, NOISY) else {}
    return Choice(name, factory, own, reason)


def kept_options(
    name: str, recorded: Mapping[str, Any], options: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    """Return the options to go on with from a journal: its own where they are not contradicted.

    Noise may be declared again to an optimizer that `auto` took and that does not know it.
    """
    if not options or options == recorded:
        return recorded
    unknown = set(options) == {NOISY} and not has_option(name, NOISY)
    return recorded if unknown else options


def _go_on(name: str, recorded: Mapping[str, Any], options: Mapping[str, Any] | None) -> Choice:
    """Return the optimizer that a journal names."""
    try:
        factory = named_factory(name)[1]
    except UnknownId as error:
        raise UnknownId(
            f"the journal was begun with {name!r}, which has no id here: give the optimizer again"
        ) from error
    reason = f"{name}, with which the journal was begun"
    _log.info("auto took %s", reason)
    return Choice(name, factory, kept_options(name, recorded, options), reason)


def _checked(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return options as they were given, none for None.

    Raises:
        InvalidTask: They are no mapping.
    """
    given = options or {}
    if not isinstance(given, Mapping):
        raise InvalidTask(f"options must be a mapping of names to values, got {options!r}")
    return given


def _refuse_unknown(name: str, factory: Factory, options: Mapping[str, Any]) -> None:
    """Refuse options that an optimizer does not have.

    Raises:
        InvalidTask: There are such options; the message names those that it has.
    """
    known = known_options(factory) if options else None
    unknown = [] if known is None else sorted(str(name) for name in options if name not in known)
    if unknown:
        there = f"its options are {', '.join(known or ())}" if known else "it has no options"
        raise InvalidTask(f"{name} has no option {', '.join(unknown)}: {there}")


def _declared_noisy(options: Mapping[str, Any]) -> bool:
    """Tell whether noise is declared.

    Raises:
        InvalidTask: The options have anything else in them.
    """
    others = sorted(str(name) for name in options if name != NOISY)
    if others:
        raise InvalidTask(
            f"the options {', '.join(others)} are those of one optimizer: name it, as in "
            f'optimizer="scbo"; optimizer="{AUTO}" takes the option {NOISY} alone'
        )
    noisy = options.get(NOISY, False)
    if not isinstance(noisy, bool):
        raise InvalidTask(f"the option {NOISY} must be True or False, got {noisy!r}")
    return noisy


def _is_installed(id_: str) -> bool:
    """Tell whether the library of an optimizer is installed, without importing it."""
    library = _LIBRARIES.get(_extra_of(id_))
    return library is None or find_spec(library) is not None


def _extra_of(id_: str) -> str:
    """Name the extra that an optimizer of the suite needs, "" for none."""
    return next(info.extra for info in list_optimizers() if info.id == id_)


def _hint(name: str, extra: str) -> str:
    """Say what to install to be served better."""
    return (
        f"{_LIBRARIES[extra]} is not installed, so auto took {name}; better methods come with "
        f'pip install "cbo-suite[{extra}]"'
    )


def _count(number: int, what: str) -> str:
    """Say how many there are of something."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
