"""The side that asks."""

from __future__ import annotations

import os
import subprocess
import sys
from types import TracebackType
from typing import IO, Any, cast

import msgspec
import numpy as np

from cbo_suite.apart.messages import Answer, Ask, ExpectDesign, Load, Make, Request, Tell, pack
from cbo_suite.errors import CboError, MissingExtra
from cbo_suite.harness import Factory
from cbo_suite.protocols import Array, Evaluation, Optimizer, Space
from cbo_suite.system import ONE_THREAD

# The longest line that is read: the points of a very large batch.
MAX_LINE_BYTES = 64 * 2**20


class OptimizerProcess:
    """A process with one optimizer, which ends with the context."""

    def __init__(self, optimizer: str) -> None:
        """Start the process and let it find the optimizer.

        Raises:
            MissingExtra: It is not installed, or a library that it needs.
            CboError: Its code cannot be imported.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cbo_suite.apart.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | ONE_THREAD,
        )
        # Both are pipes: that is what was asked for.
        self._requests = cast(IO[bytes], self._process.stdin)
        self._answers = cast(IO[bytes], self._process.stdout)
        try:
            self._sequential = self.send(Load(optimizer)).sequential
        except CboError:
            self.close()
            raise

    def send(self, request: Request) -> Answer:
        """Send a request and wait for its answer.

        Raises:
            MissingExtra: The optimizer lacks a library.
            CboError: It failed, or its process ended.
        """
        try:
            self._requests.write(msgspec.json.encode(request) + b"\n")
            self._requests.flush()
            line = self._answers.readline(MAX_LINE_BYTES)
            answer = msgspec.json.decode(line, type=Answer)
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise CboError(f"the process of the optimizer broke off: {error}") from error
        if answer.error:
            raise MissingExtra(answer.error) if answer.missing else CboError(answer.error)
        return answer

    @property
    def factory(self) -> Factory:
        """The factory of the optimizer, to be called once."""

        def make(
            space: Space, *, budget: int, batch_size: int, seed: int, **options: Any
        ) -> Optimizer:
            self.send(
                Make(
                    options=options,
                    lower=space.lower.tolist(),
                    upper=space.upper.tolist(),
                    num_constraints=space.num_constraints,
                    integer=np.flatnonzero(space.integer).tolist(),
                    log_scale=np.flatnonzero(space.log_scale).tolist(),
                    linear_matrix=space.linear_matrix.tolist(),
                    linear_limit=space.linear_limit.tolist(),
                    budget=budget,
                    batch_size=batch_size,
                    seed=seed,
                )
            )
            return _Remote(self, space.dim)

        make.sequential = self._sequential  # type: ignore[attr-defined]
        return make

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> OptimizerProcess:
        """Return the process itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the process."""
        self.close()


class _Remote:
    """The optimizer of another process."""

    def __init__(self, process: OptimizerProcess, dim: int) -> None:
        """Keep the way to it."""
        self._process, self._dim = process, dim

    def expect_design(self, n: int) -> None:
        """Say that a design of `n` points will be told, to whom wants to know."""
        self._process.send(ExpectDesign(n))

    def ask(self, n: int = 1) -> Array:
        """Ask for points; what is no table of numbers is refused by who asked."""
        numbers = np.frombuffer(self._process.send(Ask(n)).x, dtype="<f8")
        if numbers.size % self._dim:
            raise CboError(f"{numbers.size} numbers are no points of {self._dim} coordinates")
        return numbers.reshape(-1, self._dim)

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Tell points and values."""
        self._process.send(Tell(*(pack(array) for array in (x, *evaluation))))
