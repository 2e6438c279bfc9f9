"""The side that answers: `python -m cbo_suite.apart.child`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module

import msgspec
import numpy as np

from cbo_suite.apart.messages import Answer, Ask, ExpectDesign, Load, Make, Request, pack
from cbo_suite.errors import MissingExtra, UnknownId, describe
from cbo_suite.protocols import Evaluation, Optimizer, Space
from cbo_suite.registry import optimizer_factory


class Server:
    """Holds the optimizer and does what is asked."""

    factory: Callable[..., Optimizer]
    optimizer: Optimizer
    space: Space

    def answer(self, request: Request) -> Answer:
        """Do what is asked."""
        if isinstance(request, Load):
            self.factory = _find(request.optimizer)
            return Answer(sequential=bool(getattr(self.factory, "sequential", False)))
        if isinstance(request, Make):
            self.make(request)
        elif isinstance(request, ExpectDesign):
            getattr(self.optimizer, "expect_design", lambda n: None)(request.n)
        elif isinstance(request, Ask):
            x = np.asarray(self.optimizer.ask(request.n), dtype=float)
            return Answer(x=pack(x))
        else:
            parts = (request.x, request.objective, request.constraints)
            x, objective, constraints = (np.frombuffer(part, dtype="<f8") for part in parts)
            n = len(objective)
            evaluation = Evaluation(objective, constraints.reshape(n, self.space.num_constraints))
            self.optimizer.tell(x.reshape(n, self.space.dim), evaluation)
        return Answer()

    def make(self, request: Make) -> None:
        """Make space and optimizer."""
        linear = (request.linear_matrix, request.linear_limit)
        self.space = Space(
            request.lower,
            request.upper,
            request.num_constraints,
            integer=np.array(request.integer, dtype=int),
            log_scale=np.array(request.log_scale, dtype=int),
            linear=linear if request.linear_limit else None,
        )
        self.optimizer = self.factory(
            self.space,
            budget=request.budget,
            batch_size=request.batch_size,
            seed=request.seed,
            **request.options,
        )


def _find(optimizer: str) -> Callable[..., Optimizer]:
    """Find the factory of an optimizer by its id or its place."""
    module, _, attribute = optimizer.partition(":")
    if not attribute:
        return optimizer_factory(optimizer)
    factory: Callable[..., Optimizer] = getattr(import_module(module), attribute)
    return factory


def main() -> None:
    """Answer until the other side is gone."""
    # What the optimizer prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = Server()
    for line in sys.stdin.buffer:
        try:
            answer = server.answer(msgspec.json.decode(line, type=Request))
        except (MissingExtra, UnknownId) as error:
            answer = Answer(error=str(error), missing=True)
        except Exception as error:
            answer = Answer(error=describe(error) or type(error).__name__)
        answers.write(msgspec.json.encode(answer) + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
