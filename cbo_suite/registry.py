"""Ids to problems and optimizers: our own tables, and entry points of other packages.

Looking something up imports nothing but the tables; making it imports its module. A package adds
its own with the entry-point groups `cbo_suite.problems` and `cbo_suite.optimizers`, where the
name is the id and the value "module:attribute" of a class or factory.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from cbo_suite.errors import CboError, DuplicateId, InvalidTask, MissingExtra, UnknownId, describe
from cbo_suite.optimizers import OPTIMIZERS
from cbo_suite.problems import FAMILIES, PROBLEMS
from cbo_suite.protocols import (
    DEFAULT_PROTOCOL,
    ConstrainedProblem,
    Optimizer,
    OptimizerEntry,
    ProblemEntry,
    RunProtocol,
    Space,
)
from cbo_suite.registered import FamilyInfo as FamilyInfo
from cbo_suite.registered import OptimizerInfo as OptimizerInfo
from cbo_suite.registered import ProblemInfo as ProblemInfo

OWN_PACKAGE = "cbo-suite"
# Where an optimizer may be chosen by the task, this is said instead of an id.
AUTO = "auto"
# What every optimizer is made with beside its space; the rest are its options.
_NO_OPTIONS = ("budget", "batch_size", "seed")
_PROBLEM_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*-v[0-9]+")
_OPTIMIZER_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

Entry = TypeVar("Entry", ProblemEntry, OptimizerEntry)


class _Row(NamedTuple):
    """One registered thing: how to make it and who registers it."""

    target: str
    title: str
    extra: str
    options: Mapping[str, Any]
    package: str
    dim: int | None = None
    num_constraints: int | None = None
    protocol: RunProtocol | None = None
    seconds: float | None = None


def list_problems() -> list[ProblemInfo]:
    """List every registered problem, ours first, without importing any; families stand apart."""
    return [_problem_info(id_, row) for id_, row in _problems().items()]


def list_families() -> list[FamilyInfo]:
    """List the families, whose problems `make_problem` makes on demand."""
    return [
        FamilyInfo(
            family.shown_id,
            *family.sizes,
            f"{family.title}: {family.values}",
            family.row(**{name: values[0] for name, values in family.parameters.items()}).extra,
            OWN_PACKAGE,
        )
        for family in FAMILIES
    ]


def problem_info(id: str) -> ProblemInfo | None:
    """Return what is known of a problem by its full id, None if there is none of this id."""
    row = _problem_row(id)
    return None if row is None else _problem_info(id, row)


def list_optimizers() -> list[OptimizerInfo]:
    """List every registered optimizer, ours first, without importing any.

    An id of the suite with options is a variant of the id of the same class without options, if
    there is one. Ids of other packages are methods of their own.
    """
    rows = _optimizers()
    methods = {
        row.target: id_
        for id_, row in rows.items()
        if row.package == OWN_PACKAGE and not row.options
    }
    return [
        OptimizerInfo(
            id_,
            row.title,
            row.extra,
            row.package,
            row.target,
            row.options,
            methods.get(row.target, id_) if row.options else id_,
        )
        for id_, row in rows.items()
    ]


def find_faults() -> dict[str, str]:
    """Import what other packages register, and say of each id that cannot be imported why."""
    faults = {}
    for id_, row in [*_problems().items(), *_optimizers().items()]:
        if row.package != OWN_PACKAGE:
            try:
                _load(id_, row)
            except Exception as error:  # whatever a foreign module raises
                faults[id_] = describe(error)
    return faults


def make_problem(id: str, **options: Any) -> ConstrainedProblem:
    """Make the problem of this id.

    Args:
        id: Such as "ackley-10d-v1"; without "-v1" the newest version.
        options: Passed to the problem, for example `dim` of a family.

    Raises:
        UnknownId: No such problem; the message suggests near ones.
        MissingExtra: It needs a library that is not installed.
    """
    id_ = resolve_problem_id(id)
    row = _known_row(id_)
    return cast(ConstrainedProblem, _load(id_, row)(**{**row.options, **options}))


def make_optimizer(
    id: str, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0, **options: Any
) -> Optimizer:
    """Make the optimizer of this id for a space.

    Args:
        id: Such as "scbo".
        space: The box and the number of constraints.
        budget: Number of evaluations of the whole run.
        batch_size: Number of points evaluated side by side.
        seed: Whole number; the same seed and data give the same proposals.
        options: Passed to the optimizer.

    Raises:
        UnknownId: No such optimizer; the message suggests near ones.
        MissingExtra: It needs a library that is not installed.
    """
    factory = optimizer_factory(id)
    return factory(space, budget=budget, batch_size=batch_size, seed=seed, **options)


def optimizer_factory(id: str) -> Callable[..., Optimizer]:
    """Return the class or factory of an optimizer; its options of the table are bound to it."""
    rows = _optimizers()
    if id == AUTO and id not in rows:
        raise UnknownId(
            f"{AUTO!r} is no optimizer: minimize, Study and `cbo ask` choose one by it; here name "
            "one of `cbo list`"
        )
    if id not in rows:
        raise UnknownId(_unknown("optimizer", id, rows))
    row = rows[id]
    factory = _load(id, row)
    if not row.options:
        return cast(Callable[..., Optimizer], factory)
    variant = partial(factory, **row.options)
    # What a class says of itself holds for its variants.
    for name in ("sequential", "max_dim", "max_batch_size", "deterministic_search", "__name__"):
        if hasattr(factory, name):
            setattr(variant, name, getattr(factory, name))
    return variant


def has_option(optimizer: str | Callable[..., Optimizer], name: str) -> bool:
    """Say whether an optimizer, by its id or its class, takes an option of this name.

    Raises:
        UnknownId: No such optimizer; the message suggests near ones.
        MissingExtra: It needs a library that is not installed.
    """
    options = known_options(optimizer)
    return options is None or name in options


def known_options(optimizer: str | Callable[..., Optimizer]) -> list[str] | None:
    """Name the options of an optimizer, by its id or its class; None if it takes any.

    Raises:
        UnknownId: No such optimizer; the message suggests near ones.
        MissingExtra: It needs a library that is not installed.
    """
    factory = optimizer_factory(optimizer) if isinstance(optimizer, str) else optimizer
    try:
        parameters = list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):
        return None  # compiled code need not say what it takes
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return [
        parameter.name
        for parameter in parameters[1:]
        if parameter.kind is not parameter.VAR_POSITIONAL and parameter.name not in _NO_OPTIONS
    ]


def resolve_problem_id(id: str) -> str:
    """Return the full id; an id without version means the newest version.

    Raises:
        UnknownId: No such problem; the message suggests near ones.
    """
    if _problem_row(id) is not None:
        return id
    versions = [name for name in _problems() if re.fullmatch(re.escape(id) + r"-v[0-9]+", name)]
    newest = (f"{id}-v{family.pattern.rpartition('-v')[2]}" for family in FAMILIES)
    versions += [name for name in newest if _problem_row(name) is not None]
    if not versions:
        raise UnknownId(_unknown_problem(id))
    return max(versions, key=lambda name: int(name.rpartition("-v")[2]))


def protocol_of(problem: str | ConstrainedProblem) -> RunProtocol:
    """Return how long and how parallel a problem is run.

    The table says it of ours. Others declare it as their attribute `protocol`, on the class or on
    what it makes; those that declare nothing are run at the default.

    Args:
        problem: A full id, or a problem that need not be registered.

    Raises:
        UnknownId: No problem has this id; the message suggests near ones.
        InvalidTask: What is declared is no protocol.
    """
    id_ = problem if isinstance(problem, str) else problem.id
    row = _problem_row(id_)
    if row is not None and row.protocol is not None:
        return row.protocol
    source: object = problem
    if isinstance(problem, str):
        source = _load(id_, _known_row(id_))
        if not hasattr(source, "protocol"):
            source = make_problem(id_)
    declared = getattr(source, "protocol", DEFAULT_PROTOCOL)
    if not isinstance(declared, RunProtocol):
        raise InvalidTask(
            f"{id_} declares the protocol {declared!r}: it must be a "
            "cbo_suite.protocols.RunProtocol of budget, batch_size and n_init"
        )
    return declared


def package_folder(problem_id: str) -> Path | None:
    """Return the folder of the package whose module makes a problem, by its full id.

    The problem itself is not imported. None for a module that stands in no package, whose folder
    belongs to others too.
    """
    module = _known_row(problem_id).target.partition(":")[0]
    spec = find_spec(module)
    if spec is not None and not spec.submodule_search_locations:
        spec = find_spec(spec.parent) if spec.parent else None
    places = list((spec and spec.submodule_search_locations) or ())
    return Path(places[0]) if places else None


def _problem_row(id: str) -> _Row | None:
    """Return the row of a problem or of a member of a family, None if there is none."""
    row = _problems().get(id)
    found = None if row else next(filter(None, (family.find(id) for family in FAMILIES)), None)
    return row if found is None else _Row(package=OWN_PACKAGE, **found._asdict())


def _known_row(id: str) -> _Row:
    """Return the row of a problem or of a member of a family.

    Raises:
        UnknownId: There is none; the message suggests near ones.
    """
    row = _problem_row(id)
    if row is None:
        raise UnknownId(_unknown_problem(id))
    return row


def _problem_info(id: str, row: _Row) -> ProblemInfo:
    """Say what a row tells."""
    return ProblemInfo(
        id, row.dim, row.num_constraints, row.title, row.extra, row.package, row.seconds
    )


def _unknown_problem(id: str) -> str:
    """Say that no problem has this id, and what may have been meant."""
    for family in FAMILIES:
        if id.startswith(family.pattern.partition("{")[0]):
            return f"unknown problem {id!r}: ids are {family.shown_id} with {family.values}"
    return _unknown("problem", id, _problems())


def _unknown(kind: str, id: str, known: Iterable[str]) -> str:
    """Say that an id is unknown, and what may have been meant."""
    names = list(known)
    near = difflib.get_close_matches(id, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "see `cbo list`."
    return f"unknown {kind} {id!r}: {hint}"


@cache
def _problems() -> dict[str, _Row]:
    """Gather our problems and those of other packages."""
    own = {id_: _Row(package=OWN_PACKAGE, **entry._asdict()) for id_, entry in PROBLEMS.items()}
    return _with_entry_points(own, "cbo_suite.problems", _PROBLEM_ID, "toy-2d-v1")


@cache
def _optimizers() -> dict[str, _Row]:
    """Gather our optimizers and those of other packages."""
    own = {id_: _Row(package=OWN_PACKAGE, **entry._asdict()) for id_, entry in OPTIMIZERS.items()}
    return _with_entry_points(own, "cbo_suite.optimizers", _OPTIMIZER_ID, "my-optimizer")


def _with_entry_points(
    rows: dict[str, _Row], group: str, grammar: re.Pattern[str], example: str
) -> dict[str, _Row]:
    """Add the entry points of a group to our rows; refuse bad names and collisions."""
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, _owner(point))):
        package = _owner(point)
        if not grammar.fullmatch(point.name):
            raise CboError(
                f"package {package} registers {point.name!r} in {group}: an id is made of lower-"
                f"case letters, digits and hyphens, such as {example!r}; rename it in its metadata"
            )
        if point.name in rows:
            raise DuplicateId(
                f"{point.name!r} in {group} is registered by {rows[point.name].package} and by "
                f"{package}: uninstall one of them or rename its entry point"
            )
        rows[point.name] = _Row(point.value, f"from {package}", "", {}, package)
    return rows


def _owner(point: EntryPoint) -> str:
    """Name the distribution of an entry point."""
    return point.dist.name if point.dist is not None else "an unknown package"


def _load(id: str, row: _Row) -> Callable[..., Any]:
    """Import the class or factory of a row."""
    module, _, attribute = row.target.partition(":")
    try:
        imported = import_module(module)
    except ModuleNotFoundError as error:
        if row.extra and not (error.name or "").startswith("cbo_suite"):
            raise MissingExtra.of(id, error.name, row.extra) from error
        raise
    except AttributeError as error:
        # What an import that was interrupted leaves behind is half there, until the process ends.
        raise CboError(
            f"{id} of package {row.package} cannot be imported: {describe(error)}; if an import "
            "was interrupted before, by Ctrl-C for instance, start Python anew"
        ) from error
    try:
        return cast(Callable[..., Any], getattr(imported, attribute))
    except AttributeError as error:
        raise CboError(
            f"{id} of package {row.package} points to {row.target!r}, which does not exist"
        ) from error
