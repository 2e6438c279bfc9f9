"""Evolution strategy with improved stochastic ranking, of pymoo, as ask/tell.

Source: T. P. Runarsson and X. Yao, "Search biases in constrained evolutionary optimization", IEEE
Transactions on Systems, Man and Cybernetics C, 2005, doi:10.1109/TSMCC.2004.841906; J. Blank and K.
Deb, "pymoo", IEEE Access, 2020, doi:10.1109/ACCESS.2020.2990567. The method card is
docs/optimizers/isres.md.
"""

from __future__ import annotations

import warnings
from collections import deque
from typing import Any

import numpy as np

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.shared.archive import Archive
from cbo_suite.optimizers.shared.library import Library
from cbo_suite.protocols import Array, Evaluation, Space

LIBRARY = Library("pymoo.algorithms.soo.nonconvex.isres", "pymoo", "0.6.2", "pymoo")
# Offspring of a generation: the library's number, but no fewer generations than ten, and one
# parent for every seven of them, of which two are needed.
MOST_OFFSPRING, FEWEST_OFFSPRING, GENERATIONS = 200, 14, 10


class Isres:
    """The (mu, 7 mu) strategy ISRES."""

    def __init__(
        self,
        space: Space,
        *,
        budget: int,
        batch_size: int = 1,
        seed: int = 0,
        offspring: int | None = None,
    ) -> None:
        """Prepare a run.

        Args:
            space: The box and the number of constraints.
            budget: Number of evaluations of the run: a tenth of it makes a generation.
            batch_size: Not used: a generation is complete when all its results were told.
            seed: Fixes all randomness.
            offspring: Points of a generation, at least 14; by default a tenth of the budget, at
                most the 200 of the library.

        Raises:
            InvalidTask: Too few offspring.
            MissingExtra: pymoo is not installed.
        """
        if offspring is not None and offspring < FEWEST_OFFSPRING:
            raise InvalidTask(f"offspring must be at least {FEWEST_OFFSPRING}, got {offspring!r}")
        self._isres = LIBRARY.load("isres")
        self._space, self._seed = space, seed
        share = max(FEWEST_OFFSPRING, budget // GENERATIONS)
        self._offspring = offspring or min(MOST_OFFSPRING, share)
        self._random = np.random.default_rng(seed)
        self._archive = Archive(space)
        self._design: list[tuple[Array, float, Array]] = []
        self._algorithm: Any = None
        self._fresh: deque[Any] = deque()
        # Individuals under way, by the points they were asked as.
        self._pending: dict[bytes, list[Any]] = {}
        self._told: list[Any] = []
        self._generations = 0

    def ask(self, n: int = 1) -> Array:
        """Return up to `n` points of the present generation, shape `(k, d)`."""
        if self._algorithm is None:
            self._start()
        if not self._fresh:
            # All of the generation are under way: more of the same parents.
            self._fresh.extend(self._algorithm.ask())
        points: list[Array] = []
        while self._fresh and len(points) < n:
            individual = self._fresh.popleft()
            x = self._space.place(np.asarray(individual.X, dtype=float)[None])[0]
            if x.tobytes() in self._pending:
                # A second copy of a point under way would be worth nothing.
                x = self._space.sample(1, self._random)[0]
            self._pending.setdefault(x.tobytes(), []).append(individual)
            points.append(x)
        return np.array(points)

    def tell(self, x: Array, evaluation: Evaluation) -> None:
        """Take in results for points `(n, d)`; those never asked can only be first parents."""
        x = np.asarray(x, dtype=float)
        finite = self._archive.add(x, evaluation)
        for point, objective, constraints in zip(x, *finite, strict=True):
            waiting = self._pending.get(point.tobytes())
            if waiting:
                individual = waiting.pop(0)
                if not waiting:
                    del self._pending[point.tobytes()]
                # Where whole numbers or linear constraints have moved it, it is there.
                unit = np.clip(self._space.to_unit(point), 0.0, 1.0)
                self._told.append(_evaluated(individual, unit, float(objective), constraints))
            elif self._algorithm is None:
                self._design.append((point, float(objective), constraints))
        if len(self._told) >= self._offspring:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._algorithm.tell(infills=self._population(self._told))
            self._generations += 1
            self._told = []
            self._fresh.clear()

    def inspect(self) -> dict[str, int]:
        """Return the number of generations and the size of one."""
        return {"generations": self._generations, "offspring": self._offspring}

    def _population(self, individuals: list[Any]) -> Any:
        """Put individuals into a population of the library."""
        from pymoo.core.population import Population

        return Population.create(*individuals)

    def _start(self) -> None:
        """Begin with the design as parents, or with random points that are still to be told."""
        from pymoo.core.individual import Individual
        from pymoo.core.problem import Problem
        from pymoo.core.termination import NoTermination

        dim = self._space.dim
        problem = Problem(
            n_var=dim, n_obj=1, n_ieq_constr=self._space.num_constraints, xl=0.0, xu=1.0
        )
        parents = [
            _evaluated(
                Individual(), np.clip(self._space.to_unit(point), 0.0, 1.0), objective, constraints
            )
            for point, objective, constraints in self._design
        ]
        if not parents:
            # Without values all are the same: chance decides among the first generation.
            middle = 0.0, np.zeros(self._space.num_constraints)
            parents = [
                _evaluated(Individual(), unit, *middle) for unit in self._random.random((2, dim))
            ]
        population = self._population(parents)
        algorithm = self._isres.ISRES(n_offsprings=self._offspring, sampling=population)
        algorithm.setup(problem, termination=NoTermination(), seed=self._seed % 2**32)
        _rank_repeatably(algorithm)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            algorithm.tell(infills=algorithm.ask())
        self._algorithm = algorithm


def _evaluated(individual: Any, unit: Array, objective: float, constraints: Array) -> Any:
    """Give an individual its place in the unit cube `(d,)` and its values."""
    individual.X = unit
    individual.F, individual.G = np.array([objective]), np.array(constraints)
    individual.H = np.empty(0)
    individual.evaluated = {"F", "G", "H"}
    return individual


def _rank_repeatably(algorithm: Any) -> None:
    """Let stochastic ranking use the algorithm's random numbers: by itself it takes new ones."""
    survival = algorithm.survival
    rank = survival.do

    def do(*arguments: Any, **options: Any) -> Any:
        return rank(*arguments, **options | {"random_state": algorithm.random_state})

    survival.do = do
