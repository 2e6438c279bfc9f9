"""The optimizer of a study, brought to where the file is: by its state, or by asking again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from cbo_suite.errors import JournalError, MissingExtra, OptimizerFailed, describe
from cbo_suite.harness.description import plain_json
from cbo_suite.harness.proposals import valid_points
from cbo_suite.harness.settings import Factory
from cbo_suite.harness.threads import Threads
from cbo_suite.protocols import Array, Evaluation
from cbo_suite.study.lines import Asked, Event, Raised, Result, Told
from cbo_suite.study.reading import StudyContents

T = TypeVar("T")


class Replay:
    """An optimizer that knows what a study holds.

    One that offers its state is told the results and given the last state on record; any other is
    led through the study, ask by ask. After a larger budget it need not ask what it asked before:
    it is told those results.
    """

    def __init__(self, contents: StudyContents, factory: Factory) -> None:
        """Make the optimizer and bring it to the last line.

        Raises:
            OptimizerFailed: The optimizer raised or broke its contract.
            JournalError: The optimizer asks for other points than are on record.
        """
        begin = contents.beginning
        self._name, self._space = begin.optimizer, begin.space.space()
        self._threads = Threads()
        self._seen = 0
        self.seconds = 0.0
        self._optimizer = self._call(
            "the constructor",
            lambda: factory(
                self._space,
                budget=contents.budget,
                batch_size=begin.batch_size,
                seed=begin.seed,
                **begin.options,
            ),
        )
        expect = getattr(self._optimizer, "expect_design", None)
        if expect is not None and begin.n_init > 0:
            self._call("expect_design", lambda: expect(begin.n_init))
        start = self._restore(contents)
        self._follow(contents, contents.events[start:])

    def _restore(self, contents: StudyContents) -> int:
        """Tell what came before the last state, or the last larger budget; count those lines."""
        events = contents.events
        set_state = getattr(self._optimizer, "set_state", None)
        start, state = 0, None
        for number, event in enumerate(events, start=1):
            if isinstance(event, Asked) and event.state is not None and set_state is not None:
                start, state = number, event.state
            elif isinstance(event, Raised) and state is None:
                start = number
        for event in events[:start]:
            if isinstance(event, Told):
                self._tell(contents, event.results)
        if state is not None and set_state is not None:
            self._call("set_state", lambda: set_state(state))
        return start

    def catch_up(self, contents: StudyContents) -> bool:
        """Tell the results that came since; whether that is all that came."""
        new = contents.events[self._seen :]
        if not all(isinstance(event, Told) or _is_design(event) for event in new):
            return False
        self._follow(contents, new)
        return True

    def _follow(self, contents: StudyContents, events: Sequence[Event]) -> None:
        """Lead the optimizer through the last lines of a study."""
        for event in events:
            if isinstance(event, Told):
                self._tell(contents, event.results)
            elif isinstance(event, Asked) and not _is_design(event):
                x = self._ask(event.wanted)
                if not np.array_equal(x, np.array(event.x)):
                    raise JournalError(
                        f"the study does not replay: point {event.first} was {event.x[0]}, now "
                        f"{x[0].tolist()} is asked; {self._name} is not deterministic, or it "
                        "changed: begin a new study and tell it the results as known points"
                    )
        self._seen = len(contents.events)

    def ask(self, first: int, wanted: int) -> Asked:
        """Ask for up to `wanted` points, the first of which has the number `first`."""
        self.seconds = 0.0
        x = self._ask(wanted)
        get_state = getattr(self._optimizer, "get_state", None)
        state: dict[str, Any] | None = None
        if get_state is not None:
            state = self._call("get_state", lambda: plain_json(get_state(), "get_state"))
        # This line is known before it is written.
        self._seen += 1
        return Asked(first, x.tolist(), wanted, self.seconds, state)

    def _ask(self, wanted: int) -> Array:
        return self._call(
            "ask", lambda: valid_points(self._space, self._optimizer.ask(wanted), wanted)
        )

    def _tell(self, contents: StudyContents, results: Sequence[Result]) -> None:
        x = np.array([contents.point(result) for result in results])
        constraints = np.array([[float(c) for c in r.constraints] for r in results], dtype=float)
        evaluation = Evaluation(
            np.array([float(result.objective) for result in results]),
            constraints.reshape(len(results), self._space.num_constraints),
        )
        self._call("tell", lambda: self._optimizer.tell(x, evaluation))

    def _call(self, what: str, call: Callable[[], T]) -> T:
        """Call the optimizer on the clock, with its threads."""
        start = time.perf_counter()
        try:
            with self._threads.limited():
                return call()
        except MissingExtra:
            raise
        except Exception as error:
            raise OptimizerFailed(f"{self._name} failed in {what}: {describe(error)}") from error
        finally:
            self.seconds += time.perf_counter() - start

    def close(self) -> None:
        """Let go of what the optimizer holds, such as a thread."""
        getattr(self._optimizer, "close", lambda: None)()


def _is_design(event: Event) -> bool:
    """Tell whether a line asks for points of the design, which are not the optimizer's."""
    return isinstance(event, Asked) and event.wanted == 0
