"""Call-back solvers as ask/tell.

Many solvers take a function and call it when they please. `Recast` turns one round: the solver
runs on a thread of its own, its function blocks until the value is told, and every point comes out
of `ask`. The two threads never run at the same time: the solver moves only inside `ask`, which
waits for it. A run is therefore as deterministic as the solver.

`CallbackOptimizer` is the optimizer round a `Recast`: where it starts, what it does when the solver
ends, and how it answers while a point is pending.
"""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from queue import SimpleQueue
from typing import ClassVar

import numpy as np

from cbo_suite.errors import OptimizerFailed
from cbo_suite.optimizers.shared.archive import Archive
from cbo_suite.protocols import Array, Evaluation, Space

Values = tuple[float, Array]  # objective and constraints (m,) of one point
Evaluate = Callable[[Array], Values]
Solve = Callable[[Evaluate], None]
Memory = dict[bytes, Values]

# How long to wait for a solver that was interrupted in the middle of its own computation.
SECONDS_TO_STOP = 5.0
# So many starts in a row without a new point, and so many random points that are all known: then
# whatever comes next has been evaluated before.
FRUITLESS_STARTS, DRAWS = 2, 100


class _Closed(BaseException):
    """Unwinds the solver; no solver catches it by `except Exception`."""


class _Channel:
    """What the two threads share. It knows nothing of its owner, which can thus be collected."""

    def __init__(self, memory: Memory) -> None:
        """Keep the memory of evaluated points."""
        self.memory = memory
        self.points: SimpleQueue[Array | None] = SimpleQueue()
        self.values: SimpleQueue[Values | None] = SimpleQueue()
        self.error: BaseException | None = None
        self._closed = False

    def evaluate(self, x: Array) -> Values:
        """Hand over a point `(d,)` and wait for its values, unless they are known."""
        key = key_of(x)
        if key not in self.memory:
            if not self._closed:
                self.points.put(np.array(x, dtype=float))
            values = None if self._closed else self.values.get()
            if values is None:
                self._closed = True
                raise _Closed
            self.memory[key] = values
        return self.memory[key]

    def run(self, solve: Solve) -> None:
        """Run the solver and say how it ended; the body of its thread."""
        try:
            # Solvers divide by zero on flat functions; that must not warn on the user's console.
            with np.errstate(all="ignore"):
                solve(self.evaluate)
        except _Closed:
            return
        except BaseException as error:
            self.error = error
        self.points.put(None)

    def close(self, thread: threading.Thread) -> None:
        """Unwind the solver and wait for the end of its thread."""
        self.values.put(None)
        # The garbage collector may call this from the solver's own thread.
        if thread.is_alive() and thread is not threading.current_thread():
            thread.join(SECONDS_TO_STOP)


def key_of(x: Array) -> bytes:
    """Return what identifies a point `(d,)`: its bytes, with -0.0 and 0.0 the same."""
    key: bytes = (np.asarray(x, dtype=float) + 0.0).tobytes()
    return key


class Recast:
    """A call-back solver that is asked for its next point and told the values.

    Each distinct point comes out once; a point in `memory` never does. The thread ends with the
    solver, with `close`, or when this object is collected, whichever is first.
    """

    def __init__(self, solve: Solve, memory: Memory | None = None) -> None:
        """Prepare the solver; it starts at the first `ask`.

        Args:
            solve: Called with the function to minimise, on its own thread. It must not refer to
                this object, which could then never be collected.
            memory: Values of points that are known, by `key_of`; new ones are added.
        """
        self._channel = _Channel({} if memory is None else memory)
        self._thread = threading.Thread(
            target=self._channel.run, args=(solve,), name="cbo-solver", daemon=True
        )
        self._started = False
        self._done = False
        self._pending: Array | None = None
        self._reply: Values | None = None
        self._finalizer = weakref.finalize(self, self._channel.close, self._thread)

    def ask(self) -> Array | None:
        """Let the solver run until it needs a value.

        Returns:
            The point `(d,)` it needs, the same one until it is told, or None when it has ended.

        Raises:
            OptimizerFailed: The solver raised.
        """
        if self._pending is not None:
            return self._pending
        if not self._finalizer.alive:
            self._done = True
        if not self._done:
            if not self._started:
                self._started = True
                self._thread.start()
            if self._reply is not None:
                reply, self._reply = self._reply, None
                self._channel.values.put(reply)
            self._pending = self._channel.points.get()
            self._done = self._pending is None
        if self._channel.error is not None:
            error = self._channel.error
            raise OptimizerFailed(
                f"the solver stopped with {type(error).__name__}: {error}; "
                "the cause above shows where"
            ) from error
        return self._pending

    def tell(self, values: Values) -> None:
        """Give the values of the point that `ask` returned."""
        if self._pending is None:
            raise OptimizerFailed("no point is waiting for values: call ask first")
        self._pending, self._reply = None, values

    def close(self) -> None:
        """End the solver and its thread; `ask` returns None from then on."""
        self._pending = self._reply = None
        self._finalizer()


class CallbackOptimizer(ABC):
    """A sequential optimizer made of a call-back solver that works in the unit cube.

    - It starts at the best told point, or at the centre if nothing was told.
    - Points of the solver that leave the cube are moved to its nearest point, then to the nearest
      one that may be evaluated: whole numbers are rounded, known linear constraints kept.
    - Told points are known to the solver: it gets their values without another evaluation.
    - When the solver ends, it is started again: in turn at the best point with normal noise of
      standard deviation `RESTART_NOISE` in the unit cube, and at a uniformly random point.
    - Asked while its point is pending, it returns a uniformly random point: a second copy of the
      pending point would be worth nothing, this one may improve the next start.
    """

    sequential: ClassVar[bool] = True
    # The seed makes no difference until the solver has converged.
    deterministic_search: ClassVar[bool] = True
    RESTART_NOISE: ClassVar[float] = 0.1

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Prepare a run.

        Args:
            space: The box and the number of constraints.
            budget: Evaluations of the run; the solver plans for as many.
            batch_size: Not used: the solver goes point by point.
            seed: Seed of the restarts and of the points asked while another is pending.
        """
        self._space = space
        self._budget = budget
        restarts, extras = np.random.SeedSequence(seed).spawn(2)
        self._restart_random = np.random.default_rng(restarts)
        self._extra_random = np.random.default_rng(extras)
        self._archive = Archive(space)
        self._memory: Memory = {}
        self._recast: Recast | None = None
        self._pending: bytes | None = None
        self._starts = 0

    @abstractmethod
    def _solver(self, start: Array) -> Solve:
        """Return the solver from this start `(d,)` of the unit cube, free of references to self."""

    def ask(self, n: int = 1) -> Array:
        """Return the solver's next point, shape `(1, d)`; a random one while that is pending."""
        if self._pending is not None:
            return self._draw()[None, :]
        point: Array | None = None
        stop = self._starts + FRUITLESS_STARTS
        while point is None:
            if self._recast is None and self._starts == stop:
                # Every point that the solver wants is known: the grid of whole numbers is small.
                return self._draw()[None, :]
            if self._recast is None:
                self._recast = self._start()
            point = self._recast.ask()
            if point is None:
                self._recast = None
        self._pending = key_of(point)
        return point[None, :]

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results for points `(n, d)`, asked or not."""
        x = np.asarray(x, dtype=float)
        finite = self._archive.add(x, evaluation)
        for row, point in enumerate(x):
            key = key_of(point)
            values = float(finite.objective[row]), finite.constraints[row]
            if key == self._pending and self._recast is not None:
                self._pending = None
                self._recast.tell(values)
            else:
                self._memory.setdefault(key, values)

    def inspect(self) -> dict[str, int]:
        """Return the number of restarts."""
        return {"restarts": max(0, self._starts - 1)}

    def close(self) -> None:
        """End the solver's thread; an ask after that starts it again."""
        if self._recast is not None:
            self._recast.close()
        self._recast = self._pending = None

    def _start(self) -> Recast:
        """Start the solver, again or for the first time."""
        dim, space = self._space.dim, self._space
        best = self._archive.best_x
        if self._starts == 0 or self._starts % 2 == 1:
            start = np.full(dim, 0.5) if best is None else self._space.to_unit(best)
            if self._starts > 0:
                start += self.RESTART_NOISE * self._restart_random.standard_normal(dim)
        else:
            start = self._restart_random.random(dim)
        start = np.clip(start, 0.0, 1.0)
        if self._starts == 0 and best is not None:
            # To the unit cube and back is a rounding away: still the same point.
            self._memory.setdefault(key_of(space.place(start[None])), self._memory[key_of(best)])
        self._starts += 1
        solve, placed = self._solver(start), dict[bytes, Array]()

        def place(unit: Array) -> Array:
            # Solvers come back to a point, and to place it may take a solver of its own.
            key = unit.tobytes()
            if key not in placed:
                placed[key] = space.place(unit[None])[0]
            return placed[key]

        return Recast(lambda evaluate: solve(lambda unit: evaluate(place(unit))), self._memory)

    def _draw(self) -> Array:
        """Draw a point `(d,)` at random, not a known or pending one if that can be helped."""
        for _ in range(DRAWS):
            point: Array = self._space.sample(1, self._extra_random)[0]
            key = key_of(point)
            if key not in self._memory and key != self._pending:
                break
        return point
