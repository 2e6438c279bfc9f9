"""Samplers of Optuna as ask/tell: Gaussian processes and tree-structured Parzen estimators.

Source: T. Akiba et al., "Optuna: a next-generation hyperparameter optimization framework", KDD
2019, arXiv:1907.10902; S. Watanabe, "Tree-structured Parzen estimator: understanding its algorithm
components", 2023, arXiv:2304.11127. The method card is docs/optimizers/optuna.md.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from cbo_suite.optimizers.shared.archive import Archive
from cbo_suite.optimizers.shared.library import Library
from cbo_suite.protocols import Array, Evaluation, Space

LIBRARY = Library("optuna", "optuna", "5.0.0", "optuna")
TORCH = Library("torch", "torch", "2.13.0", "optuna")


class _Study(ABC):
    """A study of Optuna, a trial for each point."""

    ID: ClassVar[str]

    def __init__(self, space: Space, *, budget: int, batch_size: int = 1, seed: int = 0) -> None:
        """Begin a study without trials.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the run, which makes no difference.
            batch_size: Number of points asked together.
            seed: Fixes all randomness.

        Raises:
            MissingExtra: Optuna, or PyTorch for Gaussian processes, is not installed.
        """
        self._library = LIBRARY.load(self.ID)
        self._space = space
        self._archive = Archive(space)
        self._random = np.random.default_rng(seed)
        self._distributions = {f"x{index}": self._distribution(index) for index in range(space.dim)}
        # Trials under way by the points they were asked as.
        self._running: dict[bytes, list[Any]] = {}
        # Optuna's own seeds have 32 bits.
        short = int(np.random.SeedSequence(seed).generate_state(1)[0])
        with _quiet(self._library):
            self._study = self._library.create_study(
                direction="minimize", sampler=self._sampler(short)
            )

    @abstractmethod
    def _sampler(self, seed: int) -> Any:
        """Make the sampler at the library's settings."""

    def _distribution(self, index: int) -> Any:
        """What Optuna is to know of a variable."""
        space, kinds = self._space, self._library.distributions
        low, high, log = space.lower[index], space.upper[index], bool(space.log_scale[index])
        if space.integer[index]:
            return kinds.IntDistribution(int(low), int(high), log=log)
        return kinds.FloatDistribution(float(low), float(high), log=log)

    def ask(self, n: int = 1) -> Array:
        """Propose `n` points, shape `(n, d)`: one trial each, which then counts as running."""
        with _quiet(self._library):
            return np.array([self._ask_one() for _ in range(n)])

    def _ask_one(self) -> Array:
        """Propose one point, shape `(d,)`."""
        space = self._space
        trial = self._study.ask(self._distributions)
        proposed = np.array([float(trial.params[name]) for name in self._distributions])
        x: Array = space.project(np.clip(proposed, space.lower, space.upper)[None])[0]
        if x.tobytes() in self._running:
            # A second copy of a point under way would be worth nothing.
            x = space.sample(1, self._random)[0]
        if not np.array_equal(x, proposed):
            # The study is to know where the point really is.
            self._study.tell(trial, state=self._library.trial.TrialState.FAIL)
            self._study.enqueue_trial(self._parameters(x))
            trial = self._study.ask(self._distributions)
        self._running.setdefault(x.tobytes(), []).append(trial)
        return x

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results for points `(n, d)`: of running trials, or as trials of their own."""
        x = np.asarray(x, dtype=float)
        finite = self._archive.add(x, evaluation)
        with _quiet(self._library):
            for point, objective, constraints in zip(x, *finite, strict=True):
                limits = {f"c{index}": float(value) for index, value in enumerate(constraints)}
                waiting = self._running.get(point.tobytes())
                if not waiting:
                    self._add(point, float(objective), limits)
                    continue
                trial = waiting.pop(0)
                if not waiting:
                    del self._running[point.tobytes()]
                for name, value in limits.items():
                    trial.set_constraint(name, value)
                self._study.tell(trial, float(objective))

    def _add(self, point: Array, objective: float, limits: dict[str, float]) -> None:
        """Take in the result of a point `(d,)` that was never asked."""
        inside = np.clip(point, self._space.lower, self._space.upper)
        self._study.add_trial(
            self._library.create_trial(
                params=self._parameters(inside),
                distributions=self._distributions,
                value=objective,
                constraints=limits,
            )
        )

    def _parameters(self, x: Array) -> dict[str, float | int]:
        """Name the variables of a point `(d,)`."""
        whole = self._space.integer
        return {
            name: int(value) if whole[index] else float(value)
            for index, (name, value) in enumerate(zip(self._distributions, x, strict=True))
        }


class OptunaGP(_Study):
    """Optuna's `GPSampler`."""

    ID = "optuna-gp"

    def _sampler(self, seed: int) -> Any:
        """Gaussian processes and log constrained expected improvement; running trials count."""
        TORCH.load(self.ID)
        return self._library.samplers.GPSampler(seed=seed)


class OptunaTPE(_Study):
    """Optuna's `TPESampler`."""

    ID = "optuna-tpe"

    def _sampler(self, seed: int) -> Any:
        """Parzen estimators; running trials count."""
        return self._library.samplers.TPESampler(seed=seed)


@contextmanager
def _quiet(library: Any) -> Iterator[None]:
    """Keep the library's log and its remarks on what is experimental off the console."""
    before = library.logging.get_verbosity()
    library.logging.set_verbosity(library.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        library.logging.set_verbosity(before)
