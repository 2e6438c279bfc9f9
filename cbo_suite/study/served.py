"""Ask for points, tell results in any order, from any process: the file is all there is."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cbo_suite.choice import AUTO, choose_optimizer, kept_options
from cbo_suite.errors import (
    InvalidPoint,
    InvalidResult,
    InvalidTask,
    JournalError,
    UnknownId,
    UnsupportedTask,
)
from cbo_suite.harness import Factory, Run, named_factory
from cbo_suite.harness.description import plain_json
from cbo_suite.harness.design import initial_design
from cbo_suite.harness.environment import describe_versions
from cbo_suite.harness.execution import unsupported_reason
from cbo_suite.harness.user_function import UserProblem
from cbo_suite.protocols import Array, Space, Task, whole_number
from cbo_suite.study.file import locked_study
from cbo_suite.study.lines import (
    SCHEMA,
    Asked,
    Beginning,
    Raised,
    Result,
    SpaceLine,
    Told,
    known_results,
)
from cbo_suite.study.reading import StudyContents, read_study
from cbo_suite.study.replay import Replay
from cbo_suite.study.results import as_run

DEFAULT_OPTIMIZER, DEFAULT_BUDGET = AUTO, 100

_log = logging.getLogger(__name__)


class Point(NamedTuple):
    """A point to evaluate.

    Attributes:
        id: Its number, to tell its result by; points are numbered from 1.
        x: The point, shape `(d,)`.
    """

    id: int
    x: Array


class Study:
    """Ask and tell over a file.

    Every call reads what other processes have added, and what it adds is on the disk when it
    returns. A call waits while another process is at work on the same file.

    Attributes:
        path: Path of the file.
        space: Where points may lie.
        choice: Why `auto` took the optimizer, "" if it was named or the study was there.
    """

    def __init__(
        self,
        path: str | Path,
        space: Space | None = None,
        *,
        optimizer: str | Factory | None = None,
        budget: int | None = None,
        batch_size: int | None = None,
        n_init: int | None = None,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Go on with the study in a file, or begin one.

        To go on, the path is enough; what is given beside it must be what the study was begun with,
        but for the budget: a larger one holds from now on, a smaller one changes nothing. A class
        that has no id is given again.

        Args:
            path: Path of the file.
            space: Where points may lie; needed to begin.
            optimizer: An optimizer's id, or a class or factory; by default "auto", which takes one
                that suits the study when it is begun, and that of the study to go on.
            budget: Number of points that may be asked, the initial design among them; 100 by
                default.
            batch_size: Number of points that are usually under way together; 1 by default.
            n_init: Number of points of the initial design, as `minimize` chooses it by default.
            seed: Fixes the design and the optimizer; 0 by default.
            options: Options of the optimizer; "auto" takes `{"noisy": True}` alone.

        Raises:
            InvalidTask: The file is not there and no space is given; the numbers make no study.
            UnsupportedTask: The optimizer declares that it cannot handle such a study.
            OptimizerFailed: The optimizer cannot be made with these options.
            JournalError: The file is something else, or a study that was begun otherwise.
            JournalDamaged: The file is not as it was written.
        """
        self.path = Path(path).expanduser()
        self.choice = ""
        self._factory: Factory | None = None
        self._replay: Replay | None = None
        given: dict[str, Any] = {
            "budget": budget,
            "batch_size": batch_size,
            "n_init": n_init,
            "seed": seed,
        }
        given = {name: value for name, value in given.items() if value is not None}
        named = optimizer is not None and optimizer != AUTO
        if optimizer is not None and named:
            given["optimizer"], self._factory = named_factory(optimizer)
        if options is not None:
            given["options"] = plain_json(dict(options), "options")
        if space is not None and not isinstance(space, Space):
            raise InvalidTask(
                f"space must be a Space(lower, upper, num_constraints), got {space!r:.80}"
            )
        if space is None and not self.path.exists():
            raise InvalidTask(
                f"{self.path} is not there: to begin a study, give the bounds of its variables "
                "and the number of its constraints"
            )
        # What makes no study leaves no file.
        beginning = None if self.path.exists() else self._begin(space, **given)
        with locked_study(self.path) as study:
            contents = study.contents
            if contents is None:
                contents = study.append(beginning or self._begin(space, **given))
            else:
                begin, self.choice = contents.beginning, ""
                if "options" in given and not named:
                    known = kept_options(begin.optimizer, begin.options, given["options"])
                    given["options"] = known
                if space is not None:
                    given["space"] = SpaceLine.of(space)
                self._refuse_other(contents, given)
                if given.get("budget", 0) > contents.budget:
                    study.append(Raised(given["budget"]))
        self._beginning = contents.beginning
        self.space = self._beginning.space.space()

    def _begin(
        self,
        space: Space | None,
        optimizer: str = DEFAULT_OPTIMIZER,
        budget: int = DEFAULT_BUDGET,
        batch_size: int = 1,
        n_init: int | None = None,
        seed: int = 0,
        options: dict[str, Any] | None = None,
    ) -> Beginning:
        """Make the first line of a new study."""
        if space is None:
            raise InvalidTask(f"{self.path} is empty: to begin a study, give its bounds")
        budget = whole_number("budget", budget, 1)
        if n_init is None:
            n_init = max(1, min(max(10, 2 * space.dim), budget // 2))
        task = Task(UserProblem.id, optimizer, budget, batch_size, n_init, seed)
        # A class without an id is named "module:name" in the file.
        own = self._factory if ":" in optimizer else None
        choice = choose_optimizer(own or optimizer, options, space, task)
        factory, self.choice = choice.factory, choice.reason
        reason = unsupported_reason(factory, space, task)
        if reason:
            raise UnsupportedTask(f"{optimizer} cannot serve this study: {reason}")
        beginning = Beginning(
            SCHEMA,
            choice.name,
            dict(choice.options),
            budget,
            task.batch_size,
            min(task.n_init, budget),
            task.seed,
            SpaceLine.of(space),
            describe_versions(factory),
        )
        # Options that the optimizer does not know are found before anything is on the disk.
        Replay(StudyContents(beginning), factory).close()
        return beginning

    def _refuse_other(self, contents: StudyContents, given: Mapping[str, Any]) -> None:
        """Refuse to go on with a study as another one.

        A smaller budget is no other study: a script that is started again says what it began with.

        Raises:
            JournalError: Something was given that the study was not begun with.
        """
        for name, value in given.items():
            if name == "budget":
                if whole_number(name, value, 1) < contents.budget:
                    _log.info("%s: the budget stays at %d points", self.path, contents.budget)
                continue
            known = getattr(contents.beginning, name)
            if value != known:
                shown = "another" if name == "space" else f"{known!r}, not {value!r}"
                raise JournalError(
                    f"{self.path} was begun otherwise: its {name} is {shown}; leave it out to go "
                    "on, or choose another path for a new study"
                )

    def ask(self, n: int = 1) -> list[Point]:
        """Ask for up to `n` points: those of the initial design first, then the optimizer's.

        Returns:
            The points, at least one, unless the budget is spent or an optimizer that takes one
            result at a time waits for the result of a point under way: then none.

        Raises:
            OptimizerFailed: The optimizer raised or broke its contract; the study is as before.
            JournalError: The optimizer asks for other points than are on record.
        """
        whole_number("n", n, 1)
        with locked_study(self.path) as study:
            contents = study.begun
            begin, last = contents.beginning, contents.last_id
            wanted = min(n, contents.budget - last)
            if wanted < 1:
                return []
            if last < begin.n_init:
                design = initial_design(UserProblem.id, self.space, begin.n_init, begin.seed)
                x = design[last : last + wanted].tolist()
                line = Asked(last + 1, x, 0, 0.0)
            else:
                factory = self._find_factory()
                if getattr(factory, "sequential", False):
                    wanted = 1
                    if contents.pending:
                        return []
                line = self._caught_up(contents, factory).ask(last + 1, wanted)
            try:
                study.append(line)
            except BaseException:
                # The optimizer has asked what nobody will tell.
                self.close()
                raise
            return [Point(id_, np.array(x)) for id_, x in enumerate(line.x, start=last + 1)]

    def _find_factory(self) -> Factory:
        """Return the class or factory of the optimizer."""
        if self._factory is None:
            try:
                self._factory = named_factory(self._beginning.optimizer)[1]
            except UnknownId as error:
                raise UnknownId(
                    f"{self.path} was begun with {self._beginning.optimizer!r}, which has no id "
                    "here: give the optimizer again"
                ) from error
        return self._factory

    def _caught_up(self, contents: StudyContents, factory: Factory) -> Replay:
        """Return the optimizer that knows all lines: the one of the last call, if it can."""
        if self._replay is None or not self._replay.catch_up(contents):
            self.close()
            self._replay = Replay(contents, factory)
        return self._replay

    def tell(self, id: int, objective: float, constraints: ArrayLike = ()) -> None:
        """Tell the result of a point; the same again changes nothing.

        Args:
            id: Number of the point.
            objective: Value to minimise; NaN or infinite where there is none.
            constraints: Constraint values, shape `(m,)`; at most zero is feasible.

        Raises:
            InvalidResult: The point was never asked or told otherwise; the sizes are wrong.
        """
        self.take([Result.of(objective, constraints, id=id)])

    def fail(self, id: int, reason: str = "") -> None:
        """Tell that a point could not be evaluated; that counts against the budget.

        Raises:
            InvalidResult: The point was never asked, or has a result.
        """
        self.take([Result.failure(id, reason, self.space.num_constraints)])

    def know(self, x: ArrayLike, objective: ArrayLike, constraints: ArrayLike = ()) -> None:
        """Tell results that are known from elsewhere; they cost no budget.

        Args:
            x: Points of the space, shape `(n, d)`.
            objective: Their values, shape `(n,)`.
            constraints: Their constraint values, shape `(n, m)`, or `(n,)` for one constraint.

        Raises:
            InvalidPoint: The points are not in the space.
            InvalidResult: The sizes are wrong.
        """
        points = self.space.validate(x)
        self.take(known_results(points, objective, constraints, self.space.num_constraints))

    def take(self, results: Sequence[Result], places: Sequence[str] = ()) -> int:
        """Take results, all or none; those that are there already are left out.

        Args:
            results: The results.
            places: Where each of them stands, such as "line 3", for errors.

        Returns:
            The number of results that were new.

        Raises:
            InvalidResult: A result is of a point that was never asked or was told otherwise, or it
                has not the size of the study.
            InvalidPoint: A known point is not in the space.
        """
        with locked_study(self.path) as study:
            contents = study.begun
            new: dict[object, Result] = {}
            for number, result in enumerate(results):
                key = ("known", number) if result.id is None else result.id
                try:
                    before = self._known_result(contents, result) or new.setdefault(key, result)
                    if before != result:
                        raise InvalidResult(
                            f"point {result.id} was told before, with other values: "
                            f"{before.shown}, now {result.shown}; what was told stays"
                        )
                except (InvalidPoint, InvalidResult) as error:
                    if not places:
                        raise
                    text = f"{places[number]}: {error}; no result was taken"
                    raise type(error)(text) from error
            if new:
                study.append(Told(list(new.values())))
            return len(new)

    def _known_result(self, contents: StudyContents, result: Result) -> Result | None:
        """Check a result; return what was told of its point before, None for nothing."""
        if result.id is None and result.x is None:
            raise InvalidResult(
                "a result needs the id of a point that was asked, or the coordinates of one that "
                "was not; got neither"
            )
        m = self.space.num_constraints
        if len(result.constraints) != m:
            raise InvalidResult(
                f"{'a known point' if result.id is None else f'point {result.id}'} needs "
                f"{m} constraint values, got {len(result.constraints)}"
            )
        if result.id is None:
            self.space.validate([result.x or []])
            return result if result in contents.results else None
        if result.id not in contents.asked:
            under_way = ", ".join(map(str, contents.pending)) or "none"
            raise InvalidResult(
                f"point {result.id!r} was never asked in {self.path}; under way: {under_way}"
            )
        return contents.told.get(result.id)

    def contents(self) -> StudyContents:
        """Read what the file holds now."""
        return read_study(self.path)

    @property
    def pending(self) -> list[Point]:
        """The points that were asked and not told, such as those of a worker that died."""
        return [Point(id_, np.array(x)) for id_, x in self.contents().pending.items()]

    @property
    def done(self) -> bool:
        """Whether the budget is spent and every result is there."""
        contents = self.contents()
        return contents.last_id >= contents.budget and not contents.pending

    def run(self) -> Run:
        """Return all results in the order told, known ones among them, as a run.

        Its status is "complete" if the budget is spent and every result is there, else "open".
        """
        return as_run(self.contents())

    def close(self) -> None:
        """Let go of the optimizer; the next ask makes it anew."""
        if self._replay is not None:
            self._replay.close()
            self._replay = None

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
