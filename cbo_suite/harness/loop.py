"""The loop of a run: initial design, tell, then ask, evaluate and tell until the budget is spent.

The loop owns the budget, the clock and the failures. It writes every evaluation to the journal
before the optimizer is told, so that a run that was killed goes on where it stopped.

Batches and asynchronous workers are one loop: a batch is one group of q points under way, k
workers are k groups of one point. When a group ends is decided by a virtual clock, a function of
the seed alone, so that asynchronous runs are reproducible, also when the groups are really
evaluated side by side: a result waits for its turn. Only where it is asked for, results are told
in the order in which they come; the journal then holds that order, and a resumed run follows it.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
import numpy as np

from cbo_suite.errors import (
    EvaluationFailed,
    JournalError,
    MalformedEvaluation,
    MissingExtra,
    OptimizerFailed,
    describe,
)
from cbo_suite.harness.description import describe_run, plain_json, with_libraries
from cbo_suite.harness.design import Group, full_design, virtual_duration
from cbo_suite.harness.evaluate import Evaluator
from cbo_suite.harness.proposals import valid_points
from cbo_suite.harness.results import Run, gather_run
from cbo_suite.harness.resuming import resumed_header, told_before
from cbo_suite.harness.settings import Factory, Settings
from cbo_suite.harness.threads import Threads
from cbo_suite.harness.watching import Watch
from cbo_suite.journal import Batch, End, JournalWriter, Pending, to_json_numbers
from cbo_suite.protocols import ConstrainedProblem, Optimizer, Task

T = TypeVar("T")

_log = logging.getLogger(__name__)

# Why a run stopped that the user interrupted.
INTERRUPTED = "interrupted by Ctrl-C"
# So many evaluations that all fail speak of the function, fewer may speak of their points.
TELLING = 5


class Loop:
    """One run: the state of the loop, whether fresh, replayed or resumed."""

    def __init__(
        self,
        task: Task,
        problem: ConstrainedProblem,
        factory: Factory,
        settings: Settings,
        evaluator: Evaluator,
    ) -> None:
        """Prepare the loop; the optimizer is made when it runs."""
        self.task, self.problem, self.factory = task, problem, factory
        self.settings, self.evaluator = settings, evaluator
        self.problem_name = str(getattr(problem, "called", task.problem))
        sequential = bool(getattr(factory, "sequential", False))
        self.group_size = 1 if sequential or task.workers is not None else task.batch_size
        self.slots = 1 if sequential or task.workers is None else task.workers
        self.design = full_design(task, problem.space, settings.given.first_points)
        # After the design, whose library it names.
        self.header = describe_run(task, problem, factory, settings)
        self.threads = Threads()
        self.batches: list[Batch] = []
        self.under_way: list[Group] = []
        # How many evaluations were asked for and told, and told of those made since this began.
        self.asked = self.told = self.told_anew = 0
        self.clock = 0.0
        self.began = time.perf_counter()
        self.seconds_optimizer = self.seconds_processor = 0.0
        self.watch = Watch(settings, task.budget)
        self.writer: JournalWriter | None = None
        # Batches of the journal that the optimizer still has to be led through.
        self.recorded: deque[Batch] = deque()

    def run(self, writer: JournalWriter | None) -> Run:
        """Run to the end of the budget, from the beginning or from what the journal holds."""
        settings = self.settings
        if writer is not None:
            end = self.open_journal(writer)
            if end is not None:
                return gather_run(self.header, self.batches, end)
        self.optimizer = self.make_optimizer()
        try:
            self.name_libraries()
            self.restore_state()
            while self.told < self.task.budget:
                reason = "" if self.recorded else self.watch.stop_reason(self.told_anew > 0)
                if reason:
                    return self.stop(reason, self.recommendation())
                while len(self.under_way) < self.slots and self.may_ask():
                    self.start_group()
                self.finish_group()
            return self.finish(End("complete", 0.0, recommendation=self.recommendation()))
        except KeyboardInterrupt:
            anything = self.told or self.recorded or settings.given.x
            if not settings.keep_interrupted or not anything:
                raise
            return self.stop(INTERRUPTED)
        finally:
            # Some optimizers hold a thread, which is not left to the garbage collector.
            getattr(self.optimizer, "close", lambda: None)()

    def make_optimizer(self) -> Optimizer:
        """Make the optimizer as the task says, and say which design it will be told."""
        task = self.task
        optimizer = self.timed_call(
            "the constructor",
            lambda: self.factory(
                self.problem.space,
                budget=task.budget,
                batch_size=task.workers or task.batch_size,
                seed=task.seed,
                **self.settings.options,
            ),
        )
        expect = getattr(optimizer, "expect_design", None)
        if expect is not None and len(self.design) > 0:
            self.timed_call("expect_design", lambda: expect(len(self.design)))
        given = self.settings.given
        if given.x:
            self.timed_call("tell", lambda: optimizer.tell(given.points, given.evaluation))
        return optimizer

    def open_journal(self, writer: JournalWriter) -> End | None:
        """Read what the journal holds, or start it; return the end of a complete run."""
        self.writer = writer
        contents = writer.contents
        if contents is None or not contents.batches:
            # Whatever a call meant that evaluated nothing, there is nothing to keep of it.
            writer.begin(self.header)
            return None
        self.header = resumed_header(contents, self.header, writer.path)
        if contents.notice:
            _log.warning("%s", contents.notice)
        finished = contents.end is not None and contents.end.status == "complete"
        if finished and self.header == contents.header:
            self.batches = contents.batches
            return contents.end
        # The end is taken back: the cause of a failure may be fixed, a shorter run goes on.
        writer.begin(self.header, contents.batches)
        self.recorded = deque(contents.batches)
        return None

    def name_libraries(self) -> None:
        """Put on record what the optimizer imported when it was made, before anything else is."""
        named = with_libraries(self.header)
        # What a run that goes on was made with is on record.
        if self.recorded or named == self.header:
            return
        self.header = named
        if self.writer is not None:
            self.writer.begin(self.header)

    def restore_state(self) -> None:
        """Go straight to the last recorded batch if the optimizer left its state there."""
        if not self.recorded or self.recorded[-1].state is None:
            return
        set_state = getattr(self.optimizer, "set_state", None)
        if set_state is None:
            return
        *earlier, last = self.recorded
        self.recorded.clear()
        for batch in earlier:
            self.tell(batch)
        self.timed_call("set_state", lambda: set_state(last.state))
        self.under_way = [Group(p.finish, p.first, np.array(p.x)) for p in last.pending]
        heapq.heapify(self.under_way)
        self.end_replay(last)
        self.tell(last)
        self.asked = self.told + sum(len(group.x) for group in self.under_way)
        self.watch.report(last.inspection)

    def end_replay(self, last: Batch) -> None:
        """Set the clock to that of the last recorded batch and evaluate what was under way."""
        self.clock = last.clock
        self.began = time.perf_counter() - last.clock
        self.watch.start_clock()
        for group in sorted(self.under_way):
            self.evaluator.start(group.first, group.x)

    def may_ask(self) -> bool:
        """Tell whether budget is left, and the design told before anything is asked."""
        n_init = len(self.design)
        return self.asked < self.task.budget and (self.asked < n_init or self.told >= n_init)

    def start_group(self) -> None:
        """Put the next points of the design, or newly asked ones, under way."""
        if self.asked < len(self.design):
            x = self.design[self.asked : self.asked + self.group_size]
        else:
            wanted = min(self.group_size, self.task.budget - self.asked)
            # The last batch of a shorter run may have been cut by its budget.
            if self.asked < told_before(self.header):
                wanted = min(wanted, told_before(self.header) - self.asked)
            x = self.timed_call(
                "ask", lambda: valid_points(self.problem.space, self.optimizer.ask(wanted), wanted)
            )
        if self.settings.real_time:
            duration = 0.0
        elif self.task.workers is not None:
            duration = virtual_duration(self.task.problem, self.task.seed, self.asked)
        else:
            duration = 1.0
        heapq.heappush(self.under_way, Group(self.clock + duration, self.asked, x))
        # What the journal may hold is not evaluated again.
        if not self.recorded:
            self.evaluator.start(self.asked, x)
        self.asked += len(x)

    def finish_group(self) -> None:
        """Wait for the group that ends next, write it down and tell it."""
        group = self.next_group()
        if self.recorded:
            batch = self.recorded[0]
            if batch.first != group.first or not np.array_equal(batch.points, group.x):
                if self.told < told_before(self.header):
                    self.tell_shorter_run()
                    return
                raise JournalError(
                    f"the journal does not replay: evaluation {batch.first} was at {batch.x[0]}, "
                    f"now evaluation {group.first} is asked at {group.x[0].tolist()}; the "
                    "optimizer is not deterministic, or it changed: start a new journal"
                )
            self.recorded.popleft()
            self.clock = batch.clock
            if not self.recorded:
                self.end_replay(batch)
            self.tell(batch)
        else:
            batch = self.evaluate(group)
            if self.writer is not None:
                self.writer.append(batch)
            self.tell(batch)
            self.refuse_what_never_works(len(batch.x))
        self.watch.report(batch.inspection)

    def tell_shorter_run(self) -> None:
        """Tell a new optimizer what a shorter run evaluated, without asking.

        An optimizer that plans with its budget proposes other points than the shorter run did.
        """
        getattr(self.optimizer, "close", lambda: None)()
        self.optimizer = self.make_optimizer()
        self.under_way.clear()
        self.recorded.extendleft(reversed(self.batches))
        self.batches, self.told = [], 0
        self.watch.reset()
        while self.told < told_before(self.header):
            batch = self.recorded.popleft()
            self.clock = batch.clock
            self.tell(batch)
        self.asked = self.told
        if not self.recorded:
            self.end_replay(batch)

    def next_group(self) -> Group:
        """Take out the group that ends next, by the virtual clock or in real-time order."""
        if not self.settings.real_time:
            return heapq.heappop(self.under_way)
        number = self.recorded[0].first if self.recorded else self.evaluator.first_done()
        numbers = [group.first for group in self.under_way]
        return self.under_way.pop(numbers.index(number) if number in numbers else 0)

    def evaluate(self, group: Group) -> Batch:
        """Write down what came of a group, with the optimizer's state."""
        result = self.evaluator.result(group.first)
        if result.malformed and not self.told_anew:
            text = f"{self.problem_name} cannot be evaluated: {result.messages[0]}"
            self.finish(End("failed", 0.0, text))
            raise MalformedEvaluation(text)
        self.clock = time.perf_counter() - self.began if self.settings.real_time else group.finish
        return Batch(
            first=group.first,
            x=group.x.tolist(),
            objective=to_json_numbers(result.evaluation.objective),
            constraints=to_json_numbers(result.evaluation.constraints),
            status=result.status,
            messages={str(row): text for row, text in result.messages.items()},
            clock=self.clock,
            seconds_optimizer=self.seconds_optimizer,
            seconds_evaluation=result.seconds,
            seconds_processor=self.seconds_processor,
            pending=[Pending(g.first, g.x.tolist(), g.finish) for g in sorted(self.under_way)],
            inspection=self.optional("inspect"),
            state=self.optional("get_state"),
        )

    def optional(self, name: str) -> dict[str, Any] | None:
        """Call a method that an optimizer may or may not offer, and check that it gives JSON."""
        method = getattr(self.optimizer, name, None)
        return None if method is None else self.timed_call(name, lambda: plain_json(method(), name))

    def recommendation(self) -> list[float] | None:
        """Ask the optimizer which point it recommends, if it says so."""
        recommend = getattr(self.optimizer, "recommend", None)
        if recommend is None or not (self.told or self.settings.given.x):
            return None
        space = self.problem.space
        point = self.timed_call("recommend", lambda: space.validate(np.asarray(recommend())[None]))
        return [float(value) for value in point[0]]

    def tell(self, batch: Batch) -> None:
        """Count one batch and tell it to the optimizer."""
        self.batches.append(batch)
        self.told += len(batch.x)
        self.seconds_optimizer = self.seconds_processor = 0.0
        points, evaluation = batch.points, batch.evaluation(self.problem.space.num_constraints)
        # What an optimizer is told is on record: it can read it and not change it.
        for array in (points, *evaluation):
            array.setflags(write=False)
        self.watch.add(points, evaluation, batch.status)
        self.timed_call("tell", lambda: self.optimizer.tell(points, evaluation))

    def refuse_what_never_works(self, new: int) -> None:
        """End a run none of whose evaluations has worked by the end of the design.

        Evaluations on record count no more: the cause of their failure may be fixed.

        Args:
            new: How many evaluations were told last, all of them made just now.

        Raises:
            EvaluationFailed: That is so, now for the first time since the run began or went on.
        """
        before, limit = self.told_anew, max(len(self.design), TELLING)
        self.told_anew += new
        works = self.settings.given.x or any(
            status == "ok" for batch in self.batches for status in batch.status
        )
        if works or not before < limit <= self.told_anew:
            return
        messages = [text for batch in self.batches for text in batch.messages.values()]
        first = messages[-1] if messages else "the values are not finite"
        text = f"{self.problem_name} failed at each of {self.told_anew} points: {first}"
        self.finish(End("failed", 0.0, text))
        raise EvaluationFailed(text)

    def timed_call(self, what: str, call: Callable[[], T]) -> T:
        """Call the optimizer on the clock; an exception ends the run, on record.

        A missing library does not: as soon as it is installed the run can be made.
        """
        start, processor_start = time.perf_counter(), time.process_time()
        elsewhere_start = self.seconds_elsewhere()
        try:
            with self.threads.limited():
                return call()
        except MissingExtra:
            raise
        except Exception as error:
            text = f"{self.task.optimizer} failed in {what}: {describe(error)}"
            failure = OptimizerFailed(text)
            failure.run = self.finish(End("failed", 0.0, text))
            raise failure from error
        finally:
            self.seconds_optimizer += time.perf_counter() - start
            self.seconds_processor += time.process_time() - processor_start
            # A number that falls, or is none, adds nothing.
            self.seconds_processor += max(0.0, self.seconds_elsewhere() - elsewhere_start)

    def seconds_elsewhere(self) -> float:
        """Processor time so far of processes that the optimizer says are its own."""
        # While the first one is made there is none.
        optimizer = getattr(self, "optimizer", None)
        return float(getattr(optimizer, "seconds_elsewhere", 0.0))

    def finish(self, end: End) -> Run:
        """Write how the run ended and gather what it gave."""
        end = msgspec.structs.replace(
            end,
            seconds_optimizer=self.seconds_optimizer,
            seconds_processor=self.seconds_processor,
        )
        if self.writer is not None:
            self.writer.append(end)
        return gather_run(self.header, self.batches, end)

    def stop(self, reason: str, recommendation: list[float] | None = None) -> Run:
        """Gather what there is; the journal gets no end, so that the same run can go on."""
        end = End("failed", self.seconds_optimizer, reason, recommendation, self.seconds_processor)
        # What is on record was evaluated, also where the optimizer was not led to it again.
        made = [*self.batches, *self.recorded]
        return replace(gather_run(self.header, made, end), status="stopped")
