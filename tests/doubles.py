"""Small problems and optimizers that behave, or misbehave, in one definite way."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from cbo_suite import Evaluation, Space
from cbo_suite.journal import Contents, read_journal


class RunSettings(TypedDict, total=False):
    """What a test gives to `cbo_suite.run` again and again."""

    budget: int
    batch_size: int
    n_init: int
    seed: int


def contents_of(path: Path) -> Contents:
    """Read a journal that is there."""
    contents = read_journal(path)
    assert contents is not None
    return contents


def without_times(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a journal with every time taken out, and the checksums over them."""
    lines = [json.loads(raw) for raw in path.read_bytes().splitlines()]
    times = ("seconds_", "chain")
    return [{k: v for k, v in line.items() if not k.startswith(times)} for line in lines]


def rechained(journal: bytes) -> bytes:
    """Return a journal with checksums that fit its lines, as a forger would make them."""
    lines, before = [], b""
    for line in journal.splitlines():
        body = line[: line.rindex(b',"chain":"')]
        before = hashlib.sha256(before + body).hexdigest()[:16].encode()
        lines.append(body + b',"chain":"' + before + b'"}\n')
    return b"".join(lines)


class Disc:
    """Minimise x1 + x2 inside a disc; a tiny problem that counts its calls."""

    id = "disc-2d-v1"

    def __init__(self, pause: float = 0.0) -> None:
        """Pause `pause` seconds per call."""
        self.space = Space(np.array([-1.0, -1.0]), np.array([1.0, 2.0]), 1)
        self.pause = pause
        self.points: list[np.ndarray] = []

    def evaluate(self, x: np.ndarray) -> Evaluation:
        """Evaluate points of shape (n, 2) and remember them."""
        self.points.extend(x)
        time.sleep(self.pause)
        return Evaluation(x.sum(axis=1), (x**2).sum(axis=1)[:, None] - 0.5)


class Scripted(Disc):
    """A disc that answers with whatever a function makes of the points."""

    id = "scripted-2d-v1"

    def __init__(self, answer: Callable[[np.ndarray], Any]) -> None:
        """Keep the function."""
        super().__init__()
        self.answer = answer

    def evaluate(self, x: np.ndarray) -> Any:
        """Answer as scripted."""
        self.points.extend(x)
        return self.answer(x)


class Hill:
    """A random step from the best point: depends on every told value and on the order."""

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Start with nothing known."""
        self.space = space
        self.random = np.random.default_rng(seed)
        self.best = np.full(space.dim, 0.5)
        self.value = np.inf
        self.asks = 0

    def ask(self, n: int = 1) -> np.ndarray:
        """Step from the best point."""
        self.asks += 1
        step = self.random.normal(scale=0.1, size=(n, self.space.dim))
        return self.space.from_unit(np.clip(self.best + step, 0, 1))

    def tell(self, x: np.ndarray, evaluation: Evaluation) -> None:
        """Move to the point of least penalised value."""
        value = np.nan_to_num(evaluation.objective, nan=1e9) + 100 * np.nan_to_num(
            evaluation.violation, posinf=1e9
        )
        if value.min() < self.value:
            self.value = float(value.min())
            self.best = self.space.to_unit(x[value.argmin()])


class Expectant(Hill):
    """Steps that depend on how many points of a design were expected, and when that was said."""

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Expect nothing yet."""
        super().__init__(space, budget=budget, batch_size=batch_size, seed=seed)
        self.expected = 0

    def expect_design(self, n: int) -> None:
        """Keep the number, if nothing was told yet."""
        assert self.value == np.inf
        self.expected += n

    def ask(self, n: int = 1) -> np.ndarray:
        """Step, and turn by the number."""
        unit = self.space.to_unit(super().ask(n))
        return self.space.from_unit((unit + 0.01 * self.expected) % 1.0)


class StatefulHill(Hill):
    """The same with a state, so that resuming asks nothing again."""

    def get_state(self) -> dict[str, Any]:
        """Return everything but the told data."""
        raw = self.random.bit_generator.state
        halves = {key: [value >> 64, value & (2**64 - 1)] for key, value in raw["state"].items()}
        rest = [raw["has_uint32"], raw["uinteger"]]
        return {"best": self.best.tolist(), "value": repr(self.value), "rng": halves, "rest": rest}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take everything from the state."""
        self.best = np.array(state["best"])
        self.value = float(state["value"])
        whole = {key: (high << 64) + low for key, (high, low) in state["rng"].items()}
        self.random.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": whole,
            "has_uint32": state["rest"][0],
            "uinteger": state["rest"][1],
        }


def defective(ask: Callable[..., Any] | None = None, tell: Callable[..., Any] | None = None) -> Any:
    """Make an optimizer class that asks or tells in a way of its own."""

    class Defective(Hill):
        """An optimizer that breaks the contract."""

        def ask(self, n: int = 1) -> Any:
            """Ask as scripted."""
            return super().ask(n) if ask is None else ask(self, n)

        def tell(self, x: np.ndarray, evaluation: Evaluation) -> None:
            """Tell as scripted."""
            if tell is not None:
                tell(self, x, evaluation)
            super().tell(x, evaluation)

    return Defective
